"""The one search over passes and their settings: `-O2`, `-O3` and `explore` stand on it."""
