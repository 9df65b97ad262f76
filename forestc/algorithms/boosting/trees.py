"""Grows one tree of boosting for the largest gain less price: split by split, or with one condition for each level."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

import numpy as np

from forestc.algorithms.arrays import Bits, Floats, Int32s, Ints
from forestc.algorithms.boosting.cuts import Cuts
from forestc.algorithms.boosting.kernels import Scoring, Slopes, answers, best_level, best_split, lowered, sums_by_code
from forestc.system.compiled import share_out

LEAF = -1  # marks a leaf among the children
FEW = 2_000_000  # additions below which starting threads takes longer than it saves


@dataclass(frozen=True)
class Growth:
    """Settings of boosting."""

    rounds: int = 50  # most trees for each output
    depth: int = 4
    leaves: int = 16  # most leaves of a tree, unless trees are symmetric
    symmetric: bool = False  # gives each level of a tree one condition
    rate: float = 0.3  # learning rate if `leaf_bits` is 0
    leaf_bits: int = 0  # bits of a leaf value; 0 for free values
    unit: float = 0.25  # distance between two leaf values, unless they are free
    l2: float = 1.0  # regularization of leaf values
    least: float = 1.0  # curvature that each side of a split must have (asymmetric trees)
    price: float = 0.0  # loss per row that one unit of cost must save
    sampled: float = 1.0  # share of the columns that each tree may read
    sweeps: int = 0  # number of times that each tree is grown again
    seed: int = 0

    @property
    def scoring(self) -> Scoring:
        return Scoring(self.l2, self.unit, (1 << self.leaf_bits) - 1) if self.leaf_bits else Scoring(self.l2, 0.0, 0)


@dataclass(frozen=True)
class GrownTree:
    """A tree as arrays over its nodes; node 0 is the root."""

    output: int
    column: Int32s  # column that a split reads
    cut: Int32s  # a row goes left if its code is at most the cut
    left: Int32s  # left child; -1 at a leaf
    right: Int32s  # right child; -1 at a leaf
    missing_left: Bits
    value: Floats
    cover: Floats  # number of rows that reach the node

    @property
    def conditions(self) -> set[tuple[int, int]]:
        """The conditions of the tree's splits, as (column, cut)."""
        inner = self.left != LEAF
        return set(zip(self.column[inner].tolist(), self.cut[inner].tolist(), strict=True))


@dataclass(frozen=True)
class Offer:
    """Conditions that a tree may use, with prices in units of the loss."""

    columns: Ints  # indices of the columns that the tree may read
    prices: Floats  # (all columns, cuts) price of each condition
    splits: tuple[float, ...]  # price of each level of a symmetric tree; otherwise splits[0] is each split's


@dataclass(frozen=True)
class Candidate:
    """A grown tree, with the leaf that each row reaches."""

    tree: GrownTree
    reached: Ints  # leaf of each row
    net: float  # gain less price, in units of the loss


@dataclass
class _GrowingTree:
    """A tree under construction, as lists over its nodes."""

    column: list[int] = field(default_factory=list)
    cut: list[int] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    missing_left: list[bool] = field(default_factory=list)
    cover: list[int] = field(default_factory=list)

    def leaf(self, cover: int) -> int:
        for values in (self.column, self.cut, self.left, self.right):
            values.append(LEAF)
        self.missing_left.append(False)
        self.cover.append(cover)
        return len(self.column) - 1

    def split(self, node: int, condition: tuple[int, int, bool], covers: tuple[int, int]) -> tuple[int, int]:
        self.column[node], self.cut[node], self.missing_left[node] = condition
        self.left[node], self.right[node] = self.leaf(covers[0]), self.leaf(covers[1])
        return self.left[node], self.right[node]

    def finished(self, output: int) -> GrownTree:
        return GrownTree(
            output,
            column=np.array(self.column, dtype=np.int32),
            cut=np.array(self.cut, dtype=np.int32),
            left=np.array(self.left, dtype=np.int32),
            right=np.array(self.right, dtype=np.int32),
            missing_left=np.array(self.missing_left, dtype=bool),
            value=np.zeros(len(self.left)),
            cover=np.array(self.cover, dtype=np.float64),
        )


def leaf_values(tree: GrownTree, reached: Ints, slopes: Slopes, growth: Growth) -> tuple[Floats, float]:
    """Returns the leaf values, (nodes,), and the loss that they would save over a single leaf at learning rate 1.
    reached: (rows,) leaf of each row."""
    g = np.bincount(reached, weights=slopes.gradient, minlength=len(tree.left))
    h = np.bincount(reached, weights=slopes.curvature, minlength=len(tree.left))
    scoring, values = growth.scoring, np.zeros(len(tree.left))
    gained = answers(g, h, np.flatnonzero(tree.left == LEAF), scoring, values)
    return values * (1.0 if growth.leaf_bits else growth.rate), gained - lowered(g.sum(), h.sum(), scoring)


def grow(cuts: Cuts, offer: Offer, slopes: Slopes, growth: Growth, output: int) -> Candidate | None:
    """Returns a grown tree in which leaf values are still 0; None if no split is worth its price."""
    return (_symmetric if growth.symmetric else _best_first)(cuts, offer, slopes, growth, output)


def _goes_left(cuts: Cuts, condition: tuple[int, int, bool], rows: Ints | slice) -> Bits:
    column, cut, missing_left = condition
    line = cuts.codes[column][rows]
    left: Bits = line <= cut
    return left | (line == cuts.missing) if missing_left else left


@dataclass
class _Open:
    """A leaf that may still be split."""

    rows: Ints
    sums: Floats  # (columns, codes, 2) gradient and curvature
    depth: int
    best: tuple[float, int, int, bool]  # result of `best_split`


def _best_first(cuts: Cuts, offer: Offer, slopes: Slopes, growth: Growth, output: int) -> Candidate | None:
    """Grows a tree by always splitting the leaf with the largest gain."""
    split = offer.splits[0]
    prices = offer.prices + split

    def search(sums: Floats) -> tuple[float, int, int, bool]:
        best: tuple[float, int, int, bool] = best_split(
            sums, offer.columns, cuts.coded, prices, growth.scoring, growth.least
        )
        return best

    rows = np.arange(len(slopes.gradient))
    reached = np.zeros(len(rows), dtype=np.int64)
    nodes = _GrowingTree()
    sums = _summed(cuts, offer.columns, rows, slopes)
    opened = {nodes.leaf(len(rows)): _Open(rows, sums, 0, search(sums))}
    heap = [(-leaf.best[0], node) for node, leaf in opened.items()]
    net, leaves = 0.0, 1
    while heap and leaves < growth.leaves:
        _, node = heapq.heappop(heap)
        taken = opened.pop(node)
        gain, position, cut, missing_left = taken.best
        if position < 0:
            break
        condition = int(offer.columns[position]), cut, missing_left
        left = _goes_left(cuts, condition, taken.rows)
        sides = taken.rows[left], taken.rows[~left]
        children = nodes.split(node, condition, (len(sides[0]), len(sides[1])))
        net, leaves = net + gain, leaves + 1
        is_new = prices[condition[:2]] > split
        prices[condition[:2]] = split
        for side, child in zip(sides, children, strict=True):
            reached[side] = child
        if taken.depth + 1 < growth.depth:
            few = 0 if len(sides[0]) <= len(sides[1]) else 1
            some = _summed(cuts, offer.columns, sides[few], slopes)
            for index, side_sums in ((few, some), (1 - few, taken.sums - some)):
                opened[children[index]] = _Open(sides[index], side_sums, taken.depth + 1, search(side_sums))
        if is_new:
            for leaf in opened.values():
                leaf.best = search(leaf.sums)
        heap = [(-leaf.best[0], node) for node, leaf in opened.items()]
        heapq.heapify(heap)
    return None if leaves == 1 else Candidate(nodes.finished(output), reached, net)


def _summed(cuts: Cuts, columns: Ints, rows: Ints, slopes: Slopes) -> Floats:
    sums = np.empty((len(columns), cuts.missing + 1, 2))

    def add(first: int, past: int) -> None:
        sums_by_code(cuts.codes, columns[first:past], rows, slopes, sums[first:past])

    share_out(len(columns), add, few=max(1, FEW // max(1, len(rows))))
    return sums


def _symmetric(cuts: Cuts, offer: Offer, slopes: Slopes, growth: Growth, output: int) -> Candidate | None:
    """Grows a tree with one condition for each level. Its nodes are numbered level by level."""
    leaf = np.zeros(len(slopes.gradient), dtype=np.int64)
    chosen: list[tuple[int, int, bool]] = []
    best_cuts = np.zeros((len(offer.columns), 3))
    net = 0.0

    def search(first: int, past: int) -> None:
        best_level(
            cuts.coded, offer.columns[first:past], offer.prices + offer.splits[len(chosen)], leaf, 1 << len(chosen),
            slopes, growth.scoring, best_cuts[first:past],
        )  # fmt: skip

    while len(chosen) < growth.depth and len(best_cuts):
        share_out(len(best_cuts), search, few=max(1, FEW // max(1, len(leaf))))
        best = int(np.argmax(best_cuts[:, 0]))
        if best_cuts[best, 1] < 0:
            break
        net += float(best_cuts[best, 0])
        chosen.append((int(offer.columns[best]), int(best_cuts[best, 1]), bool(best_cuts[best, 2])))
        leaf = 2 * leaf + ~_goes_left(cuts, chosen[-1], slice(None))
    if not chosen:
        return None
    levels = len(chosen)
    inner, nodes = (1 << levels) - 1, (2 << levels) - 1
    column, cut, left, right = np.full((4, nodes), LEAF, dtype=np.int32)
    missing_left = np.zeros(nodes, dtype=bool)
    conditions = np.repeat(np.array(chosen, dtype=np.int32), 1 << np.arange(levels), axis=0)
    column[:inner], cut[:inner], missing_left[:inner] = conditions.T
    left[:inner] = 1 + 2 * np.arange(inner)
    right[:inner] = left[:inner] + 1
    covers = [np.bincount(leaf >> (levels - level), minlength=1 << level) for level in range(levels + 1)]
    cover = np.concatenate(covers).astype(np.float64)
    tree = GrownTree(output, column, cut, left, right, missing_left, np.zeros(nodes), cover)
    return Candidate(tree, inner + leaf, net)
