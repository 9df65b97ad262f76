"""The C backend: one C99 header, and what builds and tests it."""

from forestc.backends.c.choice import KITS, check, chosen_layout
from forestc.backends.c.header import emit, estimated, layout_record
from forestc.options.c import COptions

__all__ = ["KITS", "COptions", "check", "chosen_layout", "emit", "estimated", "layout_record"]
