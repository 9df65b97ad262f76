"""Writes constant tables in C. On AVR they stay in flash memory (PROGMEM)."""

from __future__ import annotations

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

    def read(self, name: str, index: str) -> str:
        """Returns a C expression for the entry of a table at an index."""
        return self.read_at(name, f"{self.prefix}_{name} + {index}")

    def read_at(self, name: str, address: str) -> str:
        """Returns a C expression for the entry of a table at an address."""
        kind = self.kinds[name]
        text = f"{self.prefix.upper()}_READ{kind.strip('uint_')}({address})"
        return f"({kind}){text}" if not kind.startswith("u") else text
