"""Prunes and rewires splits and fits leaves, either for a price on hardware or without changing a decision."""
