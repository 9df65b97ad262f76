"""The table of C layouts.

A new layout also needs its name in `forestc.backends.c.options.Layout` and a description in docs/howto/c.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from forestc.backends.c.branches import branches
from forestc.backends.c.masks import masks
from forestc.backends.c.mixed import mixed
from forestc.backends.c.nodes import nodes
from forestc.backends.c.options import Layout
from forestc.backends.c.ranked import ranked
from forestc.backends.c.trees import TreeContext, TreesInC


@dataclass(frozen=True)
class LayoutOfC:
    """A C layout of trees."""

    in_c: Callable[[TreeContext], TreesInC | None]  # returns None if there are no splits to evaluate
    separate: bool = False  # True if compilers must not inline trees


LAYOUTS: Mapping[Layout, LayoutOfC] = {
    "branches": LayoutOfC(branches),
    "ranked": LayoutOfC(ranked, separate=True),
    "nodes": LayoutOfC(nodes),
    "masks": LayoutOfC(masks),
    "mixed": LayoutOfC(mixed),
}


def trees_in_c(name: Layout, context: TreeContext) -> TreesInC:
    """Returns trees as C in a layout, or in `branches` if there are no splits to evaluate."""
    return LAYOUTS[name].in_c(context) or branches(context)
