"""Computes the costs of trees and of the comparators that trees share."""

from __future__ import annotations

import numpy as np

from forestc.algorithms.members.vote_patterns import Bill
from forestc.costs.prices import DEFAULT_COST, Prices, prices
from forestc.forest.conditions import Below, Condition
from forestc.forest.ir import Forest
from forestc.forest.numbers import Float, word_bits

ASSUMED_BITS = 12  # bits assumed for a feature that is not an integer yet
ASSUMED_LEAF_BITS = 8  # bits assumed for leaves that are not integers yet
UNITS = ("trees", "nodes", "comparators", "luts")


def bill_of(forest: Forest, unit: str, *, family: str = DEFAULT_COST) -> Bill:
    """Returns the cost of each tree; for comparators or luts, also of each comparator.
    unit: trees, nodes, comparators or luts.
    family: prices of luts, such as lut6 or flash."""
    trees = forest.trees
    nodes = np.array([len(tree.inner) for tree in trees], dtype=np.float64)
    if unit == "trees":
        return Bill(unit, np.ones(len(trees)))
    if unit == "nodes":
        return Bill(unit, nodes)
    comparators = forest.conditions.comparators
    uses = np.zeros((len(trees), len(comparators)), dtype=np.float32)
    for index, (tree, condition_of) in enumerate(zip(trees, forest.conditions.node_conditions, strict=True)):
        uses[index, np.searchsorted(comparators, condition_of[tree.inner], side="right") - 1] = 1
    if unit == "comparators":
        return Bill(unit, np.zeros(len(trees)), uses, np.ones(len(comparators)))
    price = prices(family)
    bits = np.array([leaf_bits(tree.values) for tree in trees]) * [len(tree.outputs) for tree in trees]
    costs = np.where(nodes > 0, (price.split * nodes + price.tree) * (bits if price.per_bit else 1), 0.0)
    part = np.array([comparator_cost(forest, forest.conditions[number], price) for number in comparators.tolist()])
    return Bill(unit, costs, uses, part)


def cost_of(forest: Forest) -> float:
    """Returns the estimated LUTs of the forest's trees and comparators."""
    return bill_of(forest, "luts").of(np.ones(len(forest.trees), dtype=bool))


def leaf_bits(values: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> int:
    """Returns the number of bits of a tree's integer leaves minus the smallest leaf. For float leaves, returns
    ASSUMED_LEAF_BITS."""
    if values.dtype.kind != "i":
        return ASSUMED_LEAF_BITS
    return max(1, int(values.max() - values.min()).bit_length()) if values.size else 1


def comparator_cost(forest: Forest, condition: Condition, unit: Prices) -> float:
    """Returns the cost of a condition's comparator. Trailing zero bits of a threshold cost nothing."""
    number = forest.features[condition.feature].number
    bits = ASSUMED_BITS if isinstance(number, Float) else word_bits(number)
    if isinstance(condition.test, Below) and forest.on_words:
        threshold = int(condition.test.threshold)
        bits -= (threshold & -threshold).bit_length() - 1 if threshold else 0
    return unit.comparison(bits)
