"""Prices of the parts of a forest, by device family, for passes that make forests smaller.

The prices of lut6, the default, were set by hand for 6-input LUTs. Other families' prices were fitted on plain forests,
and follow from the family's LUTs and carry chains. Prices are rough: passes compare parts by them long before there is
a netlist to count.
"""

from __future__ import annotations

from dataclasses import dataclass

from forestc.costs.devices import FAMILIES
from forestc.costs.firmware import DEFAULT_CPU, firmware_costs
from forestc.errors import OptionError, known_names

DEFAULT_COST = "lut6"
SUM_BITS = 3  # bits of adders per bit of a tree's leaves: its share of an adder tree, where sums get wider


@dataclass(frozen=True)
class Prices:
    """Prices in logic cells with one LUT each; for firmware in units of 30 bytes or instructions. compared: of a
    comparison with a constant, by its bits; the LUT that reads a narrow one absorbs it. Beyond the table, each
    `further_bits` bits, or part of them, add one. split: of a split's multiplexer, without its comparison. tree: of a
    tree's operand in the sums and the decision. Both are per bit of a leaf and output if per_bit. firmware: True if a
    processor compares the words, whole bytes at a time. lut_inputs: of the family's LUTs."""

    compared: tuple[float, ...]
    further_bits: int
    split: float
    tree: float
    per_bit: bool = True
    firmware: bool = False
    lut_inputs: int = 6

    def comparison(self, bits: int) -> float:
        """Returns the price of comparing a word of `bits` bits with a constant."""
        last = len(self.compared) - 1
        if bits <= last:
            return self.compared[max(0, bits)]
        return self.compared[last] - (last - bits) // self.further_bits

    def table(self, conditions: int) -> float:
        """Returns the price of a tree that evaluates all its conditions for every row, per bit of its leaves, added to
        `tree`. Up to the inputs of a LUT, `tree` pays for it; each further condition doubles the LUTs, with
        multiplexers between them. A processor has all the splits of the full tree."""
        if self.firmware:
            return self.split * ((1 << conditions) - 1)
        return (1.0 + self.split) * ((1 << max(0, conditions - self.lut_inputs)) - 1)


# A tree of few inputs fits in one LUT, however many splits it has: a tree costs that LUT and its bit in the sums.
_LUT6 = Prices((0.0, 0.05, 0.4, 0.7, 1.0, 1.0, 1.0), 5, split=0.1, tree=3.0)
# A unit is this many bytes or instructions (cycles on AVR): to firmware about what a LUT is to a design.
UNIT = 30.0
# LUTs of a multiplexer or a gate above one-bit leaves, and of a bit of an adder.
_SPLIT_AND_SUM_BIT = {"xcup": (0.2515, 0.6764), "ecp5": (0.7466, 0.0), "ice40": (0.4861, 1.0338)}
# Bytes in the C layout `nodes`: of a condition, of a split with one more leaf, and of a tree with its first leaf.
_CONDITION_BYTES, _SPLIT_BYTES, _TREE_BYTES = 3, 3, 3
# Added to a distinct condition's price: sharing it saves more than its own bytes and instructions.
# GCC evaluates a shared condition once, and more subtrees become equal.
_SHARED = 1.0
_MOST_BITS = 65  # bits of a word, 0 to 64: the length of a table of prices
FIGURES = ("flash", "instructions")


def _firmware(figure: str, cpu: str) -> Prices:
    """Returns prices of C: bytes in the smallest layout, `nodes`, or instructions in the fastest, `branches`."""
    costs = firmware_costs()[cpu].prices
    if figure == "flash":
        table = costs["table"] / UNIT
        return Prices(
            (_SHARED + _CONDITION_BYTES * table,) * _MOST_BITS,
            _MOST_BITS,
            split=_SPLIT_BYTES * table,
            tree=_TREE_BYTES * table,
            per_bit=False,
            firmware=True,
        )
    return Prices(
        (_SHARED,) * _MOST_BITS,
        _MOST_BITS,
        split=costs["split"] / UNIT / 2,  # half of the rows reach it
        tree=costs["tree"] / UNIT,
        per_bit=False,
        firmware=True,
    )


def prices(cost: str) -> Prices:
    """Returns the prices for a cost such as lut6 or flash-avr. Raises OptionError; ForestcError for damaged costs."""
    if cost == DEFAULT_COST:
        return _LUT6
    figure, _, cpu = cost.partition("-") if isinstance(cost, str) else ("", "", "")
    if figure in FIGURES and (cpu or DEFAULT_CPU) in firmware_costs():
        return _firmware(figure, cpu or DEFAULT_CPU)
    names = [DEFAULT_COST, *_SPLIT_AND_SUM_BIT]
    names += [*FIGURES, *(f"{figure}-{cpu}" for figure in FIGURES for cpu in firmware_costs())]
    if cost not in names:
        raise OptionError(f"unknown cost {cost!r}", do=known_names(cost, names))
    family = FAMILIES[cost]
    split, sum_bit = _SPLIT_AND_SUM_BIT[cost]
    return Prices(
        # Comparisons of features with constants are written as logic and go into LUTs, whether or not there are chains.
        compared=_LUT6.compared[: family.lut_inputs + 1],
        further_bits=family.lut_inputs - 1,
        split=split,
        tree=SUM_BITS * max(family.chain_cells, sum_bit),
        lut_inputs=family.lut_inputs,
    )
