"""Finds inputs where the model nearly ties, and integer leaves that decide these inputs as the model does.

Integer leaves can tie where the library's rounding decides. Leaves are then adjusted by small steps ("nudges").
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.splits.leaf_nudging import Sums, nudges_for
from forestc.forest.evaluate import decide, encode_numbers, evaluate_words
from forestc.forest.ir import Forest
from forestc.passes.combinations import evaluate_leaves, leaf_combinations
from forestc.passes.margins import margins
from forestc.passes.quick_evaluation import nodes_reached
from forestc.passes.round_leaves.rounding import RoundedLeaves, on_steps, with_error

MOST_TERMS = 1 << 23  # terms of one integer program at most; further ties are left out
TIE_BITS = range(16, 25)  # bits of leaves that are tried before leaves are adjusted
FIRST = 1000  # weighs a tie on a given row, against 1 on a generated row
MOST_STEPS = 10**9  # steps of all integer programs for a forest; see `highs.most_nodes`
TRIES = 3  # stops after three finer grids without improvement


@dataclass(frozen=True)
class NearTies:
    """Combinations of leaves, one leaf of each tree, for which two classes nearly tie."""

    leaf: NDArray[np.int32]  # (combinations, trees) indices of `Tree.values`
    expected: NDArray[np.int64]  # (combinations,) the model's decisions
    count: NDArray[np.int64]  # (combinations,) weighted number of inputs that reach each combination
    margin: float  # largest margin of a near tie

    def changed(self, leaves: RoundedLeaves) -> int:
        """Returns the weighted number of near ties that integer leaves decide differently from the model."""
        scores = np.tile(leaves.bias, (len(self.leaf), 1))
        for values, outputs, leaf in zip(leaves.values, leaves.outputs, self.leaf.T, strict=True):
            scores[:, list(outputs)] += values[leaf]
        return int(self.count[decide(leaves.decision, scores, scores) != self.expected].sum())

    def before(self, others: NearTies) -> NearTies:
        """Returns the near ties of both lists as one list. The weights of the ties of this list are multiplied by
        FIRST."""
        leaf, expected = np.concatenate([self.leaf, others.leaf]), np.concatenate([self.expected, others.expected])
        return NearTies(leaf, expected, np.concatenate([FIRST * self.count, others.count]), self.margin)


def near_margin(forest: Forest, bits: int) -> float:
    """Returns the margin beyond which leaves of this many bits, even if adjusted, change no decision."""
    spreads = sum(float(np.ptp(tree.values, axis=0).max()) for tree in forest.trees)
    leaves = on_steps(forest, bits)[0]
    # If all trees are constant, only biases can be adjusted.
    nudged = spreads / abs(forest.aggregate.divisor) * 2.0**-bits or leaves.scale
    return 4 * max(leaves.error, nudged)


def near_ties(source: Forest, forest: Forest, rows: Iterable[NDArray[np.float64]], margin: float) -> NearTies:
    """Returns the near ties among rows. rows: batches (rows, columns).
    forest: the model, as one sum if possible."""
    leaves, expected = [], []
    for X in rows:
        numbers = encode_numbers(source, X)
        nodes = list(nodes_reached(forest, numbers).T)
        near, index = _near(forest, nodes, margin)
        if source is not forest:  # Both forests add up the same leaves, but in another order.
            index = evaluate_words(source, numbers[near]).index
        leaves.append(_reached(forest, nodes)[near])
        expected.append(index)
    return _distinct(forest, leaves, expected, margin)


def tied_combinations(forest: Forest, margin: float) -> NearTies | None:
    """Returns the near ties among all combinations of leaves; None if there are too many combinations."""
    nodes = leaf_combinations(forest)
    if nodes is None:
        return None
    near, index = _near(forest, nodes, margin)
    return _distinct(forest, [_reached(forest, nodes)[near]], [index], margin)


def _near(
    forest: Forest, nodes: Sequence[NDArray[np.int64]], margin: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns the indices of the combinations of leaves that nearly tie, and their classes."""
    result = evaluate_leaves(forest, nodes)
    near = np.flatnonzero(margins(forest, result.scores, result.values) <= margin)
    return near, result.index[near]


def _reached(forest: Forest, nodes: Sequence[NDArray[np.int64]]) -> NDArray[np.int32]:
    return np.stack([tree.leaf[node] for tree, node in zip(forest.trees, nodes, strict=True)], axis=1)


def _distinct(
    forest: Forest, leaves: list[NDArray[np.int32]], expected: list[NDArray[np.int64]], margin: float
) -> NearTies:
    table = np.concatenate([np.zeros((0, len(forest.trees)), dtype=np.int32), *leaves])
    index = np.concatenate([np.zeros(0, dtype=np.int64), *expected])
    leaf, first, count = np.unique(table, axis=0, return_index=True, return_counts=True)
    return NearTies(leaf, index[first], count.astype(np.int64), margin)


def settled(
    forest: Forest, ties: NearTies, bits: Sequence[int], most: int, steps: int = MOST_STEPS
) -> tuple[RoundedLeaves, int]:
    """Returns integer leaves that decide near ties as the model does, where possible, and the weighted number of
    failures.
    most: largest number of leaf bits.
    steps: limit of the work."""
    finest, lie = on_steps(forest, max(bits))
    tried = [finest] * lie + [on_steps(forest, width)[0] for width in bits]
    best, fewest = tried[0], math.inf
    for leaves in tried:
        changed = ties.changed(leaves)
        if changed < fewest:
            best, fewest = leaves, changed
        if not changed:
            return best, 0
    for leaves in [tried[0]] if tried[0] is best else [best, tried[0]]:
        nudged, changed, steps = _nudged(forest, leaves, ties, most, steps)
        if changed < fewest:
            best, fewest = nudged, changed
    return best, int(fewest)


def _nudged(
    forest: Forest, start: RoundedLeaves, ties: NearTies, most: int, steps: int
) -> tuple[RoundedLeaves, int, int]:
    """Adjusts leaves by finer and finer steps. Returns the leaves, the weight of the ties they change, and the steps
    left."""
    kinds = [np.unique(tree.values, axis=0, return_inverse=True)[1].ravel() for tree in forest.trees]
    numbering = _Numbering.of(start, kinds)
    span = max((int(values.max(initial=0)) for values in start.values), default=0)
    best, fewest, tried = start, ties.changed(start), 0
    factor = 1 << max(0, min(TIE_BITS[0], most) - span.bit_length())
    while (span * factor).bit_length() <= most and tried < TRIES and fewest and steps > 0:
        nudges, taken = nudges_for(numbering.sums(start, ties, factor), numbering.count, factor, steps)
        steps -= taken
        leaves = with_error(forest, numbering.moved(start, nudges, factor))
        changed, tried = ties.changed(leaves), tried + 1
        fits = max(int(values.max(initial=0)) for values in leaves.values).bit_length() <= most
        if changed < fewest and fits and 4 * leaves.error <= 2 * ties.margin:
            best, fewest, tried = leaves, changed, 0
        factor *= 2
    return best, fewest, steps


@dataclass(frozen=True)
class _Numbering:
    """Numbers the adjustments of leaves and biases for the integer program."""

    kinds: list[NDArray[np.int64]]  # for each tree (leaves,) the number of the leaf's distinct values
    first: list[int]  # number of the first adjustment of each tree
    biases: int  # number of the first adjustment of a bias
    count: int  # number of adjustments; the last is always 0

    @staticmethod
    def of(leaves: RoundedLeaves, kinds: list[NDArray[np.int64]]) -> _Numbering:
        sizes = [(int(kind.max()) + 1) * len(fed) for kind, fed in zip(kinds, leaves.outputs, strict=True)]
        ends = np.cumsum([0, *sizes]).tolist()
        return _Numbering(kinds, ends[:-1], ends[-1], ends[-1] + len(leaves.bias) + 1)

    def of_output(self, leaves: RoundedLeaves, leaf: NDArray[np.int32], output: NDArray[np.int64]) -> NDArray[np.int32]:
        """Returns an array (rows, trees + 1): the numbers of the adjustments that add to one score of each row.
        leaf: (rows, trees) reached leaves.
        output: (rows,) index of the score of each row."""
        result = np.full((len(leaf), len(self.kinds) + 1), self.count - 1, dtype=np.int32)
        result[:, -1] = self.biases + output
        for index, (kind, fed, first) in enumerate(zip(self.kinds, leaves.outputs, self.first, strict=True)):
            for column, own in enumerate(fed):
                here = output == own
                result[here, index] = first + kind[leaf[here, index]] * len(fed) + column
        return result

    def sums(self, leaves: RoundedLeaves, ties: NearTies, factor: int) -> Sums:
        """Returns constraints: for each near tie and each wrong class, a sum of adjustments that must be at least 0.
        Ties beyond MOST_TERMS terms are left out."""
        outputs, argmax = len(leaves.bias), leaves.decision.kind == "argmax"
        rivals = outputs - 1 if argmax else 1
        some = slice(0, max(1, MOST_TERMS // (2 * rivals * (len(self.kinds) + 1))))
        leaf, expected, count = ties.leaf[some], ties.expected[some], ties.count[some]
        scores = np.tile(leaves.bias, (len(leaf), 1))
        for values, fed, own in zip(leaves.values, leaves.outputs, leaf.T, strict=True):
            scores[:, list(fed)] += values[own]
        if not argmax:
            terms = self.of_output(leaves, leaf, np.zeros(len(leaf), dtype=np.int64))
            above = factor * (scores[:, 0] - int(leaves.decision.threshold))
            sign = np.where(expected == 1, 1, -1).astype(np.int8)[:, np.newaxis] * (terms < self.count - 1)
            return Sums(terms, sign.astype(np.int8), np.where(expected == 1, above, -above - 1), count)
        row = np.repeat(np.arange(len(leaf)), rivals)
        other = np.tile(np.arange(rivals), len(leaf))
        winner = expected[row]
        other += other >= winner
        won, lost = self.of_output(leaves, leaf[row], winner), self.of_output(leaves, leaf[row], other)
        strict = other > winner if leaves.decision.ties == "last" else other < winner
        room = factor * (scores[row, winner] - scores[row, other]) - strict
        terms = np.concatenate([won, lost], axis=1)
        sign = np.concatenate([won < self.count - 1, -(lost < self.count - 1).astype(np.int8)], axis=1)
        return Sums(terms, sign.astype(np.int8), room, count[row])

    def moved(self, leaves: RoundedLeaves, nudges: NDArray[np.int64], factor: int) -> RoundedLeaves:
        """Returns the leaves after adjustment, in steps `factor` times as fine as before."""
        bias = factor * leaves.bias + nudges[self.biases : self.biases + len(leaves.bias)]
        values = []
        for own, kind, fed, first in zip(leaves.values, self.kinds, leaves.outputs, self.first, strict=True):
            moved = factor * own + nudges[first + kind[:, np.newaxis] * len(fed) + np.arange(len(fed))]
            bias[list(fed)] += moved.min(axis=0)
            values.append(moved - moved.min(axis=0))
        decision = leaves.decision
        if decision.kind == "threshold":
            decision = replace(decision, threshold=factor * int(decision.threshold))
        return replace(leaves, values=values, bias=bias, scale=leaves.scale / factor, decision=decision)
