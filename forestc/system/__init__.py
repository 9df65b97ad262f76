"""Code that depends on the machine or serves the whole package, such as signals, time limits and records."""
