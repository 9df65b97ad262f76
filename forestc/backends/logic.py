"""Comparators and tables as logic of bits, for every hardware description."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    """The lookup that computes a table's sum."""
    return Lookup(tuple((types[a].width, factor) for a, factor in table.words), table.constant)


def below(name: str, word: WordType, threshold: int) -> str:
    """Whether a word is below a constant, in Python."""
    place_of = "{}[{}]".format if word.width > 1 else "{}".format
    return compared(word, threshold, lambda place, inverted: ("~" if inverted else "") + place_of(name, place))


def compared(
    word: WordType, threshold: int, bit: Callable[[int, bool], str], operators: tuple[str, str] = ("&", "|")
) -> str:
    """Whether a word is below a constant, bit by bit: `and` where the constant's bit is 0, `or` where it is 1, from the
    constant's lowest 1. Synthesis maps it to a few LUTs, where `<` would become a carry chain.

    bit: of a place of the word, inverted or not. operators: and, or.
    """
    text = ""
    for index, (place, inverted, operator) in enumerate(steps(word, threshold)):
        read = bit(place, inverted)
        inner = f"({text})" if index > 1 else text
        text = f"{read} {operators[operator]} {inner}" if text else read
    return text


def steps(word: WordType, threshold: int) -> list[tuple[int, bool, int]]:
    """The bits of a word that a comparison with a constant reads, the innermost first: (place, whether it is inverted,
    how it is joined to what is before it, 0: and, 1: or)."""
    pattern = threshold & ((1 << word.width) - 1)
    if word.signed:  # two's complement numbers are ordered as their patterns with the highest bit inverted
        pattern ^= 1 << (word.width - 1)
    low = (pattern & -pattern).bit_length() - 1
    sign = word.width - 1 if word.signed else -1
    return [(place, place != sign, pattern >> place & 1) for place in range(low, word.width)]
