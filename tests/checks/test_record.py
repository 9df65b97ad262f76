"""Tests check.json: the result of the last check, and whether the folder still has the same content."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from models import trained

import forestc
from forestc.cli import main
from forestc.commands.check import check
from forestc.errors import ForestcError


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    model, X, y = trained("xgboost-binary")
    out = tmp_path_factory.mktemp("compiled") / "design"
    forestc.compile(model, X[:400], out, label=y[:400], name="ill", c_layout="branches")
    np.savez(out.parent / "rows.npz", X=X, y=y)
    return out


@pytest.fixture(scope="module")
def checked(compiled, tmp_path_factory):
    """Returns the text of a record."""
    folder = shutil.copytree(compiled, tmp_path_factory.mktemp("checked") / "design")
    shutil.copy(compiled.parent / "rows.npz", folder.parent)
    assert run(folder, engines=["netlist"], random_rows=1).ok
    return (folder / "check.json").read_text()


@pytest.fixture
def folder(compiled, tmp_path):
    shutil.copy(compiled.parent / "rows.npz", tmp_path)
    return shutil.copytree(compiled, tmp_path / "design")


def run(folder, **more):
    rows = folder.parent / "rows.npz"
    return check(folder, rows, label="y", **{"engines": ["netlist", "c"], "random_rows": 100, **more})


def names(folder):
    return {path.name for path in folder.iterdir()}


def test_a_check_is_kept_with_what_it_ran_and_found(folder):
    assert forestc.open_design(folder).last_check() is None
    result = run(folder, seed=3)
    record = json.loads((folder / "check.json").read_text())
    assert abs(datetime.fromisoformat(record["date"]) - datetime.now(UTC)) < timedelta(minutes=10)
    assert record["forestc"] == forestc.__version__
    assert (record["result"], record["problem"], record["proof"], record["changed"]) == ("ok", None, None, [])
    for name, engine in result.engines.items():
        output = record["engines"][name]
        assert (output["differences"], output["vectors"], output["tool"]) == (0, engine.vectors, engine.tool)
    assert record["vectors"] == result.vectors and record["vectors"]["rows"] == 569
    expected = hashlib.sha256((folder.parent / "rows.npz").read_bytes()).hexdigest()
    assert record["rows"] == {"file": "rows.npz", "sha256": expected}
    assert record["agreement"]["compiled"] == result.agreement.compiled
    manifest = json.loads((folder / "manifest.json").read_text())
    assert (record["hash"], record["files"]) == (manifest["hash"], manifest["sha256"]["files"])
    assert str(folder) not in (folder / "check.json").read_text()
    output = forestc.inspect(folder)["compiled"]["last_check"]
    assert (output["result"], output["of_this_content"], output["date"]) == ("ok", True, record["date"])
    assert output["differences"] == {"netlist": 0, "c": 0} and output["agreement"] == result.agreement.agreement
    assert forestc.open_design(folder).changed_files() == () and result.notes == ()


def test_a_proof_without_rows_is_kept(folder):
    result = check(folder, prove=True, engines=["netlist"], random_rows=10)
    record = json.loads((folder / "check.json").read_text())
    assert (record["rows"], record["agreement"]) == (None, None)
    assert record["proof"]["verdict"] == result.proof.verdict == "proved"
    assert [part["name"] for part in record["proof"]["parts"]] == [part.name for part in result.proof.parts]
    assert forestc.open_design(folder).last_check()["proof"] == "proved"


def test_another_content_is_reported(folder, capfd):
    run(folder)
    header = folder / "c/ill.h"
    text = header.read_text()
    header.write_text(text.replace("? 1u : 0u);", "? 2u : 0u);"))
    assert forestc.open_design(folder).last_check()["of_this_content"] is False
    with pytest.raises(SystemExit):
        main(["inspect", str(folder)])
    shown = " ".join(capfd.readouterr().out.replace("│", " ").split())
    assert "of other content" in shown
    assert not run(folder).ok
    output = forestc.open_design(folder).last_check()
    assert (output["result"], output["of_this_content"]) == ("failed", True) and output["differences"]["c"] > 0
    problem = json.loads((folder / "check.json").read_text())["problem"]
    assert "c differs from the quantized forest" in problem
    header.write_text(text)
    assert forestc.open_design(folder).last_check()["of_this_content"] is False
    # The record is of another design.
    run(folder)
    model, X, y = trained("xgboost-binary")
    other = forestc.compile(model, X, folder.parent / "other", label=y, name="ill", latency=1).design
    shutil.copy(folder / "check.json", other.folder)
    assert other.last_check()["of_this_content"] is False


def test_what_changes_while_it_is_checked_is_no_longer_that_content(folder):
    def edit(text):
        if text.startswith("agreement"):
            (folder / "c/ill.h").write_text("/* edited */")

    run(folder, progress=edit)
    assert forestc.open_design(folder).last_check()["of_this_content"] is False


def test_compiling_again_removes_it_and_a_file_of_the_user_s_stays(folder):
    model, X, y = trained("xgboost-binary")
    run(folder)
    (folder / ".check.json.killed").write_text("{")  # A check was killed while it wrote this file.
    forestc.compile(model, X, folder, label=y, name="ill", latency=1)
    assert not {name for name in names(folder) if "check" in name}
    (folder / "check.json").write_text('{"mine": 1}')
    with pytest.raises(ForestcError, match=r"check\.json is damaged \(format is missing\); .*remove it"):
        forestc.open_design(folder).last_check()
    with pytest.raises(ForestcError, match=r"holds 'check\.json', which forestc did not write"):
        forestc.compile(model, X, folder, label=y, name="ill")


def test_it_can_be_left_out(folder):
    before = names(folder)
    assert run(folder, record=False).ok
    assert names(folder) == before


def test_a_folder_that_can_t_be_written_to_gets_a_note(folder, capfd):
    (folder / "check.json").mkdir()
    before = names(folder)
    result = run(folder)
    assert result.ok and names(folder) == before
    assert len(result.notes) == 1 and "check.json was not written" in result.notes[0]
    assert result.figures["notes"] == list(result.notes)
    with pytest.raises(SystemExit) as ended:
        main(["check", str(folder), "--rows", str(folder.parent / "rows.npz"), "--engines", "netlist"])
    assert ended.value.code == 0 and "check.json was not written" in capfd.readouterr().out


@pytest.mark.parametrize("place", ["write", "replace"])
def test_an_interrupted_check_keeps_the_old_record(folder, monkeypatch, place):
    run(folder)
    before, there = (folder / "check.json").read_bytes(), names(folder)

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    # The module's own name is patched, because json.dumps itself is used when the folder is opened.
    if place == "write":
        monkeypatch.setattr("forestc.system.writing.json", SimpleNamespace(dumps=interrupted))
    else:
        monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(folder)
    monkeypatch.undo()
    assert (folder / "check.json").read_bytes() == before and names(folder) == there


@pytest.mark.parametrize(
    ("damage", "field"),
    [
        (lambda output: None, "it is null, not an object"),
        (lambda output: [], r"it is \[\], not an object"),
        (lambda output: output | {"format": 99}, "another version of forestc"),
        (lambda output: output | {"engines": {"c": "x"}}, r"engines\.c is"),
        (lambda output: output | {"engines": [1]}, "engines is"),
        (lambda output: output | {"proof": "verdict"}, "proof is"),
        (lambda output: output | {"rows": 3}, "rows is 3, not an object or null"),
        (lambda output: {key: value for key, value in output.items() if key != "agreement"}, "agreement is missing"),
        (lambda output: output | {"files": None}, "files is null"),
        (lambda output: output | {"date": {"a": 1}}, "date is"),
        (lambda output: output | {"engines": {"netlist": {"differences": "1"}}}, r"engines\.netlist\.differences is"),
        (
            lambda output: output | {"engines": {"netlist": {"differences": 10**400}}},
            r"engines\.netlist\.differences is no finite",
        ),
        (lambda output: output | {"proof": {"verdict": "\ud800", "parts": []}}, "no Unicode"),
        (lambda output: output | {"proof": {"verdict": [], "parts": []}}, r"proof\.verdict is"),
        (lambda output: output | {"proof": {"verdict": "proved", "parts": None}}, r"proof\.parts is null"),
        (lambda output: output | {"proof": {"verdict": "proved", "parts": ["x"]}}, r"proof\.parts\[0\] is"),
        (
            lambda output: (
                output | {"proof": {"verdict": "proved", "parts": [{"name": "ports", "asked": 1, "proved": "1"}]}}
            ),
            r"proof\.parts\[0\]\.proved is",
        ),
    ],
)
def test_a_damaged_record_is_refused_by_file_and_field(folder, checked, damage, field):
    path = folder / "check.json"
    path.write_text(json.dumps(damage(json.loads(checked))))
    with pytest.raises(ForestcError, match=rf"check\.json.*{field}|{field}.*check\.json"):
        forestc.open_design(folder).last_check()
    path.write_text(path.read_text()[:-5])
    with pytest.raises(ForestcError, match=r"check\.json is damaged"):
        forestc.inspect(folder)


def test_a_check_replaces_a_damaged_record(folder):
    (folder / "check.json").write_text("{")
    assert run(folder, engines=["netlist"], random_rows=1).ok and forestc.open_design(folder).last_check()


def test_others_may_read_it_as_far_as_the_mask_lets_them(folder):
    before = os.umask(0o022)
    try:
        run(folder, engines=["netlist"], random_rows=1)
    finally:
        os.umask(before)
    assert (folder / "check.json").stat().st_mode & 0o777 == 0o644
