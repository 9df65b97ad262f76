"""The C backend: one C99 header, and what builds and tests it."""

from forestc.backends.c.header import (
    KITS,
    LAYOUTS,
    VALUES,
    COptions,
    chosen_layout,
    emit,
    estimated,
    layout_told,
)

__all__ = ["KITS", "LAYOUTS", "VALUES", "COptions", "chosen_layout", "emit", "estimated", "layout_told"]
