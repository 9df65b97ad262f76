"""Describes options: fields of frozen dataclasses with flags and help, amounts, and values that searches try."""
