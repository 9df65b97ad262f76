"""Prunes, rewires and fits splits and leaves, for a price or without changing a decision."""
