"""The search over passes and their settings for `-O2` and `-O3`; `explore` uses it, too."""
