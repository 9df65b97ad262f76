"""The layouts of trees in C, by name: what each writes into a header, and what it asks of a processor.

A new layout is a module that gives both, as `nodes.py` does, and an entry here; its name stands in
`forestc.options.c.Layout`, its costs are fitted by benchmarks/firmware_costs.py, and docs/howto/c.md describes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from forestc.backends.c.branches import branches, branches_demand, calls_demand
from forestc.backends.c.demands import Demand
from forestc.backends.c.inputs import Inputs
from forestc.backends.c.masks import masks, masks_demand
from forestc.backends.c.mixed import mixed, mixed_demand
from forestc.backends.c.nodes import nodes, nodes_demand
from forestc.backends.c.ranked import ranked, ranked_demand
from forestc.backends.c.trees import TreeContext, TreesInC
from forestc.options.c import Layout


@dataclass(frozen=True)
class LayoutOfC:
    """in_c: gives the C of trees; None if no split decides anything. demand: counts what it asks of a processor; raises
    OptionError for a forest that it does not hold. separate: whether each tree stays a function of its own."""

    in_c: Callable[[TreeContext], TreesInC | None]
    demand: Callable[[Inputs], Demand]
    separate: bool = False


LAYOUTS: Mapping[Layout, LayoutOfC] = {
    "branches": LayoutOfC(branches, branches_demand),
    "calls": LayoutOfC(branches, calls_demand, separate=True),
    "ranked": LayoutOfC(ranked, ranked_demand, separate=True),
    "nodes": LayoutOfC(nodes, nodes_demand),
    "masks": LayoutOfC(masks, masks_demand),
    "mixed": LayoutOfC(mixed, mixed_demand),
}


def trees_in_c(name: Layout, context: TreeContext) -> TreesInC:
    """The C of trees in a layout; trees without a split that decides anything are branches."""
    return LAYOUTS[name].in_c(context) or branches(context)
