"""Numbers the distinct leaves of a forest, so that a layout stores each of them once.

| kind  | a leaf's number stands for                            | possible if                              |
|-------|-------------------------------------------------------|------------------------------------------|
| value | its value minus the smallest value of its tree        | each tree has one output                 |
| rows  | a row of a table, with a value for each output        | all trees have the same adjacent outputs |
| bits  | an integer: bit k is the value 0 or 1 of the k-th output | as for rows, if all values are 0 or 1 |
| pairs | a list of (output, value) pairs                       | always                                   |

If trees have several outputs, the kind with the fewest bytes is taken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from forestc.forest.ir import LEAF, Forest
from forestc.layouts.slots import width_of

MOST_BITS = 32  # limits the outputs of leaves that are stored as bits
Pairs = tuple[tuple[int, int], ...]
Meaning = TypeVar("Meaning", tuple[int, ...], Pairs)


@dataclass(frozen=True)
class Leaves:
    """The numbered leaves of a forest: equal leaves have one number. Tables give the values of a number."""

    kind: Literal["value", "rows", "bits", "pairs"]
    trees: tuple[int, ...]  # trees with splits; sorted by output for `value`
    number: tuple[NDArray[np.int64], ...]  # by tree (nodes,): leaf numbers, -1 at splits
    count: int  # number of leaf numbers
    starts: NDArray[np.int64]  # initial scores (outputs,)
    table: NDArray[np.int64]  # values by leaf number; empty if numbers are values
    pairs: tuple[Pairs, ...] = ()  # (output, value) pairs of each leaf, for `pairs`

    @property
    def value_bytes(self) -> int:
        values = [value for leaf in self.pairs for _, value in leaf] if self.kind == "pairs" else self.table.ravel()
        return width_of(np.array(values, dtype=np.int64))

    @property
    def bytes(self) -> int:
        if self.kind == "pairs":
            entries = sum(max(1, len(leaf)) for leaf in self.pairs)
            return entries * (1 + self.value_bytes) + 2 * self.count
        return self.table.size * self.value_bytes

    @property
    def most_added(self) -> int:
        """The most scores that the C of one leaf adds to."""
        if self.kind == "pairs":
            return max(map(len, self.pairs))
        if self.kind == "bits":
            return max(int(bits).bit_length() for bits in self.table[:, 0])
        return self.table.shape[1] if self.kind == "rows" else 1


def leaves_of(forest: Forest) -> Leaves:
    """Returns the numbered leaves of a quantized forest that sums its trees. The value of a tree with a single leaf is
    added to the initial scores."""
    trees = [index for index, tree in enumerate(forest.trees) if len(tree.inner)]
    starts = forest.bias.astype(np.int64).copy()
    for tree in forest.trees:
        if not len(tree.inner):
            starts[list(tree.outputs)] += tree.values[tree.leaf[0]]
    if all(len(forest.trees[index].outputs) == 1 for index in trees):
        return _values(forest, trees, starts)
    options = [_pairs(forest, trees, starts)]
    shared = {forest.trees[index].outputs for index in trees}
    if len(shared) == 1 and (outputs := shared.pop()) == tuple(range(outputs[0], outputs[-1] + 1)):
        options += _rows(forest, trees, starts)
    return min(options, key=lambda leaves: leaves.bytes)


def _values(forest: Forest, trees: list[int], starts: NDArray[np.int64]) -> Leaves:
    trees = sorted(trees, key=lambda index: forest.trees[index].outputs)
    lifted: dict[int, NDArray[np.int64]] = {}
    for index in trees:
        tree = forest.trees[index]
        values = np.where(tree.left == LEAF, tree.values[tree.leaf, 0], np.iinfo(np.int64).max).astype(np.int64)
        least = int(values.min())
        starts[tree.outputs[0]] += least
        lifted[index] = values - least
    used = {index: lifted[index][forest.trees[index].left == LEAF] for index in trees}
    most = max((int(values.max()) for values in used.values()), default=0)
    counted = Counter(value for values in used.values() for value in values.tolist())
    if most < 2 * len(counted) or most < 16:
        table, numbers, count = np.zeros((0, 1), dtype=np.int64), None, most + 1
    else:
        order = sorted(counted, key=lambda value: (-counted[value], value))
        table, count = np.array(order, dtype=np.int64)[:, None], len(order)
        numbers = {value: number for number, value in enumerate(order)}
    number = tuple(
        np.array([])
        if index not in lifted
        else np.where(
            tree.left == LEAF,
            lifted[index] if numbers is None else [numbers.get(value, -1) for value in lifted[index].tolist()],
            -1,
        )
        for index, tree in enumerate(forest.trees)
    )
    return Leaves("value", tuple(trees), number, count, starts, table)


def _rows(forest: Forest, trees: list[int], starts: NDArray[np.int64]) -> list[Leaves]:
    """Returns a list: the leaves in the kind `rows` and, if possible, also in the kind `bits`."""
    least = {index: forest.trees[index].values[forest.trees[index].leaf].min(axis=0) for index in trees}
    starts = starts.copy()
    for index in trees:
        starts[list(forest.trees[index].outputs)] += least[index]
    low = {index: least[index].tolist() for index in trees}

    def row(index: int, values: list[int]) -> tuple[int, ...]:
        return tuple(value - below for value, below in zip(values, low[index], strict=True))

    number, order = _numbered(forest, trees, row)
    table = np.array(order, dtype=np.int64)
    kinds = [Leaves("rows", tuple(trees), number, len(order), starts, table)]
    if table.max() <= 1 and table.shape[1] <= MOST_BITS:
        bits = (table << np.arange(table.shape[1])).sum(axis=1, keepdims=True)
        kinds.append(Leaves("bits", tuple(trees), number, len(order), starts, bits))
    return kinds


def _pairs(forest: Forest, trees: list[int], starts: NDArray[np.int64]) -> Leaves:
    def pairs(index: int, values: list[int]) -> Pairs:
        outputs = forest.trees[index].outputs
        return tuple((output, value) for output, value in zip(outputs, values, strict=True) if value)

    number, order = _numbered(forest, trees, pairs)
    empty = np.zeros((0, 1), dtype=np.int64)
    return Leaves("pairs", tuple(trees), number, len(order), starts, empty, tuple(order))


def _numbered(
    forest: Forest, trees: list[int], what: Callable[[int, list[int]], Meaning]
) -> tuple[tuple[NDArray[np.int64], ...], list[Meaning]]:
    """Assigns one number to equal leaves. Returns each tree's leaf numbers by node, and a list of what each number
    means."""
    meanings: dict[int, list[Meaning]] = {}
    counted: Counter[Meaning] = Counter()
    for index in trees:
        tree = forest.trees[index]
        meanings[index] = [what(index, row) for row in tree.values.tolist()]
        for leaf, times in Counter(tree.leaf[tree.left == LEAF].tolist()).items():
            counted[meanings[index][leaf]] += times
    order = sorted(counted, key=lambda meaning: (-counted[meaning], meaning))
    number_of = {meaning: number for number, meaning in enumerate(order)}

    def numbers(index: int) -> NDArray[np.int64]:
        tree = forest.trees[index]
        of_row = np.array([number_of.get(meaning, -1) for meaning in meanings.get(index, ())] + [-1], dtype=np.int64)
        return of_row[tree.leaf] if index in meanings else np.zeros(0, dtype=np.int64)

    return tuple(map(numbers, range(len(forest.trees)))), order
