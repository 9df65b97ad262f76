"""Searches over passes and their settings for `-O2` and `-O3`; `explore` uses parts of it."""
