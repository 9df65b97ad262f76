"""Tests that folders, studies, engines, images and input models of an earlier forestc open, and answer as they did."""

from __future__ import annotations

import json
import zipfile
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

import forestc
from forestc.engine.folder import open_engine
from forestc.inputs.text import text_hash
from forestc.report.page.notebook import open_study

HERE = Path(__file__).parent
ANSWERS = json.loads((HERE / "answers.json").read_text())
FOLDERS = {"logic": "logic", "ranges": "ranges", "engine": "engine/compiled"}


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kept")
    for path in HERE.glob("*.zip"):
        with zipfile.ZipFile(path) as archive:
            archive.extractall(folder / path.stem)
    return folder


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_opens_and_answers_as_it_did(kept, name):
    design, before = forestc.open_design(kept / FOLDERS[name]), ANSWERS[name]
    evaluated = forestc.evaluate(design.forest, np.array(before["rows"], dtype=float))
    assert evaluated.scores.tolist() == before["scores"] and evaluated.decision.tolist() == before["decision"]
    assert design.manifest["hash"] == before["hash"] and not design.changed_files()
    assert [result.command for result in design.results()] == before["results"]
    last = design.last_check()
    assert (last and last["result"]) == before["verdict"]
    assert last is None or last["of_this_content"]


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_is_inspected_and_checked_as_before(kept, name):
    folder = kept / FOLDERS[name]
    assert forestc.inspect(folder)["compiled"]["folder"] == str(folder)
    rows = None if name == "ranges" else np.array(ANSWERS[name]["rows"])
    engines = ["image"] if name == "engine" else ["netlist"]
    assert forestc.check(folder, rows, engines=engines, random_rows=100, record=False).ok


def test_an_engine_and_its_image_are_as_before(kept):
    before = ANSWERS["engine"]
    assert asdict(open_engine(kept / "engine/engine")) == before["capacity"]
    made = forestc.make_image(kept / "engine/compiled", out=kept / "again.bin", engine=kept / "engine/engine")
    assert made["hash"] == before["image_hash"]
    assert (kept / "again.bin").read_bytes() == (kept / "engine/sugar.bin").read_bytes()


def test_an_input_model_draws_as_before(kept):
    inputs = forestc.read_inputs(HERE / "inputs.bn")
    before = ANSWERS["inputs"]
    assert (inputs.width, text_hash(inputs)) == (before["width"], before["hash"])
    assert repr(inputs.rows(5, 0).tolist()) == before["drawn"]


def test_a_study_opens_with_its_front_and_designs(kept):
    study, before = open_study(kept / "study"), ANSWERS["study"]
    assert [json.loads(json.dumps(trial.row())) for trial in study.trials] == before["trials"]
    assert [trial.number for trial in study.front] == before["front"]
    for number, answers in before["predictions"].items():
        design = forestc.open_design(study.design(study.trials[int(number)]))
        assert design.predict(np.array(before["rows"])).tolist() == answers
