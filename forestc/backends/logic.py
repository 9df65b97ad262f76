"""How hardware descriptions spell cells, and comparators and tables as logic of bits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from forestc.errors import InternalError
from forestc.netlist import ir
from forestc.netlist.ir import Cell, Table, WordType

MOST_INDEX_BITS = 6  # of a table: HLS looks its bits up in a number of 64 bits


class Spelling(NamedTuple):
    """Formats of a cell from the nets that it reads; empty where a language needs more than these."""

    verilog: str = ""
    vhdl: str = ""
    amaranth: str = ""
    hls: str = ""


SPELLINGS: Mapping[type[Cell], Spelling] = {
    ir.Not: Spelling("~{0}", "not {0}", "~{0}"),
    ir.And: Spelling("{0} & {1}", "{0} and {1}", "{0} & {1}", "{0} && {1}"),
    ir.Or: Spelling("{0} | {1}", "{0} or {1}", "{0} | {1}", "{0} || {1}"),
    ir.Mux: Spelling("{0} ? {1} : {2}", "{1} when {0} = '1' else {2}", "Mux({0}, {1}, {2})", "{0} ? {1} : {2}"),
    # + 0: yosys does not prove another name of the same bits
    ir.Shift: Spelling("{{{0}, 1'd0}}", "{0} & '0'", "Cat(Const(0, 1), {0}) + 0"),
    ir.Extend: Spelling(amaranth="{0} + 0", hls="{0}"),
    ir.Compare: Spelling(amaranth="{0} < {1}", hls="{0} < {1}"),
}


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
    """The lookup that computes a table's sum. Raises InternalError for more bits than a table has in every language."""
    lookup = Lookup(tuple((types[a].width, factor) for a, factor in table.words), table.constant)
    if lookup.size > 1 << MOST_INDEX_BITS:
        raise InternalError(f"a table of {lookup.size:,} places; the most are {1 << MOST_INDEX_BITS}")
    return lookup


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
