from __future__ import annotations

import numpy as np
import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from random_forests import random_forest, troublesome_rows, walk

from forestc.errors import RowsError
from forestc.forest.boundary import boundary_inputs
from forestc.forest.evaluate import evaluate_words
from forestc.forest.numbers import word_range
from forestc.rows.encode import encode, evaluate


def decided(part, scores):
    """Decides a part's scores by the definition, written once more."""
    if part.decision.kind == "threshold":
        return int(scores[0] >= part.decision.threshold)
    best = [k for k, score in enumerate(scores) if score == max(scores)]
    return best[-1 if part.decision.ties == "last" else 0]


@settings(deadline=None, max_examples=examples(30))
@given(st.integers(0, 10**6), st.booleans())
def test_evaluator_equals_walking_row_by_row(seed, quantized):
    forest = random_forest(seed, quantized)
    words = encode(forest, troublesome_rows(forest, seed, 40))
    found = evaluate_words(forest, words)
    for row, word in enumerate(words):
        total = forest.bias.astype(found.scores.dtype).copy()
        for index, tree in enumerate(forest.trees):
            node = walk(forest, tree, word)
            assert found.leaves[row, index] == tree.ids[node]
            total[list(tree.outputs)] += tree.values[tree.leaf[node]]
        if not quantized and forest.single and forest.aggregate.divisor != 1.0:
            total = total / len(forest.trees)
        answers = [decided(part, total[part.start : part.stop]) for part in forest.parts]
        if forest.combine.kind == "vote":
            weights = forest.combine.weights or [1] * len(answers)
            pairs = list(zip(answers, weights, strict=True))
            total = [sum(w for k, w in pairs if k == c) for c in range(len(forest.classes))]
        elif not forest.single:
            assert found.index[row].tolist() == answers
        assert np.array_equal(found.scores[row], total)


@settings(deadline=None, max_examples=examples(30))
@given(st.integers(0, 10**6), st.booleans())
def test_boundary_inputs_ask_every_reachable_condition_on_its_threshold(seed, quantized):
    forest = random_forest(seed, quantized, types=None)
    base = encode(forest, troublesome_rows(forest, seed, 20))
    inputs = np.concatenate([*boundary_inputs(forest, base), base[:0]])
    for index, feature in enumerate(forest.features):
        thresholds = forest.conditions.thresholds(index)
        if not len(thresholds):
            continue
        span = word_range(feature.number, feature.missing) if quantized else None
        seen = set(inputs[:, index].tolist())
        for t in thresholds.tolist():
            if span is not None and not span.low <= t <= span.high:
                continue
            assert t in seen
    if quantized:
        for index, feature in enumerate(forest.features):
            span = word_range(feature.number, feature.missing)
            assert ((inputs[:, index] >= span.low) & (inputs[:, index] <= span.top)).all()


def test_rows_that_do_not_fit_are_refused_by_place():
    forest = next(f for f in (random_forest(s, False, "binary") for s in range(99)) if not f.features[0].missing)
    good = np.zeros((3, forest.columns))
    with pytest.raises(RowsError, match=rf"shape \(3, {forest.columns + 1}\)"):
        evaluate(forest, np.zeros((3, forest.columns + 1)))
    with pytest.raises(RowsError, match="not numbers"):
        evaluate(forest, [["a"] * forest.columns])
    good[2, 0] = np.nan
    with pytest.raises(RowsError, match=r"row 2, feature 'feature 0': a value is missing"):
        evaluate(forest, good)


def test_ties_go_to_the_lowest_index():
    forest = random_forest(3, True, "argmax")
    words = encode(forest, troublesome_rows(forest, 0))
    found = evaluate_words(forest, words)
    best = found.scores.max(axis=1, keepdims=True)
    assert np.array_equal(found.index, (found.scores == best).argmax(axis=1))
    assert found.decision.tolist() == [forest.classes[k] for k in found.index]
