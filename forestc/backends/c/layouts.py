"""The table of C layouts.

A new layout also needs its name in `forestc.options.c.Layout`, costs fitted by benchmarks/firmware_costs.py, and a
description in docs/howto/c.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from forestc.backends.c.branches import branches, branches_demand
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
    """A C layout of trees."""

    in_c: Callable[[TreeContext], TreesInC | None]  # returns None if there are no splits to evaluate
    demand: Callable[[Inputs], Demand]  # returns counts for estimates
    separate: bool = False  # True if compilers must not inline trees


LAYOUTS: Mapping[Layout, LayoutOfC] = {
    "branches": LayoutOfC(branches, branches_demand),
    "ranked": LayoutOfC(ranked, ranked_demand, separate=True),
    "nodes": LayoutOfC(nodes, nodes_demand),
    "masks": LayoutOfC(masks, masks_demand),
    "mixed": LayoutOfC(mixed, mixed_demand),
}


def trees_in_c(name: Layout, context: TreeContext) -> TreesInC:
    """Returns trees as C in a layout, or in `branches` if there are no splits to evaluate."""
    return LAYOUTS[name].in_c(context) or branches(context)
