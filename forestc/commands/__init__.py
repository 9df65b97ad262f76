"""Holds the functions that the command line calls, in a module for each command."""
