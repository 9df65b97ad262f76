"""Removes nodes: a subtree becomes a leaf, or a split becomes one of its sides, where every decision provably stays.

The value of a new leaf need not be an old one: the inputs of the pool bound it from both sides, the middle is tried,
and each counterexample tightens the bounds until a value is proved or none is left.
"""

from __future__ import annotations

import heapq
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.separation.difference_bounds import middle
from forestc.algorithms.separation.oracle import TreeBoxes, places
from forestc.passes.prune_exact.cells import children, drawn, is_leaf
from forestc.passes.prune_exact.working import Tally, Working

MOST_VALUES = 24  # values of one leaf that are tried


def merge(working: Working, tally: Tally) -> None:
    """Turns subtrees, whole trees too, into leaves, the largest first. tally: counts them."""
    queue = [
        (-boxes.splits[node], index, node)
        for index, boxes in enumerate(working.drawn)
        for node in boxes.regions
        if boxes.splits[node]
    ]
    heapq.heapify(queue)
    while queue:
        _, index, node = heapq.heappop(queue)
        if node not in working.drawn[index].regions or is_leaf(working.forest.trees[index], working.edits[index], node):
            continue
        if working.effort.is_over:
            tally.skipped += 1
            continue
        tally.count(_merged(working, index, node))


def _merged(working: Working, index: int, node: int) -> str:
    """Turns a node into a leaf if a value is proved: same. Else differs, if no value can be, or unknown."""
    tree, here = working.forest.trees[index], working.drawn[index]
    boxes = here.regions[node]
    low, high = np.array([box[0] for box in boxes]), np.array([box[1] for box in boxes])
    chosen = working.inside(boxes)
    outputs = list(tree.outputs)
    smallest, largest = here.boxes.value[:, outputs].min(axis=0), here.boxes.value[:, outputs].max(axis=0)
    zero = len(outputs)
    for _ in range(MOST_VALUES):
        bounds = working.bounds(index, chosen)
        # no leaf gets more bits than the tree's leaves have
        bounds[:zero, zero] = np.maximum(bounds[:zero, zero], smallest)
        bounds[zero, :zero] = np.maximum(bounds[zero, :zero], -largest)
        leaf_values = middle(bounds)
        if leaf_values is None:
            return "differs"
        value = np.zeros((len(boxes), working.forest.n_outputs), dtype=np.int64)
        value[:, outputs] = leaf_values[:zero]
        state = working.proved(working.state.with_tree(index, TreeBoxes(low, high, value)), boxes)
        if state == "same":
            old = working.edits[index]
            working.accept(index, replace(old, leaf={**old.leaf, node: leaf_values[:zero]}))
            return state
        if state == "unknown":
            return state
        chosen = working.inside(boxes)
    return "unknown"


def hoist(working: Working, tally: Tally) -> None:
    """Puts one side of a split in its place, where the other side has most splits first. tally: see `merge`."""
    queue: list[tuple[int, int, int, int, int]] = []
    for index, boxes in enumerate(working.drawn):
        for node in boxes.regions:
            if not is_leaf(working.forest.trees[index], working.edits[index], node):
                left, right = children(working.forest.trees[index], working.edits[index], node)
                queue += [
                    (-boxes.splits[right], index, node, left, right),
                    (-boxes.splits[left], index, node, right, left),
                ]
    heapq.heapify(queue)
    while queue:
        _, index, node, kept, lost = heapq.heappop(queue)
        tree, edits, here = working.forest.trees[index], working.edits[index], working.drawn[index]
        if node not in here.regions or {kept, lost} != set(children(tree, edits, node)) or lost not in here.regions:
            continue
        if working.effort.is_over:
            tally.skipped += 1
            continue
        tally.count(_hoisted(working, index, node, kept, lost))


def _hoisted(working: Working, index: int, node: int, kept: int, lost: int) -> str:
    boxes = working.drawn[index].regions[lost]
    old = working.edits[index]
    new = drawn(working.forest, working.cells, index, old, kept).boxes
    chosen = working.inside(boxes)
    if _refuted(working, index, chosen, new):
        return "differs"
    state = working.proved(working.state.with_tree(index, new), boxes)
    if state == "same":
        working.accept(index, replace(old, stands={**old.stands, node: kept}))
    return state


def _refuted(working: Working, index: int, chosen: NDArray[np.int64], new: TreeBoxes) -> bool:
    """Whether an input of the pool is decided differently with a tree's new form."""
    pool, old = working.pool, working.state.trees[index]
    scores = pool.scores[chosen] - old.value[pool.place[index][chosen]]
    scores += new.value[places(new, pool.cells[chosen])]
    return bool((working.decider.classes(scores) != pool.classes[chosen]).any())
