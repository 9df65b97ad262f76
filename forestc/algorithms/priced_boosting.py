"""Gradient boosting in which a tree, a node, a feature and a threshold cost what hardware pays for them.

The gain of a split is lowered by a price for each feature and each threshold that no tree uses yet, after ToaD (arXiv
2510.26557, equations of the penalised gain); here the price of a threshold is its comparator's, by the bits it reads,
and splits and trees have prices, too. Conditions that are known already are free to use again, so that trees come to
share them. Beyond ToaD, leaves can have few bits while boosting, so that later trees make up for the rounding, and
trees can be symmetric: one condition a level, a table of up to 2**depth entries, which is one LUT for each bit of the
leaves where it reads no more conditions than a LUT has inputs.

Time grows with rows x columns x levels for each tree.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.boosting_cuts import Cuts
from forestc.algorithms.boosting_kernels import answer, best_level, best_split, sums_by_code
from forestc.algorithms.compiled import share_out

Loss = Literal["logistic", "softmax", "squared"]
LEAF = -1


@dataclass(frozen=True)
class Charges:
    """What the parts of a forest cost, in one unit. cuts: of each column's thresholds; columns: of a column that is
    read; both once. split: of each inner node, or of each level of a symmetric tree. tree: of each tree."""

    cuts: tuple[NDArray[np.float64], ...]
    columns: NDArray[np.float64]
    split: float
    tree: float


@dataclass(frozen=True)
class Growth:
    """How trees grow. rounds: trees for each output. rate: learning rate of free leaves. leaf_bits: 0 for free leaves;
    else leaves are 2**leaf_bits levels, `unit` apart. price: loss per row that one unit of cost must save. sampled: the
    share of the columns that each tree may read. least: curvature (rows, for squared loss) on either side of a split.
    """

    rounds: int = 50
    depth: int = 4
    leaves: int = 16
    symmetric: bool = False
    rate: float = 0.3
    leaf_bits: int = 0
    unit: float = 0.25
    l2: float = 1.0
    least: float = 1.0
    price: float = 0.0
    sampled: float = 1.0
    seed: int = 0

    @property
    def scoring(self) -> tuple[float, float, int]:
        return (self.l2, self.unit, (1 << self.leaf_bits) - 1) if self.leaf_bits else (self.l2, 0.0, 0)


@dataclass(frozen=True)
class GrownTree:
    """Node 0 is the root. column, cut: of inner nodes; left: -1 at a leaf. value: of leaves. cover: rows."""

    output: int
    column: NDArray[np.int32]
    cut: NDArray[np.int32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    missing_left: NDArray[np.bool_]
    value: NDArray[np.float64]
    cover: NDArray[np.float64]


@dataclass(frozen=True)
class Boosted:
    """bias: (outputs,). losses: mean loss of the rows after each round. spent: cost of all parts."""

    trees: tuple[GrownTree, ...]
    bias: NDArray[np.float64]
    losses: tuple[float, ...]
    spent: float


@dataclass
class _Used:
    """What trees use already, and so what is charged for each threshold now."""

    charges: Charges
    price: float
    now: NDArray[np.float64]
    columns: NDArray[np.bool_]
    spent: float = 0.0

    def take(self, column: int, cut: int) -> None:
        self.spent += float(self.now[column, cut]) / self.price if self.price else 0.0
        if not self.columns[column]:
            self.columns[column] = True
            self.now[column] -= self.price * self.charges.columns[column]
        self.now[column, cut] = 0.0

    @staticmethod
    def of(charges: Charges, price: float) -> _Used:
        widest = max((len(each) for each in charges.cuts), default=0)
        now = np.zeros((len(charges.cuts), max(widest, 1)))
        for index, each in enumerate(charges.cuts):
            now[index, : len(each)] = price * (each + charges.columns[index])
        return _Used(charges, price, now, np.zeros(len(charges.cuts), dtype=bool))


@dataclass
class _Nodes:
    """A tree that grows."""

    column: list[int] = field(default_factory=list)
    cut: list[int] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    missing_left: list[bool] = field(default_factory=list)
    cover: list[int] = field(default_factory=list)

    def leaf(self, cover: int) -> int:
        for values, start in ((self.column, LEAF), (self.cut, LEAF), (self.left, LEAF), (self.right, LEAF)):
            values.append(start)
        self.missing_left.append(False)
        self.cover.append(cover)
        return len(self.column) - 1

    def split(self, node: int, column: int, cut: int, missing_left: bool, covers: tuple[int, int]) -> tuple[int, int]:
        self.column[node], self.cut[node], self.missing_left[node] = column, cut, missing_left
        self.left[node], self.right[node] = self.leaf(covers[0]), self.leaf(covers[1])
        return self.left[node], self.right[node]


def boost(cuts: Cuts, y: NDArray[np.float64], loss: Loss, outputs: int, charges: Charges, growth: Growth) -> Boosted:
    """Boosts trees on coded rows.

    y: (rows,) values for squared loss, 0 or 1 for logistic, class numbers for softmax. outputs: 1, or the classes of
    softmax, each with a tree a round. Ends before `rounds` where no tree of a round is worth its cost.
    """
    rng = np.random.default_rng(growth.seed)
    rows = len(y)
    bias = _start(y, loss, outputs, growth)
    scores = np.repeat(bias[:, None], rows, axis=1)
    used = _Used.of(charges, growth.price * rows)
    grow = _symmetric if growth.symmetric else _best_first
    columns = np.flatnonzero([len(each) > 0 for each in cuts.thresholds]).astype(np.int64)
    trees: list[GrownTree] = []
    losses: list[float] = []
    for _ in range(growth.rounds):
        gradient, curvature = _derivatives(scores, y, loss)
        grown = 0
        for output in range(outputs):
            some = columns
            if growth.sampled < 1 and len(columns):
                count = max(1, round(growth.sampled * len(columns)))
                some = np.sort(rng.choice(columns, count, replace=False))
            tree, places = grow(cuts, some, gradient[output], curvature[output], used, growth, output)
            if tree is None:
                continue
            scores[output] += tree.value[places]
            trees.append(tree)
            used.spent += charges.tree
            grown += 1
        losses.append(_loss(scores, y, loss))
        if not grown and growth.sampled == 1:
            break
    return Boosted(tuple(trees), bias, tuple(losses), used.spent)


def _start(y: NDArray[np.float64], loss: Loss, outputs: int, growth: Growth) -> NDArray[np.float64]:
    """The best constant scores, on the levels of the leaves."""
    if loss == "squared":
        bias = np.array([y.mean()])
    elif loss == "logistic":
        share = np.clip(y.mean(), 1e-6, 1 - 1e-6)
        bias = np.array([np.log(share / (1 - share))])
    else:
        bias = np.log(np.maximum(np.bincount(y.astype(np.int64), minlength=outputs), 1e-6) / len(y))
    return np.round(bias / growth.unit) * growth.unit if growth.leaf_bits else bias


def _derivatives(
    scores: NDArray[np.float64], y: NDArray[np.float64], loss: Loss
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Gradient and curvature of the loss, (outputs, rows) each."""
    if loss == "squared":
        return scores - y, np.ones_like(scores)
    if loss == "logistic":
        shares = 1 / (1 + np.exp(-scores))
        return shares - y, np.maximum(shares * (1 - shares), 1e-9)
    shares = np.exp(scores - scores.max(axis=0))
    shares /= shares.sum(axis=0)
    curvature = np.maximum(2 * shares * (1 - shares), 1e-9)
    shares[y.astype(np.int64), np.arange(len(y))] -= 1
    return shares, curvature


def _loss(scores: NDArray[np.float64], y: NDArray[np.float64], loss: Loss) -> float:
    if loss == "squared":
        return float(((scores[0] - y) ** 2).mean() / 2)
    if loss == "logistic":
        return float(np.logaddexp(0, np.where(y > 0, -scores[0], scores[0])).mean())
    top = scores.max(axis=0)
    whole = top + np.log(np.exp(scores - top).sum(axis=0))
    return float((whole - scores[y.astype(np.int64), np.arange(len(y))]).mean())


def _finished(
    nodes: _Nodes, places: NDArray[np.int64], gradient: NDArray[np.float64], curvature: NDArray[np.float64],
    growth: Growth, output: int,
) -> GrownTree:  # fmt: skip
    """The tree, with the values of its leaves. places: the leaf of each row."""
    g = np.bincount(places, weights=gradient, minlength=len(nodes.left))
    h = np.bincount(places, weights=curvature, minlength=len(nodes.left))
    rate = 1.0 if growth.leaf_bits else growth.rate
    value = np.array([rate * answer(*pair, *growth.scoring) for pair in zip(g, h, strict=True)])
    value[np.array(nodes.left) != LEAF] = 0.0
    return GrownTree(
        output,
        column=np.array(nodes.column, dtype=np.int32),
        cut=np.array(nodes.cut, dtype=np.int32),
        left=np.array(nodes.left, dtype=np.int32),
        right=np.array(nodes.right, dtype=np.int32),
        missing_left=np.array(nodes.missing_left, dtype=bool),
        value=value,
        cover=np.array(nodes.cover, dtype=np.float64),
    )


def _goes_left(cuts: Cuts, column: int, cut: int, missing_left: bool, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    line = cuts.codes[column][rows]
    left: NDArray[np.bool_] = line <= cut
    return left | (line == cuts.missing) if missing_left else left


def _best_first(
    cuts: Cuts, columns: NDArray[np.int64], gradient: NDArray[np.float64], curvature: NDArray[np.float64],
    used: _Used, growth: Growth, output: int,
) -> tuple[GrownTree | None, NDArray[np.int64]]:  # fmt: skip
    """A tree grown where the gain less its cost is largest, and the leaf of each row. None if it is not worth its cost.

    What a split costs falls when another leaf takes its threshold, so that the open leaves are searched again then.
    """
    rows = np.arange(len(gradient))
    places = np.zeros(len(gradient), dtype=np.int64)
    counts = np.array([len(each) for each in cuts.thresholds])
    split_cost = used.price * used.charges.split
    before = (used.now.copy(), used.columns.copy(), used.spent)

    def search(sums: NDArray[np.float64]) -> tuple[float, int, int, bool]:
        found: tuple[float, int, int, bool] = best_split(
            sums, columns, counts, cuts.has_missing, cuts.missing, used.now + split_cost, *growth.scoring, growth.least
        )
        return found

    def summed(some: NDArray[np.int64]) -> NDArray[np.float64]:
        sums = np.empty((len(columns), cuts.missing + 1, 2))
        share_out(
            len(columns),
            lambda first, past: sums_by_code(
                cuts.codes, columns[first:past], some, gradient, curvature, sums[first:past]
            ),
            few=max(1, 2_000_000 // max(1, len(some))),
        )
        return sums

    nodes = _Nodes()
    root = nodes.leaf(len(rows))
    open_rows, open_sums, depth = {root: rows}, {root: summed(rows)}, {root: 0}
    heap = [(-(first := search(open_sums[root]))[0], root, first)]
    gained, leaves = 0.0, 1
    while heap and leaves < growth.leaves:
        _, node, (gain, place, cut, missing_left) = heapq.heappop(heap)
        if place < 0:
            break
        column = int(columns[place])
        is_new = used.now[column, cut] > 0
        left = _goes_left(cuts, column, cut, missing_left, open_rows[node])
        sides = open_rows[node][left], open_rows[node][~left]
        children = nodes.split(node, column, cut, missing_left, (len(sides[0]), len(sides[1])))
        used.take(column, cut)
        used.spent += used.charges.split
        gained, leaves = gained + gain, leaves + 1
        few = 0 if len(sides[0]) <= len(sides[1]) else 1
        whole = open_sums.pop(node)
        del open_rows[node]
        deeper = depth[node] + 1 < growth.depth
        sums = {few: summed(sides[few])} if deeper else {}
        if deeper:
            sums[1 - few] = whole - sums[few]
        for side, child in enumerate(children):
            places[sides[side]] = child
            depth[child] = depth[node] + 1
            if deeper:
                open_rows[child], open_sums[child] = sides[side], sums[side]
                heapq.heappush(heap, (-(found := search(sums[side]))[0], child, found))
        if is_new and growth.price:  # it is free from now on
            heap = [(-(found := search(open_sums[each]))[0], each, found) for each in open_rows]
            heapq.heapify(heap)
    if gained <= used.price * used.charges.tree:
        used.now, used.columns, used.spent = before
        return None, places
    return _finished(nodes, places, gradient, curvature, growth, output), places


def _search_level(
    cuts: Cuts, columns: NDArray[np.int64], leaves: tuple[NDArray[np.int64], int],
    derivatives: tuple[NDArray[np.float64], NDArray[np.float64]], charges: NDArray[np.float64], growth: Growth,
    found: NDArray[np.float64],
) -> None:  # fmt: skip
    """Writes each column's best condition for all leaves at once. leaves: the leaf of each row, and their number."""
    counts = np.array([len(each) for each in cuts.thresholds])

    def search(first: int, past: int) -> None:
        best_level(
            cuts.codes, first, past, columns, counts, cuts.has_missing, cuts.missing, *leaves, *derivatives, charges,
            growth.scoring, found,
        )  # fmt: skip

    share_out(len(columns), search, few=max(1, 2_000_000 // max(1, len(leaves[0]))))


def _symmetric(
    cuts: Cuts, columns: NDArray[np.int64], gradient: NDArray[np.float64], curvature: NDArray[np.float64],
    used: _Used, growth: Growth, output: int,
) -> tuple[GrownTree | None, NDArray[np.int64]]:  # fmt: skip
    """A tree with one condition a level, and the leaf of each row. None if it is not worth its cost."""
    rows = np.arange(len(gradient))
    before = (used.now.copy(), used.columns.copy(), used.spent)
    leaf = np.zeros(len(rows), dtype=np.int64)
    chosen: list[tuple[int, int, bool]] = []
    found = np.zeros((len(columns), 3))
    gained = 0.0
    while len(chosen) < growth.depth and len(columns):
        charges = used.now + used.price * used.charges.split
        _search_level(cuts, columns, (leaf, 1 << len(chosen)), (gradient, curvature), charges, growth, found)
        best = int(np.argmax(found[:, 0]))
        if found[best, 1] < 0:
            break
        column, cut, missing_left = int(columns[best]), int(found[best, 1]), bool(found[best, 2])
        gained += float(found[best, 0])
        chosen.append((column, cut, missing_left))
        used.take(column, cut)
        used.spent += used.charges.split
        leaf = 2 * leaf + ~_goes_left(cuts, column, cut, missing_left, rows)
    if gained <= used.price * used.charges.tree:
        used.now, used.columns, used.spent = before
        return None, leaf
    nodes = _Nodes()
    level = [nodes.leaf(len(rows))]
    for index, condition in enumerate(chosen):
        sizes = np.bincount(leaf >> (len(chosen) - 1 - index), minlength=2 << index).reshape(-1, 2).tolist()
        pairs = [nodes.split(node, *condition, (a, b)) for node, (a, b) in zip(level, sizes, strict=True)]
        level = [child for pair in pairs for child in pair]
    places = np.array(level, dtype=np.int64)[leaf]
    return _finished(nodes, places, gradient, curvature, growth, output), places
