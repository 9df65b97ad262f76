"""The forest while it is pruned: its edits, proved so far, and a pool of inputs that reject wrong edits cheaply."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.separation.difference_bounds import NO_BOUND
from forestc.algorithms.separation.oracle import Box, BoxEnsemble, CellArray, Decider, places, separate
from forestc.forest.ir import Forest
from forestc.passes.prune_exact.cells import Drawn, Edits, FeatureCells, drawn

ONE_PROOF = 0.01  # share of the effort that one proof may take
NEIGHBORS = 16  # inputs near a counterexample that are tried


@dataclass
class ProofEffort:
    """What proofs may cost, and did. steps: of the search, see `separate`. taken: steps so far. proofs: number of them,
    failed ones included."""

    steps: int
    taken: int = 0
    proofs: int = 0

    @property
    def is_over(self) -> bool:
        """Whether all steps are taken."""
        return self.taken >= self.steps

    @property
    def of_one_proof(self) -> int:
        """The steps that the next proof may take."""
        return max(0, int(min(ONE_PROOF * self.steps, self.steps - self.taken)))


@dataclass
class InputPool:
    """Inputs with their decisions. cells: (inputs, features). classes: (inputs,) of the model before all edits.
    place: for each tree the leaf of each input. scores: (inputs, outputs) after the edits so far."""

    cells: CellArray
    classes: NDArray[np.int64]
    place: list[NDArray[np.int64]]
    scores: NDArray[np.int64]


class Working:
    """A forest and its edits. model: before all edits; state: after those that were proved."""

    def __init__(self, forest: Forest, cells: FeatureCells, decider: Decider, effort: ProofEffort, seed: int) -> None:
        self.forest, self.cells, self.decider, self.effort = forest, cells, decider, effort
        self.random = np.random.default_rng(seed)
        self.edits = [Edits({}, {}) for _ in forest.trees]
        self.drawn: list[Drawn] = [drawn(forest, cells, index, edits) for index, edits in enumerate(self.edits)]
        self.model = BoxEnsemble(tuple(tree.boxes for tree in self.drawn), forest.bias.astype(np.int64))
        self.state = self.model
        width, features = forest.n_outputs, len(cells.word)
        empty = [np.zeros(0, dtype=np.int64) for _ in forest.trees]
        self.pool = InputPool(
            np.zeros((0, features), np.int32), np.zeros(0, np.int64), empty, np.zeros((0, width), np.int64)
        )

    def add(self, cells: CellArray) -> None:
        """Adds inputs (inputs, features) to the pool."""
        scores, edited = np.tile(self.model.bias, (len(cells), 1)), np.tile(self.state.bias, (len(cells), 1))
        place = []
        for old_tree, tree in zip(self.model.trees, self.state.trees, strict=True):
            at = places(old_tree, cells)
            scores += old_tree.value[at]
            place.append(at if tree is old_tree else places(tree, cells))
            edited += tree.value[place[-1]]
        old = self.pool
        self.pool = InputPool(
            np.concatenate([old.cells, cells]),
            np.concatenate([old.classes, self.decider.classes(scores)]),
            [np.concatenate(pair) for pair in zip(old.place, place, strict=True)],
            np.concatenate([old.scores, edited]),
        )

    def add_near(self, cells: CellArray, box: Box) -> None:
        """Adds a counterexample (features,) and inputs near it, in its box: some features changed."""
        near = np.tile(cells, (NEIGHBORS, 1))
        anywhere = self.random.integers(box[0], box[1], near.shape)
        moved = self.random.random(near.shape) < min(0.5, 2 / near.shape[1])
        near = np.where(moved, anywhere, near).astype(np.int32)
        near[0] = cells
        self.add(near)

    def inside(self, boxes: list[Box]) -> NDArray[np.int64]:
        """The inputs of the pool that lie in one of the boxes."""
        size = self.cells.box[1]
        inside = np.zeros(len(self.pool.cells), dtype=bool)
        for low, high in boxes:
            here = np.ones(len(inside), dtype=bool)
            for feature in np.flatnonzero((low > 0) | (high < size)).tolist():
                column = self.pool.cells[:, feature]
                here &= (low[feature] <= column) & (column < high[feature])
            inside |= here
        return np.flatnonzero(inside)

    def bounds(self, index: int, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """What the decisions of inputs of the pool demand of the values of a tree's outputs, if one leaf holds them
        all: lower bounds of differences, see `difference_bounds`."""
        outputs = self.forest.trees[index].outputs
        rest = self.pool.scores[chosen] - self.state.trees[index].value[self.pool.place[index][chosen]]
        classes = self.pool.classes[chosen]
        zero = len(outputs)
        column = {output: place for place, output in enumerate(outputs)}
        result = np.full((zero + 1, zero + 1), NO_BOUND, dtype=np.int64)
        for kind in np.unique(classes).tolist():
            sums = rest[classes == kind]
            factors, constants = self.decider.demands(kind, self.forest.n_outputs)
            needed = -(sums @ factors.T + constants).min(axis=0)  # what the leaf must add to each demand
            for row, amount in zip(factors.tolist(), needed.tolist(), strict=True):
                # each demand adds at most one score and subtracts at most one
                plus = column.get(row.index(1), zero) if 1 in row else zero
                minus = column.get(row.index(-1), zero) if -1 in row else zero
                result[plus, minus] = max(result[plus, minus], amount)
        return result

    def proved(self, after: BoxEnsemble, boxes: list[Box]) -> str:
        """Whether an edit keeps all decisions in the boxes: same, differs (the input is then in the pool), unknown. The
        forest after the edits so far decides as the model, and is easier to compare with: only the last edit
        differs."""
        for box in boxes:
            answer = separate(self.state, after, self.decider, box, self.effort.of_one_proof)
            self.effort.taken += answer.steps
            self.effort.proofs += 1
            if answer.cells is not None:
                self.add_near(answer.cells, box)
            if answer.state != "same":
                return answer.state
        return "same"

    def accept(self, index: int, edits: Edits) -> None:
        """Takes an edit of one tree that was proved."""
        old = self.state.trees[index].value[self.pool.place[index]]
        self.edits[index] = edits
        self.drawn[index] = drawn(self.forest, self.cells, index, edits)
        tree = self.drawn[index].boxes
        self.state = self.state.with_tree(index, tree)
        self.pool.place[index] = places(tree, self.pool.cells)
        self.pool.scores += tree.value[self.pool.place[index]] - old


@dataclass
class Tally:
    """How many candidates were proved, refuted and left open."""

    same: int = 0
    differs: int = 0
    unknown: int = 0
    skipped: int = 0

    def count(self, state: str) -> None:
        """Counts a candidate."""
        setattr(self, state, getattr(self, state) + 1)
