"""Trains forests for the search, some of them with the prices of hardware in mind."""
