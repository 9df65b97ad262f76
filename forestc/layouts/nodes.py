"""The layout `nodes`: all trees as one stream of bytes, in preorder, and small tables beside it.

A split is followed by its left subtree, then by its right one, and says how long the left one is: no node has pointers.
A symbol that is no split is a leaf, or a jump to a subtree that lies elsewhere since its place could not be said in one
byte. Three codes, of which the one with the fewest bytes is taken:

| code  | split                                     | leaf              | where                             |
|-------|-------------------------------------------|-------------------|-----------------------------------|
| index | 1 byte: condition; 1: skip                | 1 or 2            | conditions are fewer than 256     |
| split | 1: slot; 1 or 2: threshold; 1: skip       | 1 or 2            | slots are                         |
| wide  | as index, in units of 2 bytes             | 2 bytes           | everything else                   |

The table of conditions that `index` and `wide` need has each distinct one once.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from forestc.errors import OptionError
from forestc.forest.ir import LEAF, Forest, Tree
from forestc.layouts.leaves import Leaves, leaves_of
from forestc.layouts.slots import ALWAYS, NEVER, Slots, slots_of

Code = Literal["index", "split", "wide"]
CODES: tuple[Code, ...] = ("index", "split", "wide")
MOST_TURNS = 4  # until the number of jumps is settled


@dataclass(frozen=True)
class Nodes:
    """A forest as tables.

    slots: what the splits compare. code: of the stream. conditions: (places among the forest's conditions) that symbols
    below their number stand for, of `index` and `wide`. threshold_bytes: of a split of `split`. single: how many leaves
    and jumps have codes of one unit; the others have two. stream: its units, of 1 byte, or 2 for `wide`. starts: where
    each tree of `trees`, then each subtree that is jumped to, begins. leaves: what the leaves' numbers stand for.
    """

    slots: Slots
    code: Code
    conditions: NDArray[np.int64]
    threshold_bytes: int
    single: int
    stream: NDArray[np.int64]
    starts: NDArray[np.int64]
    leaves: Leaves

    @property
    def symbols(self) -> int:
        """Symbols below this are splits."""
        return len(self.slots.slots) if self.code == "split" else len(self.conditions)

    @property
    def head(self) -> int:
        """Units of a split without its subtrees."""
        return 2 + self.threshold_bytes if self.code == "split" else 2

    @property
    def unit(self) -> int:
        """Bytes of a unit of the stream."""
        return 2 if self.code == "wide" else 1

    @property
    def start_bytes(self) -> int:
        """Bytes of an entry of `starts`."""
        return 2 if len(self.stream) <= 1 << 16 else 4

    @property
    def bytes(self) -> int:
        """Of all tables together."""
        rows = 0 if self.code == "split" else len(self.conditions)
        slot, threshold = byte_width(len(self.slots.slots) - 1), width_of(self.slots.threshold[self.conditions])
        ranks = sum(4 * len(slot.cuts) for slot in self.slots.slots) if self.slots.ranked else 0
        tables = rows * (slot + threshold) + self.start_bytes * len(self.starts) + self.leaves.bytes + ranks
        return self.unit * len(self.stream) + tables

    def walk(self, tree: int, values: NDArray[np.int64]) -> int:
        """The number of the leaf that a row reaches in the tree-th tree. values: (slots,)."""
        stream, at, far = self.stream, int(self.starts[tree]), len(self.starts) - self.jumps
        while True:
            while (symbol := int(stream[at])) < self.symbols:
                left = self._holds(symbol, at, values)
                at += self.head + (0 if left else int(stream[at + self.head - 1]))
            number = symbol - self.symbols
            if number >= self.single:
                number = self.single + ((number - self.single) << 8 | int(stream[at + 1]))
            if number < self.leaves.count:
                return number
            at = int(self.starts[far + number - self.leaves.count])

    @property
    def jumps(self) -> int:
        """How many subtrees are jumped to."""
        return len(self.starts) - len(self.leaves.trees)

    def _holds(self, symbol: int, at: int, values: NDArray[np.int64]) -> bool:
        if self.code != "split":
            place = self.conditions[symbol]
            return bool(values[self.slots.slot[place]] < self.slots.threshold[place])
        given = self.stream[at + 1] + (self.stream[at + 2] << 8 if self.threshold_bytes == 2 else 0)
        return bool(values[symbol] < given)


def nodes_of(forest: Forest, *, ranked: bool = False) -> Nodes:
    """The smallest tables of a forest whose trees are added. ranked: whether slots hold ranks, as for raw floats.

    Raises OptionError for a forest that no code holds. Time and memory O(nodes * depth).
    """
    slots = slots_of(forest, ranked=ranked)
    leaves = leaves_of(forest)
    made = [found for code in CODES if (found := _coded(forest, slots, leaves, code)) is not None]
    if not made:
        raise OptionError("the forest is too large for the layout nodes", do="use --c-layout branches")
    return min(made, key=lambda each: each.bytes)


def _coded(forest: Forest, slots: Slots, leaves: Leaves, code: Code) -> Nodes | None:
    """The forest in one code; None if it does not fit."""
    places = [forest.conditions.places[tree] for tree in leaves.trees]
    used = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *(own[own >= 0] for own in places)])).astype(np.int64)
    used = used[slots.slot[used] >= 0]
    threshold_bytes = 0
    if code == "split":
        if slots.threshold[used].min(initial=0) < 0:
            return None
        threshold_bytes = byte_width(int(slots.threshold[used].max(initial=0)))
        if threshold_bytes > 2:
            return None
    units = 1 << (16 if code == "wide" else 8)
    symbols = len(slots.slots) if code == "split" else len(used)
    jumps = 0
    for _ in range(MOST_TURNS):
        numbers = leaves.count + jumps
        double = 0 if symbols + numbers <= units else -(-(symbols + numbers - units) // 255)
        single = min(numbers, units - symbols - double)
        if single < 0 or (double and code == "wide"):
            return None
        coder = _Coder(slots, leaves, code, used, threshold_bytes, symbols, single, units)
        stream, starts = coder.forest(forest, places)
        if coder.jumps <= jumps:
            return Nodes(slots, code, used, threshold_bytes, single, stream, starts, leaves)
        jumps = coder.jumps
    return None


@dataclass
class _Coder:
    """Writes the trees' streams."""

    slots: Slots
    leaves: Leaves
    code: Code
    used: NDArray[np.int64]
    threshold_bytes: int
    symbols: int
    single: int
    units: int

    def __post_init__(self) -> None:
        self.far: list[list[int]] = []
        symbol = {int(place): index for index, place in enumerate(self.used)}
        self.split: dict[int, list[int]] = {}
        for place in self.used.tolist():
            slot, threshold = int(self.slots.slot[place]), int(self.slots.threshold[place])
            if self.code == "split":
                self.split[place] = [slot, *(threshold >> (8 * k) & 255 for k in range(self.threshold_bytes))]
            else:
                self.split[place] = [symbol[place]]

    @property
    def jumps(self) -> int:
        return len(self.far)

    def number(self, number: int) -> list[int]:
        """The code of a leaf or a jump."""
        if number < self.single:
            return [self.symbols + number]
        high, low = divmod(number - self.single, 256)
        return [self.symbols + self.single + high, low]

    def forest(self, forest: Forest, places: list[NDArray[np.int32]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        trees = [
            self.tree(forest.trees[index], own.tolist(), self.leaves.number[index].tolist())
            for index, own in zip(self.leaves.trees, places, strict=True)
        ]
        parts = [*trees, *self.far]
        starts = np.cumsum([0, *map(len, parts)])[:-1]
        return np.array([unit for part in parts for unit in part], dtype=np.int64), starts.astype(np.int64)

    def tree(self, tree: Tree, place: list[int], number: list[int]) -> list[int]:
        """The stream of a tree. place: (nodes,) conditions. number: (nodes,) of leaves."""
        left, right = tree.left.tolist(), tree.right.tolist()
        made: dict[int, list[int]] = {}
        for node in _bottom_up(tree):
            if left[node] == LEAF:
                made[node] = self.number(number[node])
                continue
            first, second = made.pop(left[node]), made.pop(right[node])
            slot = int(self.slots.slot[place[node]])
            if slot in (ALWAYS, NEVER):
                made[node] = first if slot == ALWAYS else second
                continue
            if len(first) >= self.units:
                self.far.append(first)
                first = self.number(self.leaves.count + len(self.far) - 1)
            made[node] = [*self.split[place[node]], len(first), *first, *second]
        return made[0]


def _bottom_up(tree: Tree) -> list[int]:
    return [node for level in reversed(tree.levels) for node in level.tolist()]


def byte_width(largest: int) -> int:
    """Bytes of an unsigned integer that holds 0 .. largest: 1, 2, 4 or 8."""
    return next(size for size in (1, 2, 4, 8) if largest < 1 << (8 * size))


def width_of(values: NDArray[np.int64]) -> int:
    """Bytes of an integer, signed where one of the values is negative."""
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    return byte_width(high if low >= 0 else 2 * max(high, -low - 1) + 1)


def frequent_first(numbers: NDArray[np.int64]) -> list[int]:
    """Distinct values, the most frequent first, equally frequent ones ascending."""
    return [value for value, _ in sorted(Counter(numbers.tolist()).items(), key=lambda item: (-item[1], item[0]))]
