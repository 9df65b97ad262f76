"""Writes constant tables in C. On AVR they stay in flash memory (PROGMEM)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from forestc.backends.c.types import constant, int_type

A_LINE = 100  # characters of a line of a table


@dataclass
class FlashTables:
    """The constant tables of a C header."""

    prefix: str
    kinds: dict[str, str] = field(default_factory=dict)  # C type of the entries, by table
    text: list[str] = field(default_factory=list)  # lines of C

    def add(self, name: str, values: Sequence[int], kind: str | None = None) -> None:
        """Adds a table. kind: C type of its entries; by default the smallest that holds them."""
        kind = kind or int_type(min(0, *values), max(0, *values))
        self.kinds[name] = kind
        lines, line = [], "   "
        for value in values:
            text = f" {constant(value)},"
            if len(line) + len(text) > A_LINE:
                lines.append(line)
                line = "   "
            line += text
        head = f"static const {kind} {self.prefix}_{name}[{len(values)}] {self.prefix.upper()}_FLASH = {{"
        self.text += [head, *lines, line.rstrip(","), "};"]

    def read(self, name: str, index: str, array: str = "") -> str:
        """Returns a C expression for the entry of a table at an index. array: C name of the table or of a pointer into
        it."""
        return f"{self.prefix}_read_{self.kinds[name]}(&{array or f'{self.prefix}_{name}'}[{index}])"


def readers(prefix: str, lines: Sequence[str]) -> list[tuple[str, int]]:
    """Returns (C type, bits) of each function that reads a table's entry and that lines of C call."""
    found = set(re.findall(rf"\b{prefix}_read_(u?int(\d+)_t)\(", "\n".join(lines)))
    return sorted((kind, int(bits)) for kind, bits in found)
