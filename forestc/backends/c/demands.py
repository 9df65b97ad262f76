"""Counts what a C layout demands of a processor. Flash, stack and instructions are estimated from these features.

A row's counts are common ones, plus in each tree the counts of its leaf and of the path to it. So no row costs more
than the common counts and, in each tree, the most expensive leaf.

| of `branches`, `calls` | counts                                                                             |
|-----------------------|-------------------------------------------------------------------------------------|
| split, again          | splits with a condition that no earlier tree has; other splits, which GCC may know  |
| test, set             | elementary comparisons of their conditions; comparisons for sets among these        |
| wide, high, literal   | comparisons with a constant above 255, above 2047, and above 65535                  |
| signed, distant       | of signed integers of less than four bytes; of an element of x beyond the first 32  |
| raw, absent, double   | comparisons with the bits of a float; tests for NaN; comparisons of eight bytes     |
| bytes                 | bytes of the compared words                                                         |
| leaf, equal           | distinct leaves of trees of one output; their other leaves                          |
| add, add_bytes        | additions to an output by leaves of trees of several outputs, and their bytes       |
| long, long_high, ...  | values of leaf and add beyond 255, beyond 2047, and beyond 65535                    |
| leaf_bytes            | bytes of these values, without zeros                                                |
| load                  | splits on a feature that no split above has read                                    |
| flat, written         | 1, and the scores that are written, instead of all others, for a forest without splits |
| dense, threaded       | splits for each feature, and times all splits: with few features GCC copies trees to |
|                       | use the outcomes of comparisons in earlier trees                                    |
| crowded               | splits, in a forest of many splits on up to three features                          |

| feature of `ranked`   | counts                                                                              |
|-----------------------|-------------------------------------------------------------------------------------|
| split                 | splits on ranks                                                                     |
| apart                 | splits on unranked values; test, wide, raw and bytes as above, of these alone       |
| leaf, equal, long     | as above, without leaves that add nothing                                           |
| table                 | bytes of the tables                                                                 |
| ranks, rank           | ranked features; steps of the binary searches for their ranks                       |
| rank_float, twin      | floats among these; features with a second slot, for missing values                 |
| slot                  | slots that are filled                                                               |
| added, numbered       | additions by leaves of trees of several outputs; in flash, 1 if there are any       |

| feature of `nodes`    | counts                                                                              |
|-----------------------|-------------------------------------------------------------------------------------|
| table                 | bytes of the tables                                                                 |
| by_index, ...         | splits on a row's paths, by the code of nodes; in flash, 1 for the code in use      |
| far, long             | trees, if there are jumps; trees, if some leaves take two units of the code         |
| slot, ranks, rank     | slots that are filled; ranked features; steps of the searches                       |
| low, member           | slots in which a missing value is the lowest; slots that are filled from a struct   |
| codes                 | comparisons of the sets that have a slot of their own                               |
| value, rows, bits, pairs | additions, by the kind of leaves; in flash, 1 for the kind in use                |

| feature of `masks`    | counts                                                                              |
|-----------------------|-------------------------------------------------------------------------------------|
| table                 | bytes of the tables                                                                 |
| slot, ranks, rank     | as above                                                                            |
| fails, entry          | conditions that do not hold; trees in which these clear leaves                      |
| value, rows, bits, pairs | as above                                                                         |

`mixed` has the features of branches and of nodes (`long` as `long_number`), and `tops`, the trees that are branches.

All have `one`, `tree`, `loop` (1 for several trees), `output` (scores), `several` (1 for several scores), `score_bytes`
and `output_bytes` (of the arrays of scores). Models combined of parts have `each`, `vote`, `average` and `median`
(parts, by how they are combined), `median_pairs` (their square), `level` (steps of the searches in curves) and
`curve_bytes`.

`width`, `slot_bytes`, `mask_width` and `added_bytes` are bytes of slots, masks and scores, for processors of 8 bits.
"""

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
    """The counts of one layout for one forest. flash, stack: counts for the whole code. row: counts of every row.
    trees: by the index of a tree with splits, arrays (nodes,) of the counts of a row that ends in each node.
    conditions: arrays (conditions,) of the counts of a row for which each condition does not hold."""

    flash: Amounts
    stack: Amounts
    row: Amounts
    trees: Mapping[int, Arrays]
    conditions: Arrays = field(default_factory=dict)

    @property
    def names(self) -> frozenset[str]:
        """The features with a count above 0 in flash, in stack or for some row."""
        amounts = [*self.flash.items(), *self.row.items(), *self.stack.items()]
        arrays = [*self.conditions.items(), *(own for tree in self.trees.values() for own in tree.items())]
        return frozenset([name for name, amount in amounts if amount] + [name for name, own in arrays if own.any()])

    def mean(self, forest: Forest) -> Amounts:
        """Returns the counts of an average row, by the trees' covers. Without covers each split halves its rows."""
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
        """Returns the counts of each row. leaves: (rows, trees), the node that a row ends in. fails: (rows,
        conditions), True if the condition does not hold."""
        total = {name: np.full(len(leaves), amount) for name, amount in self.row.items()}
        for index, amounts in self.trees.items():
            for name, at_node in amounts.items():
                total[name] = total.get(name, 0.0) + at_node[leaves[:, index]]
        return total | {name: fails @ at_node for name, at_node in self.conditions.items()}

    def worst(self, costs: Mapping[str, float]) -> float:
        """Returns an upper bound of any row's cost: the most expensive leaf of each tree, and every condition as
        failing. costs: by feature, not negative."""
        total = sum(costs.get(name, 0.0) * float(amount.sum()) for name, amount in self.conditions.items())
        total += sum(costs.get(name, 0.0) * amount for name, amount in self.row.items())
        for amounts in self.trees.values():
            total += float(np.max(sum(costs.get(name, 0.0) * amount for name, amount in amounts.items()), initial=0.0))
        return total


def reaching(tree: Tree) -> NDArray[np.float64]:
    """Returns the share of rows that end in each node, 0 at splits: (nodes,)."""
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
    """Sums `amount` (nodes,) over the splits above each leaf. Returns (nodes,), with 0 at splits."""
    total = np.zeros(tree.size)
    for level in tree.levels:
        inner = level[tree.left[level] != LEAF]
        for child in (tree.left[inner], tree.right[inner]):
            total[child] = total[inner] + amount[inner]
    return np.where(tree.left == LEAF, total, 0.0)


def failing(forest: Forest) -> NDArray[np.float64]:
    """Returns (conditions,): the share of rows for which a condition does not hold, among all rows at its nodes. It is
    from the trees' covers; half without covers."""
    right, both = np.zeros(len(forest.conditions)), np.zeros(len(forest.conditions))
    for tree, conditions in zip(forest.trees, forest.conditions.node_conditions, strict=True):
        inner = tree.inner
        cover = np.ones(tree.size) if tree.cover is None else tree.cover
        np.add.at(right, conditions[inner], cover[tree.right[inner]])
        np.add.at(both, conditions[inner], cover[tree.left[inner]] + cover[tree.right[inner]])
    return np.where(both > 0, right / np.where(both > 0, both, 1.0), 0.5)


def count_leaves(flash: Amounts, values: NDArray[np.int64], score: int) -> None:
    """Adds the counts of leaf values to `flash`. score: bytes of a score."""
    for name, most in (("long", 255), ("long_high", 2047), ("long_literal", 65535)):
        flash[name] = flash.get(name, 0.0) + float((np.abs(values) > most).sum())
    flash["leaf_bytes"] = flash.get("leaf_bytes", 0.0) + score * float((values != 0).sum())


def slot_amounts(inputs: Inputs, slots: Slots) -> Amounts:
    """Returns the counts of filling the slots of one row."""
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
    """Returns the counts of the code that fills slots. Ranks of an array take one loop, ranks of a struct calls."""
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
    """Returns the bytes of a slot: of a feature's word, or of its rank."""
    if not slots.ranked:
        return size_of(word_type(forest))
    return 1 if max((len(slot.cuts) for slot in slots.slots), default=1) < 256 else 2


def additions(forest: Forest, index: int, leaves: Leaves) -> Arrays:
    """Returns the additions at each leaf of a tree (nodes,), by the kind of leaves, and their bytes."""
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
    """Returns elementary comparisons of each condition, by kind: (conditions + 1,), with 0 at the end for leaves."""
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
    """Returns for each feature True if it is more than 31 elements of its type behind the start of x, which short load
    instructions do not reach."""
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
    """Returns the counts that every layout has beside its trees: for scores, outputs, and parts that are combined."""
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
    """Returns the counts for the stack: one, and the bytes of the arrays of scores and of slots."""
    forest = inputs.forest
    arrays = forest.n_scores + (0 if forest.single else forest.n_outputs)
    stack = {"one": 1.0, "output_bytes": float(arrays * size_of(score_type(forest)))}
    filled = {} if slots is None else {"slot_bytes": slot_amounts(inputs, slots)["slot"] * slot_bytes(slots, forest)}
    return stack | filled
