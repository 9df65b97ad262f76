"""The forest says what the library says: on rows, on thresholds, and one float32 step beside them."""

from __future__ import annotations

import numpy as np
import pytest
from models import KINDS, rows_near_thresholds, trained

from forestc import load
from forestc.forest.evaluate import evaluate

ROWS = 100_000


def margins(kind, model, rows):
    """The library's own scores, and its own leaf numbers (rows, trees)."""
    if kind.startswith("xgboost"):
        import xgboost

        data = xgboost.DMatrix(rows)
        booster = model.get_booster()
        return booster.predict(data, output_margin=True), booster.predict(data, pred_leaf=True)
    if hasattr(model, "decision_function"):
        return model.decision_function(rows), model.apply(rows)
    return (model.predict_proba if hasattr(model, "classes_") else model.predict)(rows), model.apply(rows)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_scores_decisions_and_leaves_equal_the_library(kind):
    model, X, _ = trained(kind)
    forest = load(model)
    rows = rows_near_thresholds(forest, X, ROWS)
    found = evaluate(forest, rows)
    scores, leaves = margins(kind, model, rows)
    assert np.array_equal(found.leaves, leaves.reshape(ROWS, -1))
    assert np.array_equal(found.scores, scores.reshape(ROWS, -1))
    if forest.classes:
        assert np.array_equal(found.decision, model.predict(rows))
    else:
        # the link of XGBoost's exp objectives is the C library's expf: the last place may differ
        assert np.allclose(found.decision, model.predict(rows), rtol=2e-7, atol=0)
