"""Bayesian networks of bounded treewidth: learning, inference, text."""
