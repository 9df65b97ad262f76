"""Trees as bit vectors of the leaves that a row can still reach, without branches.

Lucchese et al., "QuickScorer", 2015: a condition that fails clears the bits of the leaves on its left side; the lowest
bit that remains is the row's leaf. Where trees have at most 64 leaves and it is less work (`dense`), a table holds the
vectors of all trees for each rank of a feature; else a list holds the words that each condition clears.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forestc.backends.c.leaves import LeafSums
from forestc.backends.c.slots import SlotsInC
from forestc.backends.c.tables import FlashTables
from forestc.backends.c.trees import TreeContext, TreesInC, TreeText
from forestc.backends.c.types import compared
from forestc.forest.ir import LEAF, Tree
from forestc.layouts.leaves import Leaves, leaves_of
from forestc.layouts.slots import ALWAYS, NEVER, Slots, slots_of
from hdl_templates import render

WORD = 64  # bits of a word
MOST_SPLITS = 256  # mean splits of a tree above which walking a tree is faster
MOST_BYTES = 1 << 20  # bytes of a dense table
FEW = 8  # cuts of a feature up to which all are compared
LANE = 16  # bytes of vectors that the processor combines at once


@dataclass(frozen=True)
class Vectors:
    """Bit vectors of a forest's trees."""

    slots: Slots
    leaves: Leaves
    words: NDArray[np.int64]  # (trees + 1,), the first word of each tree
    cleared: Sequence[tuple[int, int, int, int]]  # (slot, rank from which bits are cleared, word, bits), sorted
    reached: NDArray[np.int64]  # (words * WORD,), the leaf number of each bit

    @property
    def ranks(self) -> NDArray[np.int64]:
        """The first rank of each slot, and the number of ranks."""
        return self._ranks(range(len(self.slots.slots)))

    @property
    def rows(self) -> NDArray[np.int64]:
        """The first row of each of `columns` in the dense table, and the number of rows."""
        return self._ranks(self.columns)

    def _ranks(self, slots: Sequence[int]) -> NDArray[np.int64]:
        return np.cumsum([0, *(max(1, len(self.slots.slots[slot].cuts)) + 1 for slot in slots)])

    @property
    def columns(self) -> list[int]:
        """The slots without those that differ from the one before by the rank of missing values alone."""
        return [k for k, slot in enumerate(self.slots.slots) if slot.condition is not None or not slot.missing_low]

    @property
    def width(self) -> int:
        """Bits of a tree's vector in the dense table."""
        most = max(bits.bit_length() for *_, bits in self.cleared) + 1
        return next(width for width in (8, 16, 32, WORD) if most <= width or width == WORD)

    @property
    def dense(self) -> bool:
        trees, width = len(self.words) - 1, self.width
        fits = int(self.rows[-1]) * trees * width <= 8 * MOST_BYTES
        return fits and int(self.words[-1]) == trees and len(self.columns) * trees * width < 256 * len(self.cleared)


def vectors_of(context: TreeContext) -> Vectors:
    forest = context.forest
    slots, leaves = slots_of(forest, ranked=True), leaves_of(forest)
    words, reached, cleared = [0], list[int](), dict[tuple[int, int, int], int]()
    for index in leaves.trees:
        conditions = forest.conditions.node_conditions[index].tolist()
        nodes, left_sides = _read(forest.trees[index], conditions, slots)
        for condition, first, end in left_sides:
            for word in range(first // WORD, -(-end // WORD)):
                bits = (1 << min(WORD, end - word * WORD)) - (1 << max(0, first - word * WORD))
                key = int(slots.slot[condition]), int(slots.threshold[condition]), words[-1] + word
                cleared[key] = cleared.get(key, 0) | bits
        words.append(words[-1] + -(-len(nodes) // WORD))
        reached += [*leaves.number[index][nodes].tolist(), *[0] * (-len(nodes) % WORD)]
    flat = [(*key, bits) for key, bits in sorted(cleared.items())]
    return Vectors(slots, leaves, np.array(words), flat, np.array(reached, dtype=np.int64))


def _read(tree: Tree, conditions: list[int], slots: Slots) -> tuple[list[int], list[tuple[int, int, int]]]:
    """Returns the reachable leaf nodes, left to right, and (condition, first, end) of the leaves on left sides."""
    nodes, sides, stack = list[int](), list[tuple[int, int, int]](), [(0, -1)]
    while stack:  # (node, -1), or after its left side (node, leaves before that side)
        node, first = stack.pop()
        if first >= 0:
            sides.append((conditions[node], first, len(nodes)))
        elif tree.left[node] == LEAF:
            nodes.append(node)
        elif (slot := int(slots.slot[conditions[node]])) in (ALWAYS, NEVER):
            stack.append((int((tree.left if slot == ALWAYS else tree.right)[node]), -1))
        else:
            stack += [(int(tree.right[node]), -1), (node, len(nodes)), (int(tree.left[node]), -1)]
    return nodes, sides


@dataclass(frozen=True)
class BitsInC:
    """The C code of trees as bit vectors."""

    flash: FlashTables
    slots: SlotsInC
    leaves: LeafSums
    vectors: Vectors

    def declarations(self) -> list[str]:
        vectors, flash = self.vectors, self.flash
        if vectors.dense:
            flash.text.append("__attribute__((aligned(64)))")
            flash.add("vectors", self._dense(), f"uint{vectors.width}_t")
            keep = np.arange(len(vectors.reached)) % WORD < vectors.width
            flash.add("reached", vectors.reached[keep].tolist())
        else:
            ranks = np.array([vectors.ranks[slot] + rank for slot, rank, *_ in vectors.cleared])
            ends = np.searchsorted(ranks, np.arange(vectors.ranks[-1]), side="right")
            flash.add("ends", ends.tolist())
            flash.add("begins", ends[vectors.ranks[:-1]].tolist())
            flash.add("words", [word for _, _, word, _ in vectors.cleared])
            flash.add("kept", [(1 << WORD) - 1 - bits for *_, bits in vectors.cleared], "uint64_t")
            flash.add("firsts", vectors.words.tolist())
            flash.add("reached", vectors.reached.tolist())
        self.leaves.add_tables()
        starts = np.cumsum([0, *(len(slot.cuts) for slot in vectors.slots.slots)]).tolist()
        flash.add("cuts", [cut for slot in vectors.slots.slots for cut in slot.cuts], self.slots.inputs.kinds[0])
        text = render(
            "shared/bits.h.j2",
            p=flash.prefix,
            x=self.slots.x,
            word=self.slots.inputs.kinds[0],
            filled=[self._filled(index, starts[index]) for index in vectors.columns],
            kinds=flash.kinds,
            dense=vectors.dense,
            width=vectors.width,
            slots=len(vectors.columns if vectors.dense else vectors.slots.slots),
            firsts=(vectors.rows if vectors.dense else vectors.ranks).tolist(),
            columns=vectors.columns,
            index=self.leaves.index,
            words=int(vectors.words[-1]),
            row=self._row,
            lanes=self._row * vectors.width // (8 * LANE),
            chunk=self._chunk,
        )
        return [*flash.text, "", *text.splitlines(), ""]

    def _filled(self, index: int, start: int) -> str:
        """Returns C for a slot. start: of its cuts in the table."""
        slot, inputs, p = self.vectors.slots.slots[index], self.slots.inputs, self.flash.prefix
        place, kind = inputs.place(slot.feature), inputs.kinds[0]
        if slot.condition is not None:
            return f"!({self.slots.conditions.of(slot.condition)})"
        rank = f"{p}_rank({place}, {p}_cuts + {start}, {len(slot.cuts)}u)"
        if len(slot.cuts) <= FEW:
            rank = " + ".join(f"({place} >= {compared(cut, kind)})" for cut in slot.cuts)
        return rank

    @property
    def _chunk(self) -> int:
        """The lanes that are combined at once."""
        return min(4, -(-len(self.vectors.leaves.trees) * self.vectors.width // (8 * LANE)))

    @property
    def _row(self) -> int:
        """The vectors in a row of the dense table, whole chunks."""
        chunk = self._chunk * 8 * LANE // self.vectors.width
        return -(-len(self.vectors.leaves.trees) // chunk) * chunk

    def _dense(self) -> list[int]:
        vectors, full, slots = self.vectors, (1 << self.vectors.width) - 1, self.vectors.slots.slots
        place = {k: n for n, k in enumerate(vectors.columns)}
        table = np.full((int(vectors.rows[-1]), self._row), full, dtype=np.uint64)
        for slot, rank, tree, bits in vectors.cleared:
            low = slots[slot].condition is None and slots[slot].missing_low  # holds for missing values
            column = place[slot - low]
            table[vectors.rows[column] + rank : vectors.rows[column + 1] - low, tree] &= np.uint64(full & ~bits)
        return [int(entry) for entry in table.ravel().tolist()]

    def functions(self) -> list[TreeText]:
        return []

    def sums(self, into: str) -> list[str]:
        vectors, p = self.vectors, self.flash.prefix
        kind, count = (f"uint{vectors.width}_t", self._row) if vectors.dense else ("uint64_t", int(vectors.words[-1]))
        kind = f"__attribute__((aligned(64))) {kind}"
        return self.leaves.sums(into, f"{p}_leaf(tree, left)", [f"{kind} left[{count}];"], [f"{p}_narrow(x, left);"])


def bits(context: TreeContext) -> TreesInC | None:
    """Returns the trees as C in bit vectors; None if that is slower than to walk them, or impossible."""
    forest = context.forest
    splits = sum(len(tree.inner) for tree in forest.trees)
    if not forest.adds or not splits or splits > MOST_SPLITS * len(forest.trees):
        return None
    vectors = vectors_of(context)
    return BitsInC(*context.tables(vectors.slots, vectors.leaves), vectors) if vectors.cleared else None
