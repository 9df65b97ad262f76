"""Coverage: which leaves, nodes and comparators of a forest some rows reach, counted from the leaves they end in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forestc.forest.builder import changed, changed_tree
from forestc.forest.evaluate import encode_numbers
from forestc.forest.ir import LEAF, Forest
from forestc.inputs.boxes import Boxes
from forestc.inputs.model import InputModel
from forestc.passes.quick_evaluation import evaluate_quickly, walked_trees

VISITS = 20_000  # rows drawn to count the visits of nodes


@dataclass
class Coverage:
    """How often rows ended in each leaf. visits: for each tree (nodes,) rows that went through the node."""

    forest: Forest
    leaf_visits: list[NDArray[np.int64]]

    @staticmethod
    def of(forest: Forest) -> Coverage:
        return Coverage(forest, [np.zeros(tree.size, dtype=np.int64) for tree in forest.trees])

    def add(self, leaves: NDArray[np.int32]) -> None:
        """leaves: (rows, trees) of an `Evaluation`: the source's numbers of leaves."""
        for index, tree in enumerate(self.forest.trees):
            self.leaf_visits[index] += np.bincount(tree.leaves_numbered(leaves[:, index]), minlength=tree.size)

    def visits(self, index: int) -> NDArray[np.int64]:
        """(nodes,) rows that went through each node of a tree."""
        tree, visits = self.forest.trees[index], self.leaf_visits[index].copy()
        for level in reversed(tree.levels):
            inner = level[tree.left[level] != LEAF]
            visits[inner] = visits[tree.left[inner]] + visits[tree.right[inner]]
        return visits

    def figures(self, reachable: Reachable | None) -> dict[str, dict[str, int | None]]:
        """For leaves, inner nodes and sides of comparators: how many some row reached, how many are shown unreachable
        (None without `reachable`), and all.

        A comparator has two sides, each reached where a row takes it at any node.
        """
        seen = self._counted([self.visits(index) > 0 for index in range(len(self.forest.trees))])
        total = self._counted([np.ones(tree.size, dtype=bool) for tree in self.forest.trees])
        possible = None if reachable is None else self._counted(reachable.nodes)
        return {
            key: {
                "reached": seen[key],
                "unreachable": None if possible is None else total[key] - possible[key],
                "all": total[key],
            }
            for key in total
        }

    def _counted(self, nodes: Sequence[NDArray[np.bool_]]) -> dict[str, int]:
        """How many leaves, inner nodes and sides of comparators there are among some nodes of each tree."""
        conditions, leaves, inners = self.forest.conditions, 0, 0
        group = np.searchsorted(conditions.comparators, np.arange(len(conditions)), side="right") - 1
        sides = np.zeros((len(conditions.comparators), 2), dtype=bool)
        for tree, places, chosen in zip(self.forest.trees, conditions.places, nodes, strict=True):
            inner = tree.inner
            leaves += int(chosen[tree.left == LEAF].sum())
            inners += int(chosen[inner].sum())
            for side, children in enumerate((tree.left[inner], tree.right[inner])):
                sides[group[places[inner]][chosen[children]], side] = True
        return {"leaves": leaves, "nodes": inners, "comparator_sides": int(sides.sum())}


@dataclass(frozen=True)
class Reachable:
    """nodes: for each tree (nodes,) whether any raw row reaches the node."""

    nodes: tuple[NDArray[np.bool_], ...]

    @staticmethod
    def of(forest: Forest) -> Reachable:
        """Decided exactly for every leaf of a quantized forest; a node is reached where a leaf below it is."""
        boxes, reached = Boxes(forest), []
        for index, tree in enumerate(forest.trees):
            open_ = np.zeros(tree.size, dtype=bool)
            for node, box in boxes.leaves(index):
                open_[node] = box is not None
            for level in reversed(tree.levels):
                inner = level[tree.left[level] != LEAF]
                open_[inner] = open_[tree.left[inner]] | open_[tree.right[inner]]
            reached.append(open_)
        return Reachable(tuple(reached))


def with_visits(forest: Forest, model: Forest, inputs: InputModel) -> Forest:
    """The quantized forest with each node's cover replaced by how many of 20,000 rows drawn from an input model visit
    it. model: the forest that was quantized. Raises RowsError for an input model of other columns."""
    coverage, walked = Coverage.of(forest), walked_trees(forest)
    for batch in inputs.drawn_for(model, VISITS, 0, (forest,)).batches():
        coverage.add(evaluate_quickly(forest, encode_numbers(forest, batch.X), walked).leaves)
    trees = [
        changed_tree(tree, cover=coverage.visits(index).astype(np.float64)) for index, tree in enumerate(forest.trees)
    ]
    return changed(forest, trees=tuple(trees))
