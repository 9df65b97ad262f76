"""Code that depends on the machine or serves the whole package: processes, signals, locks, files written completely,
records read by schema, time limits, compiled functions, and the version."""
