"""The examples run, and the demo shows no difference."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import skops.io
from models import trained
from sklearn.base import clone

EXAMPLES = Path(__file__).parents[1] / "examples"


def shown(out: str, folder: Path) -> None:
    for row in ("accuracy of the model", "rows compared", "comparators after sharing", "latency", "C header"):
        assert row in out
    for design in ("breast_cancer", "digits"):
        assert json.loads((folder / design / "manifest.json").read_text())["name"] == design


def test_the_demo_with_a_smaller_forest(tmp_path, monkeypatch, capsys):
    spec = importlib.util.spec_from_file_location("demo", EXAMPLES / "demo.py")
    demo = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(demo)
    shutil.copy(demo.MODELS / "breast_cancer.json", tmp_path)
    model, X, y = trained("forest-multi")
    skops.io.dump(clone(model).set_params(n_estimators=3, max_depth=5).fit(X, y), tmp_path / "digits.skops")
    monkeypatch.setattr(demo, "MODELS", tmp_path)
    monkeypatch.setattr(sys, "argv", ["demo.py", str(tmp_path / "out")])
    monkeypatch.setenv("COLUMNS", "120")
    demo.main()
    shown(capsys.readouterr().out, tmp_path / "out")


@pytest.mark.slow
def test_the_demo(tmp_path):
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "demo.py"), str(tmp_path)],
        capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": "120"},
    )  # fmt: skip
    shown(done.stdout, tmp_path)
