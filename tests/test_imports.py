"""Tests that commands import slow libraries only if they use them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier

from forestc.forest.text import print_forest
from forestc.frontends import load

MODELS = Path(__file__).parents[1] / "examples" / "models"
SLOW = {"numba", "pandas", "pyarrow.dataset", "scipy", "sklearn"}
AFTER = """
import atexit, runpy, sys
from pathlib import Path
loaded, *words = sys.argv[1:]
atexit.register(lambda: Path(loaded).write_text(" ".join(sys.modules)))
sys.argv = ["forestc", *words]
runpy.run_module("forestc", run_name="__main__")
"""


def loaded(folder, *words):
    """Returns the modules that are loaded when a command ends."""
    listed = folder / "loaded"
    subprocess.run([sys.executable, "-c", AFTER, listed, *words], check=True, capture_output=True)
    return set(listed.read_text().split())


def test_passes_and_inspect_load_nothing_that_is_slow(tmp_path):
    for words in (["passes"], ["inspect", MODELS / "breast_cancer.json"]):
        assert not SLOW & loaded(tmp_path, *words)


def test_a_small_model_is_compiled_without_numba_and_pandas(tmp_path):
    X, y = load_iris(return_X_y=True)
    model, rows = tmp_path / "iris.forest", tmp_path / "iris.csv"
    model.write_text(print_forest(load(RandomForestClassifier(10, random_state=0).fit(X, y))))
    rows.write_text("\n".join(["a,b,c,d", *(",".join(map(str, row)) for row in X.tolist())]))
    words = ["compile", model, "--rows", rows, "--latency", "2", "--out", tmp_path / "out"]
    assert not SLOW & loaded(tmp_path, *words)
    assert (tmp_path / "out" / "manifest.json").exists()


def test_levels_that_do_not_search_load_no_trainer(tmp_path):
    X, y = load_iris(return_X_y=True)
    path = tmp_path / "m.forest"
    path.write_text(print_forest(load(RandomForestClassifier(2, max_depth=2, random_state=0).fit(X, y))))
    np.savetxt(tmp_path / "rows.csv", X, delimiter=",", header="a,b,c,d", comments="")
    rows = ["--rows", str(tmp_path / "rows.csv"), "-o", str(tmp_path / "out"), "--target", "verilog"]
    modules = loaded(tmp_path, "compile", path, *rows, "-O1")
    assert not {name for name in modules if name.startswith(("forestc.training", "forestc.search.folds"))}
