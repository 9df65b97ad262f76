"""What differs between machines or serves all rooms: processes, signals, locks, files written whole, records read by
schema, limits of time, compiled functions, and the version."""
