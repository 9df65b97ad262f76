"""Reads the chosen members of a pruned ensemble, and its vote threshold, as a forest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.errors import ModelError
from forestc.forest.ir import Combine, Decision, Forest
from forestc.frontends.shared.exact import labels_of
from forestc.frontends.shared.merge import side_by_side
from forestc.frontends.sklearn.meta import as_outer, read_member
from forestc.frontends.sklearn.trees import TREES, finished, read_tree


def voting_forest(
    model: Any,
    members: Sequence[Any],
    columns: Sequence[NDArray[np.int64]] | None,
    encoded: bool,
    threshold: int | None,
) -> Forest:
    """Returns a forest of the members' votes. Raises ModelError.
    model: the estimator that holds the members.
    columns: the columns that each member reads, or None for all.
    encoded: True if members answer with the index of a class.
    threshold: for two classes, the largest number of votes for the second class with which the first class still wins.
    """
    where, classes = type(model).__name__, labels_of(model.classes_)
    decision = Decision("argmax") if threshold is None else Decision("threshold", threshold + 1)
    if all(type(member).__name__ in TREES for member in members):
        outputs = 1 if threshold is not None else len(classes)
        trees = []
        for index, member in enumerate(members):
            own = np.asarray(member.classes_)
            own = own.astype(np.int64) if encoded else np.searchsorted(model.classes_, own)
            best = own[member.tree_.value[:, 0, :].argmax(axis=1)]
            values = np.eye(len(classes))[best][:, -outputs:]
            location = f"{where}, member {index}"
            own_columns = None if columns is None else columns[index]
            trees.append(read_tree(member.tree_, location, range(outputs), values, columns=own_columns))
        return finished(model, where, trees, n_outputs=outputs, decision=decision, classes=classes)
    if columns is not None and any(len(chosen) < model.n_features_in_ for chosen in columns):
        raise ModelError("members other than single trees read some columns only", where=where, do="bag single trees")
    forests = []
    for index, member in enumerate(members):
        forest = read_member(member, f"{where}, member {index}")
        if encoded and len(forest.classes) == len(classes):
            parts = tuple(replace(part, classes=classes) for part in forest.parts)
            forest = replace(forest, classes=classes, parts=parts)
        forests.append(forest)
    return as_outer(side_by_side(forests, where, Combine("vote"), decision, classes), model)
