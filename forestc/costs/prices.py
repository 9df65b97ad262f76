"""Prices of the parts of a forest, by device family, for passes that make forests smaller.

The prices of lut6, the default, were set by hand for 6-input LUTs. Those of the other families were fitted on plain
forests, and follow from the family's LUTs and carry chains. They are rough: passes compare parts by them long before
there is a netlist to count.
"""

from __future__ import annotations

from dataclasses import dataclass

from forestc.costs.devices import FAMILIES
from forestc.costs.firmware import DEFAULT_CPU, firmware_costs
from forestc.errors import OptionError, known_names

DEFAULT_COST = "lut6"
SUM_BITS = 3  # adder bits per bit of a tree's leaves: its share of an adder tree, whose sums get wider


@dataclass(frozen=True)
class Prices:
    """Prices in logic cells with one LUT each; of firmware in bytes or instructions.

    compared: of a comparison with a constant, indexed by its bits; a narrow one is absorbed by the LUT that reads it.
    Beyond the table, each `further_bits` bits, or part of them, add one. split: of a split's multiplexer, without its
    comparison. tree: of a tree's operand in the sums and the decision. Both per bit of a leaf and output if per_bit.
    firmware: whether a processor compares the words, whole bytes at a time. lut_inputs: of the family's LUTs.
    """

    compared: tuple[float, ...]
    further_bits: int
    split: float
    tree: float
    per_bit: bool = True
    firmware: bool = False
    lut_inputs: int = 6

    def comparison(self, bits: int) -> float:
        """The price of comparing a word of `bits` bits with a constant."""
        last = len(self.compared) - 1
        if bits <= last:
            return self.compared[max(0, bits)]
        return self.compared[last] - (last - bits) // self.further_bits

    def table(self, conditions: int) -> float:
        """The price of a tree that asks all its conditions of every row, per bit of its leaves, beyond `tree`.

        Up to the inputs of a LUT, that of `tree` is enough; each further condition doubles the LUTs, with multiplexers
        between them. A processor has all the splits of the full tree.
        """
        if self.firmware:
            return self.split * ((1 << conditions) - 1)
        return (1.0 + self.split) * ((1 << max(0, conditions - self.lut_inputs)) - 1)


# A tree of few inputs fits in one LUT, however many splits it has: a tree costs that LUT and its bit in the sums.
_LUT6 = Prices((0.0, 0.05, 0.4, 0.7, 1.0, 1.0, 1.0), 5, split=0.1, tree=3.0)
# Firmware is priced in units of as many bytes, or instructions (cycles on AVR): about what a LUT is among LUTs.
UNIT = 30.0
# LUTs of a multiplexer, or a gate above one-bit leaves; and of a bit of an adder
_SPLIT_AND_SUM_BIT = {"xcup": (0.2515, 0.6764), "ecp5": (0.7466, 0.0), "ice40": (0.4861, 1.0338)}
# Bytes of the layout `nodes`: a condition in the table is a slot and a threshold; a split is a symbol and a skip, and
# brings one more leaf; a tree is a leaf and its place.
_CONDITION_BYTES, _SPLIT_BYTES, _TREE_BYTES = 3, 3, 3
# What a distinct condition is priced above that, whatever its bits: conditions that splits share are known to GCC,
# make subtrees equal, and were found to give smaller and faster headers than their own bytes and instructions do.
_SHARED = 1.0
_MOST_BITS = 65  # of a word, and none
FIGURES = ("flash", "instructions")


def _firmware(figure: str, cpu: str) -> Prices:
    """Prices of C on a processor: bytes of `nodes`, the smallest layout, or instructions of `branches`, the fastest."""
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
        split=costs["split"] / UNIT / 2,  # half of the rows come to it
        tree=costs["tree"] / UNIT,
        per_bit=False,
        firmware=True,
    )


def prices(cost: str) -> Prices:
    """The prices of a cost's name. Raises OptionError for an unknown one, ForestcError for damaged firmware costs."""
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
        # comparisons of features with constants are written as logic and go into LUTs, carry chains or not
        compared=_LUT6.compared[: family.lut_inputs + 1],
        further_bits=family.lut_inputs - 1,
        split=split,
        tree=SUM_BITS * max(family.chain_cells, sum_bit),
        lut_inputs=family.lut_inputs,
    )
