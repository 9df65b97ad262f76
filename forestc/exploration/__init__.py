"""Searches for designs by accuracy and size; the result is a study with a front of checked designs."""
