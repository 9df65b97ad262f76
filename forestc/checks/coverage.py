"""Counts the leaves, nodes and sides of comparators that rows and a check's vectors reach, and finds unreachable
ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from forestc.checks.boxes import Boxes
from forestc.forest.ir import LEAF, Forest

ALL = "all"
MOST_NODES = 200_000  # nodes above which unreachable leaves are not searched

# Maps each origin of vectors to counts of leaves, nodes and sides of comparators.
CoverageFigures: TypeAlias = Mapping[str, Mapping[str, Mapping[str, int | None]]]


@dataclass
class Coverage:
    """Counts of rows in each leaf of a forest."""

    forest: Forest
    leaf_visits: list[NDArray[np.int64]]  # for each tree (nodes,) counts of rows; 0 at inner nodes

    @staticmethod
    def of(forest: Forest) -> Coverage:
        return Coverage(forest, [np.zeros(tree.size, dtype=np.int64) for tree in forest.trees])

    def add(self, leaves: NDArray[np.int32]) -> None:
        """Adds rows to the counts. leaves: (rows, trees), as in `Evaluation`."""
        for index, tree in enumerate(self.forest.trees):
            self.leaf_visits[index] += np.bincount(tree.leaves_numbered(leaves[:, index]), minlength=tree.size)

    def visits(self, index: int) -> NDArray[np.int64]:
        """Returns the number of rows that went through each node of a tree: (nodes,)."""
        tree, visits = self.forest.trees[index], self.leaf_visits[index].copy()
        for level in reversed(tree.levels):
            inner = level[tree.left[level] != LEAF]
            visits[inner] = visits[tree.left[inner]] + visits[tree.right[inner]]
        return visits

    def figures(self, reachable: Reachable | None) -> dict[str, dict[str, int | None]]:
        """Returns for leaves, inner nodes and sides of comparators how many were reached, are unreachable, and exist.
        Without `reachable`, the number of unreachable ones is None."""
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
        conditions, leaves, inners = self.forest.conditions, 0, 0
        group = np.searchsorted(conditions.comparators, np.arange(len(conditions)), side="right") - 1
        sides = np.zeros((len(conditions.comparators), 2), dtype=bool)
        for tree, node_conditions, chosen in zip(self.forest.trees, conditions.node_conditions, nodes, strict=True):
            inner = tree.inner
            leaves += int(chosen[tree.left == LEAF].sum())
            inners += int(chosen[inner].sum())
            for side, children in enumerate((tree.left[inner], tree.right[inner])):
                sides[group[node_conditions[inner]][chosen[children]], side] = True
        return {"leaves": leaves, "nodes": inners, "comparator_sides": int(sides.sum())}


@dataclass(frozen=True)
class Reachable:
    """The nodes of a forest that some raw row can reach."""

    nodes: tuple[NDArray[np.bool_], ...]

    @staticmethod
    def of(forest: Forest) -> Reachable:
        """Returns the nodes of a quantized forest that some raw row can reach, without missing any."""
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


class CoverageOfVectors:
    """Counts the leaves that a check's vectors reach, for each origin and for all vectors."""

    def __init__(self, forest: Forest) -> None:
        self.forest = forest
        self.found: dict[str, Coverage] = {}

    def add(self, origin: str, leaves: NDArray[np.int32]) -> None:
        for name in (origin, ALL):
            self.found.setdefault(name, Coverage.of(self.forest)).add(leaves)

    def figures(self) -> CoverageFigures:
        nodes = sum(tree.size for tree in self.forest.trees)
        reachable = Reachable.of(self.forest) if nodes <= MOST_NODES else None
        return {name: coverage.figures(reachable) for name, coverage in self.found.items()}
