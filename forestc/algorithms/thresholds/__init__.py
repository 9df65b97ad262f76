"""How far thresholds may move without changing paths, and the fewest points that can replace them."""
