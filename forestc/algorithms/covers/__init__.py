"""Covers by column generation: rules, factorization of binary matrices."""
