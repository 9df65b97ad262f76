"""The C backend: one C99 header, and what builds and tests it."""

from forestc.backends.c.header import (
    KITS,
    LAYOUTS,
    COptions,
    chosen_layout,
    emit,
    estimated,
    layout_told,
)

__all__ = ["KITS", "LAYOUTS", "COptions", "chosen_layout", "emit", "estimated", "layout_told"]
