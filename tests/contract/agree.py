"""The contract itself: a forest's leaves, scores and decisions are its library's."""

from __future__ import annotations

import numpy as np
from contract.kind import Rows, Trained, hard_rows, ulps_between

from forestc import load
from forestc.algorithms.walk import leaves_reached
from forestc.forest.evaluate import leaf_nodes
from forestc.forest.ir import Forest
from forestc.passes.quick_evaluation import concatenated_trees
from forestc.rows.encode import encode, evaluate


def _apart(ours: Rows, theirs: Rows) -> float:
    """The most units in the last place between two arrays, of the narrower float type: what a library adds in float64
    and shows as float32 must round to exactly that."""
    narrow = np.float32 if np.float32 in (ours.dtype, theirs.dtype) else np.float64
    with np.errstate(over="ignore"):
        return float(ulps_between(ours.astype(narrow), theirs.astype(narrow)).max())


def assert_agrees(model: Trained, count: int, seed: int = 0) -> Forest:
    """Compares on `count` hard rows and gives the forest back."""
    forest = load(model.source)
    rows = hard_rows(forest, model, count, seed)
    found = evaluate(forest, rows)
    words = encode(forest, rows)
    walked = leaves_reached(concatenated_trees(forest), words)
    for index, tree in enumerate(forest.trees):
        assert np.array_equal(walked[:, index], leaf_nodes(forest, tree, words)), f"tree {index} by compiled code"
    if model.leaves is not None:
        assert np.array_equal(found.leaves, model.leaves(rows).reshape(count, -1))
    if model.scores is not None:
        scores = np.asarray(model.scores(rows)).reshape(count, -1)
        assert found.scores.shape == scores.shape
        assert _apart(found.scores, scores) <= model.ulps
    if model.values is not None:
        assert _apart(found.values, np.asarray(model.values(rows)).reshape(count, -1)) <= model.value_ulps
    decision = np.asarray(model.decision(rows))
    assert decision.size == found.decision.size
    decision = decision.reshape(found.decision.shape)
    if any(part.classes for part in forest.targets):
        assert np.array_equal(found.decision, decision)
    else:
        assert _apart(found.decision, decision) <= model.value_ulps
    return forest
