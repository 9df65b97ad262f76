"""Separation: tests whether two tree ensembles decide alike on every input."""
