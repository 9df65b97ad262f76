"""The C backend: writes a C99 header, and files that build and test it."""

from forestc.backends.c.choice import KITS, check, chosen_layout
from forestc.backends.c.header import emit
from forestc.options.c import COptions

__all__ = ["KITS", "COptions", "check", "chosen_layout", "emit"]
