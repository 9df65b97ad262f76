"""Tests the golden designs, by which stale results in docs/benchmarks are found."""

from __future__ import annotations

import json
from pathlib import Path

import golden
import pytest

ROOT = Path(__file__).parents[1]
RESULTS = sorted((ROOT / "docs" / "benchmarks").glob("*.json"))


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_a_result_says_what_it_measured_and_how(path):
    result = json.loads(path.read_text())
    assert {"title", "command", "measures", "golden"} <= result.keys()
    assert all((ROOT / folder).exists() for folder in result["measures"])
    assert result["golden"].keys() == set(golden.shown_by(result["measures"]))


def test_a_result_is_stale_once_a_design_of_its_folders_is_another(tmp_path, monkeypatch):
    """Uses the engine's design, which is the quickest. Results of other folders are left alone."""
    about = {"measures": ["forestc/engine"]}
    for name, value in [("kept", golden.digest("engine")), ("old", "000000000000")]:
        (tmp_path / f"{name}.json").write_text(json.dumps({**about, "golden": {"engine": value}}))
    monkeypatch.setattr(golden, "RESULTS", tmp_path)
    assert list(golden.stale()) == [("old.json", "engine changed")]


@pytest.mark.parametrize(
    ("name", "holds"),
    [
        ("engine", b"endmodule"),
        ("models read", b"tree"),
        ("C, -O1", b"#include"),
        ("other languages", b"end architecture"),
    ],
)
def test_each_digest_is_of_what_forestc_writes(name, holds, tmp_path):
    made = list(golden.GOLDEN[name].made(tmp_path))
    assert sum(map(len, made)) > 10_000 and any(holds in part for part in made)


def test_folders_are_matched_from_both_sides():
    assert golden.shown_by(["forestc/backends/c/text.py"]) == ["C, -O0", "C, -O1"]
    assert "engine" in golden.shown_by(["forestc/backends"]) and "C, -O1" in golden.shown_by(["forestc/backends"])
    assert golden.shown_by(["forestc/engineering"]) == []
