"""What a layout of C asks of a processor, in counts: the features that flash, stack and instructions are priced by.

Amounts of a row are those of the leaves that it reaches, one of each tree, and of what every row does. So the most that
any row needs is at most the sum, over the trees, of the most expensive leaf.

| of `branches`, `calls` | counts                                                                             |
|-----------------------|-------------------------------------------------------------------------------------|
| split, again          | splits whose condition no earlier tree has; other splits, which GCC may know        |
| test, set             | elementary comparisons of their conditions; those of them that are of sets          |
| wide, high, literal   | comparisons with a constant above 255, above 2047, and above 65535                  |
| signed, distant       | of integers with a sign in less than four bytes; of what is beyond 31 elements of x  |
| raw, absent, double   | comparisons with the bits of a float; whether it is missing; of eight bytes         |
| bytes                 | bytes of the compared words                                                         |
| leaf, equal           | distinct leaves of trees of one output; other leaves that return                    |
| add, add_bytes        | additions to an output by leaves of trees of several outputs, and their bytes       |
| long, long_high, ...  | of leaf and add, those with a value beyond 255, beyond 2047, and beyond 65535       |
| leaf_bytes            | bytes of these values                                                               |
| load                  | splits on a feature that no split above has read                                    |
| flat, written         | of forests without a split, instead of all others: 1, and the scores that are written |
| dense, threaded       | splits for each feature, and times all splits: GCC follows what it knows of few       |
|                       | features from tree to tree, by copies of trees                                      |
| crowded               | splits, in a forest of many splits on up to three features                          |

| feature of `ranked`   | counts                                                                              |
|-----------------------|-------------------------------------------------------------------------------------|
| split                 | splits on ranks                                                                     |
| apart                 | splits on what is not ranked; test, wide, raw and bytes as above, of these alone    |
| leaf, equal, long     | as above, without leaves that add nothing                                           |
| table                 | bytes of the tables                                                                 |
| ranks, rank           | features that are ranked; steps of the searches that rank them                      |
| rank_float, twin      | floats among these; those that have a second slot, for missing values               |
| slot                  | slots that are filled                                                               |
| added, numbered       | additions by leaves of trees of several outputs; as flash, whether there are any    |

| feature of `nodes`    | counts                                                                              |
|-----------------------|-------------------------------------------------------------------------------------|
| table                 | bytes of the tables                                                                 |
| by_index, ...         | splits that a row comes to, by the code; as flash, whether it is this code          |
| far, long             | trees, where there are jumps, and leaves of two bytes                               |
| slot, ranks, rank     | slots that are filled; features that are ranked; steps of the searches; see ranked  |
| low, member           | slots in which a missing value is the lowest; that are filled from a struct         |
| codes                 | comparisons of the sets that have a slot for themselves                             |
| value, rows, bits, pairs | additions, by the kind of leaves; as flash, whether it is this kind              |

| feature of `masks`    | counts                                                                              |
|-----------------------|-------------------------------------------------------------------------------------|
| table                 | bytes of the tables                                                                 |
| slot, ranks, rank     | as above                                                                            |
| fails, entry          | conditions that do not hold; trees whose leaves they clear                          |
| value, rows, bits, pairs | as above                                                                         |

`mixed` has those of branches and of nodes (its `long` as `long_number`), and `tops`, the trees that are branches.

All have `one`, `tree`, `loop` (more trees than one), `output` (scores), `several` (more scores than one), `score_bytes`
and `output_bytes` (of the arrays of scores), and of combined models `each`, `vote`, `average` and `median` (parts, by
how they are combined), `median_pairs` (their square), `level` (steps of the searches in curves) and `curve_bytes`.

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
    """flash, stack: amounts. row: of every row. trees: by index, amounts of the nodes as leaves that a row reaches
    (nodes,), for trees with a split. conditions: amounts of the forest's conditions (conditions,) where they do not
    hold."""

    flash: Amounts
    stack: Amounts
    row: Amounts
    trees: Mapping[int, Arrays]
    conditions: Arrays = field(default_factory=dict)

    @property
    def names(self) -> frozenset[str]:
        """The features of which there is something, in flash or in rows."""
        amounts = [*self.flash.items(), *self.row.items(), *self.stack.items()]
        arrays = [*self.conditions.items(), *(own for tree in self.trees.values() for own in tree.items())]
        return frozenset([name for name, amount in amounts if amount] + [name for name, own in arrays if own.any()])

    def mean(self, forest: Forest) -> Amounts:
        """The amounts of an average row: by the trees' covers, or, without them, as if each split halved its rows."""
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
        """The amounts of each row. leaves: (rows, trees) nodes that rows reach. fails: (rows, conditions) that do not
        hold."""
        total = {name: np.full(len(leaves), amount) for name, amount in self.row.items()}
        for index, amounts in self.trees.items():
            for name, at_node in amounts.items():
                total[name] = total.get(name, 0.0) + at_node[leaves[:, index]]
        return total | {name: fails @ at_node for name, at_node in self.conditions.items()}

    def worst(self, costs: Mapping[str, float]) -> float:
        """The most that any row can cost: in each tree the most expensive path, and all conditions do not hold. costs:
        by feature, not negative."""
        total = sum(costs.get(name, 0.0) * float(amount.sum()) for name, amount in self.conditions.items())
        total += sum(costs.get(name, 0.0) * amount for name, amount in self.row.items())
        for amounts in self.trees.values():
            total += float(np.max(sum(costs.get(name, 0.0) * amount for name, amount in amounts.items()), initial=0.0))
        return total


def reaching(tree: Tree) -> NDArray[np.float64]:
    """(nodes,) The share of rows that end in each node: 0 at splits."""
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
    """(nodes,) The sum of amount (nodes,) over the splits above a leaf; 0 at splits."""
    total = np.zeros(tree.size)
    for level in tree.levels:
        inner = level[tree.left[level] != LEAF]
        for child in (tree.left[inner], tree.right[inner]):
            total[child] = total[inner] + amount[inner]
    return np.where(tree.left == LEAF, total, 0.0)


def failing(forest: Forest) -> NDArray[np.float64]:
    """(conditions,) The share of rows on which each condition does not hold: of those that come to its nodes, by the
    covers; a half where these are not known."""
    right, both = np.zeros(len(forest.conditions)), np.zeros(len(forest.conditions))
    for tree, places in zip(forest.trees, forest.conditions.places, strict=True):
        inner = tree.inner
        cover = np.ones(tree.size) if tree.cover is None else tree.cover
        np.add.at(right, places[inner], cover[tree.right[inner]])
        np.add.at(both, places[inner], cover[tree.left[inner]] + cover[tree.right[inner]])
    return np.where(both > 0, right / np.where(both > 0, both, 1.0), 0.5)


def count_leaves(flash: Amounts, values: NDArray[np.int64], score: int) -> None:
    """Adds what the constants of leaves take. score: bytes of a score."""
    for name, most in (("long", 255), ("long_high", 2047), ("long_literal", 65535)):
        flash[name] = flash.get(name, 0.0) + float((np.abs(values) > most).sum())
    flash["leaf_bytes"] = flash.get("leaf_bytes", 0.0) + score * float((values != 0).sum())


def slot_amounts(inputs: Inputs, slots: Slots) -> Amounts:
    """What it takes to make the slots of a row."""
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
    """The same in flash: ranks are made in a loop, of a struct one after the other."""
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
    """Additions at each leaf of a tree (nodes,), by the kind of leaves."""
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
    """Counts for each condition, and 0 for none at the end: elementary comparisons, by what they compare."""
    forest, many, distant = inputs.forest, len(inputs.forest.conditions), _distant(inputs)
    names = ("test", "set", "wide", "high", "literal", "signed", "distant", "raw", "absent", "double", "bytes")
    counts = {name: np.zeros(many + 1) for name in names}
    for place in range(many):
        condition = forest.conditions[place]
        match condition.test:
            case Below(threshold):
                known: list[Any] = [threshold]
            case OneOf(codes):
                known = [*codes]
            case InSpans(cuts):
                known = [*cuts]
        feature, kind = forest.features[condition.feature], inputs.kind(condition.feature)
        if kind in FLOATS:
            counts["absent"][place] = feature.missing
            counts["raw"][place] = len(known) + feature.missing
        elif condition.missing_left and feature.missing:
            known.append(word_range(feature.number, feature.missing).missing)
        for name, most in (("wide", 255), ("high", 2047), ("literal", 65535)) if kind not in FLOATS else ():
            counts[name][place] = sum(not -1 <= int(value) <= most for value in known)
        size = FLOATS[kind].bits // 8 if kind in FLOATS else size_of(kind)
        tests = len(known) + counts["absent"][place]
        counts["test"][place] = tests
        counts["set"][place] = tests * (not isinstance(condition.test, Below))
        counts["bytes"][place] = tests * size
        counts["double"][place] = tests * (size == 8)
        counts["signed"][place] = tests * (size < 4 and kind.startswith("int"))
        counts["distant"][place] = tests * distant[condition.feature]
    return counts


def _distant(inputs: Inputs) -> list[bool]:
    """By feature, whether it lies beyond 31 elements of its type: what short loads reach."""
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
    """Returns what any layout takes beside its trees: for scores, outputs, and parts that are combined."""
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
    """What the arrays of scores, and of slots, take of the stack."""
    forest = inputs.forest
    arrays = forest.n_scores + (0 if forest.single else forest.n_outputs)
    stack = {"one": 1.0, "output_bytes": float(arrays * size_of(score_type(forest)))}
    filled = {} if slots is None else {"slot_bytes": slot_amounts(inputs, slots)["slot"] * slot_bytes(slots, forest)}
    return stack | filled
