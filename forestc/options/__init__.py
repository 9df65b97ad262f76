"""Defines the options of all commands, each written once, as a field of a frozen dataclass; see `fields`."""
