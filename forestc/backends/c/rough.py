"""Ranks forests and C layouts without a compiler: by the exact bytes of tables, and by rough costs of code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from forestc.backends.c.options import Layout
from forestc.costs.firmware import CPU_COSTS
from forestc.errors import OptionError
from forestc.forest.ir import LEAF, Forest, Tree
from forestc.layouts.masks import masks_of
from forestc.layouts.nodes import nodes_of

SPLIT_BYTES = {"branches": 13.0, "ranked": 11.0}  # bytes of code of a split
CODE_BYTES = {"nodes": 100.0, "masks": 200.0}  # bytes of code beside the tables
SLOWER = {"ranked": 1.25, "nodes": 4.6, "masks": 7.0}  # times the instructions of `branches`
STACK_BYTES = 40.0  # bytes of stack without scores


@dataclass(frozen=True)
class RoughCosts:
    """The rough costs of a forest in one layout."""

    flash: float
    ram: float
    instructions: float  # of the longest paths of all trees
    mean_instructions: float  # of an average row, by the trees' covers


def rough_costs(forest: Forest, cpu: str) -> Mapping[Layout, RoughCosts]:
    """Returns rough costs by layout, for all layouts that can hold the forest."""
    costs, trees = CPU_COSTS[cpu], [tree for tree in forest.trees if len(tree.inner)]
    splits, ram = sum(len(tree.inner) for tree in trees), STACK_BYTES + 4.0 * forest.n_outputs
    worst = costs.tree * len(trees) + costs.split * sum(len(tree.levels) - 1 for tree in trees)
    mean = costs.tree * len(trees) + costs.split * sum(map(_mean_splits, trees))
    found: dict[Layout, RoughCosts] = {"branches": RoughCosts(SPLIT_BYTES["branches"] * splits, ram, worst, mean)}
    if not splits or not forest.adds:
        return found

    def add(layout: Layout, flash: float, ram: float) -> None:
        found[layout] = RoughCosts(flash, ram, SLOWER[layout] * worst, SLOWER[layout] * mean)

    add("ranked", SPLIT_BYTES["ranked"] * splits, ram)
    try:
        add("nodes", costs.table * nodes_of(forest).bytes + CODE_BYTES["nodes"], ram)
        masks = masks_of(forest)
        add("masks", costs.table * masks.bytes + CODE_BYTES["masks"], ram + masks.mask_bytes * len(trees))
    except OptionError:  # Tables hold no very large forests, and masks no trees of many leaves.
        pass
    if "nodes" in found:
        branches, nodes = found["branches"], found["nodes"]
        halves = zip(vars(branches).values(), vars(nodes).values(), strict=True)
        found["mixed"] = RoughCosts(*((one + other) / 2 for one, other in halves))
    return found


def _mean_splits(tree: Tree) -> float:
    """Returns how many splits an average row meets. Covers tell how rows split; without covers, half go left."""
    share, total = np.zeros(tree.size), 0.0
    share[0] = 1.0
    for level in tree.levels:
        inner = level[tree.left[level] != LEAF]
        left, right = tree.left[inner], tree.right[inner]
        to_left = np.full(len(inner), 0.5)
        if tree.cover is not None:
            both = tree.cover[left] + tree.cover[right]
            to_left = np.divide(tree.cover[left], both, out=to_left, where=both > 0)
        share[left], share[right] = share[inner] * to_left, share[inner] * (1.0 - to_left)
        total += float(share[inner].sum())
    return total
