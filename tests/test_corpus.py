"""Tests benchmarks/corpus.py: folders are the same twice, and changed, new and missing files are found."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

from forestc.backends.verilog import core as verilog

NAMES = ["tree", "hist-categories", "stream-lanes"]


@pytest.fixture(scope="module")
def corpus():
    place = Path(__file__).parents[1] / "benchmarks/corpus.py"
    spec = importlib.util.spec_from_file_location("corpus", place)
    module = sys.modules["corpus"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules["corpus"]


def test_the_same_twice_and_a_planted_change_is_found(corpus, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(corpus, "ProcessPoolExecutor", InThisProcess)
    common = ["--only", ",".join(NAMES)]
    assert corpus.main([*common, "--out", f"{tmp_path}/a.json", "--keep", f"{tmp_path}/kept"]) == 0
    hashes = json.loads((tmp_path / "a.json").read_text())
    assert list(hashes) == NAMES and all(len(files) >= 15 for files in hashes.values())
    assert corpus.main([*common, "--out", f"{tmp_path}/b.json", "--against", f"{tmp_path}/a.json"]) == 0
    assert json.loads((tmp_path / "b.json").read_text()) == hashes

    original = verilog.emit
    planted = lambda netlist: {k: v.replace("<", "<=", 1) for k, v in original(netlist).items()}  # noqa: E731
    monkeypatch.setattr(verilog, "emit", planted)
    common = ["--only", "tree"]
    assert corpus.main([*common, "--out", f"{tmp_path}/c.json", "--against", f"{tmp_path}/a.json"]) == 1
    shown = capsys.readouterr().out
    assert "verilog/corpus.v" in shown and "manifest.json" not in shown and "corpus.h" not in shown
    kept = tmp_path / "kept/tree"
    assert corpus.hashed(kept) == hashes["tree"]


def test_what_varies_is_not_hashed_and_all_else_is(corpus, tmp_path):
    report = "# m\n{}\n\n## how it was made\n\n{}\n"

    def hashes(**changed):
        output = {"format": 1, "made": "now", "sha256": {}, "above": "a", "below": "b", "core": "c"} | changed
        fields = {key: output[key] for key in ("format", "made", "sha256")}
        (tmp_path / "manifest.json").write_text(json.dumps(fields))
        (tmp_path / "report.md").write_text(report.format(output["above"], output["below"]))
        (tmp_path / "m.v").write_text(output["core"])
        return corpus.hashed(tmp_path)

    before = hashes()
    assert hashes(made="later", sha256={"a": 1}, below="another path") == before
    for change, path in (({"format": 2}, "manifest.json"), ({"above": "z"}, "report.md"), ({"core": "z"}, "m.v")):
        assert corpus.differences({"d": before}, {"d": hashes(**change)}) == [("d", path, "differs")]
    (tmp_path / "new").write_text("")
    assert corpus.differences({"d": before}, {"d": hashes()}) == [("d", "new", "added")]
    assert corpus.differences({"d": hashes(), "e": {}}, {"d": before}) == [
        ("d", "new", "removed"),
        ("e", "*", "removed"),
    ]


class InThisProcess:
    """An executor that starts no process."""

    def __init__(self, *_):
        self.map = map

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None
