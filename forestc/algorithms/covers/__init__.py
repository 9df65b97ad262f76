"""Covers by column generation: rules, shared terms, factorization of binary matrices."""
