"""Tests `forestc explore` as people type it."""

from __future__ import annotations

import json

import exploration_trainers
import pytest
from exploration_pool import searches_here
from sklearn.tree import DecisionTreeClassifier

from forestc.exploration.study import Trial, open_study, write_trial
from forestc.forest.text import print_forest
from forestc.frontends import load
from forestc.manifest.design import open_design


@pytest.fixture(autouse=True)
def here(monkeypatch):
    searches_here(monkeypatch)


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    folder = tmp_path_factory.mktemp("work")
    train, _ = exploration_trainers.rows()
    train.to_csv(folder / "train.csv", index=False)
    tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(
        train.drop(columns="target").to_numpy(), train["target"]
    )
    (folder / "tree.forest").write_text(print_forest(load(tree)))
    return folder


ASKED = "explore tree.forest --rows train.csv --label target --device lut6 --rungs estimate --no-prove --jobs 1"


def test_a_search_and_its_continuation(run, work):
    status, out, err = run(f"{ASKED} --trials 5 --json -o study")
    assert (status, err) == (0, "") and out.count("\n") == 1
    output = json.loads(out)
    assert output["trials"] == {"complete": 5, "failed": 0, "running": 0}
    assert {"trial", "lut", "accuracy", "accuracy_se", "command", "design", "equal_to"} <= set(output["front"][0])
    status, out, err = run("explore --resume -o study --trials 6")
    assert status == 0 and "front of study" in out and "6 trials, 0 failed" in out
    assert "forestc report study -o study.html" in out
    assert "6 of 6 trials" in err  # Without a terminal each progress message is a line.
    status, _, err = run(f"{ASKED} --trials 5 -o study")
    assert status == 1 and "holds a study" in err


def test_the_design_of_any_trial_is_taken(run, work):
    assert run(f"{ASKED} --trials 4 --json -o taken")[0] == 0
    study = open_study(work / "taken")
    there = next(trial for trial in study.trials if trial.has_design)
    other = next(trial for trial in study.trials if not trial.has_design)
    for number in (there.number, other.number):
        status, out, _ = run(f"explore taken --take {number} -o out{number} --json")
        assert status == 0 and json.loads(out)["trial"] == number
        design = open_design(work / f"out{number}")
        assert not design.changed_files() and f"{number}" in json.loads(out)["out"]
    (trial,) = (trial for trial in open_study(work / "taken").trials if trial.number == other.number)
    assert trial.command.startswith("forestc compile tree.forest --rows train.csv")
    assert run(f"explore taken --take {there.number} -o out{there.number}")[0] == 0  # over its own folder again
    for more, says in (
        ("taken --take 99 -o x", "the study has no trial 99"),
        ("taken --take 1", "--take: a study and a folder are needed"),
        ("taken --take 1 -o x --device lut6", "and nothing else"),
        ("taken --take 1 -o .", "which forestc did not write"),
        ("nothing --take 1 -o x", "has no readable study.json"),
    ):
        status, _, err = run(f"explore {more}")
        assert status in (1, 2) and says in err
    write_trial(work / "taken", Trial(7, "failed", reason="no trees"))
    assert "trial 7 failed (no trees)" in run("explore taken --take 7 -o x")[2] and not (work / "x").exists()


@pytest.mark.parametrize(
    ("more", "status", "says"),
    [
        ("--goal lutz,accuracy", 2, "unknown goal 'lutz'"),
        ("--limit lut<5", 2, "can't read the limit"),
        ("--train xgboost", 2, "not both"),
    ],
)
def test_wrong_usage_is_one_line(more, status, says, run, work):
    found, out, err = run(f"{ASKED} {more} -o wrong")
    assert (found, out) == (status, "") and err.count("\n") == 1 and says in err
    assert not (work / "wrong").exists()


def test_a_stopped_search_has_a_status_of_its_own(run, work, monkeypatch):
    def stop(search):
        raise KeyboardInterrupt

    monkeypatch.setattr("forestc.exploration.search.StudySearch.explore", stop)
    status, out, _ = run(f"{ASKED} --trials 5 -o stopped")
    assert status == 130 and "ended early; trials not tried: 5" in out
    assert "to go on with the search: forestc explore --resume -o stopped" in out
