"""Splits and leaves: pruned, rewired and fitted at a price, or without changing a decision."""
