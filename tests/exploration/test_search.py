"""Whole searches on a small table: what they leave in the folder, and what happens when something dies."""

from __future__ import annotations

import csv
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import exploration_trainers
import pyarrow.parquet as pq
import pytest
from exploration_pool import searches_here

import forestc
from forestc.commands.explore import notes_of, stored_arguments
from forestc.errors import CheckError, ForestcError, OptionError, RowsError, ToolError
from forestc.exploration import candidate
from forestc.exploration.candidate import Bench
from forestc.exploration.choice import choice, unpruned
from forestc.exploration.goals import goals_of
from forestc.exploration.material import material_of
from forestc.exploration.pool import DaskPool
from forestc.exploration.request import ExploreRequest, masked
from forestc.exploration.search import StudySearch
from forestc.exploration.study import Goal, Score, Trial, open_study
from forestc.system.deadline import LateError

TRIALS = 23  # a few more than every search begins with
BASE = {"label": "target", "device": "xcup", "rungs": "estimate", "jobs": 1, "prove": False}


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    folder = tmp_path_factory.mktemp("work")
    train = exploration_trainers.written(folder)
    train.iloc[100:].to_csv(folder / "other.csv", index=False)
    train.drop(columns="target").to_csv(folder / "bare.csv", index=False)
    return folder


def explored(work, out, **asked):
    """Explores the model in one process, by estimates."""
    return forestc.explore(work / "model.forest", work / "train.csv", work / out, **{**BASE, **asked})


def trials_of(study):
    return [(each.number, dict(each.options), each.figures, each.validation) for each in study.trials]


@pytest.fixture
def here(monkeypatch):
    searches_here(monkeypatch)


@pytest.fixture(scope="module")
def done(work):
    """A study of a given model."""
    with pytest.MonkeyPatch.context() as patch:
        searches_here(patch)
        return explored(work, "done", validation=work / "other.csv", test=work / "test.csv", trials=TRIALS, prove=True)


def test_every_point_of_the_front_is_a_checked_folder(done, work):
    assert len(done.complete) == len(done.trials) == TRIALS and done.front
    for trial in done.front:
        assert trial.on_front and trial.has_design and trial.test.rows == 100
        design = forestc.open_design(done.design(trial))
        output = design.last_check()
        assert (output["result"], output["proof"], output["of_this_content"]) == ("ok", "proved", True)
        assert trial.command.startswith("forestc compile model.forest --rows train.csv --held-out other.csv --label")
        assert trial.validation.rows == 50 and 0 < trial.validation.standard_error < 0.1
    first = unpruned(done.trials)  # which the front is compared with
    assert first.options["level"] == 1 and first.test.rows == 100 and (done.design(first) / "check.json").is_file()
    assert not [trial for trial in done.trials if trial.test is not None and not trial.on_front and trial is not first]


def test_the_estimate_is_that_of_the_folder(done):
    for trial in done.front:
        design = forestc.open_design(done.design(trial))
        output = forestc.exploration.candidate.estimate(design.netlist, "xcup")
        assert output["lut"] == trial.figures["estimate"]["lut"]


def test_the_front_is_no_worse_than_the_levels(done):
    levels = {trial.options["level"]: trial for trial in done.trials if "level" in trial.options}
    assert sorted(levels) == [1, 2, 3]  # -O0, the largest, comes behind the ladders
    for level in levels.values():
        lut, accuracy = level.figure("lut"), level.figure("accuracy")
        assert any(one.figure("lut") <= lut and one.figure("accuracy") >= accuracy for one in done.front)


def test_what_is_lost_is_counted_against_the_model(done):
    whole = max(trial.validation.rows for trial in done.complete)
    judged = [trial.validation for trial in done.complete if trial.validation.rows == whole]
    assert len({round(score.value + score.lost, 9) for score in judged}) == 1 and len(judged) > 4
    assert all(score.lost_error >= 0 for score in judged)


def test_tables_hold_what_the_study_does(done):
    rows = list(csv.DictReader((done.folder / "front.csv").read_text().splitlines()))
    assert [int(row["trial"]) for row in rows] == [trial.number for trial in done.front]
    assert "seconds" not in rows[0]
    assert float(rows[0]["accuracy"]) == done.front[0].validation.value
    table = pq.read_table(done.folder / "study.parquet")
    assert table.num_rows == TRIALS and {"lut", "accuracy", "accuracy_se", "option:shrink"} <= set(table.column_names)


def test_a_killed_search_of_two_workers_goes_on_to_the_trials_of_one(done, work, monkeypatch):
    """Also shows that a search gives the same trials on one worker as on two."""
    words = [
        sys.executable, "-m", "forestc", "explore", "model.forest", "--rows", "train.csv", "--validation", "other.csv",
        "--label", "target", "--device", "xcup", "--rungs", "estimate", "--jobs", "2",
        "--trials", str(TRIALS), "--no-prove", "-o", "killed",
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(Path(forestc.__file__).parents[1])}
    search = subprocess.Popen(words, cwd=work, env=environment, stderr=subprocess.DEVNULL)
    while len(list((work / "killed" / "trials").glob("*/trial.json"))) < 8:
        assert search.poll() is None
        time.sleep(0.05)
    search.send_signal(signal.SIGKILL)
    search.wait()
    assert 0 < len(open_study(work / "killed").trials) < TRIALS
    monkeypatch.chdir(work)
    again = forestc.explore(**stored_arguments(work / "killed"), out=work / "killed", resume=True)
    assert trials_of(again) == trials_of(done)
    assert [trial.number for trial in again.front] == [trial.number for trial in done.front]


@pytest.mark.long
def test_a_worker_that_dies_loses_its_trial_alone(work):
    study = forestc.explore(
        None, work / "train.csv", work / "dying", train=exploration_trainers.fit_or_fail, trials=4, trial_seconds=8.0,
        **{**BASE, "jobs": 2},
    )  # fmt: skip
    output = {trial.number: trial.reason for trial in study.trials if trial.state == "failed"}
    assert output == {
        1: "its process ended with signal SIGKILL",
        2: "ValueError: no such depth",
        3: "it took more than 8 s",
    }
    assert len(study.complete) == 1
    assert all(trial.options["depth"] in (1, 2, 3, 4) for trial in study.complete)
    assert (study.folder / "trials" / "0000" / "model.forest").exists()


def test_a_design_that_fails_its_check_leaves_the_front(work, here, monkeypatch):
    wrong = []

    def fails_first(bench, job, clock):
        wrong.append(job.trial)
        if job.trial.number == wrong[0].number:
            raise CheckError("differs", where="row 3", do="report it")
        return Bench.finished(bench, job, clock)

    monkeypatch.setitem(candidate._STAGES, "finish", fails_first)
    study = explored(work, "wrong_check", validation=work / "other.csv", trials=6)
    failed = study.trials[wrong[0].number]
    assert (failed.state, failed.reason, failed.on_front) == ("failed", "finish: row 3: differs; report it", False)
    assert failed.figures == wrong[0].figures  # what lower rungs measured stays
    assert study.front and all(trial.has_design for trial in study.front)


def test_limits_that_nothing_keeps_are_named_with_the_nearest(work, here):
    with pytest.raises(ForestcError, match=r"no design keeps the limit lut<=-1: the nearest is \d+"):
        explored(work, "none", trials=2, limits=["lut<=-1"])
    study = open_study(work / "none")
    assert len(study.trials) == 2 and "each in turn" in study.asked["validation"]


@pytest.mark.parametrize(
    ("change", "kind", "says"),
    [
        ({"resume": True, "out": "done", "goals": "ff,accuracy"}, OptionError, "the study has other goals"),
        ({"resume": True, "out": "done", "seed": 5}, OptionError, "the study has another seed: 0"),
        ({"resume": True, "out": "done", "rows": "other.csv"}, OptionError, "the study was scored on other rows"),
        ({"resume": True, "out": "done", "storage": "x://u:***@h/n"}, OptionError, "the storage's password"),
        ({"out": "done"}, ForestcError, "holds a study"),
        ({"resume": True, "out": "."}, ForestcError, "has no readable study.json"),
        ({"storage": "nosuch://host/name"}, ForestcError, "the storage can't be opened"),
        ({"model": None, "train": "xgbost"}, OptionError, "unknown trainer 'xgbost'"),
        ({"model": None}, OptionError, "a model or a trainer is needed"),
        ({"rows": "one.csv"}, RowsError, "one class"),
        ({"rows": "one.csv", "model": None, "train": "xgboost"}, RowsError, "one class"),
        ({"trials": 0}, OptionError, "trials=0"),
        ({"scheduler": "tcp://127.0.0.1:1"}, ForestcError, "no Dask scheduler answers"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_left(change, kind, says, work, done, monkeypatch):
    monkeypatch.chdir(work)
    train, _ = exploration_trainers.rows()
    train[train["target"] == 1].to_csv("one.csv", index=False)
    asked = {"model": work / "model.forest", "rows": work / "train.csv", "out": "wrong", **BASE, **change}
    with pytest.raises(kind) as caught:
        forestc.explore(**asked)
    assert says in str(caught.value)
    assert not (work / "wrong" / "trials").exists()


def test_test_rows_among_the_rows_are_warned_of(work):
    def stop(line):
        if "test rows" in line:
            raise InterruptedError(line)

    with pytest.raises(InterruptedError, match=r"^150 of 150 test rows are also among the rows given"):
        explored(work, "leak", test=work / "train.csv", progress=stop)


def test_rows_that_candidates_are_made_of_and_judged_on_are_reported(work):
    material = material_of(
        ExploreRequest(
            work / "model.forest", work / "train.csv", goals=goals_of(None, "xcup", None), label="target",
            validation=work / "train.csv", device="xcup",
        ),
        work,
    )  # fmt: skip
    assert notes_of(material)[1:] == ["150 of 150 validation rows are also among the rows given: accuracy is flattered"]
    bare = material_of(replace(material.request, label=None, rows=work / "bare.csv", validation=None), work)
    assert any("accuracy is how often a design answers as the model does" in note for note in notes_of(bare))


def test_a_shared_storage_tells_studies_by_their_folders(work, here, tmp_path):
    asked = {"storage": f"sqlite:///{tmp_path}/shared.db", "trials": 2, **BASE}
    forestc.explore(work / "model.forest", work / "train.csv", tmp_path / "one", **asked)
    with pytest.raises(ForestcError, match=r"has a study named one; .*name the folder otherwise"):
        forestc.explore(work / "model.forest", work / "train.csv", tmp_path / "other" / "one", **asked)
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    with pytest.raises(ForestcError, match="has no study named two"):
        forestc.explore(work / "model.forest", work / "train.csv", tmp_path / "two", resume=True, **asked)
    assert masked("postgresql+psycopg2://me:secret@host:1/name") == "postgresql+psycopg2://me:***@host:1/name"
    assert masked(asked["storage"]) == asked["storage"]


@pytest.mark.parametrize("train", ["xgboost", "lightgbm"])
def test_columns_of_any_name_reach_the_designs(work, here, tmp_path, train):
    table, _ = exploration_trainers.rows()
    table.columns = ["od280/od315 of [wine]", *table.columns[1:]]
    table.to_csv(tmp_path / "train.csv", index=False)
    study = forestc.explore(rows=tmp_path / "train.csv", out=tmp_path / "study", train=train, trials=1, **BASE)
    assert study.front and all(trial.has_design for trial in study.front)


@pytest.mark.long
def test_trainers_are_searched_and_cross_validated(work):
    study = forestc.explore(
        None, work / "train.csv", work / "trained", train="lightgbm,extra-trees", trials=6, test=work / "test.csv",
        storage=f"sqlite:///{work}/study.db", **BASE,
    )  # fmt: skip
    assert len(study.complete) == 6 and {trial.options["train"] for trial in study.trials} <= {
        "lightgbm",
        "extra-trees",
    }
    assert all(trial.command.startswith("forestc compile model.forest") for trial in study.front)
    assert "trained on all rows" in study.asked["validation"]


@pytest.mark.long
def test_firmware_is_measured_in_an_emulator(work):
    study = forestc.explore(
        work / "model.forest", work / "train.csv", work / "firmware", label="target", cpu="cortex-m0plus", jobs=2,
        goals="flash,accuracy", limits=["instructions<=2000"], trials=6,
    )  # fmt: skip
    assert all(trial.rung() == "measured" for trial in study.front)
    assert study.asked["corrections"]["flash"]["designs"] >= len(study.front)


@pytest.mark.long
def test_designs_climb_to_place_and_route(work, need_tool):
    need_tool("yosys")
    study = forestc.explore(
        work / "model.forest", work / "train.csv", work / "placed", label="target", device="ice40-hx8k", jobs=2,
        limits=["fmax>=60"], trials=6, prove=False,
    )  # fmt: skip
    assert all(trial.rung() == "placed" and trial.figure("fmax_mhz") >= 60 for trial in study.front)
    assert all(trial.corrected for trial in study.complete)


@pytest.mark.long
def test_a_cluster_of_which_a_worker_dies_gives_the_same_trials(work, done):
    """The scheduler gives the trial of the worker that died to another one."""
    from distributed import LocalCluster

    with LocalCluster(n_workers=4, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        killed = []

        def kill(line):
            if line.startswith("8 of") and not killed:
                killed.append(cluster.workers[0].pid)
                os.kill(killed[0], signal.SIGKILL)

        asked = {"scheduler": cluster.scheduler_address, "progress": kill, "trials": TRIALS}
        study = explored(work, "cluster", validation=work / "other.csv", **asked)
    assert killed and trials_of(study) == trials_of(done)


def test_a_cluster_that_lost_its_workers_is_no_reason_to_wait_for_ever():
    def none_comes(count, timeout):
        raise TimeoutError

    pool = object.__new__(DaskPool)
    pool._client, pool._jobs = SimpleNamespace(nthreads=dict, wait_for_workers=none_comes), {}
    with pytest.raises(ToolError, match=r"scheduler.*no workers left.*start some, then add resume=True"):
        pool.free()


def test_ctrl_c_writes_the_front_of_what_was_found_and_says_how_to_finish_it(work, here, monkeypatch):
    def stop(line):
        if line.startswith("2 of"):
            raise KeyboardInterrupt

    study = explored(work, "stopped", validation=work / "other.csv", trials=TRIALS, progress=stop)
    assert study.asked["stopped"] and len(study.complete) == 2 and study.front
    lacks, tried = study.asked["unfinished"], len(study.trials)
    assert lacks == {"untried": TRIALS - tried, "begun": tried - 2, "designs": len(study.front)}
    numbers = [row["trial"] for row in csv.DictReader((study.folder / "front.csv").read_text().splitlines())]
    assert numbers == [str(trial.number) for trial in study.front if trial.on_front]
    whole, front = study.asked["finish"]
    assert (whole, front) == (f"forestc explore --resume -o {study.folder}", f"{whole} --trials {tried}")
    monkeypatch.chdir(work)
    again = forestc.explore(**{**stored_arguments(study.folder), "trials": tried}, out=study.folder, resume=True)
    assert len(again.complete) == len(again.trials) == tried and not again.asked["stopped"]
    assert again.front and all(trial.has_design for trial in again.front)
    assert again.asked["unfinished"] is None and again.asked["finish"] == []


@pytest.mark.long
def test_ctrl_c_ends_what_workers_do(work):
    """The trial that is under way when Ctrl-C comes would take a quarter of an hour."""
    program = (
        "import exploration_trainers, forestc\n"
        "if __name__ == '__main__':\n"
        "    study = forestc.explore(None, 'train.csv', 'slow', train=exploration_trainers.fit_or_fail, trials=5,\n"
        "        label='target', device='xcup', rungs='estimate', jobs=1)\n"
        "    print(study.asked['stopped'], [trial.state for trial in study.trials])\n"
    )
    (work / "slow.py").write_text(program)
    paths = os.pathsep.join(map(str, (Path(forestc.__file__).parents[1], Path(exploration_trainers.__file__).parent)))
    search = subprocess.Popen(
        [sys.executable, "slow.py"], cwd=work, env={**os.environ, "PYTHONPATH": paths}, stdout=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    while not (work / "slow" / "trials" / "0003" / "trial.json").exists():
        assert search.poll() is None
        time.sleep(0.05)
    search.send_signal(signal.SIGINT)
    out, _ = search.communicate(timeout=300)
    assert out == "True ['complete', 'failed', 'failed', 'running']\n"
    assert (work / "slow" / "front.csv").exists()


def test_a_search_ends_in_its_time_and_goes_on(work, done, here, monkeypatch):
    """By a clock that jumps once five trials are done."""
    later = [0.0]

    def stop(line):
        later[0] += 1e9 * line.startswith("5 of")

    monkeypatch.setattr(
        "forestc.exploration.search.time", SimpleNamespace(monotonic=lambda: time.monotonic() + later[0])
    )
    asked = {"trials": TRIALS, "seconds": 1e6, "progress": stop, "prove": True}
    study = explored(work, "timed", validation=work / "other.csv", test=work / "test.csv", **asked)
    assert not study.asked["stopped"] and len(study.complete) == 5 and study.front
    assert study.asked["unfinished"]["untried"] + len(study.trials) == TRIALS
    monkeypatch.chdir(work)
    asked = stored_arguments(study.folder)
    assert "seconds" not in asked
    again = forestc.explore(**asked, out=study.folder, resume=True)
    assert trials_of(again) == trials_of(done)


def test_a_study_that_ended_early_recommends_what_was_synthesized_and_shows_the_rest(done):
    """Also where it is larger than every estimate."""
    lut = max(trial.figure("lut") for trial in done.trials) + 1
    synthesized = replace(done.trials[4], figures={**done.trials[4].figures, "synthesis": {"lut": lut}})
    trials = tuple(synthesized if trial.number == 4 else trial for trial in done.trials)
    study = replace(done, trials=trials)
    early = replace(study, asked={**done.asked, "unfinished": {"designs": 1}})
    assert early.front == study.front and synthesized not in study.front
    assert choice(early).taken == synthesized != choice(study).taken
    assert choice(early).unpruned == choice(study).unpruned
    assert choice(replace(done, asked=early.asked)).taken == choice(done).taken


def test_only_designs_near_the_front_of_estimates_are_synthesized(done, work):
    """A design that goes up would be on the front were it a tenth smaller and a standard error more accurate."""
    asked = ExploreRequest(
        work / "model.forest", work / "train.csv", goals=goals_of(None, "xcup", None), label="target", device="xcup",
        validation=work / "other.csv",
    )  # fmt: skip
    search = StudySearch(material_of(asked, done.folder), None, None, str)
    search.trials = {trial.number: trial for trial in done.trials}
    sent, front = search._sent("synthesis", exactly=False, most=len(done.trials)), search.view().front
    assert {trial.number for trial in front} <= {trial.number for trial in sent}
    assert len(sent) < len(done.trials)
    for trial in sent:
        lut, score = 0.9 * trial.figure("lut"), trial.validation
        assert not any(
            other.figure("lut") < lut and other.figure("accuracy") > score.value + score.standard_error
            for other in front
        )


def test_the_recommended_design_is_finished_first_and_again_after_the_climb(tmp_path, monkeypatch):
    """In 100 s, of which a stage takes 10: the climb finds another one and goes on for ever."""
    now = [0.0]
    monkeypatch.setattr("forestc.exploration.search.time", SimpleNamespace(monotonic=lambda: now[0]))
    asked = SimpleNamespace(
        device="ice40-up5k", tolerance=0.01, top="synthesis", climbed=("estimate", "synthesis"), test="t.csv",
        limits=(), goals=(Goal("lut", False), Goal("accuracy", True)), jobs=1,
    )  # fmt: skip
    search = StudySearch.__new__(StudySearch)
    search.request, search.material, search.pool = asked, SimpleNamespace(folder=tmp_path), SimpleNamespace(drop=list)
    search.corrections, search.until, search.late = {}, 100.0, False
    score = Score(0.9, 0.01, 100, lost=0.0, lost_error=0.0)
    luts = {1: 50.0, 2: 60.0, 3: 70.0}
    search.trials = {
        number: Trial(number, "complete", {}, {"estimate": {"lut": lut}}, {"lut": lut}, score)
        for number, lut in luts.items()
    }
    done = []

    def carry_out(stage, trials):
        for trial in trials:
            now[0] += 10
            search._look_at_the_clock()
            done.append((stage, trial.number))
            if stage == "finish":
                search._keep(replace(trial, has_design=True, test=score, seconds={"check": 1.0}))
            else:
                search._keep(replace(trial, figures={**trial.figures, stage: {"lut": 40.0 - trial.number}}))

    def climb():
        carry_out("synthesis", [search.trials[2]])
        while True:
            now[0] += 10
            search._look_at_the_clock()

    search._all, search.climb, search.refit = carry_out, climb, lambda: None
    with suppress(LateError):
        search.finish()
    assert done[:4] == [("synthesis", 1), ("finish", 1), ("synthesis", 2), ("finish", 2)]
    assert search.late and search._finished(search._recommended()) and now[0] <= 100
