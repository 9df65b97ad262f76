"""Tests that every script of benchmarks runs on its smallest input, and that each row of a result tells its origin."""

from __future__ import annotations

import csv
import gzip
import importlib
import json
import re
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import figures
import ledger
import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "benchmarks"
OWN_TESTS = ("golden", "figures")
# A module without a `main` is part of other scripts.
SCRIPTS = sorted(
    path.stem
    for path in FOLDER.glob("*.py")
    if "\ndef main(" in path.read_text(encoding="utf-8") and path.stem not in OWN_TESTS
)
SLOW = (
    "estimates",  # It synthesizes for all families.
    "bitstreams",  # It places and routes.
    "trigger",  # It places and routes.
    "board_check",  # It builds two boards in Verilator; tests/boards do the same on fewer vectors.
    "levels",
)
NUMBERS = ("transfusion", "parkinsons", "pima", "bmf_zoo", "breast_w")  # lists the tables that --small reads
NEEDS = {
    "bitstreams": "icebox_vlog",
    "exactness": "iverilog",
    "shipped_models": "arm-none-eabi-gcc",
    "streams": "iverilog",
}
KEYS = ("title", "seal", "command", "golden", "rows")
ORIGIN = {"commit", "date", "inputs", "tools", "made", "s"}
DERIVED = {
    "exponents_in_nodes",
    "from_c",
    "from_python",
    "ranks",
    "steady",
    "summary",
    "summary_of_live",
    "won",
}  # follows from the rows of the same file
COMMIT = re.compile(r"[0-9a-f]{40}(-dirty)?|unknown")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Writes tables of a few dozen rows: bits, or numbers, and last a label of two classes."""
    folder = tmp_path_factory.mktemp("data")
    for name in NUMBERS:
        random = np.random.default_rng(0)
        X = random.integers(0, 2 if name == "bmf_zoo" else 9, (60, 6))
        with gzip.open(folder / f"{name}.csv.gz", "wt", newline="") as file:
            csv.writer(file).writerows([["a"] * 7, *np.column_stack([X, (X[:, 0] + X[:, 1] > X[:, 2]).astype(int)])])
    return folder


@pytest.fixture(scope="module")
def peers(tmp_path_factory):
    """Writes a shared model and its rows."""
    xgboost = importlib.import_module("xgboost")
    folder = tmp_path_factory.mktemp("peers")
    X, y = load_breast_cancer(return_X_y=True)
    X = np.clip(np.rint(X[:, :4]), 0, 255)
    own = {"n_estimators": 2, "max_depth": 2}
    model = xgboost.XGBClassifier(**own, base_score=0.5, tree_method="exact", n_jobs=1).fit(X[:60], y[:60])
    model.get_booster().save_model(folder / "bc.json")
    (folder / "bc.meta.json").write_text(json.dumps({"hp": own}))
    np.savez(folder / "bc.npz", X_train=X[:60], y_train=y[:60], X_test=X[60:80], y_test=y[60:80])
    return folder


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.long] * (n in SLOW)) for n in SCRIPTS])
def test_a_script_runs_and_says_what_it_measured(name, data, peers, tmp_path, monkeypatch, capsys, need_tool):
    if name in NEEDS:
        need_tool(NEEDS[name])
    text, output = (FOLDER / f"{name}.py").read_text(encoding="utf-8"), tmp_path / f"{name}.json"
    result = "Ledger(" in text
    given = ["--small", *(["--json", str(output)] if result else [])]
    for option, folder in (("data", data), ("peers", peers)):
        if re.search(rf'arguments\(__doc__.*"{option}!"', text):
            given += [f"--{option}", str(folder)]
    monkeypatch.setattr(sys, "argv", [str(FOLDER / f"{name}.py"), *given])
    monkeypatch.syspath_prepend(str(FOLDER))
    main = importlib.import_module(name).main
    status = main()
    assert not status and capsys.readouterr().out
    if not result:
        return
    made = json.loads(output.read_text())
    assert tuple(made)[:5] == KEYS and made["rows"] and all(made["rows"])
    assert made["command"].startswith(f"benchmarks/{name}.py --small") and str(tmp_path.parent) not in made["command"]
    for origin in origins(made):
        assert origin.keys() == {"source"} or (origin.keys() == ORIGIN and COMMIT.fullmatch(origin["commit"]))


def origins(result):
    """Returns the origins of all rows that do not follow from others."""
    parts = [rows for name, rows in result.items() if name not in DERIVED and isinstance(rows, list)]
    return [row["origin"] for rows in parts for row in rows if isinstance(row, dict)]


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "benchmarks").glob("*.json")), ids=lambda path: path.stem)
def test_each_row_of_a_result_names_the_commit_that_measured_it(path):
    result = json.loads(path.read_text(encoding="utf-8"))
    found, git = origins(result), ["git", "-C", str(ROOT)]
    assert found and not {"commit", "date"} & result.keys()
    told = subprocess.run([*git, "rev-parse", "--is-shallow-repository"], capture_output=True, text=True, check=False)
    if told.stdout.strip() != "false":
        pytest.skip("the history of the repository is not here")
    for origin in found:
        assert origin.get("source") or origin.keys() == ORIGIN
    for commit in {origin["commit"] for origin in found if "source" not in origin}:
        subprocess.run([*git, "cat-file", "-e", f"{commit}^{{commit}}"], check=True)


class Toy:
    """A benchmark of two cases, whose code makes `made` of each. measured: lists the cases that it measured."""

    def __init__(self, monkeypatch, path):
        self.patch, self.json = monkeypatch, path
        self.made, self.rows, self.measured = {"a": "logic", "b": "logic"}, np.zeros(3), []
        monkeypatch.setattr(sys, "argv", [str(FOLDER / "tools.py")])

    def measure(self, case):
        yield self.rows, self.made[case["case"]]
        self.measured.append(case["case"])
        yield {"LUTs": len(self.measured)}

    def run(self, commit, only=""):
        """Measures at a commit; returns the commits of the rows, by case."""
        self.patch.setattr(ledger, "_commit", lambda: {"commit": commit, "date": commit})
        self.patch.setitem(sys.modules, "golden", Namespace(digests=lambda name: {"a case": commit}))
        rows = ledger.Ledger("toy", Namespace(json=self.json, small=False, only=only))
        for name in self.made:
            if only in name:
                rows.fill([{"case": name}], self.measure)
            else:
                rows.keep({"case": name})
        rows.quote({"case": "peer"}, {"LUTs": 9}, "its page")
        rows.show(total=sum(row["LUTs"] for row in rows.rows))
        written = json.loads(self.json.read_text())
        assert not {"commit", "date"} & written.keys()
        self.golden = written["golden"]
        return {row["case"]: row["origin"].get("commit") for row in written["rows"]}


def test_a_row_is_measured_again_once_its_code_makes_another_thing_of_it(monkeypatch, tmp_path):
    toy = Toy(monkeypatch, tmp_path / "toy.json")
    assert toy.run("1") == {"a": "1", "b": "1", "peer": None} and toy.measured == ["a", "b"]
    assert toy.run("2") == {"a": "1", "b": "1", "peer": None} and toy.measured == ["a", "b"]
    toy.made["b"] = "other logic"
    assert toy.run("3") == {"a": "1", "b": "3", "peer": None} and toy.measured == ["a", "b", "b"]
    toy.made["a"] = toy.made["b"] = "new logic"
    assert toy.golden == {"a case": "3"}
    assert toy.run("4", only="a") == {"a": "4", "b": "3", "peer": None} and toy.golden == {"a case": "3"}
    monkeypatch.setattr(ledger, "_machine", lambda: "another machine")
    assert toy.run("5") == {"a": "5", "b": "5", "peer": None}
    toy.rows = np.ones(3)
    assert toy.run("6") == {"a": "6", "b": "6", "peer": None}
    del toy.made["b"]
    assert toy.run("7") == {"a": "6", "peer": None}


def test_a_speed_is_measured_again_once_the_sources_change(monkeypatch, tmp_path):
    toy = Toy(monkeypatch, tmp_path / "toy.json")
    toy.made = {"a": None}
    assert toy.run("1") == toy.run("2") == {"a": "1", "peer": None}
    monkeypatch.setattr(ledger, "sources", lambda: "other sources")
    assert toy.run("3") == {"a": "3", "peer": None} and toy.measured == ["a", "a"]


def test_an_array_a_file_or_a_folder_that_differs_has_another_digest(tmp_path):
    (tmp_path / "core.v").write_text("module a;")
    parts = [tmp_path, tmp_path / "core.v", np.arange(3), np.arange(3.0), [1, "a"], (b"a", 1), {"a": 1}]
    before = [ledger.digest(part) for part in parts]
    assert len(set(before)) == len(parts) and before == [ledger.digest(part) for part in parts]
    (tmp_path / "core.v").write_text("module b;")
    assert [a != ledger.digest(part) for a, part in zip(before, parts, strict=True)] == [True] * 2 + [False] * 5


def test_figures_runs_the_commands_of_results_and_tells_the_seconds(monkeypatch, tmp_path, capsys):
    (tmp_path / "docs" / "benchmarks").mkdir(parents=True)
    (tmp_path / "README.md").write_text("<!-- table: toy --> <!-- figure: other.rows[a].b -->")
    for page in ("docs/index.md", "docs/benchmarks/index.md"):
        (tmp_path / page).write_text("")
    rows, script = [{"a": 1, "origin": {"s": 60.0}}], tmp_path / "toy.py"
    script.write_text("import shutil, sys; assert sys.argv[1] == '--fast'; shutil.copy('new.json', sys.argv[3])")
    for name, command in (("toy", "toy.py --fast"), ("other", "toy.py --data DIR"), ("unseen", "toy.py")):
        made = json.dumps({"command": command, "rows": rows})
        (tmp_path / "docs" / "benchmarks" / f"{name}.json").write_text(made)
    (tmp_path / "new.json").write_text(json.dumps({"command": "", "rows": [*rows, {"a": 2, "origin": {"s": 2.0}}]}))
    monkeypatch.setattr(figures, "ROOT", tmp_path)
    lines = []
    monkeypatch.setattr(figures, "show", lambda title, rows: lines.extend(rows))
    monkeypatch.setattr(sys, "argv", ["figures.py"])
    assert figures.main() == 0
    toy, other = lines
    assert (toy["result"], toy["rows"], toy["measured"], toy["s of all"], toy["remark"]) == ("toy", 2, 1, 62, "")
    assert (other["s"], other["measured"], other["remark"]) == (None, 0, "needs --data")
