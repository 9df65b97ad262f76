"""The examples run, and the demo shows no difference."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_the_demo(tmp_path):
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "demo.py"), str(tmp_path)],
        capture_output=True, text=True, check=True, env={**__import__("os").environ, "COLUMNS": "120"},
    )  # fmt: skip
    for row in ("accuracy of the model", "rows compared", "comparators after sharing", "latency", "C header"):
        assert row in done.stdout
    for design in ("breast_cancer", "digits"):
        assert json.loads((tmp_path / design / "manifest.json").read_text())["name"] == design
