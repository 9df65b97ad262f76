"""Merges forests over the same rows into one, such as for voting, several prediction targets and one-vs-rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.errors import ModelError
from forestc.forest.builder import changed_tree, make_forest
from forestc.forest.conditions import NO_SET, Member
from forestc.forest.ir import LEAF, Combine, Decision, Feature, Forest, Label, Link, Part, Tree
from forestc.forest.numbers import FLOAT32, FLOAT64, Category
from forestc.frontends.shared.fold import largest_unknown


def side_by_side(
    forests: Sequence[Forest],
    where: str,
    combine: Combine | None = None,
    decision: Decision | None = None,
    classes: tuple[Label, ...] = (),
    *,
    link: Link | None = None,
) -> Forest:
    """Merges forests over the same rows into one with all outputs. Raises ModelError if they read rows differently.

    combine: rule that combines the forests as parts; None makes one part.
    """
    columns = forests[0].columns
    for index, forest in enumerate(forests):
        if forest.columns != columns:
            raise ModelError(
                f"takes {forest.columns} columns, the first {columns}",
                where=f"{where}, member {index}",
                do="train all members on the same columns",
            )
        if not forest.single:
            raise ModelError(
                "is made of parts itself",
                where=f"{where}, member {index}",
                do="flatten the ensemble, or calibrate with ensemble=False",
            )
    if any(forest.hashed != forests[0].hashed for forest in forests):
        what = "members with categories that each of them hashes to codes of its own"
        raise ModelError(what, where=where, do="give each member by itself")
    by_column: dict[int, Feature] = {}
    for forest in forests:
        for feature in forest.features:
            before = by_column.setdefault(feature.column, feature)
            by_column[feature.column] = _both(before, feature, where)
    # A forest that refuses missing values in one column also refuses them in unread columns.
    strict = [forest for forest in forests if not all(feature.missing for feature in forest.features)]
    for column in by_column:
        if any(column not in {feature.column for feature in forest.features} for forest in strict):
            by_column[column] = replace(by_column[column], missing=False)
    features = [by_column[column] for column in sorted(by_column)]
    new_index = {feature.column: index for index, feature in enumerate(features)}
    trees: list[Tree] = []
    parts: list[Part] = []
    start = 0
    for forest in forests:
        new_indices = np.array([*(new_index[f.column] for f in forest.features), LEAF], dtype=np.int32)
        targets = [features[new_index[f.column]] for f in forest.features]
        trees += [_member_tree(forest, tree, new_indices, targets, start) for tree in forest.trees]
        parts.append(replace(forest.as_part, start=start, stop=start + forest.n_outputs))
        start += forest.n_outputs
    notes = tuple(dict.fromkeys(note for forest in forests for note in forest.provenance.notes))
    first = forests[0]
    return make_forest(
        where=where,
        name=first.name,
        features=features,
        columns=columns,
        hashed=first.hashed,
        trees=trees,
        n_outputs=start,
        bias=np.concatenate([forest.bias for forest in forests]),
        aggregate=first.aggregate,
        link=link,
        decision=decision,
        classes=classes,
        provenance=replace(first.provenance, notes=notes),
        parts=[] if combine is None else parts,
        combine=combine,
    )


def _both(a: Feature, b: Feature, where: str) -> Feature:
    a = replace(a, missing=a.missing and b.missing, unknown=largest_unknown((a.unknown, b.unknown)))
    if b.named and not a.named:
        a = replace(a, name=b.name, named=True)
    if (a.number, a.raw, a.labels) == (b.number, b.raw, b.labels):
        return a
    if isinstance(a.number, Category) or isinstance(b.number, Category):
        raise ModelError(
            f"column {a.column} is read as {a.number} and as {b.number}",
            where=where,
            do="train all members on the same categories",
        )
    return replace(a, number=FLOAT64, raw=FLOAT64)


def _member_tree(
    forest: Forest, tree: Tree, new_indices: NDArray[np.int32], targets: list[Feature], start: int
) -> Tree:
    pairs = zip(forest.features, targets, strict=True)
    widened = np.array([*(feature.number == FLOAT32 and target.number == FLOAT64 for feature, target in pairs), False])
    takes = np.array([*(target.missing for target in targets), False])
    threshold = tree.threshold
    sets: tuple[tuple[Member, ...], ...] = tree.sets
    if widened.any():
        here = widened[tree.feature] & (tree.left != LEAF)
        threshold = np.where(here, widen(threshold), threshold)
        chosen = set(tree.set_index[here & (tree.set_index != NO_SET)].tolist())
        sets = tuple(
            tuple(widen(np.array(members)).tolist()) if index in chosen else members
            for index, members in enumerate(tree.sets)
        )
    return changed_tree(
        tree,
        feature=new_indices[tree.feature],
        threshold=threshold,
        sets=sets,
        missing_left=tree.missing_left & takes[tree.feature],
        outputs=tuple(output + start for output in tree.outputs),
    )


def widen(thresholds: NDArray[Any]) -> NDArray[np.float64]:
    """Returns float64 thresholds t' such that `x < t'` holds if and only if `float32(x) < t` does, for float32
    thresholds t."""
    with np.errstate(over="ignore"):
        near = np.asarray(thresholds).astype(np.float32)
        below = np.nextafter(near, np.float32(-np.inf)).astype(np.float64)
        top = np.where(np.isposinf(near), 2.0**128, near.astype(np.float64))
        half = np.where(np.isneginf(near), -np.inf, (np.maximum(below, -(2.0**128)) + top) / 2)
        return np.where(half.astype(np.float32) >= near, half, np.nextafter(half, np.inf))
