"""Turns subtrees into leaves if every decision provably stays the same.

Known inputs bound the new leaf's value. A search then proves a value, or finds an input that tightens the bounds.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.separation.difference_bounds import NO_BOUND, middle
from forestc.algorithms.separation.oracle import Box, BoxEnsemble, CellArray, Decider, TreeBoxes, leaf_indices, separate
from forestc.forest.ir import LEAF, Forest, Tree
from forestc.passes.prune_exact.cells import FeatureCells, Merged, drawn

ONE_PROOF = 0.01  # share of all search steps that one proof may take
NEIGHBORS = 16  # inputs that become known at once: a counterexample and inputs near it
MOST_VALUES = 24  # tries this many values for one leaf before it gives up


class Merging:
    """A search for subtrees that can become leaves."""

    def __init__(self, forest: Forest, cells: FeatureCells, decider: Decider, steps: int, seed: int) -> None:
        self.forest, self.cells, self.decider, self.steps = forest, cells, decider, steps
        self.random = np.random.default_rng(seed)
        self.merged: list[Merged] = [{} for _ in forest.trees]  # nodes that became leaves
        self.drawn = [drawn(forest, cells, index, merged) for index, merged in enumerate(self.merged)]
        self.state = BoxEnsemble(tuple(tree.boxes for tree in self.drawn), forest.bias.astype(np.int64))
        self.taken = self.proofs = 0
        self.counts = Counter[str]()  # number of subtrees tried, by outcome
        self.inputs = np.zeros((0, len(cells.word)), np.int32)  # (inputs, features) known inputs
        self.classes = np.zeros(0, np.int64)  # decisions on the known inputs
        self.leaf = [np.zeros(0, dtype=np.int64) for _ in forest.trees]
        self.scores = np.zeros((0, forest.n_outputs), np.int64)

    def run(self) -> None:
        """Tries to turn subtrees into leaves, the largest first, until the steps are used up."""
        sizes = [_splits_below(tree) for tree in self.forest.trees]
        queue = [
            (-int(sizes[index][node]), index, node)
            for index, boxes in enumerate(self.drawn)
            for node in boxes.regions
            if sizes[index][node]
        ]
        for _, index, node in sorted(queue):
            if node not in self.drawn[index].regions or node in self.merged[index]:
                continue
            self.counts["skipped" if self.taken >= self.steps else self._merge(index, node)] += 1

    def _merge(self, index: int, node: int) -> str:
        """Tries to turn a node into a leaf. Returns "same" on success, "differs" if no value works, otherwise
        "unknown"."""
        here, outputs = self.drawn[index], list(self.forest.trees[index].outputs)
        boxes = here.regions[node]
        low, high = np.array([box[0] for box in boxes]), np.array([box[1] for box in boxes])
        smallest, largest = here.boxes.value[:, outputs].min(axis=0), here.boxes.value[:, outputs].max(axis=0)
        zero = len(outputs)
        for _ in range(MOST_VALUES):
            bounds = self._bounds(index, self._inside(boxes))
            # A leaf must not need more bits than the tree's present leaves.
            bounds[:zero, zero] = np.maximum(bounds[:zero, zero], smallest)
            bounds[zero, :zero] = np.maximum(bounds[zero, :zero], -largest)
            leaf_values = middle(bounds)
            if leaf_values is None:
                return "differs"
            value = np.zeros((len(boxes), self.forest.n_outputs), dtype=np.int64)
            value[:, outputs] = leaf_values[:zero]
            outcome = self._proved(self.state.with_tree(index, TreeBoxes(low, high, value)), boxes)
            if outcome == "same":
                self._accept(index, {**self.merged[index], node: leaf_values[:zero]})
            if outcome != "differs":
                return outcome
        return "unknown"

    def add(self, cells: CellArray) -> None:
        """Adds inputs (inputs, features), given as cells, to the known inputs."""
        leaf = [leaf_indices(tree, cells) for tree in self.state.trees]
        scores = self.state.bias + sum(tree.value[at] for tree, at in zip(self.state.trees, leaf, strict=True))
        self.inputs = np.concatenate([self.inputs, cells])
        self.classes = np.concatenate([self.classes, self.decider.classes(scores)])
        self.leaf = [np.concatenate(pair) for pair in zip(self.leaf, leaf, strict=True)]
        self.scores = np.concatenate([self.scores, scores])

    def _add_near(self, cells: CellArray, box: Box) -> None:
        """Adds a counterexample (features,) and random inputs near it to the known inputs."""
        near = np.tile(cells, (NEIGHBORS, 1))
        anywhere = self.random.integers(box[0], box[1], near.shape)
        moved = self.random.random(near.shape) < min(0.5, 2 / near.shape[1])
        near = np.where(moved, anywhere, near).astype(np.int32)
        near[0] = cells
        self.add(near)

    def _inside(self, boxes: list[Box]) -> NDArray[np.int64]:
        inside = np.zeros(len(self.inputs), dtype=bool)
        for low, high in boxes:
            narrow = np.flatnonzero((low > 0) | (high < self.cells.box[1]))
            columns = self.inputs[:, narrow]
            inside |= ((low[narrow] <= columns) & (columns < high[narrow])).all(axis=1)
        return np.flatnonzero(inside)

    def _bounds(self, index: int, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns a matrix of lower bounds on differences of the new leaf's values. Within the bounds, the chosen
        inputs keep their decisions."""
        outputs = self.forest.trees[index].outputs
        rest = self.scores[chosen] - self.state.trees[index].value[self.leaf[index][chosen]]
        classes = self.classes[chosen]
        zero = len(outputs)
        column = {output: position for position, output in enumerate(outputs)}
        result = np.full((zero + 1, zero + 1), NO_BOUND, dtype=np.int64)
        for kind in np.unique(classes).tolist():
            factors, constants = self.decider.demands(kind, self.forest.n_outputs)
            # `needed` is the least amount that the new leaf must add.
            needed = -(rest[classes == kind] @ factors.T + constants).min(axis=0)
            for row, amount in zip(factors.tolist(), needed.tolist(), strict=True):
                # A demand on scores adds at most one of the leaf's values and subtracts at most one.
                plus = column.get(row.index(1), zero) if 1 in row else zero
                minus = column.get(row.index(-1), zero) if -1 in row else zero
                result[plus, minus] = max(result[plus, minus], amount)
        return result

    def _proved(self, after: BoxEnsemble, boxes: list[Box]) -> str:
        """Tests whether all decisions stay the same. Returns "same", "differs", or "unknown" if the steps do not
        suffice."""
        for box in boxes:
            limit = max(0, int(min(ONE_PROOF * self.steps, self.steps - self.taken)))
            answer = separate(self.state, after, self.decider, box, limit)
            self.taken += answer.steps
            self.proofs += 1
            if answer.cells is not None:
                self._add_near(answer.cells, box)
            if answer.state != "same":
                return answer.state
        return "same"

    def _accept(self, index: int, merged: Merged) -> None:
        old = self.state.trees[index].value[self.leaf[index]]
        self.merged[index] = merged
        self.drawn[index] = drawn(self.forest, self.cells, index, merged)
        tree = self.drawn[index].boxes
        self.state = self.state.with_tree(index, tree)
        self.leaf[index] = leaf_indices(tree, self.inputs)
        self.scores += tree.value[self.leaf[index]] - old


def _splits_below(tree: Tree) -> NDArray[np.int64]:
    """Returns an array (nodes,) with the number of splits in each node's subtree."""
    count = np.zeros(tree.size, dtype=np.int64)
    for level in reversed(tree.levels):
        inner = level[tree.left[level] != LEAF]
        count[inner] = 1 + count[tree.left[inner]] + count[tree.right[inner]]
    return count
