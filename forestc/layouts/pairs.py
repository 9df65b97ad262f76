"""The layout `pairs`, for engines: each tree is a graph of blocks. A block is a sequence of adjacent nodes.

A node is either a leaf, or points to the block that holds its children. A node may be in several blocks.

| kind | goes to child                                                      | represents                     |
|------|--------------------------------------------------------------------|--------------------------------|
| LESS | 0 if x < operand, or if x is missing and the flag is set; otherwise 1 | a threshold                 |
| MASK | 0 if bit x mod (bits of a mask) of the operand is set; otherwise 1 | a set of categories, or a part |
| JUMP | x div (bits of a mask)                                             | a larger set of categories     |
| LEAF | none                                                               | a pair of output and value     |

Words x are counted from 0 (`to_raised`); a missing number has all bits set. A leaf that adds to several outputs is a
sequence of LEAF nodes, all but the last with the flag.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forestc.errors import OptionError, opt
from forestc.forest.conditions import NO_SET
from forestc.forest.ir import LEAF as NO_CHILD
from forestc.forest.ir import Forest, Tree
from forestc.forest.numbers import Category, word_range

LESS, MASK, JUMP, LEAF = range(4)
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Blocks:
    """A tree as a graph: each inner node points to a block of adjacent child nodes. Block 0 holds only the root."""

    kind: Ints  # (nodes,), as in the module's table
    flag: Ints  # (nodes,), as in the module's table
    feature: Ints  # (nodes,); the output of a leaf
    operand: Ints  # (nodes,); the value of a leaf
    block: Ints  # (nodes,), block of the node's children, -1 for leaves
    shift: Ints  # (nodes,), added to the address of that block
    members: Ints  # nodes of all blocks, block after block
    starts: Ints  # (blocks,), index in `members` of each block
    steps: int  # nodes on the longest path, without the leaf

    @property
    def size(self) -> int:
        return len(self.members)


def raised_ranges(forest: Forest, word_bits: int) -> tuple[Ints, Ints]:
    """Returns two arrays (features,): the smallest word, and the largest minus the smallest. A number's word for
    missing is not counted.

    Raises OptionError if words need more than `word_bits` bits.
    """
    low, high = [], []
    for feature in forest.features:
        span = word_range(feature.number, feature.missing)
        if span.top - span.low >= 1 << word_bits:
            raise OptionError(
                f"the engine's words have {word_bits} bits, and {(span.top - span.low).bit_length()} are needed",
                where=f"feature {feature.name!r}, {feature.number}",
                do=f"compile with quantize-inputs{{input_bits={word_bits}}}, or use {opt.word_bits}",
            )
        low.append(span.low)
        high.append((span.top if isinstance(feature.number, Category) else span.high) - span.low)
    return np.array(low, dtype=np.int64), np.array(high, dtype=np.int64)


def to_raised(forest: Forest, words: Ints, word_bits: int) -> Ints:
    """Returns words (rows, features) minus each feature's smallest word. A missing number becomes a word with all
    `word_bits` bits set."""
    low, _ = raised_ranges(forest, word_bits)
    raised = words - low
    for index, feature in enumerate(forest.features):
        if feature.missing and not isinstance(feature.number, Category):
            missing = word_range(feature.number, True).missing
            raised[:, index] = np.where(words[:, index] == missing, (1 << word_bits) - 1, raised[:, index])
    return raised


@dataclass(frozen=True)
class Layout:
    """Converter of a forest's trees to graphs of blocks."""

    forest: Forest
    word_bits: int
    low: Ints  # smallest word of each feature
    high: Ints  # largest word of each feature, minus the smallest

    @classmethod
    def of(cls, forest: Forest, word_bits: int) -> Layout:
        """Returns the converter for a forest. Raises OptionError if words need more than `word_bits` bits."""
        return cls(forest, word_bits, *raised_ranges(forest, word_bits))

    @property
    def mask_bits(self) -> int:
        return 1 << (self.word_bits.bit_length() - 1)

    def blocks(self, tree: Tree) -> Blocks:
        """Returns a tree as a graph of blocks of adjacent nodes."""
        return _Graph(self, tree).finished()


class _Graph:
    """Builder of one tree's blocks. Splits on categories or intervals, and leaves with several values, may become
    several nodes."""

    def __init__(self, layout: Layout, tree: Tree) -> None:
        self.layout, self.tree = layout, tree
        forest, n = layout.forest, tree.size
        self.categorical = np.array([isinstance(feature.number, Category) for feature in forest.features] + [False])
        self.missable = np.array([feature.missing for feature in forest.features] + [False])
        self.leaves = tree.left == NO_CHILD
        self.feature = tree.feature.astype(np.int64)
        self.kind = np.where(self.leaves, LEAF, LESS).astype(np.int64)
        self.flag = np.zeros(n, dtype=np.int64)
        self.operand = np.zeros(n, dtype=np.int64)
        self.block = np.full(n, -1, dtype=np.int64)
        self.alias = np.arange(n)  # each node's replacement if its condition always or never holds
        # Lists added nodes as (kind, flag, feature, operand, block, shift).
        self.more: list[tuple[int, int, int, int, int, int]] = []
        inner = tree.inner
        self.block[inner] = 1 + np.arange(len(inner))
        self.lists: list[Sequence[int]] = []  # added blocks
        self.first_list = 1 + len(inner)
        self._thresholds(inner)
        for node in inner[self.by_set[inner]].tolist():
            self._set(node)
        self._leaves()

    def _thresholds(self, inner: Ints) -> None:
        tree, layout = self.tree, self.layout
        low, high = np.append(layout.low, 0), np.append(layout.high, 0)
        feature = self.feature
        plain = (tree.set_index == NO_SET) & ~self.leaves
        self.by_set = ~self.leaves & ~(plain & ~self.categorical[feature])
        cut = np.where(plain, tree.threshold, 0).astype(np.int64) - low[feature]
        takes = self.missable[feature]
        flag = tree.missing_left & takes
        always = plain & ~self.by_set & (cut > high[feature]) & (~takes | flag)
        never = plain & ~self.by_set & (cut <= 0) & ~flag
        top = (1 << layout.word_bits) - 1
        self.operand = np.where(plain, np.clip(cut, 0, top), 0)
        self.flag = np.where(self.leaves, 0, flag).astype(np.int64)
        self.alias = np.where(always, tree.left, np.where(never, tree.right, self.alias)).astype(np.int64)
        if (always | never).any():
            while not np.array_equal(followed := self.alias[self.alias], self.alias):
                self.alias = followed

    def _added(self, kind: int, flag: int, feature: int, operand: int, block: int, shift: int = 0) -> int:
        self.more.append((kind, flag, feature, operand, block, shift))
        return self.tree.size + len(self.more) - 1

    def _block(self, members: Sequence[int]) -> int:
        self.lists.append(members)
        return self.first_list + len(self.lists) - 1

    def _set(self, node: int) -> None:
        """Turns a split on a category or on intervals into nodes with masks or thresholds."""
        tree, layout = self.tree, self.layout
        feature, chosen = int(self.feature[node]), int(tree.set_index[node])
        low, high = int(layout.low[feature]), int(layout.high[feature])
        if self.categorical[feature]:
            codes = np.arange(high + 1)
            span = word_range(layout.forest.features[feature].number, layout.forest.features[feature].missing)
            if chosen == NO_SET:
                left = codes + low < tree.threshold[node]
            else:
                left = np.isin(codes + low, tree.sets[chosen])
            if span.missing is not None:
                left[span.missing - low] = tree.missing_left[node]
            self._masks(node, feature, left)
            return
        cuts = sorted({min(max(int(cut) - low, 0), high + 1) for cut in self._odd(tree.sets[chosen], low, high)})
        self._cuts(node, feature, cuts, bool(self.flag[node]))

    @staticmethod
    def _odd(cuts: Sequence[float], low: int, high: int) -> list[float]:
        """Returns the cuts within the range; `low` comes first if an odd number of cuts is at or below it."""
        below = sum(cut - low <= 0 for cut in cuts) & 1
        return [*([low] if below else []), *(cut for cut in cuts if 0 < cut - low <= high)]

    def _masks(self, node: int, feature: int, left: NDArray[np.bool_]) -> None:
        bits = self.layout.mask_bits
        padded = np.zeros(-(-len(left) // bits) * bits, dtype=bool)
        padded[: len(left)] = left
        masks = [sum(1 << bit for bit in np.flatnonzero(group).tolist()) for group in padded.reshape(-1, bits)]
        children = int(self.block[node])
        if len(masks) == 1:
            self.kind[node], self.operand[node], self.flag[node] = MASK, masks[0], 0
            return
        members = [self._added(MASK, 0, feature, mask, children) for mask in masks]
        self.kind[node], self.operand[node], self.flag[node] = JUMP, 0, 0
        self.block[node] = self._block(members)

    def _cuts(self, node: int, feature: int, cuts: list[int], missing_left: bool) -> None:
        """Replaces a split by a balanced tree of threshold nodes; words change sides at each cut."""
        tree = self.tree
        starts_left = bool(cuts) and cuts[0] == 0
        cuts = cuts[1:] if starts_left else cuts
        ends = [(starts_left + span) % 2 == 1 for span in range(len(cuts) + 1)]  # True for a span that goes left

        def side(left: bool) -> int:
            return int(tree.left[node] if left else tree.right[node])

        # The word for a missing value is the largest, so it may need one more comparison.
        def compare(first: int, last: int) -> int:
            if first == last:
                if last == len(cuts) and self.missable[feature] and missing_left != ends[-1]:
                    pair = self._block([side(missing_left), side(ends[-1])])
                    return self._added(LESS, 1, feature, 0, pair)
                return side(ends[first])
            middle = (first + last) // 2
            pair = self._block([compare(first, middle), compare(middle + 1, last)])
            return self._added(LESS, 0, feature, cuts[middle], pair)

        self.alias[node] = compare(0, len(cuts))

    def _leaves(self) -> None:
        """Gives each leaf its output and value; a leaf with several values becomes a node with LEAF children."""
        tree = self.tree
        outputs = np.array(tree.outputs, dtype=np.int64)
        nodes = np.flatnonzero(self.leaves)
        rows = tree.values[tree.leaf[nodes]].astype(np.int64)
        pairs = (rows != 0).sum(axis=1)
        simple = pairs <= 1
        column = np.argmax(rows != 0, axis=1)
        self.feature[nodes] = outputs[column]
        self.operand[nodes] = rows[np.arange(len(nodes)), column]
        self.flag[nodes] = 0
        block_of: dict[bytes, int] = {}
        for leaf in np.flatnonzero(~simple).tolist():
            node, row = int(nodes[leaf]), rows[leaf]
            key = row.tobytes()
            if key not in block_of:
                used = np.flatnonzero(row).tolist()
                order = sorted(used, key=lambda column: int(outputs[column]))
                block_of[key] = self._block(
                    [
                        self._added(LEAF, int(column != order[-1]), int(outputs[column]), int(row[column]), -1)
                        for column in order
                    ]
                )
            self.kind[node], self.feature[node], self.operand[node] = LESS, 0, 0
            self.block[node] = block_of[key]

    def finished(self) -> Blocks:
        tree, n = self.tree, self.tree.size
        added = np.array(self.more, dtype=np.int64).reshape(-1, 6)
        columns = [self.kind, self.flag, self.feature, self.operand, self.block, np.zeros(n, dtype=np.int64)]
        kind, flag, feature, operand, block, shift = (
            np.concatenate([own, added[:, column]]) for column, own in enumerate(columns)
        )
        # A leaf that became a LESS node always goes to child 1; shift -1 makes this its first child.
        shift[:n] = np.where(self.leaves & (kind[:n] == LESS), -1, 0)
        inner = tree.inner
        pairs = np.stack([tree.left[inner], tree.right[inner]], axis=1).ravel()
        lists = [np.asarray(members, dtype=np.int64) for members in self.lists]
        members = np.concatenate([np.zeros(1, dtype=np.int64), pairs, *lists])
        sizes = np.concatenate([[1], np.full(len(inner), 2), [len(entries) for entries in lists]]).astype(np.int64)
        alias = np.concatenate([self.alias, n + np.arange(len(added))])
        while not np.array_equal(followed := alias[alias], alias):
            alias = followed
        members = alias[members]
        starts = np.cumsum(sizes) - sizes
        return _reached(Blocks(kind, flag, feature, operand, block, shift, members, starts, 0), sizes)


def _reached(blocks: Blocks, sizes: Ints) -> Blocks:
    """Returns only the blocks reachable from the root, renumbered; `steps` becomes the length of the longest path."""
    reached = np.zeros(len(sizes), dtype=bool)
    level, steps = np.zeros(1, dtype=np.int64), -1
    while len(level):
        reached[level] = True
        steps += 1
        offsets = np.repeat(blocks.starts[level] - np.cumsum(sizes[level]) + sizes[level], sizes[level])
        nodes = blocks.members[offsets + np.arange(len(offsets))]
        level = np.unique(blocks.block[nodes])
        level = level[level >= 0]
    remaining = np.flatnonzero(reached)
    number = np.full(len(sizes) + 1, -1, dtype=np.int64)
    number[remaining] = np.arange(len(remaining))
    members = blocks.members[np.repeat(reached, sizes)]
    starts = np.cumsum(sizes[remaining]) - sizes[remaining]
    return Blocks(
        blocks.kind, blocks.flag, blocks.feature, blocks.operand, number[blocks.block], blocks.shift, members, starts,
        steps,
    )  # fmt: skip
