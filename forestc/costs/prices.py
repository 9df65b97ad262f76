"""What the parts of a forest cost a pass that makes it smaller, by the name of a family of devices.

The prices of lut6 were set by hand on 6-input LUTs and are the default. The others follow from the costs that were
fitted for the estimates, and from the family's LUTs and carry chains. They are rough: a pass weighs parts against one
another by them, long before there is a netlist to count.
"""

from __future__ import annotations

from dataclasses import dataclass

from forestc.costs.devices import FAMILIES
from forestc.costs.fitted import fitted
from forestc.errors import OptionError

DEFAULT_COST = "lut6"
SUM_BITS = 3  # of adders, for a tree's leaf of one bit: its share in a tree of adders, of ever wider sums


@dataclass(frozen=True)
class Prices:
    """In logic cells, each with one LUT.

    compared: of a comparison with a constant, by bits from 0 on: few disappear in what reads it. Beyond, each
    `further_bits` bits, even if begun, take one more. split: of a split's multiplexer, beside its comparison, and
    tree: of a tree's place in the sums and the decision; both for each bit of a leaf and output.
    """

    compared: tuple[float, ...]
    further_bits: int
    split: float
    tree: float

    def comparison(self, bits: int) -> float:
        """Of a word of so many bits with a constant."""
        last = len(self.compared) - 1
        if bits <= last:
            return self.compared[max(0, bits)]
        return self.compared[last] - (last - bits) // self.further_bits


# A tree of few inputs is one lookup, whatever its splits; a tree costs that lookup, and its bit in the sums.
_LUT6 = Prices((0.0, 0.05, 0.4, 0.7, 1.0, 1.0, 1.0), 5, split=0.1, tree=3.0)


def prices(cost: str) -> Prices:
    """The prices of a cost's name. Raises OptionError for an unknown one, ForestcError for damaged fitted costs."""
    if cost == DEFAULT_COST:
        return _LUT6
    known = [name for name in FAMILIES if name in fitted().luts]
    if cost not in known:
        raise OptionError(f"unknown cost {cost!r}", do=f"known: {', '.join(known)}")
    family, costs = FAMILIES[cost], fitted().luts[cost]
    return Prices(
        # written bit by bit, comparisons with constants go into LUTs, also where there are carry chains
        compared=_LUT6.compared[: family.lut_inputs + 1],
        further_bits=family.lut_inputs - 1,
        # a multiplexer, or above leaves of one bit a gate
        split=max(_LUT6.split, (costs["mux"] + costs["gate"]) / 2),
        tree=SUM_BITS * max(family.chain_cells, costs["add_bits"]),
    )
