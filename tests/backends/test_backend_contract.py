"""Tests the contract of every backend. A new backend in the table is done when it passes."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import PurePosixPath

import numpy as np
import pytest
from random_forests import random_forest

import forestc
from forestc.backends.axi_stream import StreamOptions
from forestc.backends.base import Source
from forestc.backends.c import COptions
from forestc.backends.c.selftest import Answers
from forestc.backends.table import BACKENDS, TARGETS, implied_roles, written
from forestc.checks.table import ENGINES
from forestc.engine.capacity import Capacity
from forestc.errors import OptionError
from forestc.forest.numbers import Category, Fixed
from forestc.lowering.trees import LoweringOptions, lower

pytestmark = pytest.mark.each_case

HOSTILE = 'x"; rm -rf / #\n*/ $finish; `include "y" ../../etc'


def options_of(name):
    """Returns options that make a backend write something."""
    targets = [BACKENDS[name].target] if BACKENDS[name].target else ["verilog"]
    more = {"stream": {"stream": {"registers": True}}, "c_project": {"targets": ["c"], "c": {"project": "all"}}}
    return {"targets": targets, **more.get(name, {})}


def forest_for(name, seed):
    """Makes a random forest; for an engine, one of the kinds that it takes (added trees on narrow words)."""
    if name == "engine":
        return random_forest(
            seed, True, ("binary", "argmax", "regression", "vector")[seed % 4], [Fixed(8), Category(11)]
        )
    return random_forest(seed, True)


def source_of(forest, latency=2):
    outputs = "both" if forest.decides else "scores"
    netlist = lower(forest, LoweringOptions(latency=latency, outputs=outputs))
    n = len(forest.features)
    answers = Answers(((0,) * n,), ((0.0,) * forest.columns,), ((0,) * len(forest.targets),), ((0,) * forest.n_scores,))
    return Source(
        forest, netlist, "ab" * 32, lambda: "0 0\n", lambda: "0,0\n", COptions(c_project="all"),
        StreamOptions(registers=True), answers=lambda: answers, engine=Capacity(3, 512, 8, 8, outputs=5, scores=True),
        words=lambda: np.zeros((2, n), dtype=np.int64),
    )  # fmt: skip


def own(name, forest, latency=2):
    """Returns the files of a backend that its options alone do not bring."""
    options = options_of(name)
    found = written(source_of(forest, latency), options)
    return [one for one in found if one.role in BACKENDS[name].roles(options)]


@pytest.mark.parametrize("name", BACKENDS)
def test_it_writes_the_roles_it_names_and_the_same_bytes_each_time(name):
    for seed in range(6):
        forest = forest_for(name, seed)
        found = own(name, forest, seed % 3)
        assert [one.role for one in found] == list(dict.fromkeys(one.role for one in found))
        assert {one.role for one in found} == set(BACKENDS[name].roles(options_of(name)))
        assert found == own(name, forest, seed % 3)
        for one in found:
            path = PurePosixPath(one.path)
            assert not path.is_absolute() and ".." not in path.parts
            assert len(path.parts) == 2 or name == "c_project"
            assert one.text.endswith("\n")
            assert not re.search(r"[^\x09\x0a\x20-\x7e]", one.text), one.path


@pytest.mark.parametrize("name", BACKENDS)
def test_names_of_a_model_stay_names(name):
    forest = forest_for(name, 3)
    features = tuple(replace(feature, name=f"{HOSTILE} {index}") for index, feature in enumerate(forest.features))
    for one in own(name, replace(forest, name=HOSTILE, features=features)):
        assert re.fullmatch(r"[\w./]+", one.path)
        for line in one.text.splitlines():
            code = line.split("//")[0] if one.path.endswith((".v", ".vhd", ".cpp", ".h", ".c", ".ino", ".txt")) else ""
            assert "rm -rf" not in code and "$finish; `" not in code


@pytest.mark.parametrize("name", BACKENDS)
def test_it_is_silent_where_nobody_asks_for_it(name):
    served = ("verilog", "vhdl") if BACKENDS[name].target is None else (BACKENDS[name].target,)
    others = [target for target in TARGETS if target not in served]
    assert BACKENDS[name].roles({"targets": others}) == ()


def test_roles_and_paths_are_distinguished():
    options = {"targets": list(TARGETS), "stream": {"registers": True}, "c": {"project": "all"}}
    found = written(source_of(forest_for("engine", 3)), options)
    assert len({one.role for one in found}) == len({one.path for one in found}) == len(found)
    assert {one.role for one in found} == implied_roles(options)


@pytest.mark.parametrize("target", TARGETS)
def test_an_engine_runs_what_it_writes(target, tmp_path):
    """Checks that an engine of `check` runs some file of each target, also in a design of this target alone."""
    roles = BACKENDS[target].roles({"targets": [target]})
    assert {engine.role for engine in ENGINES.values()} & set(roles)
    from models import trained

    model, X, _ = trained("xgboost-binary")
    done = forestc.compile(model, X[:100], tmp_path / "d", targets=target, name="m")
    assert set(done.design.manifest["files"]) == implied_roles(done.design.manifest["options"])
    assert done.design.targets == (target,)


def test_a_target_that_is_none_is_refused(tmp_path):
    with pytest.raises(OptionError, match="unknown target 'chisel'; known: verilog, vhdl, c, hls, amaranth, engine"):
        forestc.compile(None, None, tmp_path / "d", targets="chisel")


def test_a_part_and_a_clock_reach_the_hls_scripts():
    asked = replace(source_of(random_forest(3, True)).project, device="vivado:xcvu9p-flga2104-2-i", clock_mhz=400.0)
    found = written(replace(source_of(random_forest(3, True)), project=asked), {"targets": ["hls"]})
    (script,) = [one.text for one in found if one.role == "hls_config"]
    assert "part=xcvu9p-flga2104-2-i" in script and "2.5" in script
