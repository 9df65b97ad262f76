"""Tests whether two tree ensembles decide alike on every input, or finds an input where they differ.

Source: Emine et al., Free Lunch in the Forest: Functionally-Identical Pruning of Boosted Tree Ensembles, AAAI 2025.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import permutations
from typing import Literal, TypeAlias

import numpy as np

from forestc.algorithms.arrays import Bits, Int32s, Ints
from forestc.algorithms.separation.search import FOUND, STOPPED, search

State: TypeAlias = Literal["same", "differs", "unknown"]
CellArray: TypeAlias = Int32s
Box: TypeAlias = tuple[CellArray, CellArray]
SHARES = (1, 2, 3)  # weighs a joint bound's two sides by k and 4 - k


@dataclass(frozen=True, eq=False)
class TreeBoxes:
    """The leaves of a tree as boxes of cells. A cell is an interval between neighboring thresholds, a set of category
    codes, or the missing value."""

    low: CellArray  # (boxes, features) first cell of the box
    high: CellArray  # (boxes, features) last cell of the box, plus one
    value: Ints  # (boxes, outputs)

    @cached_property
    def narrow(self) -> list[int]:
        """Features in which the boxes differ."""
        differs = (self.low != self.low[0]).any(axis=0) | (self.high != self.high[0]).any(axis=0)
        return [int(feature) for feature in np.flatnonzero(differs)]

    def inside(self, box: Box) -> TreeBoxes:
        meets = ((self.low < box[1]) & (self.high > box[0])).all(axis=1)
        return TreeBoxes(self.low[meets], self.high[meets], self.value[meets])


@dataclass(frozen=True, eq=False)
class BoxEnsemble:
    """Trees and biases. A tree that two ensembles share must be the same object in both."""

    trees: tuple[TreeBoxes, ...]
    bias: Ints  # (outputs,)

    def with_tree(self, index: int, tree: TreeBoxes) -> BoxEnsemble:
        return replace(self, trees=(*self.trees[:index], tree, *self.trees[index + 1 :]))

    @cached_property
    def joined(self) -> tuple[CellArray, CellArray, Ints, Int32s]:
        """Four arrays over the boxes of all trees: low, high, value, and the index of the box's tree."""
        sizes = [len(tree.value) for tree in self.trees]
        number = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        low, high = (np.concatenate([getattr(tree, name) for tree in self.trees]) for name in ("low", "high"))
        return low, high, np.concatenate([tree.value for tree in self.trees]), number

    def scores(self, cells: CellArray) -> Ints:
        """Returns the scores, (inputs, outputs). cells: (inputs, features)."""
        total = np.tile(self.bias, (len(cells), 1))
        for tree in self.trees:
            total += tree.value[leaf_indices(tree, cells)]
        return total


def leaf_indices(tree: TreeBoxes, cells: CellArray) -> Ints:
    """Returns the index of the box that each input lies in. cells: (inputs, features)."""
    result = np.zeros(len(cells), dtype=np.int64)
    for start in range(0, len(cells), 1024):
        some = cells[start : start + 1024]
        inside = np.ones((len(some), len(tree.value)), dtype=bool)
        for feature in tree.narrow:
            cell = some[:, feature, np.newaxis]
            inside &= (tree.low[:, feature] <= cell) & (cell < tree.high[:, feature])
        result[start : start + 1024] = inside.argmax(axis=1)
    return result


@dataclass(frozen=True)
class Decider:
    """A rule that turns integer scores into classes."""

    threshold: int | None  # class 1 if the last score is at least this; None: largest score wins
    ties_last: bool = False  # True if the last of equal scores wins

    def classes(self, scores: Ints) -> Ints:
        if self.threshold is not None:
            return np.asarray(scores[:, -1] >= self.threshold, dtype=np.int64)
        last = scores.shape[1] - 1
        return np.asarray(last - scores[:, ::-1].argmax(axis=1) if self.ties_last else scores.argmax(axis=1))

    def demands(self, index: int, outputs: int) -> tuple[Ints, Ints]:
        """Returns factors (demands, outputs) and constants (demands,). An input has class `index` if no entry of
        factors @ scores + constants is negative."""
        if self.threshold is not None:
            factors = np.zeros((1, outputs), dtype=np.int64)
            factors[0, -1] = 1 if index else -1
            constant = -self.threshold if index else self.threshold - 1
            return factors, np.array([constant], dtype=np.int64)
        others = [other for other in range(outputs) if other != index]
        factors = np.zeros((len(others), outputs), dtype=np.int64)
        factors[:, index] = 1
        factors[np.arange(len(others)), others] = -1
        lost = [self.ties_last == (other > index) for other in others]  # a tie with these classes is lost
        return factors, -np.array(lost, dtype=np.int64)


@dataclass(frozen=True)
class Separation:
    """The result of `separate`: whether two ensembles decide alike, and an input on which they differ."""

    state: State  # "unknown" if the limit was reached before an answer
    cells: CellArray | None = None  # (features,) input on which the ensembles differ
    steps: int = 0  # number of search steps


@dataclass(frozen=True, eq=False)
class Problem:
    """The question whether several sums of leaves are all at least 0 somewhere in a box."""

    low: CellArray  # (leaves, features) first cell of each leaf
    high: CellArray  # (leaves, features) last cell of each leaf, plus one
    tree: Int32s  # (leaves,) index of each leaf's tree
    value: Ints  # (leaves, sums) addend of a leaf to each sum
    start: Ints  # (sums,) value of each sum without trees
    single: int  # number of sums, from the first, that must be at least 0
    box: Box


def separate(before: BoxEnsemble, after: BoxEnsemble, decider: Decider, box: Box, limit: int) -> Separation:
    """Checks whether two ensembles decide alike on every input of a box. limit: approximate number of search steps."""
    steps = 0
    unknown = False
    for problem in problems(before, after, decider, box):
        low, high = (np.ascontiguousarray(ends.T) for ends in (problem.low, problem.high))
        cells = np.zeros(len(low), dtype=np.int32)
        terms = (problem.tree, problem.value, problem.start, problem.single)
        state, taken = search(low, high, *terms, *problem.box, max(0, limit - steps), cells)
        steps += taken
        if state == FOUND:
            assert differ(before, after, decider, cells[np.newaxis])[0]
            return Separation("differs", cells, steps)
        unknown |= state == STOPPED
        if unknown and steps >= limit:
            break
    return Separation("unknown" if unknown else "same", None, steps)


def differ(before: BoxEnsemble, after: BoxEnsemble, decider: Decider, cells: CellArray) -> Bits:
    """Returns booleans (inputs,): True if the ensembles decide the input differently. cells: (inputs, features)."""
    old = before.scores(cells)
    return np.asarray(decider.classes(old) != decider.classes(after.scores(cells)))


def problems(before: BoxEnsemble, after: BoxEnsemble, decider: Decider, box: Box) -> Iterator[Problem]:
    """Yields a search problem for each pair of an old and a new class, unless simple bounds exclude the pair."""
    low, high, tree, old_value, new_value = _joint(before, after, box)
    outputs = len(before.bias)
    ends = np.flatnonzero(np.diff(tree, prepend=-1))
    for old_class, new_class in permutations(range(2 if decider.threshold is not None else outputs), 2):
        factors, constants = decider.demands(old_class, outputs)
        new_factors, new_constants = decider.demands(new_class, outputs)
        old, new = old_value @ factors.T, new_value @ new_factors.T
        start = factors @ before.bias + constants
        new_start = new_factors @ after.bias + new_constants
        # Joint bounds weigh two demands: the old class wins before, the new one after.
        rank = 0 if decider.threshold is not None else new_class - (new_class > old_class)
        new_rank = 0 if decider.threshold is not None else old_class - (old_class > new_class)
        mixed = [(k * old[:, rank] + (4 - k) * new[:, new_rank])[:, np.newaxis] for k in SHARES]
        mixed_start = [k * start[rank] + (4 - k) * new_start[new_rank] for k in SHARES]
        value = np.concatenate([old, new, *mixed], axis=1)
        start = np.concatenate([start, new_start, mixed_start])
        upper = np.maximum.reduceat(value, ends, axis=0).sum(axis=0) + start
        if (upper >= 0).all():
            single = len(constants) + len(new_constants)
            yield Problem(low, high, tree, np.ascontiguousarray(value), start, single, box)


def _joint(before: BoxEnsemble, after: BoxEnsemble, box: Box) -> tuple[Int32s, Int32s, Int32s, Ints, Ints]:
    """Returns five arrays over boxes that meet `box`: low, high, tree, value before, value after."""
    low, high, value, tree = before.joined
    changed = [i for i, (a, b) in enumerate(zip(before.trees, after.trees, strict=True)) if a is not b]
    narrow = np.flatnonzero((box[0] > low.min(axis=0)) | (box[1] < high.max(axis=0)))
    meets = ~np.isin(tree, changed)
    for feature in narrow.tolist():
        meets &= (low[:, feature] < box[1][feature]) & (high[:, feature] > box[0][feature])
    parts = [(low[meets], high[meets], tree[meets], value[meets], value[meets])]
    for number, index in enumerate(changed, start=len(before.trees)):
        old, new = before.trees[index].inside(box), after.trees[index].inside(box)
        lows, highs = np.maximum(old.low[:, np.newaxis], new.low), np.minimum(old.high[:, np.newaxis], new.high)
        i, k = np.nonzero((lows < highs).all(axis=2))
        parts.append((lows[i, k], highs[i, k], np.full(len(i), number, dtype=np.int32), old.value[i], new.value[k]))
    columns = zip(*parts, strict=True)
    low, high, tree, value, other = (np.concatenate(arrays) for arrays in columns)
    return low, high, tree, value, other
