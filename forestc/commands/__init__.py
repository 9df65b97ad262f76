"""Holds one module for each command of the command line, with the function that it calls."""
