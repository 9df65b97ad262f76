"""What a search says before it begins: of rows that leak, of rungs, devices and labels that can't be."""

from __future__ import annotations

from pathlib import Path

import exploration_trainers
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from forestc.commands.explore import COMMANDS, command_of, explore, notes_of, stored_arguments
from forestc.errors import ForestcError, OptionError, RowsError
from forestc.exploration.candidate import Bench
from forestc.exploration.goals import goals_of, limits_of
from forestc.exploration.material import material_of
from forestc.exploration.request import ExploreRequest
from forestc.exploration.study import Trial, write_request
from forestc.forest.text import print_forest
from forestc.frontends import load
from forestc.passes.scorer import row_errors
from forestc.rows.training_rows import read_table


@pytest.mark.parametrize("order", [1, -1])
def test_test_rows_that_a_trainer_sees_are_counted_by_all_columns(tmp_path, order):
    """Also where the first small model reads few of the columns, and where the test file has another order."""
    train, test = exploration_trainers.rows()
    train.to_csv(tmp_path / "train.csv", index=False)
    mixed = pd.concat([test.iloc[:40], train.iloc[:7]])
    mixed[mixed.columns[::order]].to_csv(tmp_path / "test.csv", index=False)
    asked = ExploreRequest(
        goals=goals_of(None, "xcup", None), train=("lightgbm",), rows=tmp_path / "train.csv", label="target",
        test=tmp_path / "test.csv", device="xcup",
    )  # fmt: skip
    (note,) = notes_of(material_of(asked, Path("study")))
    assert note.startswith("7 of 47 test rows are also among the rows given")


@pytest.mark.parametrize("values", [["a", "b", ""], [1.0, None, 0.0]])
def test_a_missing_label_is_named_by_its_row(tmp_path, values):
    train, _ = exploration_trainers.rows()
    train["target"] = (values * 50)[: len(train)]
    train.to_csv(tmp_path / "train.csv", index=False)
    with pytest.raises(RowsError, match=f"row {values.index('') if '' in values else 1}: a label is missing"):
        read_table(tmp_path / "train.csv", "target")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "nothing says what to build for"),
        ({"device": "xcup", "limits": ["fmax>=150"]}, "nothing here tells the clock rate on xcup; limit or "
         "minimize latency instead, .*; or give a device whose clock rate is known: ice40-hx8k, "),
        ({"device": "xcup", "rungs": "placd"}, "unknown rung 'placd'; known: estimate, synthesis"),
        ({"device": "xcup", "rungs": "measured"}, "no goal or limit has figures of the rung 'measured'; known: est"),
    ],
)  # fmt: skip
def test_what_can_not_be_asked_for_is_refused_with_what_can_be(tmp_path, given, said):
    with pytest.raises(OptionError, match=said):
        explore(None, "train.csv", tmp_path / "study", train="xgboost", label="target", **given)
    assert not (tmp_path / "study").exists()


def test_a_study_of_a_python_function_is_not_resumed_by_its_folder_alone(tmp_path):
    asked = {"rows": "train.csv", "train": None, "model": None, "top": "estimate"}
    write_request(tmp_path, goals_of(None, "xcup", None), (), asked)
    with pytest.raises(ForestcError, match=r"was asked for with Python objects.*.*.*resume it from Python"):
        stored_arguments(tmp_path)


def test_classes_that_the_model_numbers_are_named(tmp_path):
    train, _ = exploration_trainers.rows()
    model = DecisionTreeClassifier(max_depth=2).fit(train.drop(columns="target").to_numpy(), train["target"])
    (tmp_path / "model.forest").write_text(print_forest(load(model)))
    train["target"] = train["target"].map({0: "bad", 1: "good"})
    train.to_csv(tmp_path / "train.csv", index=False)
    given = {"model": tmp_path / "model.forest", "rows": tmp_path / "train.csv", "label": "target", "device": "xcup"}
    with pytest.raises(RowsError, match=r"no label is a class of the model: .*explore with classes= to rename them"):
        material_of(ExploreRequest(goals=goals_of(None, "xcup", None), **given), tmp_path)
    material = material_of(
        ExploreRequest(goals=goals_of(None, "xcup", None), classes=("bad", "good"), **given), tmp_path
    )
    assert [note[:21] for note in material.notes][-1:] == ["candidates are scored"]
    other = ExploreRequest(
        goals=goals_of(None, "xcup", None), classes=("bad", "good"), validation=given["rows"], **given
    )
    assert not any(note.startswith("candidates are scored") for note in material_of(other, tmp_path).notes)
    assert row_errors(material.forest, material.rows(material.folds[0].fit)).accuracy > 0.8
    assert "--classes bad,good" in Bench(material, COMMANDS).command(Trial(0, "complete", {"level": 1}))


def test_the_command_of_a_study_says_what_was_asked(tmp_path):
    """A pickle is opened again only with the flag; a study without proofs is repeated without."""
    asked = ExploreRequest(
        goals=goals_of(None, "xcup", None), limits=limits_of(["lut<=90"], "xcup", None), model="m.joblib", rows="r.csv",
        device="xcup", classes=("no", "yes"), prove=False, trust_pickle=True, iterations="best",
    )  # fmt: skip
    output = command_of(asked, Path("study"))
    for part in (
        "explore m.joblib",
        "--classes no,yes",
        "--limit 'lut<=90'",
        "--no-prove",
        "--trust-pickle",
        "--iterations best",
    ):
        assert part in output


def test_iterations_are_of_a_model():
    goals = goals_of(None, "xcup", None)
    with pytest.raises(OptionError, match="iterations are a model's, and no model is given"):
        ExploreRequest(goals=goals, train=("xgboost",), rows="r.csv", device="xcup", iterations=3)
    asked = ExploreRequest(goals=goals, model="m.json", rows="r.csv", device="xcup", iterations=3)
    with pytest.raises(OptionError, match="the study has another iterations: 4"):
        asked.same({**asked.as_dict(), "iterations": 4}, goals, ())


def test_a_tolerance_is_a_share():
    for given in (2, 1, 0.51, -0.1, True):
        with pytest.raises(OptionError, match=r"use a share up to 0\.5: 0\.01, or 1%, is one point"):
            ExploreRequest(model="m", rows="r", device="xcup", goals=goals_of(None, "xcup", None), tolerance=given)
