"""Holds a forest as arrays for prune-splits: leaves in order, the leaf that each row reaches, and splits with costs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.splits.decision_keeping import RequiredDecisions, keep_decisions
from forestc.algorithms.splits.leaf_fitting import Trees
from forestc.algorithms.splits.mending_trees import MendingTree
from forestc.algorithms.splits.pruning import Pruned, Splits, Start, as_given, prune, pruned_of
from forestc.algorithms.splits.squared_pruning import prune_squared
from forestc.algorithms.splits.state import Outcomes
from forestc.costs.prices import Prices
from forestc.forest.builder import changed, changed_tree
from forestc.forest.conditions import Below, Condition, Member
from forestc.forest.evaluate import missing_words
from forestc.forest.ir import LEAF, Forest, Tree
from forestc.forest.numbers import word_range
from forestc.passes.added_trees import added_tree
from forestc.passes.fit_leaves.fit_leaves import zero_of
from forestc.passes.mixed_rows import rows_to_fit
from forestc.passes.prune_splits.core_rows import CodedRows, CoreRows
from forestc.passes.quick_evaluation import nodes_reached
from forestc.passes.tree_costs import comparator_cost
from forestc.rows.batches import Rows

_LeafOrder: TypeAlias = tuple[list[int], list[tuple[int, int, int, int, int]]]  # see `_leaves_in_order`
MOST_FIT = 1 << 22  # rows times trees at most; beyond that, evenly spaced rows are used
MOST_COPIED = 1 << 23  # rows and copies, times trees, at most; many rows need no copies
MOST_OUTCOMES = 1 << 28  # rows times groups of conditions at most; beyond that, fewer rows are used
ROUNDS = 12  # times that wrongly decided rows may join the core before a price fails
HOPELESS = 0.5  # stops if an estimate of wrongly decided rows exceeds this share of the core
MOST_BITS = 20  # bits of leaves at most; wider leaves are rounded to this
ADDED_SPLIT = 2.5  # multiplies the cost of a split in added trees


@dataclass(frozen=True)
class SmallerEnsemble:
    """A pruned ensemble, perhaps with new trees that correct some rows."""

    ensemble: SplitEnsemble
    pruned: Pruned
    added: tuple[MendingTree, ...] = ()  # new trees beside the pruned ones
    mended: int = 0  # number of rows that the new trees correct

    @property
    def cost(self) -> float:
        return self.pruned.cost

    @property
    def splits(self) -> int:
        return self.pruned.splits + sum(tree.splits for tree in self.added)

    def forest(self) -> Forest:
        return self.ensemble.rebuilt(self.pruned, self.added)


class SplitEnsemble:
    """A forest as arrays for pruning: leaves in order, and splits with their costs."""

    def __init__(self, forest: Forest, rows: Rows, unit: Prices, *, rewire: bool, keeps: bool, **mixed: Any) -> None:
        """Reads the forest and the rows. rewire: True if splits may exchange conditions. keeps: True to keep all
        decisions. mixed: arguments copies, mix and seed of `rows_to_fit`."""
        self.forest, self.unit = forest, unit
        self.orders = [_leaves_in_order(tree) for tree in forest.trees]
        self.conditions, table = _numbered(forest, self.orders)
        tree_of, first, middle, last, size, condition = (table[:, column].copy() for column in range(6))
        cost = np.array([comparator_cost(forest, test, unit) for test in self.conditions], dtype=np.float64)
        self.splits = Splits(tree_of, first, middle, last, size, condition, cost, 0.0, 0.0)
        values = [tree.values[tree.leaf[nodes]] for tree, (nodes, _) in zip(forest.trees, self.orders, strict=True)]
        present = max((int(leaves.max() - leaves.min()).bit_length() for leaves in values), default=1)
        self.zero = zero_of(forest.decision)
        self.own_bias = np.asarray(forest.bias, dtype=np.int64) - self.zero
        for tree, leaves in zip(forest.trees, values, strict=True):
            self.own_bias[list(tree.outputs)] += leaves.min(axis=0)
        self.own = [leaves - leaves.min(axis=0) for leaves in values]  # counted from the smallest value of their tree
        columns = _columns(forest, self.conditions)
        count = max(1, len(forest.trees))
        most = min(MOST_FIT // count, MOST_OUTCOMES // max(1, len(columns)))
        mixed["copies"] = mixed["copies"] if forest.decides else 0
        drawn = rows_to_fit(forest, rows, most, own_labels=keeps, most_copied=max(1, MOST_COPIED // count), **mixed)
        words, self.label, self.rows, self.copies = drawn.words, drawn.label, drawn.rows, drawn.copies
        self.outcomes = _outcomes(forest, self.conditions, columns, words) if self.conditions else None
        self.core: CoreRows | None = None
        if keeps and self.outcomes is not None:
            drawn_rows = len(words) // (self.copies + 1)
            core_outcomes = self.outcomes._replace(code=self.outcomes.code[:drawn_rows])
            coded = CodedRows(forest, rows, partial(_outcomes, forest, self.conditions, columns))
            self.core = CoreRows(core_outcomes, self.label[:drawn_rows], None if drawn_rows == self.rows else coded)
        if rewire and self.conditions and _plain(forest, self.conditions[0]):
            self.splits = replace(self.splits, outcomes=self.outcomes)
        self.trees = Trees.of(_reached(forest, self.orders, words), self.own, [tree.outputs for tree in forest.trees])
        self._round(min(max(1, present), MOST_BITS))
        widths = [len(tree.outputs) for tree in forest.trees]
        alive = sum(width for tree, width in zip(forest.trees, widths, strict=True) if tree.size > 1)
        nodes = sum(width * len(tree.inner) for tree, width in zip(forest.trees, widths, strict=True))
        self.cost = float(cost.sum() + self.splits.node * nodes + self.splits.sum * alive)

    def _round(self, bits: int) -> None:
        self.bits, self.largest = bits, (1 << bits) - 1
        share = bits if self.unit.per_bit else 1 / max(1.0, float(np.mean(np.diff(self.trees.outputs))))
        self.splits = replace(self.splits, node=self.unit.split * share, sum=self.unit.tree * share)
        factor = min(1.0, self.largest / max([1, *(int(leaves.max()) for leaves in self.own)]))
        values = [np.floor(leaves * factor + 0.5).astype(np.int64).ravel() for leaves in self.own]
        self.trees = replace(self.trees, value=np.concatenate(values))
        self.factor = factor  # converts the forest's scores to scores of rounded leaves
        self.bias = np.zeros(self.forest.n_outputs, dtype=np.int64)
        if self.forest.n_outputs == 1:  # half of the largest sum, until fitting finds a better bias
            self.bias -= int(self.largest * len(self.forest.trees)) // 2

    def of_bits(self, bits: int | str) -> SplitEnsemble:
        """Returns the ensemble with leaves of `bits` bits; "same" keeps their number. Its `core` is a copy, to which
        rows may be added."""
        other = copy(self)
        other.core = copy(self.core)
        if not isinstance(bits, str):
            other._round(bits)
        return other

    def as_given(self) -> list[Pruned]:
        """Returns a list with the unpruned ensemble, or [] if its leaves were scaled down to fit their bits."""
        if self.factor != 1.0:
            return []
        shape, state = as_given(self.trees, self.splits)
        return [pruned_of(shape, state, self.own_bias, 0.0, 0.0, float(self.forest.scale or 1.0))]

    def keeping_decisions(self, pruned: Pruned, mended: float, most: float = math.inf) -> SmallerEnsemble | None:
        """Returns the pruned ensemble, changed to keep the decisions of all rows; None if that fails.
        mended: largest share of rows that added trees may correct.
        most: results of this cost or more are not checked on all rows."""
        if self.core is None:
            return None
        shape, _ = as_given(self.trees, self.splits)
        last, split = self.forest.decision.ties == "last", self.unit.split * ADDED_SPLIT
        for _ in range(ROUNDS):
            most_mended = int(mended * len(self.core.label))
            terms = RequiredDecisions(
                self.core.label, last, self.largest, most_mended, split, self.unit.tree, self.unit.per_bit
            )
            result = keep_decisions(self.trees, shape, self.splits, self.core.outcomes, pruned, terms)
            if result is None:
                return None
            violated = 0.0 if result.cost >= most else self.core.violated(shape, result.pruned, result.added, last)
            if not violated:
                return SmallerEnsemble(self, result.pruned, result.added, result.mended)
            if violated * self.rows > HOPELESS * len(self.core.label):
                return None
        return None

    def path(self, prices: NDArray[np.float64], start: Start | None = None) -> Iterator[Pruned]:
        """Yields the pruned ensemble at each of the ascending prices. start: an ensemble pruned at a lower price, to be
        pruned further."""
        scale = len(self.label) / self.rows  # Copies count as rows, but rows beyond the limit do not.
        if not self.forest.decides:
            target = self.label.reshape(len(self.label), -1) * (self.factor / (self.forest.scale or 1.0))
            row = max(float(((target - target.mean(axis=0)) ** 2).sum()) / len(target), 1e-300)
            pruned = prune_squared(
                self.trees, self.bias, target, self.largest, self.splits, prices * scale * row, start=start
            )
        else:
            copies = self.copies + 1
            pruned = prune(
                self.trees, self.bias, self.label, self.largest, self.splits, prices * scale, copies_per_row=copies,
                start=start,
            )  # fmt: skip
        for price, result in zip(prices.tolist(), pruned, strict=True):
            yield replace(result, price=price)

    def start_of(self, arrays: Mapping[str, NDArray[Any]]) -> Start | None:
        """Returns stored arrays as the state from which pruning starts; None if their names, types, shapes or values do
        not fit this ensemble."""
        leaves = np.diff(self.trees.start) // np.diff(self.trees.outputs)[:, 0]
        most = {
            "group": np.repeat(leaves, leaves) - 1,
            "value": np.full(len(self.trees.value), self.largest),
            "condition": np.full(len(self.splits.tree), len(self.splits.cost) - 1),
        }
        shapes: dict[str, tuple[int, Any]] = {name: (len(limit), np.int64) for name, limit in most.items()}
        shapes |= {"bias": (len(self.bias), np.int64), "flipped": (len(self.splits.tree), np.bool_)}
        for name, (count, kind) in shapes.items():
            if name not in arrays or arrays[name].dtype != kind or arrays[name].shape != (count,):
                return None
        if any(((arrays[name] < 0) | (arrays[name] > limit)).any() for name, limit in most.items()):
            return None
        return Start(*(arrays[name] for name in Start._fields))

    def rebuilt(self, pruned: Pruned, added: Sequence[MendingTree] = ()) -> Forest:
        """Returns the pruned forest with the added trees. Some of its nodes may be redundant."""
        trees = []
        begin = 0
        for index, (tree, (nodes, inner)) in enumerate(zip(self.forest.trees, self.orders, strict=True)):
            leaf = np.full(tree.size, LEAF, dtype=tree.leaf.dtype)
            leaf[nodes] = np.arange(len(nodes))
            values = pruned.value[self.trees.start[index] : self.trees.start[index + 1]].reshape(-1, len(tree.outputs))
            feature, threshold = tree.feature.copy(), tree.threshold.copy()
            left, right = tree.left.copy(), tree.right.copy()
            for place, (node, *_) in enumerate(inner, begin):
                new = self.conditions[pruned.condition[place]]
                if isinstance(new.test, Below):  # only threshold conditions are ever exchanged
                    feature[node], threshold[node] = new.feature, new.test.threshold
                if pruned.flipped[place]:
                    left[node], right[node] = right[node], left[node]
            here = slice(begin, begin := begin + len(inner))
            rewired = not np.array_equal(pruned.condition[here], self.splits.condition[here])
            trees.append(
                changed_tree(
                    tree, values=values.astype(tree.values.dtype), leaf=leaf, feature=feature, threshold=threshold,
                    left=left, right=right, cover=None if rewired else tree.cover,
                )
            )  # fmt: skip
        trees += [added_tree(tree, self.conditions, place) for place, tree in enumerate(added, len(trees))]
        scale = self.forest.scale
        if has_odds(self.forest):
            scale = pruned.unit
        elif not self.forest.decides:
            scale = (scale or 1.0) / self.factor
        return changed(self.forest, trees=tuple(trees), bias=pruned.bias + self.zero, scale=scale)


def _numbered(forest: Forest, orders: Sequence[_LeafOrder]) -> tuple[list[Condition], NDArray[np.int64]]:
    splits = [
        (index, first, middle, last, size, int(condition_of[node]))
        for index, (condition_of, (_, inner)) in enumerate(zip(forest.conditions.node_conditions, orders, strict=True))
        for node, first, middle, last, size in inner
    ]
    used = Counter(condition for *_, condition in splits)
    condition_at = {condition: forest.conditions[condition] for condition in used}
    order = sorted(used, key=lambda condition: (not _plain(forest, condition_at[condition]), -used[condition]))
    number = {condition: rank for rank, condition in enumerate(order)}
    table = np.array([(*split, number[condition]) for *split, condition in splits], dtype=np.int64).reshape(-1, 6)
    return [condition_at[condition] for condition in order], table


def _reached(forest: Forest, orders: Sequence[_LeafOrder], words: NDArray[Any]) -> NDArray[np.int32]:
    leaf = np.empty((len(forest.trees), len(words)), dtype=np.int32)
    reached = nodes_reached(forest, words)
    for index, (tree, (ends, _)) in enumerate(zip(forest.trees, orders, strict=True)):
        leaf_number = np.zeros(tree.size, dtype=np.int32)
        leaf_number[ends] = np.arange(len(ends))
        leaf[index] = leaf_number[reached[:, index]]
    return leaf


def _leaves_in_order(tree: Tree) -> _LeafOrder:
    """Returns two lists: leaf nodes from left to right; and, children first, (node, start, middle and end of its
    leaves, number of splits) for each inner node."""
    leaves: list[int] = []
    inner: list[tuple[int, int, int, int, int]] = []
    begun: dict[int, tuple[int, int]] = {}  # node -> its first leaf, and the number of inner nodes before it
    middle: dict[int, int] = {}
    stack = [(0, "down")]
    while stack:
        node, way = stack.pop()
        if way == "middle":
            middle[node] = len(leaves)
        elif way == "up":
            first, before = begun[node]
            inner.append((node, first, middle[node], len(leaves), len(inner) - before + 1))
        elif tree.left[node] == LEAF:
            leaves.append(node)
        else:
            begun[node] = len(leaves), len(inner)
            stack += [(node, "up"), (int(tree.right[node]), "down"), (node, "middle"), (int(tree.left[node]), "down")]
    return leaves, inner


def _plain(forest: Forest, condition: Condition) -> bool:
    """Returns True if a condition compares a feature that is never missing with a threshold."""
    feature = forest.features[condition.feature]
    return isinstance(condition.test, Below) and word_range(feature.number, feature.missing).missing is None


def _columns(forest: Forest, conditions: Sequence[Condition]) -> list[list[int]]:
    """Returns lists of condition indices: for each feature without missing values its ascending thresholds, and a list
    for each other condition."""
    plain: dict[int, list[tuple[Member, int]]] = {}
    others = []
    for index, condition in enumerate(conditions):
        if isinstance(condition.test, Below) and _plain(forest, condition):
            plain.setdefault(condition.feature, []).append((condition.test.threshold, index))
        else:
            others.append([index])
    return [[index for _, index in sorted(cuts)] for cuts in plain.values()] + others


def _outcomes(
    forest: Forest, conditions: Sequence[Condition], columns: Sequence[list[int]], words: NDArray[np.int64]
) -> Outcomes:
    """Computes the outcomes of all conditions on all rows, as small integers."""
    takes_missing, missing_word = missing_words(forest)
    most = max(map(len, columns))
    code = np.zeros((len(words), len(columns)), dtype=np.uint8 if most < 256 else np.int32)
    column, cut = (np.empty(len(conditions), dtype=np.int64) for _ in range(2))
    for number, indices in enumerate(columns):
        for rank, index in enumerate(indices):
            column[index], cut[index] = number, rank + 1
        condition = conditions[indices[0]]
        x = words[:, condition.feature]
        if _plain(forest, condition):
            tests = (conditions[index].test for index in indices)
            thresholds = np.array([test.threshold for test in tests if isinstance(test, Below)])
            code[:, number] = np.searchsorted(thresholds, x, side="right")
        else:
            absent = takes_missing[condition.feature] & (x == missing_word[condition.feature])
            code[:, number] = ~condition.sends_left(x, absent)
    begins = np.concatenate([[0], np.cumsum([len(indices) + 1 for indices in columns])]).astype(np.int64)
    return Outcomes(code, column, cut, begins, sum(_plain(forest, condition) for condition in conditions))


def has_odds(forest: Forest) -> bool:
    """Returns True if the forest's link turns log odds into probabilities."""
    return forest.link.kind in ("sigmoid", "logistic", "softmax") and forest.link.slope == 1.0
