"""What a layout of C asks of a processor, in counts: the features that flash, stack and instructions are priced by.

Amounts of a row are those of the leaves that it reaches, one of each tree, and of what every row does. So the most that
any row needs is at most the sum, over the trees, of the dearest leaf: the computed worst-case path.

| of `branches`, `calls` | counts                                                                             |
|-----------------------|-------------------------------------------------------------------------------------|
| split, again          | splits whose condition no earlier tree has; other splits, which GCC may know        |
| test                  | elementary comparisons of their conditions                                          |
| wide, raw             | comparisons with a constant above 255; with the bits of a float                     |
| bytes                 | bytes of the compared words                                                         |
| leaf, value           | distinct leaves of trees of one output; other leaves that return                    |
| add, add_bytes        | additions to an output by leaves of trees of several outputs, and their bytes       |
| long                  | of leaf and add, those with a value beyond 255                                      |
| load                  | splits on a feature that no split above has read                                    |
| dense                 | splits for each feature: GCC follows what it knows of few features from tree to tree |

| feature of `nodes`    | counts                                                                              |
|-----------------------|-------------------------------------------------------------------------------------|
| table                 | bytes of the tables                                                                 |
| index, split, wide    | splits that a row comes to, by the code; as flash, whether it is this code          |
| slot, rank            | slots that are filled; steps of the searches that rank raw floats                   |
| value, rows, bits, pairs | additions, by the kind of leaves; as flash, whether it is this kind              |

| feature of `masks`    | counts                                                                              |
|-----------------------|-------------------------------------------------------------------------------------|
| table                 | bytes of the tables                                                                 |
| slot, rank            | as above                                                                            |
| fails, entry          | conditions that do not hold; trees whose leaves they clear                          |
| value, rows, bits, pairs | as above                                                                         |

All have `one`, `tree`, `output` (scores), `output_bytes` (of the arrays of scores), and `part` (of combined models).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.backends.c_types import score_type, size_of, word_type
from forestc.forest.conditions import Below, OneOf, Within
from forestc.forest.ir import LEAF, Forest, Tree
from forestc.layouts.leaves import Leaves
from forestc.layouts.masks import masks_of
from forestc.layouts.nodes import nodes_of
from forestc.layouts.slots import Slots

BRANCHES = ("split", "again", "test", "wide", "raw", "bytes", "load", "leaf", "value", "add", "add_bytes", "long")
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

    def mean(self, forest: Forest) -> Amounts:
        """Of an average row: by the trees' covers, where these are known, else as if each split halved its rows."""
        found = dict(self.row)
        for index, amounts in self.trees.items():
            share = reaching(forest.trees[index])
            for name, own in amounts.items():
                found[name] = found.get(name, 0.0) + float(own @ share)
        if self.conditions:
            fails = failing(forest)
            found |= {name: float(own @ fails) for name, own in self.conditions.items()}
        return found

    def of_rows(self, leaves: NDArray[np.int64], fails: NDArray[np.bool_]) -> dict[str, NDArray[np.float64]]:
        """Of given rows. leaves: (rows, trees) nodes that they reach. fails: (rows, conditions) that do not hold."""
        found = {name: np.full(len(leaves), amount) for name, amount in self.row.items()}
        for index, amounts in self.trees.items():
            for name, own in amounts.items():
                found[name] = found.get(name, 0.0) + own[leaves[:, index]]
        return found | {name: fails @ own for name, own in self.conditions.items()}

    def worst(self, costs: Mapping[str, float]) -> float:
        """The most that any row can cost: in each tree the dearest path, and all conditions do not hold. costs: by
        feature, not negative."""
        total = sum(costs.get(name, 0.0) * float(own.sum()) for name, own in self.conditions.items())
        total += sum(costs.get(name, 0.0) * amount for name, amount in self.row.items())
        for amounts in self.trees.values():
            total += float(np.max(sum(costs.get(name, 0.0) * own for name, own in amounts.items()), initial=0.0))
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


def along(tree: Tree, own: NDArray[np.float64]) -> NDArray[np.float64]:
    """(nodes,) The sum of own (nodes,) over the splits above a leaf; 0 at splits."""
    found = np.zeros(tree.size)
    for level in tree.levels:
        inner = level[tree.left[level] != LEAF]
        for child in (tree.left[inner], tree.right[inner]):
            found[child] = found[inner] + own[inner]
    return np.where(tree.left == LEAF, found, 0.0)


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


def branches(forest: Forest, bits: int | None, struct: bool = False) -> Demand:
    """Of the layouts `branches` and `calls`. bits: of raw floats as inputs, None for words. struct:
    whether inputs are members."""
    tests, wide = _tests(forest)
    word = (bits or 8 * size_of(word_type(forest))) // 8
    flash: Amounts = dict.fromkeys(BRANCHES, 0.0)
    trees: dict[int, Arrays] = {}
    score, known = size_of(score_type(forest)), np.zeros(len(forest.conditions) + 1, dtype=bool)
    for index, tree in enumerate(forest.trees):
        if not len(tree.inner):
            continue
        place, inner = forest.conditions.places[index], tree.left != LEAF
        again = inner & known[place]
        own: Arrays = {"split": (inner & ~again).astype(np.float64), "again": again.astype(np.float64)}
        known[place[inner]] = True
        own["test"] = np.where(inner, tests[place], 0.0)
        own["wide"] = np.where(inner, wide[place], 0.0) if bits is None else np.zeros(tree.size)
        own["raw"] = own["test"] * (bits is not None)
        own["bytes"] = own["test"] * word
        own["load"] = _loads(tree)
        for name, amounts in own.items():
            flash[name] += float(amounts.sum())
        paths = {name: along(tree, amounts) for name, amounts in own.items()}
        if len(tree.outputs) == 1:
            values = tree.values[tree.leaf[~inner], 0]
            distinct = np.unique(values)
            flash["leaf"] += len(distinct)
            flash["value"] += len(values) - len(distinct)
            flash["long"] += float((np.abs(distinct) > 255).sum())
        else:
            adds = np.where(inner, 0, (tree.values != 0).sum(axis=1)[tree.leaf]).astype(np.float64)
            flash["add"] += float(adds.sum())
            flash["add_bytes"] += score * float(adds.sum())
            flash["long"] += float((np.abs(tree.values[tree.leaf[~inner]]) > 255).sum())
            paths |= {"add": adds, "add_bytes": score * adds}
        trees[index] = paths
    common = _common(forest, len(trees))
    used = float(len(forest.features_used()))
    flash["dense"] = (flash["split"] + flash["again"]) / max(1.0, used)
    return Demand({**flash, **common}, _stack(forest) | {"used": used, "tree": common["tree"]}, common, trees)


def _loads(tree: Tree) -> NDArray[np.float64]:
    """(nodes,) 1 at splits on a feature that no split above has read."""
    found, read = np.zeros(tree.size), {0: frozenset[int]()}
    for level in tree.levels:
        for node in level.tolist():
            before = read.pop(node)
            if tree.left[node] == LEAF:
                continue
            feature = int(tree.feature[node])
            found[node] = feature not in before
            read[int(tree.left[node])] = read[int(tree.right[node])] = before | {feature}
    return found


def nodes(forest: Forest, bits: int | None, struct: bool = False) -> Demand:
    """Of the layout `nodes`, with arguments as above. Raises OptionError for a forest that it does not hold."""
    laid = nodes_of(forest, ranked=bits is not None)
    leaves, slots = laid.leaves, laid.slots
    filled = 0 if slots.plain and not struct else len(slots.slots)
    ranks = [slot.cuts for slot in slots.slots if slot.condition is None] if slots.ranked else []
    common = _common(forest, len(leaves.trees))
    row = {
        **common,
        "slot": float(filled),
        "rank": _rank_steps(ranks),
        "far": float(bool(laid.jumps) * len(leaves.trees)),
        "long": float((laid.single < leaves.count + laid.jumps) * len(leaves.trees)),
    }
    trees = {}
    for index in leaves.trees:
        tree = forest.trees[index]
        trees[index] = {laid.code: along(tree, (tree.left != LEAF).astype(np.float64)), **_added(forest, index, leaves)}
    flash = {
        "table": float(laid.bytes),
        laid.code: 1.0,
        leaves.kind: 1.0,
        "far": float(bool(laid.jumps)),
        "long": float(laid.single < leaves.count + laid.jumps),
        "ranked": float(bool(ranks)),
        "slot": float(0 if ranks else filled),
        **{name: amount for name, amount in common.items() if name != "tree"},
    }
    stack = _stack(forest) | {"slot_bytes": float(filled * _slot_bytes(forest, slots))}
    return Demand(flash, stack, row, trees)


def masks(forest: Forest, bits: int | None, struct: bool = False) -> Demand:
    """Of the layout `masks`, with arguments as above. Raises OptionError for a forest that it does not hold."""
    laid = masks_of(forest, ranked=bits is not None)
    leaves, slots = laid.leaves, laid.slots
    filled = 0 if slots.plain and not struct else len(slots.slots)
    ranks = [slot.cuts for slot in slots.slots if slot.condition is None] if slots.ranked else []
    common = _common(forest, len(leaves.trees))
    row = {**common, "slot": float(filled), "ends": float(len(laid.ends)), "rank": _rank_steps(ranks)}
    trees = {index: _added(forest, index, leaves) for index in leaves.trees}
    entries = np.zeros(len(forest.conditions))
    for index in leaves.trees:
        places = forest.conditions.places[index]
        entries[np.unique(places[forest.trees[index].left != LEAF])] += 1
    entries = np.where(slots.slot >= 0, entries, 0.0)
    mask = max(8, laid.width) // 8
    words = 1 if bits is not None else size_of(word_type(forest))
    table = len(laid.thresholds) * words + len(laid.trees) * (1 + (len(laid.reached) > 128) + mask)
    table += laid.reached.size + len(laid.ends) * 4 + leaves.bytes + 4 * sum(map(len, ranks))
    flash = {
        "table": float(table),
        leaves.kind: 1.0,
        "ranked": float(bool(ranks)),
        "slot": float(0 if ranks else filled),
        **{name: amount for name, amount in common.items() if name != "tree"},
    }
    stack = _stack(forest) | {
        "slot_bytes": float(filled * _slot_bytes(forest, slots)),
        "mask_bytes": float(mask * len(leaves.trees)),
    }
    return Demand(flash, stack, row, trees, {"fails": (entries > 0).astype(np.float64), "entry": entries})


def _rank_steps(ranks: Sequence[Sequence[int]]) -> float:
    """Steps of the searches that rank raw floats."""
    return float(sum(math.ceil(math.log2(len(cuts) + 1)) for cuts in ranks))


def _slot_bytes(forest: Forest, slots: Slots) -> int:
    if not slots.ranked:
        return size_of(word_type(forest))
    most = max((len(slot.cuts) for slot in slots.slots), default=1)
    return 1 if most < 256 else 2


def _added(forest: Forest, index: int, leaves: Leaves) -> Arrays:
    """Additions at each leaf of a tree (nodes,), by the kind of leaves."""
    tree = forest.trees[index]
    at_leaf = tree.left == LEAF
    if leaves.kind == "rows":
        each = np.full(tree.size, float(leaves.table.shape[1]))
    elif leaves.kind == "bits":
        lengths = np.array([int(bits).bit_length() for bits in leaves.table[:, 0].tolist()] + [0], dtype=np.float64)
        each = lengths[leaves.number[index]]
    elif leaves.kind == "pairs":
        counts = np.array([max(1, len(own)) for own in leaves.pairs] + [0], dtype=np.float64)
        each = counts[leaves.number[index]]
    else:
        each = np.ones(tree.size)
    return {leaves.kind: np.where(at_leaf, each, 0.0)}


def _tests(forest: Forest) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of each condition, and 0 for none at the end: comparisons, and those with a constant above 255."""
    tests, wide = np.zeros(len(forest.conditions) + 1), np.zeros(len(forest.conditions) + 1)
    for place in range(len(forest.conditions)):
        condition = forest.conditions[place]
        match condition.test:
            case Below(threshold):
                known: tuple[Any, ...] = (threshold,)
            case OneOf(codes):
                known = tuple(codes)
            case Within(cuts):
                known = tuple(cuts)
        tests[place] = len(known) + (condition.missing_left and forest.features[condition.feature].missing)
        wide[place] = sum(not 0 <= int(value) < 256 for value in known)
    return tests, wide


def _common(forest: Forest, trees: int) -> Amounts:
    return {"one": 1.0, "tree": float(trees), "output": float(forest.n_scores), "part": float(len(forest.parts))}


def _stack(forest: Forest) -> Amounts:
    arrays = forest.n_scores + (forest.n_outputs if forest.parts else 0)
    return {"one": 1.0, "output_bytes": float(arrays * size_of(score_type(forest)))}


DEMANDS = {"branches": branches, "calls": branches, "nodes": nodes, "masks": masks}
