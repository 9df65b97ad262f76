"""Separation: whether two tree ensembles decide alike on every input, and an input on which they differ."""
