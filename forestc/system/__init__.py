"""What the machine is asked for: processes, signals, locks, files written whole, records read by schema; and the
version."""
