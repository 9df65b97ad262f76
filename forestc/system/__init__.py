"""What differs from one operating system to another: processes, signals, locks, and files written whole."""
