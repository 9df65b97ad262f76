"""One candidate, in this process."""

from __future__ import annotations

from dataclasses import replace

import exploration_trainers
import pytest
from sklearn.ensemble import RandomForestClassifier

from forestc.commands.explore import COMMANDS
from forestc.errors import OptionError
from forestc.exploration import candidate
from forestc.exploration.candidate import Bench, Job
from forestc.exploration.goals import goals_of
from forestc.exploration.material import material_of
from forestc.exploration.request import ExploreRequest
from forestc.exploration.space import SHRINK, starts
from forestc.exploration.study import Trial


@pytest.fixture(scope="module")
def material(tmp_path_factory):
    """A cross-validated study of a forest of three small trees."""
    train, _ = exploration_trainers.rows()
    X, y = train.drop(columns="target").to_numpy(), train["target"].to_numpy()
    model = RandomForestClassifier(3, max_depth=2, random_state=0).fit(X, y)
    asked = ExploreRequest(model, goals=goals_of(None, "xcup", None), rows=X, label=y, device="xcup")
    return material_of(asked, tmp_path_factory.mktemp("study"))


def run(bench, options):
    return replace(bench.run(Job("estimate", Trial(0, "running", options))), seconds={})


def test_what_trials_have_in_common_runs_once_and_changes_nothing(material, monkeypatch):
    choices = [start for start in starts(material.space) if start.get(SHRINK) == "prune-splits"][:2]
    choices += [{"level": 1}, choices[0]]
    shared = Bench(material, COMMANDS)
    found = [run(shared, options) for options in choices]
    assert found == [run(Bench(material, COMMANDS), options) for options in choices]
    before = dict(shared._cache)
    run(shared, choices[1])
    assert dict(shared._cache).keys() == before.keys()  # nothing ran again
    monkeypatch.setattr(candidate, "CACHED", 1)  # most of it is forgotten at once
    few = Bench(material, COMMANDS)
    assert [run(few, options) for options in choices[:2]] == found[:2]
    assert len(few._cache) <= len(material.folds)


def test_a_level_takes_its_share_of_the_time_and_records_what_it_took(material):
    bench = Bench(material, COMMANDS)
    found = bench.run(Job("estimate", Trial(0, "running", {"level": 3}), seconds=600.0))
    assert bench.keywords(found)["passes"] == found.options["passes"]
    with pytest.raises(OptionError, match=r"-O3 scored nothing in 0 s, its share of the time.*give more.*seconds"):
        Bench(material, COMMANDS).run(Job("estimate", Trial(1, "running", {"level": 3}), seconds=1e-9))
