"""Counts that explain the flash, stack and instructions of a C layout. docs/explanation/c-estimates.md lists them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.backends.c.inputs import Inputs
from forestc.backends.c.types import FLOATS, score_type, size_of, word_type
from forestc.forest.conditions import Below, InSpans, OneOf
from forestc.forest.ir import LEAF, Forest, Tree
from forestc.forest.numbers import word_range
from forestc.layouts.leaves import Leaves
from forestc.layouts.slots import Slots

Amounts = dict[str, float]
Arrays = dict[str, NDArray[np.float64]]


@dataclass(frozen=True)
class Demand:
    """Counts of operations by name, for a forest in one C layout. Cost estimates are weighted sums of the counts."""

    flash: Amounts  # counts for the code's flash
    stack: Amounts  # counts for the code's stack
    row: Amounts  # counts that every row adds
    trees: Mapping[int, Arrays]  # {tree: {name: (nodes,)}}, added by a row that ends in the node
    conditions: Arrays = field(default_factory=dict)  # {name: (conditions,)}, added by a row that fails the condition

    @property
    def names(self) -> frozenset[str]:
        """The names of the counts above 0."""
        amounts = [*self.flash.items(), *self.row.items(), *self.stack.items()]
        arrays = [*self.conditions.items(), *(own for tree in self.trees.values() for own in tree.items())]
        return frozenset([name for name, amount in amounts if amount] + [name for name, own in arrays if own.any()])

    def mean(self, forest: Forest) -> Amounts:
        """Returns how often an average row needs each operation, by name. Covers (counts or weights of training rows)
        tell how rows split; without covers, half go left."""
        total = dict(self.row)
        for index, amounts in self.trees.items():
            share = reaching(forest.trees[index])
            for name, amount in amounts.items():
                total[name] = total.get(name, 0.0) + float(amount @ share)
        if self.conditions:
            fails = failing(forest)
            total |= {name: float(amount @ fails) for name, amount in self.conditions.items()}
        return total

    def of_rows(self, leaves: NDArray[np.int64], fails: NDArray[np.bool_]) -> dict[str, NDArray[np.float64]]:
        """Returns the counts of each row: {name: (rows,)}.

        leaves: (rows, trees), the node that a row ends in.
        fails: (rows, conditions), True if the condition does not hold.
        """
        total = {name: np.full(len(leaves), amount) for name, amount in self.row.items()}
        for index, amounts in self.trees.items():
            for name, at_node in amounts.items():
                total[name] = total.get(name, 0.0) + at_node[leaves[:, index]]
        return total | {name: fails @ at_node for name, at_node in self.conditions.items()}

    def worst(self, costs: Mapping[str, float]) -> float:
        """Returns an upper bound of any row's cost. costs: {name of a count: cost}, not negative."""
        total = sum(costs.get(name, 0.0) * float(amount.sum()) for name, amount in self.conditions.items())
        total += sum(costs.get(name, 0.0) * amount for name, amount in self.row.items())
        for amounts in self.trees.values():
            total += float(np.max(sum(costs.get(name, 0.0) * amount for name, amount in amounts.items()), initial=0.0))
        return total


def reaching(tree: Tree) -> NDArray[np.float64]:
    """Returns (nodes,): the fraction of rows that end in each node; 0 at splits."""
    share = np.zeros(tree.size)
    share[0] = 1.0
    for level in tree.levels:
        inner = level[tree.left[level] != LEAF]
        left, right = tree.left[inner], tree.right[inner]
        to_left = np.full(len(inner), 0.5)
        if tree.cover is not None:
            both = tree.cover[left] + tree.cover[right]
            to_left = np.divide(tree.cover[left], both, out=to_left, where=both > 0)
        share[left], share[right] = share[inner] * to_left, share[inner] * (1.0 - to_left)
    return np.where(tree.left == LEAF, share, 0.0)


def along(tree: Tree, amount: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns (nodes,): for each leaf, the sum of `amount` (nodes,) over the splits on its path; 0 at splits."""
    total = np.zeros(tree.size)
    for level in tree.levels:
        inner = level[tree.left[level] != LEAF]
        for child in (tree.left[inner], tree.right[inner]):
            total[child] = total[inner] + amount[inner]
    return np.where(tree.left == LEAF, total, 0.0)


def failing(forest: Forest) -> NDArray[np.float64]:
    """Returns (conditions,): the fraction of the rows at a condition's nodes that fail it; 0.5 without covers."""
    right, both = np.zeros(len(forest.conditions)), np.zeros(len(forest.conditions))
    for tree, conditions in zip(forest.trees, forest.conditions.node_conditions, strict=True):
        inner = tree.inner
        cover = np.ones(tree.size) if tree.cover is None else tree.cover
        np.add.at(right, conditions[inner], cover[tree.right[inner]])
        np.add.at(both, conditions[inner], cover[tree.left[inner]] + cover[tree.right[inner]])
    return np.where(both > 0, right / np.where(both > 0, both, 1.0), 0.5)


def count_leaves(flash: Amounts, values: NDArray[np.int64], score: int) -> None:
    """Adds counts to `flash`: leaf values that need long constants, and the bytes of all nonzero leaf values. score:
    bytes of a score."""
    for name, most in (("long", 255), ("long_high", 2047), ("long_literal", 65535)):
        flash[name] = flash.get(name, 0.0) + float((np.abs(values) > most).sum())
    flash["leaf_bytes"] = flash.get("leaf_bytes", 0.0) + score * float((values != 0).sum())


def slot_amounts(inputs: Inputs, slots: Slots) -> Amounts:
    """Returns {name: count} of the operations that compute a row's slots. Trees compare slots with thresholds."""
    filled = 0 if slots.plain and inputs.in_order else len(slots.slots)
    ranks = [slot.cuts for _, slot in slots.ranks]
    tests = comparisons(inputs)["test"]
    plain = [slot for slot in slots.slots if slot.condition is None and not slots.ranked]
    kinds = [inputs.kind(slot.feature) for _, slot in slots.ranks]
    return {
        "slot": float(filled),
        "low": float(sum(slot.missing_low for slot in plain)),
        "slot_double": float(filled * (slot_bytes(slots, inputs.forest) == 8)),
        "member": float(inputs.struct * filled),
        "ranks": float(len(ranks)),
        "rank": float(sum(math.ceil(math.log2(len(cuts) + 1)) for cuts in ranks)),
        "twin": float(len(slots.slots) - len(ranks)) if slots.ranked else 0.0,
        "rank_float": float(kinds.count("float")),
        "rank_double": float(kinds.count("double")),
        "codes": float(sum(tests[slot.condition] for slot in slots.slots if slot.condition is not None)),
    }


def slot_flash(inputs: Inputs, slots: Slots) -> Amounts:
    """Returns {name: count} of the operations in the code that computes slots."""
    row, width = slot_amounts(inputs, slots), slot_bytes(slots, inputs.forest)
    filled = row["slot"] if inputs.struct or not row["rank"] else 0.0
    ranked = [(inputs.kind(slot.feature) if inputs.raw else "", len(slot.cuts)) for _, slot in slots.ranks]
    steps = {kind: max(cuts for own, cuts in ranked if own == kind).bit_length() for kind, _ in ranked}
    return {
        "ranked": float(len(steps)),
        "rank": float(sum(steps.values())),
        "rank_float": float("float" in steps),
        "rank_double": float("double" in steps),
        "rank_twin": float(bool(steps) and row["twin"] > 0),
        "rank_member": float(inputs.struct * len(ranked)),
        "slot": filled,
        "low": row["low"],
        "slot_double": float(width == 8),
        "member": row["member"],
        "slot_bytes": filled * width,
        "codes": row["codes"],
    }


def slot_bytes(slots: Slots, forest: Forest) -> int:
    """Returns the number of bytes of a slot."""
    if not slots.ranked:
        return size_of(word_type(forest))
    return 1 if max((len(slot.cuts) for slot in slots.slots), default=1) < 256 else 2


def additions(forest: Forest, index: int, leaves: Leaves) -> Arrays:
    """Returns {name: (nodes,)} with two arrays: the number of additions to scores at each leaf, and the bytes of these
    scores; 0 at splits."""
    tree = forest.trees[index]
    at_leaf = tree.left == LEAF
    if leaves.kind == "rows":
        additions = np.full(tree.size, float(leaves.table.shape[1]))
    elif leaves.kind == "bits":
        lengths = np.array([int(bits).bit_length() for bits in leaves.table[:, 0].tolist()] + [0], dtype=np.float64)
        additions = lengths[leaves.number[index]]
    elif leaves.kind == "pairs":
        counts = np.array([max(1, len(pairs)) for pairs in leaves.pairs] + [0], dtype=np.float64)
        additions = counts[leaves.number[index]]
    else:
        additions = np.ones(tree.size)
    added = np.where(at_leaf, additions, 0.0)
    return {leaves.kind: added, "added_bytes": size_of(score_type(forest)) * added}


def comparisons(inputs: Inputs) -> Arrays:
    """Returns {operation: array (conditions + 1,)}: how many such operations each condition takes. The last entry, for
    leaves, is 0."""
    forest, many, distant = inputs.forest, len(inputs.forest.conditions), _distant(inputs)
    names = ("test", "set", "wide", "high", "literal", "signed", "distant", "raw", "absent", "double", "bytes")
    counts = {name: np.zeros(many + 1) for name in names}
    for index in range(many):
        condition = forest.conditions[index]
        match condition.test:
            case Below(threshold):
                constants: list[Any] = [threshold]
            case OneOf(codes):
                constants = [*codes]
            case InSpans(cuts):
                constants = [*cuts]
        feature, kind = forest.features[condition.feature], inputs.kind(condition.feature)
        if kind in FLOATS:
            counts["absent"][index] = feature.missing
            counts["raw"][index] = len(constants) + feature.missing
        elif condition.missing_left and feature.missing:
            constants.append(word_range(feature.number, feature.missing).missing)
        for name, most in (("wide", 255), ("high", 2047), ("literal", 65535)) if kind not in FLOATS else ():
            counts[name][index] = sum(not -1 <= int(value) <= most for value in constants)
        size = FLOATS[kind].bits // 8 if kind in FLOATS else size_of(kind)
        tests = len(constants) + counts["absent"][index]
        counts["test"][index] = tests
        counts["set"][index] = tests * (not isinstance(condition.test, Below))
        counts["bytes"][index] = tests * size
        counts["double"][index] = tests * (size == 8)
        counts["signed"][index] = tests * (size < 4 and kind.startswith("int"))
        counts["distant"][index] = tests * distant[condition.feature]
    return counts


def _distant(inputs: Inputs) -> list[bool]:
    """Returns a list with True for each feature in x that short load instructions do not reach."""
    if not inputs.struct:
        return [inputs.at(index) > 31 for index in range(len(inputs.forest.features))]
    far, offset = list[bool](), 0
    for kind in inputs.kinds:
        size = FLOATS[kind].bits // 8 if kind in FLOATS else size_of(kind)
        offset = -(-offset // size) * size
        far.append(offset > 31 * size)
        offset += size
    return far


def common_amounts(forest: Forest, trees: int) -> Amounts:
    """Returns {name: count} of the operations that all layouts share. trees: the number of trees that are evaluated."""
    curves, parts = sum(len(part.curves) for part in forest.parts), float(len(forest.parts))
    looked_up = sum(part.width for part in forest.parts if part.curves)
    kind = "" if forest.single else forest.combine.kind
    return {
        "one": 1.0,
        "tree": float(trees),
        "loop": float(trees > 1),
        "output": float(forest.n_scores),
        "several": float(forest.n_scores > 1),
        "score_bytes": float(forest.n_scores * size_of(score_type(forest))),
        "each": parts * (kind == "each"),
        "vote": parts * (kind == "vote"),
        "average": parts * (kind == "average"),
        "median": parts * (kind == "median"),
        "median_pairs": parts**2 * (kind == "median"),
        "curve_bytes": float(curves * forest.steps * size_of(score_type(forest))),
        "level": looked_up * math.log2(forest.steps + 1) if looked_up else 0.0,
    }


def stack_amounts(inputs: Inputs, slots: Slots | None = None) -> Amounts:
    """Returns {name: count} of the quantities from which the stack is estimated."""
    forest = inputs.forest
    arrays = forest.n_scores + (0 if forest.single else forest.n_outputs)
    stack = {"one": 1.0, "output_bytes": float(arrays * size_of(score_type(forest)))}
    filled = {} if slots is None else {"slot_bytes": slot_amounts(inputs, slots)["slot"] * slot_bytes(slots, forest)}
    return stack | filled
