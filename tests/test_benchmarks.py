"""Tests that every script of benchmarks runs on its smallest input, and its JSON tells the origin of the figures."""

from __future__ import annotations

import csv
import gzip
import importlib
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "benchmarks"
OWN_TESTS = ("corpus", "golden")
# A module without a `main` is part of other scripts.
SCRIPTS = sorted(
    path.stem
    for path in FOLDER.glob("*.py")
    if "\ndef main(" in path.read_text(encoding="utf-8") and path.stem not in OWN_TESTS
)
SLOW = (
    "estimates",  # It synthesizes for all families.
    "engine_costs",  # It synthesizes engines.
    "slower_devices",  # It places and routes twice.
    "bitstreams",  # It places and routes.
    "board_check",  # It builds two boards in Verilator; tests/boards do the same on fewer vectors.
    "level_times",  # It compiles functions of all levels.
    "levels",
    "installs",  # It makes an environment.
)
NUMBERS = ("transfusion", "parkinsons", "pima", "bmf_zoo", "breast_w")  # lists the tables that --small reads
NEEDS = {
    "bitstreams": "icebox_vlog",
    "budgets": "arm-none-eabi-gcc",
    "exactness": "iverilog",
    "shipped_models": "arm-none-eabi-gcc",
    "streams": "iverilog",
}
KEYS = ("title", "command", "commit", "date", "machine", "measures", "golden", "rows")


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
    given = ["--small", "--json", str(output)]
    for option, folder in (("data", data), ("peers", peers)):
        if re.search(rf'arguments\(__doc__, MEASURES.*"{option}!"', text):
            given += [f"--{option}", str(folder)]
    monkeypatch.setattr(sys, "argv", [str(FOLDER / f"{name}.py"), *given])
    monkeypatch.syspath_prepend(str(FOLDER))
    main = importlib.import_module(name).main
    status = main()
    assert not status and capsys.readouterr().out
    (written,) = tmp_path.glob("*.json")  # Some scripts add the case to the name.
    made = json.loads(written.read_text())
    assert tuple(made)[:8] == KEYS and made["rows"] and all(made["rows"])
    assert made["command"].startswith(f"benchmarks/{name}.py --small") and str(tmp_path.parent) not in made["command"]
    assert re.fullmatch(r"[0-9a-f]{40}(-dirty)?|unknown", made["commit"])
    assert all((ROOT / place).exists() for place in made["measures"])
