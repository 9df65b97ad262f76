"""Boosts trees by gradients and charges each tree, split, feature and threshold for its hardware.

As in ToaD (arXiv 2510.26557), a feature or threshold is charged only once, so trees come to share both.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.arrays import Floats, Ints
from forestc.algorithms.boosting.cuts import Cuts
from forestc.algorithms.boosting.kernels import Slopes
from forestc.algorithms.boosting.trees import Candidate, GrownTree, Growth, Offer, grow, leaf_values

Loss = Literal["logistic", "softmax", "squared"]


@dataclass(frozen=True)
class Charges:
    """Costs of the parts of a forest, all in one unit."""

    cuts: tuple[Floats, ...]  # cost of each threshold, for each column; charged once
    columns: Floats  # (columns,) cost of reading a column; charged once
    splits: tuple[float, ...]  # cost of each level of a symmetric tree; otherwise splits[0] is each split's
    tree: float


@dataclass(frozen=True)
class Boosted:
    """Trees that `boost` grew."""

    trees: tuple[GrownTree, ...]
    bias: Floats  # (outputs,)
    losses: tuple[float, ...]  # mean loss after each round and each sweep
    spent: float  # cost of all parts, in the unit of `Charges`


@dataclass
class _Ledger:
    """Counts the trees that use each condition and each column."""

    charges: Charges
    price: float  # loss that one unit of cost must save
    uses: Counter[tuple[int, int]] = field(default_factory=Counter)  # trees that use a condition
    readers: Counter[int] = field(default_factory=Counter)  # trees that read a column

    def __post_init__(self) -> None:
        widest = max((len(costs) for costs in self.charges.cuts), default=0)
        self._full = np.zeros((len(self.charges.cuts), max(widest, 1)))
        for index, costs in enumerate(self.charges.cuts):
            self._full[index, : len(costs)] = costs

    def book(self, tree: GrownTree, sign: int) -> None:
        """Adds a tree to the counts (sign 1) or removes the tree (sign -1)."""
        for condition in tree.conditions:
            self.uses[condition] += sign
        for column in {column for column, _ in tree.conditions}:
            self.readers[column] += sign

    def prices(self) -> Floats:
        """Returns the current cost of each condition, (columns, thresholds), without the cost of the split itself."""
        costs = self._full + self.charges.columns[:, None]
        for column, count in self.readers.items():
            if count:
                costs[column] -= self.charges.columns[column]
        for condition, count in self.uses.items():
            if count:
                costs[condition] = 0.0
        return costs

    def own(self, tree: GrownTree, growth: Growth) -> float:
        """Returns the cost of a tree and its splits, without thresholds and columns."""
        inner = int((tree.left >= 0).sum())
        splits = self.charges.splits
        return self.charges.tree + (sum(splits[: inner.bit_length()]) if growth.symmetric else inner * splits[0])

    def of_conditions(self, tree: GrownTree) -> float:
        """Returns the cost of a tree's thresholds and columns that no counted tree uses."""
        columns = {column for column, _ in tree.conditions if not self.readers[column]}
        new = sum(self._full[condition] for condition in tree.conditions if not self.uses[condition])
        return float(new + sum(self.charges.columns[column] for column in columns))


@dataclass
class _Boosting:
    """Holds the state of `boost`: trees, scores and costs."""

    cuts: Cuts
    y: Floats
    loss: Loss
    growth: Growth
    ledger: _Ledger
    scores: Floats  # (outputs, rows)
    columns: Ints  # indices of the columns with thresholds
    rng: np.random.Generator
    trees: list[GrownTree] = field(default_factory=list)
    reached: list[NDArray[np.uint16]] = field(default_factory=list)  # for each tree, leaf of each row

    def slopes(self, output: int) -> Slopes:
        return _slopes(self.scores, self.y, self.loss, output)

    def candidate(self, slopes: Slopes, output: int) -> Candidate | None:
        """Returns a new tree; None if none is worth its price."""
        columns = self.columns
        if self.growth.sampled < 1 and len(columns):
            count = max(1, round(self.growth.sampled * len(columns)))
            columns = np.sort(self.rng.choice(columns, count, replace=False))
        splits = tuple(self.ledger.price * cost for cost in self.ledger.charges.splits)
        offer = Offer(columns, self.ledger.price * self.ledger.prices(), splits)
        grown = grow(self.cuts, offer, slopes, self.growth, output)
        if grown is None or grown.net <= (fixed := self.ledger.price * self.ledger.charges.tree):
            return None
        values, _ = leaf_values(grown.tree, grown.reached, slopes, self.growth)
        return replace(grown, tree=replace(grown.tree, value=values), net=grown.net - fixed)

    def add(self, candidate: Candidate) -> None:
        self.ledger.book(candidate.tree, 1)
        self.scores[candidate.tree.output] += candidate.tree.value[candidate.reached]
        self.trees.append(candidate.tree)
        self.reached.append(candidate.reached.astype(np.uint16))

    def revisit(self, index: int) -> None:
        """Grows a tree anew. If the new tree is not better, the old one stays, with new leaf values."""
        old, reached = self.trees[index], self.reached[index]
        output = old.output
        self.ledger.book(old, -1)
        self.scores[output] -= old.value[reached]
        slopes = self.slopes(output)
        values, gained = leaf_values(old, reached.astype(np.int64), slopes, self.growth)
        cost = self.ledger.own(old, self.growth) + self.ledger.of_conditions(old)
        grown = self.candidate(slopes, output)
        if grown is not None and grown.net > gained - self.ledger.price * cost:
            self.trees[index], self.reached[index] = grown.tree, grown.reached.astype(np.uint16)
        else:
            self.trees[index] = replace(old, value=values)
        self.ledger.book(self.trees[index], 1)
        self.scores[output] += self.trees[index].value[self.reached[index]]


def boost(cuts: Cuts, y: Floats, loss: Loss, outputs: int, charges: Charges, growth: Growth) -> Boosted:
    """Returns trees boosted on coded rows.

    y: (rows,) values for squared loss, 0 or 1 for logistic, class indices for softmax.
    outputs: number of classes for softmax, otherwise 1.
    """
    bias = _start(y, loss, outputs, growth)
    state = _Boosting(
        cuts, y, loss, growth,
        ledger=_Ledger(charges, growth.price * len(y)),
        scores=np.repeat(bias[:, None], len(y), axis=1),
        columns=np.flatnonzero([len(thresholds) > 0 for thresholds in cuts.thresholds]).astype(np.int64),
        rng=np.random.default_rng(growth.seed),
    )  # fmt: skip
    losses: list[float] = []
    for _ in range(growth.rounds):
        before = len(state.trees)
        slopes = [state.slopes(output) for output in range(outputs)]
        for output in range(outputs):
            if (candidate := state.candidate(slopes[output], output)) is not None:
                state.add(candidate)
        losses.append(_loss(state.scores, y, loss))
        if len(state.trees) == before and growth.sampled == 1:
            break
    for _ in range(growth.sweeps):
        for index in range(len(state.trees)):
            state.revisit(index)
        losses.append(_loss(state.scores, y, loss))
    empty = _Ledger(charges, 0.0)
    spent = 0.0
    for tree in state.trees:
        spent += empty.own(tree, growth) + empty.of_conditions(tree)
        empty.book(tree, 1)
    return Boosted(tuple(state.trees), bias, tuple(losses), spent)


def integer_bias(grown: Boosted, growth: Growth) -> Ints:
    """Returns the bias of each output as an integer, (outputs,), in units of `Growth.unit`. It suits leaves stored as
    integers from 0 on."""
    top = (1 << growth.leaf_bits) - 1
    trees = np.bincount([tree.output for tree in grown.trees], minlength=len(grown.bias))
    units = grown.bias / growth.unit - top / 2 * trees
    down, up = np.floor(units + 1e-6), np.ceil(units - 1e-6)
    raised = [int((rounded > rounded.min()).sum()) for rounded in (down, up)]
    return np.asarray(down if raised[0] <= raised[1] else up).astype(np.int64)


def _start(y: Floats, loss: Loss, outputs: int, growth: Growth) -> Floats:
    """Returns the best constant score of each output, (outputs,), rounded to units if leaf values are."""
    if loss == "squared":
        bias = np.array([y.mean()])
    elif loss == "logistic":
        share = np.clip(y.mean(), 1e-6, 1 - 1e-6)
        bias = np.array([np.log(share / (1 - share))])
    else:
        bias = np.log(np.maximum(np.bincount(y.astype(np.int64), minlength=outputs), 1e-6) / len(y))
    return np.round(bias / growth.unit) * growth.unit if growth.leaf_bits else bias


def _slopes(scores: Floats, y: Floats, loss: Loss, output: int) -> Slopes:
    score = scores[output]
    if loss == "squared":
        return Slopes(score - y, np.ones_like(score))
    if loss == "logistic":
        share = 1 / (1 + np.exp(-score))
        return Slopes(share - y, np.maximum(share * (1 - share), 1e-9))
    top = scores.max(axis=0)
    share = np.exp(score - top) / np.exp(scores - top).sum(axis=0)
    return Slopes(share - (y == output), np.maximum(2 * share * (1 - share), 1e-9))


def _loss(scores: Floats, y: Floats, loss: Loss) -> float:
    if loss == "squared":
        return float(((scores[0] - y) ** 2).mean() / 2)
    if loss == "logistic":
        return float(np.logaddexp(0, np.where(y > 0, -scores[0], scores[0])).mean())
    top = scores.max(axis=0)
    log_total = top + np.log(np.exp(scores - top).sum(axis=0))
    return float((log_total - scores[y.astype(np.int64), np.arange(len(y))]).mean())
