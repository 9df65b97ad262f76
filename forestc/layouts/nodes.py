"""The layout `nodes`: all trees in preorder as one stream of units, with small tables beside it.

A split holds a condition and the length of its left subtree; the left and the right subtree follow. A subtree may also
be a leaf, or a jump to a subtree stored elsewhere. Of three codes, the cheapest is taken:

| code  | a split                                    | unit    |
|-------|--------------------------------------------|---------|
| index | index of the condition, length             | 1 byte  |
| split | slot, threshold of 1 or 2 bytes, length    | 1 byte  |
| wide  | index of the condition, length             | 2 bytes |

The codes `index` and `wide` need a table of conditions.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from forestc.errors import OptionError, opt
from forestc.forest.ir import Forest
from forestc.layouts.leaves import Leaves, leaves_of
from forestc.layouts.slots import Slots, byte_width, slots_of, width_of
from forestc.layouts.subtrees import Subtrees, subtrees_of

Code = Literal["index", "split", "wide"]
CODES: tuple[Code, ...] = ("index", "split", "wide")
RANKING, JUMPING = 120, 30  # bytes of C code that ranks features, and that jumps
RANKED, JUMPED = 0.9, 0.98  # requires that ranks, and jumps, reduce the bytes to these shares
MOST_TURNS = 4  # limits the guesses of the number of jumps in a code


@dataclass(frozen=True)
class NodeTables:
    """The tables of a forest in the layout `nodes`."""

    slots: Slots
    code: Code
    conditions: NDArray[np.int64]  # the distinct conditions of all splits
    threshold_bytes: int  # bytes of a split's threshold in the code `split`
    single: int  # leaves and jumps coded in one unit; others take two
    stream: NDArray[np.int64]  # the units of all trees
    starts: NDArray[np.int64]  # index in the stream of each tree, then each shared subtree
    leaves: Leaves

    @property
    def splits(self) -> bool:
        return len(self.conditions) > 0

    @property
    def symbols(self) -> int:
        """A unit below this number begins a split; any other unit begins a leaf or a jump."""
        return len(self.slots.slots) if self.code == "split" else len(self.conditions)

    @property
    def head(self) -> int:
        """Number of units of a split, without its subtrees."""
        return 2 + self.threshold_bytes if self.code == "split" else 2

    @property
    def unit(self) -> int:
        return 2 if self.code == "wide" else 1

    @property
    def start_bytes(self) -> int:
        return 2 if len(self.stream) <= 1 << 16 else 4

    @property
    def bytes(self) -> int:
        rows = 0 if self.code == "split" else len(self.conditions)
        slot, threshold = byte_width(len(self.slots.slots) - 1), width_of(self.slots.threshold[self.conditions])
        tables = rows * (slot + threshold) + self.start_bytes * len(self.starts) + self.leaves.bytes
        return self.unit * len(self.stream) + tables + self.slots.rank_bytes

    @property
    def jumps(self) -> int:
        """Number of subtrees that are stored apart and reached by jumps."""
        return len(self.starts) - len(self.leaves.trees)


def nodes_of(forest: Forest, *, float_bytes: int = 0) -> NodeTables:
    """Returns the node tables of a quantized forest that sums its trees, in the cheapest code.
    float_bytes: bytes of a raw float input; 0 for integer words.

    Raises OptionError if no code can hold the forest.
    """
    leaves, candidates = leaves_of(forest), list[tuple[NodeTables, Subtrees]]()
    codes: dict[bool, tuple[Code, ...]] = {True: CODES} if float_bytes else {False: CODES, True: ("split",)}
    for ranked, tried in codes.items():  # the other codes store each threshold once, where a rank is no shorter
        slots = slots_of(forest, ranked=ranked, float_bytes=float_bytes)
        subtrees = subtrees_of(forest, slots, leaves)
        coded = (_coded(subtrees, slots, leaves, code, shares=False) for code in tried)
        candidates += [(nodes, subtrees) for nodes in coded if nodes is not None]
    if not candidates:
        raise OptionError(
            "the forest is too large for the layout nodes",
            where=f"{opt.c_layout:nodes}",
            do=f"use {opt.c_layout:branches}",
        )
    best, subtrees = min(candidates, key=lambda pair: _cost(pair[0]))
    shared = _coded(subtrees, best.slots, leaves, best.code, shares=True)
    return best if shared is None else min(best, shared, key=_cost)


def _cost(nodes: NodeTables) -> float:
    """Returns the bytes of the tables, increased if ranks or jumps need additional code and time."""
    size = (nodes.bytes + JUMPING) / JUMPED if nodes.jumps else nodes.bytes
    return (size + RANKING) / RANKED if nodes.slots.ranked else size


def _coded(subtrees: Subtrees, slots: Slots, leaves: Leaves, code: Code, *, shares: bool) -> NodeTables | None:
    """Returns the tables of the forest in one code; None if the forest does not fit."""
    used = np.unique(np.array([condition for condition, _, _ in subtrees.rows], dtype=np.int64))
    threshold_bytes = 0
    if code == "split":
        if slots.threshold[used].min(initial=0) < 0:
            return None
        threshold_bytes = byte_width(int(slots.threshold[used].max(initial=0)))
        if threshold_bytes > 2:
            return None
    units = 1 << (16 if code == "wide" else 8)
    symbols = len(slots.slots) if code == "split" else len(used)
    head = 2 + threshold_bytes if code == "split" else 2
    jump = 1 if symbols + leaves.count < units else 2  # units of most jumps
    shared = subtrees.shared(head, jump, 1 if code == "wide" else 2) if shares else []
    jumps = len(shared)
    for _ in range(MOST_TURNS):
        numbers = leaves.count + jumps
        double = 0 if symbols + numbers <= units else -(-(symbols + numbers - units) // (units - 1))
        single = min(numbers, units - symbols - double)
        if single < 0:
            return None
        coder = _Coder(slots, leaves, code, used, threshold_bytes, symbols, single, units)
        stream, starts = coder.forest(subtrees, shared)
        if len(coder.far) <= jumps:
            return NodeTables(slots, code, used, threshold_bytes, single, stream, starts, leaves)
        jumps = len(coder.far)
    return None


@dataclass
class _Coder:
    """Encoder of a forest as a stream of units in one code."""

    slots: Slots
    leaves: Leaves
    code: Code
    used: NDArray[np.int64]
    threshold_bytes: int
    symbols: int
    single: int
    units: int

    def __post_init__(self) -> None:
        self.far: dict[int, int] = {}  # the numbers of subtrees that are jumped to
        symbol = {int(condition): index for index, condition in enumerate(self.used)}
        self.split: dict[int, list[int]] = {}
        for condition in self.used.tolist():
            slot, threshold = int(self.slots.slot[condition]), int(self.slots.threshold[condition])
            if self.code == "split":
                self.split[condition] = [slot, *(threshold >> (8 * k) & 255 for k in range(self.threshold_bytes))]
            else:
                self.split[condition] = [symbol[condition]]

    def number(self, number: int) -> list[int]:
        """Encodes the number of a leaf or a jump as one or two units of the stream."""
        if number < self.single:
            return [self.symbols + number]
        high, low = divmod(number - self.single, self.units)
        return [self.symbols + self.single + high, low]

    def jump(self, subtree: int) -> list[int]:
        return self.number(self.leaves.count + self.far.setdefault(subtree, len(self.far)))

    def forest(self, subtrees: Subtrees, shared: list[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Returns the stream, and an array of start indices in it: of each tree, then of each subtree stored apart.
        shared: subtrees to store once."""
        far = self.far = {subtree: number for number, subtree in enumerate(shared)}
        uses, coded, stored = subtrees.uses.tolist(), dict[int, list[int]](), dict[int, list[int]]()
        numbers = [self.number(number) for number in range(self.leaves.count)]

        def taken(subtree: int) -> list[int]:
            if subtree < 0:
                return numbers[~subtree]
            uses[subtree] -= 1
            return coded[subtree] if uses[subtree] else coded.pop(subtree)

        for subtree, (condition, left, right) in enumerate(subtrees.rows):
            first = self.jump(left) if left in far else taken(left)
            second = self.jump(right) if right in far else taken(right)
            if len(first) >= self.units:
                stored[left] = first
                first = self.jump(left)
            coded[subtree] = [*self.split[condition], len(first), *first, *second]
            if subtree in far:
                stored[subtree] = coded[subtree]
        roots = dict.fromkeys(subtrees.roots)  # equal trees are stored once
        parts = {root: taken(root) for root in roots if root not in self.far}
        parts |= {subtree: stored[subtree] for subtree in self.far}
        starts = dict(zip(parts, np.cumsum([0, *map(len, parts.values())]).tolist(), strict=False))
        stream = np.fromiter(chain.from_iterable(parts.values()), dtype=np.int64)
        return stream, np.array([starts[subtree] for subtree in (*subtrees.roots, *self.far)], dtype=np.int64)
