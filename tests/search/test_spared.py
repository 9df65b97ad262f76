"""Tests designs of a live estimator that are scored on a third of its rows, groups of rows, and -O3's curve."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMRegressor
from sklearn.datasets import make_classification, make_regression
from sklearn.ensemble import RandomForestClassifier
from xgboost import XGBClassifier

import forestc
from forestc.errors import RowsError
from forestc.exploration.curve import CURVE
from forestc.passes.quick_evaluation import answers_to
from forestc.passes.scorer import RowErrors
from forestc.rows.batches import ArrayRows, RowSelection
from forestc.rows.groups import groups_of
from forestc.search import folds as folds_module
from forestc.search.choice import Differences
from forestc.search.folds import folds_of

ROWS = folds_module.SPARED_ROWS


def easy(rows=ROWS, **more):
    return make_classification(rows, 8, n_informative=5, class_sep=2.0, random_state=0, **more)


def booster(X, y):
    return XGBClassifier(n_estimators=8, max_depth=3, n_jobs=1).fit(X, y)


def test_what_ships_is_made_of_the_copy_that_was_scored(tmp_path):
    X, y = easy()
    done = forestc.compile(booster(X, y), X, tmp_path / "a", label=y, level=2, targets="c")
    level, accuracy = done.figures["level"], done.figures["measured"]
    assert level["judged_on"].startswith("a third of the rows") and level["evidence"]["rows"] == ROWS // 3
    assert level["evidence"]["word"] in ("shown", "measured") and accuracy["held_out"]["rows"] == ROWS // 3
    # The rows that scored: the classes take turns.
    turn = np.empty(len(y), dtype=int)
    turn[np.argsort(y, kind="stable")] = np.arange(len(y)) % 3
    copy = booster(X[turn != 0], y[turn != 0])
    third = turn == 0
    right = (answers_to(done.design.forest, X[third]) == y[third]).mean()
    assert accuracy["held_out"]["compiled"] == pytest.approx(right)
    assert accuracy["held_out"]["model"] == pytest.approx((copy.predict(X[third]) == y[third]).mean())


def test_a_copy_has_the_names_of_the_model(tmp_path):
    X, y = easy()
    names = [f"sensor {letter}" for letter in "abcdefgh"]
    frame = pd.DataFrame(X, columns=names)
    models = booster(frame, y), booster(X, y)  # The second takes its names from the rows.
    for number, model in enumerate(models):
        done = forestc.compile(model, frame, tmp_path / f"{number}", label=y, level=2, targets="c", name="it")
        assert done.figures["level"]["judged_on"].startswith("a third")
        forest = done.design.forest
        assert {feature.name for feature in forest.features} <= set(names) and forest.name == "it"


def test_where_nothing_smaller_is_good_the_model_itself_ships(tmp_path, monkeypatch):
    monkeypatch.setattr(folds_module, "SPARED_LOSS", np.inf)
    X, y = easy()
    model = booster(X, y)
    done = forestc.compile(model, X, tmp_path / "a", label=y, level=2, tolerance=0, targets="c")
    plain = forestc.compile(model, X, tmp_path / "b", label=y, level=1, targets="c")
    assert any("-O2 is -O1 here" in note for note in done.figures["notes"])
    assert (
        done.design.manifest["sha256"]["files"]["quantized.forest"]
        == plain.design.manifest["sha256"]["files"]["quantized.forest"]
    )


@pytest.mark.parametrize("labels", [True, False])
def test_kept_decisions_are_those_of_the_model_on_all_rows(labels, tmp_path):
    X, y = easy()
    model = booster(X, y)
    done = forestc.compile(
        model, X, tmp_path / "a", label=y if labels else None, level=2, keep="decisions", targets="c", name="m"
    )
    assert done.figures["level"]["judged_on"].startswith("cross-validation")
    assert done.figures["measured"]["held_out"] is None and done.agreement.agreement == 1


def test_a_share_is_recorded_where_the_time_is_too_short(tmp_path):
    X, y = easy(900)
    done = forestc.compile(
        booster(X, y), X, tmp_path / "a", label=y, level=2, held_out=0.2, effort="0.001s", targets="c"
    )
    assert any("-O2 is -O1 here" in note for note in done.figures["notes"])
    assert done.design.manifest["made"]["held_out"] == {"share": 0.2, "rows": 180}


def test_a_third_that_teaches_much_is_not_spared():
    X, y = easy()
    rows = ArrayRows(X.astype(np.float64), y)
    model = RandomForestClassifier(10, random_state=0).fit(X, y)
    few = np.random.default_rng(0).integers(0, 300, ROWS)  # Labels that only the rows themselves teach.
    learned = RandomForestClassifier(10, random_state=0).fit(X + few[:, None] * 10.0, few % 2)
    assert folds_of(model, forestc.load(model), rows).lacking is not None
    found = folds_of(
        learned, forestc.load(learned), ArrayRows((X + few[:, None] * 10.0).astype(np.float64), few % 2), 0.001
    )
    assert found.lacking is None and len(found.folds) == 3


def test_without_labels_agreement_is_measured_on_rows_set_aside(tmp_path):
    X, y = easy()
    done = forestc.compile(booster(X, y), X, tmp_path / "a", level=2, targets="c")
    level = done.figures["level"]
    assert level["judged_on"].startswith("agreement with the model on a third")
    assert level["evidence"]["measure"] == "agreement with the model" and level["evidence"]["word"] != "estimated"


def test_a_regression_is_scored_on_the_third_too(tmp_path):
    X, y = make_regression(ROWS, 6, noise=5.0, random_state=0)
    model = LGBMRegressor(n_estimators=20, num_leaves=7, verbosity=-1, n_jobs=1).fit(X, y)
    done = forestc.compile(model, X, tmp_path / "a", label=y, level=2, tolerance=0.05, targets="c")
    assert done.figures["level"]["evidence"]["measure"] == "R squared"


def grouped(count, size, seed=0):
    random = np.random.default_rng(seed)
    groups = random.permutation(np.repeat(np.arange(count), size))
    centres = random.normal(size=(count, 5))
    X = centres[groups] + 0.2 * random.normal(size=(len(groups), 5))
    return X, (centres[:, 0] > 0)[groups].astype(np.int64), groups


def test_groups_are_read_from_columns_and_arrays(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "who": ["x", "y", "x", "z"]})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_parquet(tmp_path / "rows.parquet")
    for rows in (frame, tmp_path / "rows.csv", tmp_path / "rows.parquet"):
        assert groups_of("who", rows).tolist() == [0, 1, 0, 2]
    assert groups_of(np.array([7, 7, 3]), None).tolist() == [0, 0, 1]
    for groups, rows in (("other", frame), ("who", np.zeros((2, 2))), ([1.0, np.nan], None)):
        with pytest.raises(RowsError):
            groups_of(groups, rows)


def test_rows_of_a_group_stay_together():
    X, y, groups = grouped(60, 10)
    numbers = groups_of(groups, None)
    rows = ArrayRows(X, y, size=37)
    parts = [np.concatenate([b.X for b in RowSelection(rows, 4, held, numbers).batches()]) for held in (True, False)]
    sides = [{tuple(row) for row in part} for part in parts]
    assert len(parts[0]) == 150 and len(parts[1]) == 450
    of_group = [{tuple(row) for row in X[groups == group]} for group in range(60)]
    assert all(any(rows_of <= side for side in sides) for rows_of in of_group)
    model = booster(X, y)
    for fold in folds_of(model, forestc.load(model), rows, groups=numbers).folds:
        held_out = {tuple(row) for row in fold.scorer.held_out.X}
        assert all(rows_of <= held_out or not rows_of & held_out for rows_of in of_group)
        assert len(fold.scorer.groups) == len(held_out)


def test_the_error_of_a_loss_is_that_of_the_groups():
    random = np.random.default_rng(0)
    groups = np.repeat(np.arange(50), 6)
    before, after = random.integers(0, 2, 300).astype(float), random.integers(0, 2, (50,))[groups].astype(float)
    baseline = RowErrors(before, np.zeros(300, dtype=np.int64), True, groups=groups)
    sums = np.array([(after - before)[groups == group].sum() for group in range(50)])
    assert baseline.loss(after).error == pytest.approx(sums.std(ddof=1) * np.sqrt(50) / 300)
    assert baseline.loss(after).lost == pytest.approx((after - before).mean())
    assert Differences.of(after, baseline).sums.tolist() == sums.tolist()


def test_groups_widen_the_interval_of_a_search(tmp_path):
    X, y, groups = grouped(100, 8)
    model = booster(X, y)
    held_out = pd.DataFrame(X, columns=list("abcde")).assign(who=groups, y=y)
    rows = held_out.iloc[::2]
    kwargs = {"label": "y", "held_out": held_out, "level": 2, "targets": "c"}
    done = forestc.compile(model, rows, tmp_path / "a", groups="who", **kwargs)
    assert done.design.manifest["made"]["options"]["groups"] == "who"
    with pytest.raises(RowsError, match="5 groups of 400 rows"):
        forestc.compile(model, X[::2], tmp_path / "b", label=y[::2], held_out=(X, y), level=2, groups=groups[:5])


def test_a_curve_is_a_study_whose_commands_make_its_designs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = easy(900)
    frame = pd.DataFrame(X, columns=list("abcdefgh")).assign(y=y)
    frame.iloc[:500].to_csv("rows.csv", index=False)
    frame.iloc[500:].to_csv("other.csv", index=False)
    booster(X[:500], y[:500]).save_model("model.json")
    done = forestc.compile("model.json", "rows.csv", "out", label="y", held_out="other.csv", level=3, targets="verilog")
    study = forestc.open_study(tmp_path / "out" / CURVE)
    taken = next(trial for trial in study.trials if trial.options.get("level") == 3)
    assert taken.options["passes"] == done.figures["level"]["passes"]
    assert len(study.trials) > 2 and all(trial.validation.rows == 400 for trial in study.trials)
    small = study.front[0]
    assert small.validation.lost > 0.01  # beyond the tolerance
    words = small.command.split("--passes ")[1].split(" -o")[0].strip("'\"").split("' ")[0]
    again = forestc.compile(
        "model.json", "rows.csv", "again", label="y", held_out="other.csv", passes=words, targets="verilog"
    )
    assert small.figures["estimate"]["lut"] == next(
        each["lut"] for each in again.figures["estimate"] if each["device"] == "xcup"
    )
    assert again.figures["measured"]["held_out"]["compiled"] == pytest.approx(small.validation.value)
    forestc.compile("model.json", "rows.csv", "out", label="y", level=1, targets="verilog")  # replaces all of it
    assert not (tmp_path / "out" / CURVE).exists()
