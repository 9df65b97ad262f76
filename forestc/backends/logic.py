"""Tables as bits, for every hardware description."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from forestc.netlist.ir import Table, WordType


class Lookup(NamedTuple):
    """What a table holds. words: of each word its bits and its factor, from the lowest bits of the index on."""

    words: tuple[tuple[int, int], ...]
    constant: int

    @property
    def size(self) -> int:
        """The number of places of the table."""
        return 1 << sum(bits for bits, _ in self.words)

    def values(self, place: int) -> int:
        """A bit of the sum for each index: as a number, whose bit `index` it is."""
        values = 0
        for index in range(self.size):
            total, rest = self.constant, index
            for bits, factor in self.words:
                total, rest = total + factor * (rest & ((1 << bits) - 1)), rest >> bits
            values |= (total >> place & 1) << index
        return values


def lookup_of(table: Table, types: Sequence[WordType]) -> Lookup:
    return Lookup(tuple((types[a].width, factor) for a, factor in table.words), table.constant)
