"""Separation: where two ensembles decide differently, and the trees that keep all decisions."""
