"""Level 1: what a tree ensemble means."""
