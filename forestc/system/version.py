"""The version of forestc."""

__version__ = "0.1.0"
