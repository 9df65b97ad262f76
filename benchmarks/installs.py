"""Measures README's install lines, and the first commands in a fresh environment.

    python benchmarks/installs.py --json docs/benchmarks/installs.json
    python benchmarks/installs.py --make --json docs/benchmarks/make.json

pip runs each line in a new environment, with its usual cache. The first commands run in the environment of `.[all]`,
before numba has compiled any function of forestc. This takes five minutes, and half an hour without pip's cache.
`--make` measures `make demo` and `make test` in a fresh clone, with the native tools on the PATH.
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
EXTRAS = ("demo", "all")  # lists the extras of `make demo` and of README's commands
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


def installed(extras: str, folder: Path) -> dict[str, Any]:
    """Installs forestc with some extras into a new environment in a folder; returns its packages, size and seconds."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
    start, before = time.perf_counter(), _children()
    subprocess.run([*pip, "install", "--quiet", f"{ROOT}[{extras}]"], check=True)
    seconds = time.perf_counter() - start
    packages = subprocess.run([*pip, "list", "--format=freeze"], check=True, capture_output=True, text=True).stdout
    size = sum(path.lstat().st_size for path in folder.rglob("*"))
    return {
        "extras": extras,
        "packages": len(packages.splitlines()),
        "GB": round(size / 1e9, 2),
        "seconds": round(seconds),
        "processor seconds": round(_children() - before),
    }


def commands(environment: Path, folder: Path) -> list[dict[str, Any]]:
    """Runs each of COMMANDS in a folder; returns the processor seconds of each."""
    variables = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "NUMBA_CACHE_DIR")}
    subprocess.run([str(environment / "bin" / "python"), "-c", IRIS], cwd=folder, env=variables, check=True)
    rows = []
    for name, words in COMMANDS.items():
        before = _children()
        forestc = [str(environment / "bin" / "forestc"), *words]
        subprocess.run(forestc, cwd=folder, env=variables, check=True, capture_output=True)
        rows.append({"command": name, "processor seconds": round(_children() - before, 2)})
    return rows


def made(folder: Path) -> list[dict[str, Any]]:
    """Runs `make demo` and `make test` in a clone; returns the seconds of each. Raises CalledProcessError if
    one fails."""
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder / "clone")], check=True)
    rows = []
    for target in ("demo", "test"):
        start, before = time.perf_counter(), _children()
        subprocess.run(["make", target], cwd=folder / "clone", check=True)
        seconds = time.perf_counter() - start
        rows.append({
            "target": f"make {target}", "minutes": round(seconds / 60, 1), "seconds": round(seconds),
            "processor seconds": round(_children() - before),
        })  # fmt: skip
        subprocess.run(["make", "clean"], cwd=folder / "clone", check=True)
    return rows


def _children() -> float:
    """Returns the processor seconds of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = arguments(__doc__, MEASURES)
    parser.add_argument("--make", action="store_true", help="measure make demo and make test")
    options = parser.parse_args()
    selected = ("",) if options.small else EXTRAS
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        if options.make:
            show("From a clone", made(Path(folder)), options)
            return
        for number, extras in enumerate(selected):
            rows.append(installed(extras, Path(folder) / str(number)))
        first = [] if options.small else commands(Path(folder) / str(len(selected) - 1), Path(folder))
        show("Environments of the install lines, by extras", rows, options, first=first)


if __name__ == "__main__":
    main()
