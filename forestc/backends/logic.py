"""The text of cells in each hardware language. Comparators and tables are written as logic of single bits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from forestc.errors import InternalError
from forestc.netlist import ir
from forestc.netlist.ir import Cell, Table, WordType

MOST_INDEX_BITS = 6  # limits the index bits of a table, which HLS code stores in 64 bits


class Spelling(NamedTuple):
    """A cell as text in each language: a format string with places for net names, or "" if unused."""

    verilog: str = ""
    vhdl: str = ""
    amaranth: str = ""
    hls: str = ""


SPELLINGS: Mapping[type[Cell], Spelling] = {
    ir.Not: Spelling("~{0}", "not {0}", "~{0}"),
    ir.And: Spelling("{0} & {1}", "{0} and {1}", "{0} & {1}", "{0} && {1}"),
    ir.Or: Spelling("{0} | {1}", "{0} or {1}", "{0} | {1}", "{0} || {1}"),
    ir.Mux: Spelling("{0} ? {1} : {2}", "{1} when {0} = '1' else {2}", "Mux({0}, {1}, {2})", "{0} ? {1} : {2}"),
    # Adding zero helps yosys, which does not prove two names of the same bits equal.
    ir.Shift: Spelling("{{{0}, 1'd0}}", "{0} & '0'", "Cat(Const(0, 1), {0}) + 0"),
    ir.Extend: Spelling(amaranth="{0} + 0", hls="{0}"),
    ir.Compare: Spelling(amaranth="{0} < {1}", hls="{0} < {1}"),
}


class Lookup(NamedTuple):
    """A table of sums: the index consists of several words, and the sum adds each word times its factor."""

    words: tuple[tuple[int, int], ...]  # (bits, factor) of each index word, lowest bits first
    constant: int  # added to each sum

    @property
    def size(self) -> int:
        return 1 << sum(bits for bits, _ in self.words)

    def values(self, position: int) -> int:
        """Returns an integer whose bit i is bit `position` of the table's sum at index i."""
        values = 0
        for index in range(self.size):
            total, rest = self.constant, index
            for bits, factor in self.words:
                total, rest = total + factor * (rest & ((1 << bits) - 1)), rest >> bits
            values |= (total >> position & 1) << index
        return values


def lookup_of(table: Table, types: Sequence[WordType]) -> Lookup:
    """Returns a netlist's table as a Lookup. Raises InternalError for an index of over MOST_INDEX_BITS bits."""
    lookup = Lookup(tuple((types[a].width, factor) for a, factor in table.words), table.constant)
    if lookup.size > 1 << MOST_INDEX_BITS:
        raise InternalError(
            f"a table of {lookup.size:,} places; the most are {1 << MOST_INDEX_BITS}", where="a cell of the netlist"
        )
    return lookup


def below(name: str, word: WordType, threshold: int) -> str:
    bit_of = "{}[{}]".format if word.width > 1 else "{}".format
    return compared(word, threshold, lambda position, inverted: ("~" if inverted else "") + bit_of(name, position))


def compared(
    word: WordType, threshold: int, bit: Callable[[int, bool], str], operators: tuple[str, str] = ("&", "|")
) -> str:
    """Returns the text of a logic expression over single bits, which is 1 if a word is below a threshold.
    bit: returns the text of one bit, given its index and True to invert it."""
    text = ""
    for index, (position, inverted, operator) in enumerate(steps(word, threshold)):
        read = bit(position, inverted)
        inner = f"({text})" if index > 1 else text
        text = f"{read} {operators[operator]} {inner}" if text else read
    return text


def steps(word: WordType, threshold: int) -> list[tuple[int, bool, int]]:
    """Returns the bits that decide if a word is below a threshold, lowest first: (index, inverted, operator). Operator
    0 (and) or 1 (or) joins a bit to the lower ones."""
    pattern = threshold & ((1 << word.width) - 1)
    if word.signed:  # Inverting the highest bit gives signed patterns the order of their numbers.
        pattern ^= 1 << (word.width - 1)
    low = (pattern & -pattern).bit_length() - 1
    sign = word.width - 1 if word.signed else -1
    return [(position, position != sign, pattern >> position & 1) for position in range(low, word.width)]
