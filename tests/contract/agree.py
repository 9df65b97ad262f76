"""The contract itself: a forest's leaves, scores and decisions are its library's."""

from __future__ import annotations

import numpy as np
from contract.kind import Trained, hard_rows, ulps_between

from forestc import load
from forestc.forest.evaluate import evaluate
from forestc.forest.ir import Forest


def assert_agrees(model: Trained, count: int, seed: int = 0) -> Forest:
    """Compares on `count` hard rows and gives the forest back."""
    forest = load(model.source)
    rows = hard_rows(forest, model, count, seed)
    found = evaluate(forest, rows)
    if model.leaves is not None:
        assert np.array_equal(found.leaves, model.leaves(rows).reshape(count, -1))
    if model.scores is not None:
        scores = np.asarray(model.scores(rows)).reshape(count, -1)
        assert found.scores.shape == scores.shape
        assert ulps_between(found.scores, scores.astype(found.scores.dtype)).max() <= model.ulps
    decision = np.asarray(model.decision(rows))
    assert decision.size == found.decision.size
    decision = decision.reshape(found.decision.shape)
    if any(part.classes for part in forest.targets):
        assert np.array_equal(found.decision, decision)
    else:
        assert ulps_between(found.decision, decision.astype(found.decision.dtype)).max() <= model.value_ulps
    return forest
