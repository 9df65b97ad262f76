"""Holds the commands: a module for each, with a function of the same name."""
