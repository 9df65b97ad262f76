"""One contract for all frontends: the library's own leaves, scores and decisions on rows made to be hard."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from contract.kind import Trained, hard_rows, ulps_between
from contract.kinds import KINDS

from forestc import load
from forestc.forest.evaluate import evaluate
from forestc.forest.text import parse_forest, print_forest

ROWS = 100_000


@cache
def trained(kind: str) -> Trained:
    return KINDS[kind]()


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_leaves_scores_and_decisions_equal_the_library(kind):
    model = trained(kind)
    forest = load(model.source)
    rows = hard_rows(forest, model, ROWS)
    found = evaluate(forest, rows)
    if model.leaves is not None:
        assert np.array_equal(found.leaves, model.leaves(rows).reshape(ROWS, -1))
    if model.scores is not None:
        scores = model.scores(rows).reshape(ROWS, -1)
        assert found.scores.shape == scores.shape
        assert ulps_between(found.scores, scores.astype(found.scores.dtype)).max() <= model.ulps
    decision = np.asarray(model.decision(rows))
    assert decision.size == found.decision.size
    decision = decision.reshape(found.decision.shape)
    if any(part.classes for part in forest.targets):
        assert np.array_equal(found.decision, decision)
    else:
        assert ulps_between(found.decision, decision.astype(found.decision.dtype)).max() <= model.value_ulps


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_the_text_form_brings_it_back(kind):
    forest = load(trained(kind).source)
    assert print_forest(parse_forest(print_forest(forest))) == print_forest(forest)
