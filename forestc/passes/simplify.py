"""Implements the pass simplify: removes conditions that change no result, and features without a condition."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from forestc.forest.builder import changed, changed_tree
from forestc.forest.conditions import Below, Condition, InSpans, OneOf
from forestc.forest.ir import LEAF, Forest, Tree
from forestc.forest.numbers import Category, Float, word_range
from forestc.passes.added_trees import tree_of_nodes
from forestc.passes.base import PassResult
from forestc.passes.promises import Exact
from forestc.passes.scorer import Scorer
from forestc.rows.batches import Rows


@dataclass(frozen=True)
class Simplify:
    """Removes conditions that change the result of no input, and features without a condition.

    Promises: exact: the same scores and decisions for every input.
    """

    name: ClassVar[str] = "simplify"

    def run(self, forest: Forest, rows: Rows | None, scorer: Scorer | None = None) -> PassResult:
        conditions = list(forest.conditions)
        trees = [_simplified(forest, conditions, index) for index in range(len(forest.trees))]
        used = sorted({int(f) for tree in trees for f in np.unique(tree.feature[tree.inner])})
        new_index = np.full(len(forest.features) + 1, LEAF, dtype=np.int32)
        new_index[used] = np.arange(len(used))
        if len(used) < len(forest.features):
            trees = [changed_tree(tree, feature=new_index[tree.feature]) for tree in trees]
        same = all(map(operator.is_, trees, forest.trees))
        features = tuple(forest.features[f] for f in used)
        result = forest if same else changed(forest, trees=tuple(trees), features=features)
        report = {
            "nodes": [forest.n_nodes, result.n_nodes],
            "features": [len(forest.features), len(result.features)],
        }
        return PassResult(result, (Exact(),), report)


class _Reachable(NamedTuple):
    """The values of one feature that reach a node."""

    low: Any
    high: Any  # upper bound, itself not included
    codes: frozenset[Any]  # codes of a category; empty for other features
    missing: bool  # True if missing values reach the node


def _all_values(forest: Forest, feature: int) -> _Reachable:
    f = forest.features[feature]
    if isinstance(f.number, Float):
        return _Reachable(-np.inf, np.inf, frozenset(), f.missing)
    span = word_range(f.number, f.missing)
    codes = frozenset(range(span.low, span.high + 1)) if isinstance(f.number, Category) else frozenset()
    return _Reachable(span.low, span.high + 1, codes, f.missing)


def _split(reachable: _Reachable, condition: Condition) -> tuple[_Reachable | None, _Reachable | None]:
    """Returns the values on the left and on the right side of a condition; None for a side without values."""
    sides = []
    for left in (True, False):
        missing = reachable.missing and condition.missing_left == left
        match condition.test:
            case InSpans(cuts):
                low, high, some = _reach(reachable, cuts, left)
                side = _Reachable(low, high, reachable.codes, missing)
            case OneOf(members):
                codes = reachable.codes.intersection(members) if left else reachable.codes.difference(members)
                side, some = _Reachable(reachable.low, reachable.high, codes, missing), bool(codes)
            case Below(threshold):
                low = reachable.low if left else max(reachable.low, threshold)
                high = min(reachable.high, threshold) if left else reachable.high
                # x >= +inf holds for +inf, so the interval [+inf, +inf] is not empty.
                some = low < high or (not left and low == high == np.inf)
                side = _Reachable(low, high, reachable.codes, missing)
        sides.append(side if some or missing else None)
    return sides[0], sides[1]


def _reach(reachable: _Reachable, cuts: tuple[Any, ...], left: bool) -> tuple[Any, Any, bool]:
    """Returns (lower bound, upper bound, True if there are values) for one side of a condition with cuts."""
    inside = [cut for cut in cuts if reachable.low < cut and (cut < reachable.high or cut == reachable.high == np.inf)]
    first = sum(cut <= reachable.low for cut in cuts)
    edges = [reachable.low, *inside, reachable.high]
    spans = [(edges[i], edges[i + 1]) for i in range(len(edges) - 1) if ((first + i) % 2 == 1) == left]
    if not spans:
        return reachable.low, reachable.high, False
    return spans[0][0], spans[-1][1], True


def _simplified(forest: Forest, conditions: Sequence[Condition], index: int) -> Tree:
    tree = forest.trees[index]
    feature, condition = tree.feature.tolist(), forest.conditions.node_conditions[index].tolist()
    left, right, leaf = tree.left.tolist(), tree.right.tolist(), tree.leaf.tolist()
    start = {f: _all_values(forest, f) for f in set(feature) - {LEAF}}
    # Top down: this loop finds nodes whose condition is decided by conditions above them.
    goes: dict[int, int] = {}  # decided node -> the child that replaces it
    order: list[int] = []
    stack: list[tuple[int, dict[int, _Reachable]]] = [(0, {})]
    while stack:
        node, reachable = stack.pop()
        order.append(node)
        f = feature[node]
        if f == LEAF:
            continue
        to_left, to_right = _split(reachable.get(f, start[f]), conditions[condition[node]])
        if to_left is None or to_right is None:
            goes[node] = left[node] if to_right is None else right[node]
            stack.append((goes[node], reachable))
            continue
        stack.append((left[node], {**reachable, f: to_left}))
        stack.append((right[node], {**reachable, f: to_right}))
    # Bottom up: this loop numbers subtrees; a node with equal children takes their number.
    numbers: dict[Any, int] = {}
    same: dict[int, int] = {}  # node -> number of its subtree
    stands: dict[int, int] = {}  # node -> the node that replaces it
    for node in reversed(order):
        if feature[node] == LEAF:
            key: Any = tree.values[leaf[node]].tobytes()
        elif node in goes:
            same[node], stands[node] = same[goes[node]], stands[goes[node]]
            continue
        elif same[left[node]] == same[right[node]]:
            same[node], stands[node] = same[left[node]], stands[left[node]]
            continue
        else:
            key = condition[node], same[left[node]], same[right[node]]
        same[node], stands[node] = numbers.setdefault(key, len(numbers)), node
    if len(order) == tree.size and all(stands[node] == node for node in order):
        return tree
    return tree_of_nodes(
        tree,
        stands[0],
        lambda node: () if feature[node] == LEAF else (stands[left[node]], stands[right[node]]),
        lambda node: tree.values[leaf[node]],
        f"tree {index}",
        quantized=forest.quantized,
    )
