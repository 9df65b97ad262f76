"""Tests models trained again on folds of their rows."""

from __future__ import annotations

import weakref
from dataclasses import replace

import numpy as np
import pytest
import xgboost
from models import trained
from sklearn.ensemble import ExtraTreesClassifier, RandomForestRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeClassifier

from forestc import load
from forestc.errors import ForestcError
from forestc.rows.batches import ArrayRows, Batch
from forestc.search import folds as folds_module
from forestc.search.cross_validation import CrossScorer
from forestc.search.folds import folds_of
from forestc.search.levels import SearchTerms, searched
from forestc.search.sizes import Size


def rows_of(kind):
    model, X, y = trained(kind)
    return model, X, ArrayRows(X, np.searchsorted(np.unique(y), y))


def test_no_fold_is_judged_on_rows_that_its_model_was_trained_on():
    model, X, rows = rows_of("forest-binary")
    found = folds_of(model, load(model), rows)
    assert found.how == "models trained again with the same parameters"
    held_out_rows = [np.ascontiguousarray(fold.scorer.held_out.X) for fold in found.folds]
    assert len(found.folds) == 5 and sorted(map(bytes, np.concatenate(held_out_rows))) == sorted(map(bytes, X))
    for fold, held in zip(found.folds, held_out_rows, strict=True):
        seen = {row.tobytes() for row in fold.fit.X}
        assert not seen & {row.tobytes() for row in held} and len(fold.fit.X) == len(X) - len(held)
        assert len(fold.model.trees) == len(load(model).trees) and fold.model.classes == load(model).classes
    # Each class has its share in every fold.
    shares = [fold.scorer.held_out.truth.mean() for fold in found.folds]
    assert max(shares) - min(shares) < 0.02


def test_the_rows_of_all_folds_are_judged_together():
    model, X, rows = rows_of("forest-binary")
    found = folds_of(model, load(model), rows)
    scorer = CrossScorer(found.folds)
    assert len(scorer.baseline.errors) == len(X)
    loss = scorer.loss(scorer.errors([fold.model for fold in found.folds]))
    assert loss.lost == 0 and loss.error == 0 and loss.rows == len(X)
    wrong = sum(float(fold.scorer.baseline.errors.sum()) for fold in found.folds)
    assert loss.accuracy == pytest.approx(1 - wrong / len(X))


def test_searches_and_regressions():
    _, X, rows = rows_of("forest-binary")
    search = GridSearchCV(ExtraTreesClassifier(5, random_state=0), {"max_depth": [3, 4]}, cv=2).fit(X, rows.truth)
    assert folds_of(search, load(search), rows).how.startswith("models trained again")
    _, X, y = trained("forest-regression")
    regressor = RandomForestRegressor(4, max_depth=3, random_state=0).fit(X, y)
    found = folds_of(regressor, load(regressor), ArrayRows(X, y))
    assert 0 < CrossScorer(found.folds).baseline.accuracy < 1


def test_a_booster_and_a_forest_hold_trees_alone(tmp_path):
    _, X, rows = rows_of("forest-binary")
    booster = xgboost.train({"objective": "binary:logistic"}, xgboost.DMatrix(X, label=rows.truth), 2)
    booster.save_model(tmp_path / "m.json")
    for model in (booster, load(booster), tmp_path / "m.json"):
        with pytest.raises(ForestcError, match=r"a model of trees alone.* can't be trained again.*held_out=FILE"):
            folds_of(model, load(booster), rows)


def test_without_labels_what_counts_is_agreement_with_the_model():
    model, X, _ = rows_of("forest-binary")
    found = folds_of(model, load(model), ArrayRows(X))
    assert CrossScorer(found.folds).baseline.measure == "agreement with the model"


def test_a_class_of_a_single_row_is_refused():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(60, 2)), np.zeros(60, dtype=int)
    y[:30], y[59] = 1, 2
    model = DecisionTreeClassifier(random_state=0).fit(X, y)
    with pytest.raises(ForestcError, match="too few rows of one class"):
        folds_of(model, load(model), ArrayRows(X, y))


class Streamed:
    """A source of rows 0 to 99 in batches of seven, as from a file. It records the most batches in memory at once."""

    most = 0

    def batches(self):
        alive = weakref.WeakSet()
        for start in range(0, 100, 7):
            numbers = np.arange(start, min(start + 7, 100))
            rows = numbers[:, None].astype(np.float64).view(Held)
            alive.add(rows)
            self.most = max(self.most, len(alive))
            yield Batch(rows, numbers % 3)
            del rows


class Held(np.ndarray):
    """An array that a weak set holds: hashed by its identity."""

    __hash__ = object.__hash__

    def __eq__(self, other):
        return self is other


def test_of_many_rows_every_nth_is_kept_and_no_batch():
    rows = Streamed()
    table = folds_module._Table.of(rows, step=4)
    X, y = table.X, table.y
    assert X[:, 0].tolist() == list(range(0, 100, 4)) and y.tolist() == [n % 3 for n in range(0, 100, 4)]
    assert rows.most <= 2


def test_other_deals_hold_out_every_row_once_and_repeat():
    model, X, rows = rows_of("forest-binary")
    found = folds_of(model, load(model), rows)
    assert found.repeated is not None
    deals = [found.folds, found.repeated(1), found.repeated(2), found.repeated(1)]
    held_out_rows = [[np.ascontiguousarray(fold.scorer.held_out.X) for fold in folds] for folds in deals]
    for folds in held_out_rows:
        assert sorted(map(bytes, np.concatenate(folds))) == sorted(map(bytes, X))
    assert all(np.array_equal(a, b) for a, b in zip(held_out_rows[1], held_out_rows[3], strict=True))
    assert not np.array_equal(held_out_rows[0][0], held_out_rows[1][0]) and not np.array_equal(
        held_out_rows[1][0], held_out_rows[2][0]
    )


@pytest.mark.slow
def test_a_setting_that_is_just_too_much_is_tried_on_further_deals():
    model, X, rows = rows_of("forest-binary")
    source = load(model)
    found = folds_of(model, source, rows)
    size = Size(lambda after: float(after.n_nodes), "nodes", "lut6")
    more = 0
    for tolerance in np.arange(0, 0.06, 0.005):
        alone = searched(2, source, rows, replace(found, repeated=None), size, SearchTerms(tolerance))
        again = searched(2, source, rows, found, size, SearchTerms(tolerance))
        for trial in again.trials:
            assert trial.loss.rows <= 5 * len(X) and trial.good <= trial.loss.within(tolerance)
        more += sum(trial.loss.rows > len(X) for trial in again.trials)
        assert all(trial.loss.rows <= len(X) for trial in alone.trials)
    assert more > 0
