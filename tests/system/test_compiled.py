"""Tests the message that forestc compiles its own functions: it comes once, with the folder that stores them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import forestc
from forestc.system.compiled import _kept_in

PACKAGE = Path(forestc.__file__).parent
TWO_OF_FORESTC = """
import numpy as np
from forestc.papers.bit_words import popcount
from forestc.papers.networks.random_words import draw, seeded
draw(seeded(0)), popcount(np.uint64(7))
"""
SIMULATED = """
import forestc
from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeClassifier
X, y = load_iris(return_X_y=True)
model = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)
design = forestc.compile(model, X, FOLDER, label=y, targets="verilog", level=0, latency=1).design
forestc.simulate(design, X)
"""
OF_OTHERS = """
import forestc.system.compiled, numba
numba.njit(lambda x: x + 1)(1)
"""


def stderr(code: str, cache: Path) -> str:
    given = {**os.environ, "PYTHONPATH": str(PACKAGE.parent), "NUMBA_CACHE_DIR": str(cache)}
    return subprocess.run([sys.executable, "-c", code], env=given, capture_output=True, text=True, check=True).stderr


def test_the_first_compile_says_so_once_and_a_cached_one_nothing(tmp_path):
    said = stderr(TWO_OF_FORESTC, tmp_path)
    assert said.startswith("forestc compiles its own functions") and said.count("\n") == 1
    assert said.endswith(f"keeps them in {tmp_path}\n")
    assert stderr(TWO_OF_FORESTC, tmp_path) == ""


@pytest.mark.slow
def test_the_simulator_says_so_too(tmp_path):
    for times in (1, 0):
        said = stderr(SIMULATED.replace("FOLDER", repr(str(tmp_path / f"out{times}"))), tmp_path / "cache")
        assert said.count("forestc compiles its own functions") == times


def test_what_another_version_kept_is_forgotten(tmp_path):
    """The stored code takes a class with a name that no longer exists."""
    for name in ("First", "Second"):
        lines = (
            "from typing import NamedTuple",
            "from forestc.system.compiled import compiled",
            f"class {name}(NamedTuple):",
            "    size: float",
            "@compiled()",
            "def size_of(given):",
            "    return given.size",
            f"assert size_of({name}(1.5)) == 1.5",
        )
        (tmp_path / "renamed.py").write_text("\n".join(lines))
        stderr(f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import renamed", tmp_path / "cache")


def test_functions_of_others_are_not_spoken_of(tmp_path):
    assert stderr(OF_OTHERS, tmp_path) == ""


@pytest.mark.parametrize(
    ("cached", "said"),
    [
        (None, "cannot keep them"),
        (str(PACKAGE / "algorithms" / "__pycache__"), f"the __pycache__ folders of {PACKAGE}"),
        ("/home/someone/.cache/numba/algorithms_1234", "keeps them in /home/someone/.cache/numba"),
    ],
)
def test_where_they_are_kept(cached, said):
    assert said in _kept_in(cached)


@pytest.mark.parametrize("given", [None, "1"])
def test_as_many_threads_as_numba_takes_without_importing_it(given):
    code = "from forestc.system.compiled import threads; first = threads(); import numba; print(first, threads())"
    words = {name: word for name, word in os.environ.items() if name != "NUMBA_NUM_THREADS"}
    words |= {"PYTHONPATH": str(PACKAGE.parent)} | ({"NUMBA_NUM_THREADS": given} if given else {})
    done = subprocess.run([sys.executable, "-c", code], env=words, capture_output=True, text=True, check=True)
    first, later = done.stdout.split()
    assert first == later == (given or first)
