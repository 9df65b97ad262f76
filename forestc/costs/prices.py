"""Prices of conditions, splits and trees, for passes that make forests smaller.

The prices of lut6, the default, were set by hand; other FPGA families share its prices of comparisons. Their other
prices were fitted or follow from the device.
"""

from __future__ import annotations

from dataclasses import dataclass

from forestc.costs.devices import FAMILIES
from forestc.costs.firmware import CPU_COSTS, DEFAULT_CPU
from forestc.errors import OptionError, known_names

DEFAULT_COST = "lut6"
SUM_BITS = 3  # bits of adders per bit of a leaf, as sums get wider


@dataclass(frozen=True)
class Prices:
    """Prices in logic cells with one LUT each, or for firmware in units of 30 bytes or instructions."""

    compared: tuple[float, ...]  # price of a comparison with a constant, by its bits
    further_bits: int  # number of bits beyond `compared` that cost 1
    split: float  # price of a split without its comparison
    tree: float  # price of a tree in the sums and the decision
    per_bit: bool = True  # True if split and tree are per bit of a leaf
    firmware: bool = False  # True for a processor
    lut_inputs: int = 6

    def comparison(self, bits: int) -> float:
        last = len(self.compared) - 1
        if bits <= last:
            return self.compared[max(0, bits)]
        return self.compared[last] - (last - bits) // self.further_bits

    def table(self, conditions: int) -> float:
        """Returns the price of a tree built as a truth table of this many conditions, without the price `tree`."""
        if self.firmware:
            return self.split * ((1 << conditions) - 1)
        return (1.0 + self.split) * ((1 << max(0, conditions - self.lut_inputs)) - 1)


# Splits are cheap, as a tree of few inputs fits in one LUT.
_LUT6 = Prices((0.0, 0.05, 0.4, 0.7, 1.0, 1.0, 1.0), 5, split=0.1, tree=3.0)
# Bytes or instructions (cycles on AVR) per unit of price.
UNIT = 30.0
# LUTs of a split per bit of a leaf, and LUTs per bit of an adder, by device family.
_SPLIT_AND_SUM_BIT = {
    **{"xcup": (0.2515, 0.6764), "ecp5": (0.7466, 0.0), "ice40": (0.4861, 1.0338)},
    # These families were not fitted: they have the prices of the family with the most similar LUTs.
    **dict.fromkeys(("gw1n", "gw2a", "nexus"), (0.7466, 0.0)),
    **dict.fromkeys(("machxo", "gatemate"), (0.4861, 1.0338)),
}
# Bytes of each condition, of each split and of each tree in the C layout `nodes`.
_CONDITION_BYTES, _SPLIT_BYTES, _TREE_BYTES = 3, 3, 3
# Added to the price of each distinct condition: with fewer conditions, GCC finds more equal subtrees.
_SHARED = 1.0
_MOST_BITS = 65  # entries of a table of prices, for 0 to 64 bits
FIGURES = ("flash", "instructions")


def _firmware(figure: str, cpu: str) -> Prices:
    """Returns the prices of C code on a processor: bytes in the layout `nodes`, or instructions in the layout
    `branches`."""
    costs = CPU_COSTS[cpu]
    byte = costs.table / UNIT
    condition, split, tree = _CONDITION_BYTES * byte, _SPLIT_BYTES * byte, _TREE_BYTES * byte
    if figure == "instructions":  # half of the rows reach a split
        condition, split, tree = 0.0, costs.split / UNIT / 2, costs.tree / UNIT
    return Prices((_SHARED + condition,) * _MOST_BITS, _MOST_BITS, split, tree, per_bit=False, firmware=True)


def prices(cost: str) -> Prices:
    """Returns the prices for a cost such as lut6 or flash-avr. Raises OptionError for other costs."""
    if cost == DEFAULT_COST:
        return _LUT6
    figure, _, cpu = cost.partition("-") if isinstance(cost, str) else ("", "", "")
    if figure in FIGURES and (cpu or DEFAULT_CPU) in CPU_COSTS:
        return _firmware(figure, cpu or DEFAULT_CPU)
    names = [DEFAULT_COST, *_SPLIT_AND_SUM_BIT]
    names += [*FIGURES, *(f"{figure}-{cpu}" for figure in FIGURES for cpu in CPU_COSTS)]
    if cost not in names:
        raise OptionError(f"unknown cost {cost!r}", where="cost", do=known_names(cost, names))
    family = FAMILIES[cost]
    split, sum_bit = _SPLIT_AND_SUM_BIT[cost]
    return Prices(
        # Comparisons of inputs with constants go into LUTs, even if a device has carry chains.
        compared=_LUT6.compared[: family.lut_inputs + 1],
        further_bits=family.lut_inputs - 1,
        split=split,
        tree=SUM_BITS * max(family.chain_cells, sum_bit),
        lut_inputs=family.lut_inputs,
    )
