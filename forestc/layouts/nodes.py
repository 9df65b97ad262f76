"""The layout `nodes`: all trees as one stream of bytes, in preorder, and small tables beside it.

A split is followed by its left subtree, then by its right one, and says how long the left one is: no node has pointers.
A symbol that is no split is a leaf, or a jump to a subtree that lies elsewhere since its place could not be said in one
byte. Three codes, of which the one with the fewest bytes is taken:

| code  | split                                     | leaf              | where                             |
|-------|-------------------------------------------|-------------------|-----------------------------------|
| index | 1 byte: condition; 1: skip                | 1 or 2            | conditions are fewer than 256     |
| split | 1: slot; 1 or 2: threshold; 1: skip       | 1 or 2            | slots are                         |
| wide  | as index, in units of 2 bytes             | 2 or 4 bytes      | everything else                   |

The table of conditions that `index` and `wide` need has each distinct one once.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from forestc.errors import OptionError
from forestc.forest.ir import Forest
from forestc.layouts.leaves import Leaves, leaves_of
from forestc.layouts.slots import Slots, byte_width, slots_of, width_of
from forestc.layouts.subtrees import Subtrees, subtrees_of

Code = Literal["index", "split", "wide"]
CODES: tuple[Code, ...] = ("index", "split", "wide")
RANKING, JUMPING = 120, 30  # bytes of the code that ranks features, and of that which jumps
RANKED, JUMPED = 0.9, 0.98  # how much smaller tables with ranks of words, and with jumps, must be: both take time
MOST_TURNS = 4  # until the number of jumps is settled


@dataclass(frozen=True)
class NodeTables:
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
    def splits(self) -> bool:
        """Whether there are any."""
        return len(self.conditions) > 0

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
        """The size of all tables together."""
        rows = 0 if self.code == "split" else len(self.conditions)
        slot, threshold = byte_width(len(self.slots.slots) - 1), width_of(self.slots.threshold[self.conditions])
        tables = rows * (slot + threshold) + self.start_bytes * len(self.starts) + self.leaves.bytes
        return self.unit * len(self.stream) + tables + self.slots.rank_bytes

    @property
    def jumps(self) -> int:
        """How many subtrees are jumped to."""
        return len(self.starts) - len(self.leaves.trees)


def nodes_of(forest: Forest, *, float_bytes: int = 0) -> NodeTables:
    """The smallest tables of a forest whose trees are added. float_bytes: of raw floats, which are compared by their
    ranks; 0 for words, which are where that is much smaller, as to rank them takes time.

    Raises OptionError for a forest that no code holds. Time and memory O(nodes * depth).
    """
    leaves, made = leaves_of(forest), list[tuple[NodeTables, Subtrees]]()
    codes: dict[bool, tuple[Code, ...]] = {True: CODES} if float_bytes else {False: CODES, True: ("split",)}
    for ranked, tried in codes.items():  # in the other codes a threshold is stored once, so that no rank is shorter
        slots = slots_of(forest, ranked=ranked, float_bytes=float_bytes)
        subtrees = subtrees_of(forest, slots, leaves)
        coded = (_coded(subtrees, slots, leaves, code, shares=False) for code in tried)
        made += [(nodes, subtrees) for nodes in coded if nodes is not None]
    if not made:
        raise OptionError("the forest is too large for the layout nodes", do="use --c-layout branches")
    best, subtrees = min(made, key=lambda pair: _cost(pair[0]))
    shared = _coded(subtrees, best.slots, leaves, best.code, shares=True)
    return best if shared is None else min(best, shared, key=_cost)


def _cost(nodes: NodeTables) -> float:
    """Bytes, more for ranks and for jumps, which take code and time."""
    size = (nodes.bytes + JUMPING) / JUMPED if nodes.jumps else nodes.bytes
    return (size + RANKING) / RANKED if nodes.slots.ranked else size


def _coded(subtrees: Subtrees, slots: Slots, leaves: Leaves, code: Code, *, shares: bool) -> NodeTables | None:
    """The forest in one code; None if it does not fit. shares: whether equal subtrees are jumped to."""
    used = np.unique(np.array([place for place, _, _ in subtrees.rows], dtype=np.int64))
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
        self.far: dict[int, int] = {}  # the numbers of subtrees that are jumped to
        symbol = {int(place): index for index, place in enumerate(self.used)}
        self.split: dict[int, list[int]] = {}
        for place in self.used.tolist():
            slot, threshold = int(self.slots.slot[place]), int(self.slots.threshold[place])
            if self.code == "split":
                self.split[place] = [slot, *(threshold >> (8 * k) & 255 for k in range(self.threshold_bytes))]
            else:
                self.split[place] = [symbol[place]]

    def number(self, number: int) -> list[int]:
        """The code of a leaf or a jump."""
        if number < self.single:
            return [self.symbols + number]
        high, low = divmod(number - self.single, self.units)
        return [self.symbols + self.single + high, low]

    def jump(self, subtree: int) -> list[int]:
        """The code of a jump to a subtree."""
        return self.number(self.leaves.count + self.far.setdefault(subtree, len(self.far)))

    def forest(self, subtrees: Subtrees, shared: list[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The stream, and where each tree, then each subtree that is jumped to, begins. shared: subtrees to jump to."""
        far = self.far = {subtree: number for number, subtree in enumerate(shared)}
        uses, made, kept = subtrees.uses.tolist(), dict[int, list[int]](), dict[int, list[int]]()
        numbers = [self.number(number) for number in range(self.leaves.count)]

        def taken(subtree: int) -> list[int]:
            if subtree < 0:
                return numbers[~subtree]
            uses[subtree] -= 1
            return made[subtree] if uses[subtree] else made.pop(subtree)

        for subtree, (place, left, right) in enumerate(subtrees.rows):
            first = self.jump(left) if left in far else taken(left)
            second = self.jump(right) if right in far else taken(right)
            if len(first) >= self.units:
                kept[left] = first
                first = self.jump(left)
            made[subtree] = [*self.split[place], len(first), *first, *second]
            if subtree in far:
                kept[subtree] = made[subtree]
        roots = dict.fromkeys(subtrees.roots)  # equal trees are one
        parts = {root: taken(root) for root in roots if root not in self.far}
        parts |= {subtree: kept[subtree] for subtree in self.far}
        starts = dict(zip(parts, np.cumsum([0, *map(len, parts.values())]).tolist(), strict=False))
        stream = np.fromiter(chain.from_iterable(parts.values()), dtype=np.int64)
        return stream, np.array([starts[subtree] for subtree in (*subtrees.roots, *self.far)], dtype=np.int64)
