"""Tests the layouts of C that are measured for a processor: the choice, budgets, and what needs no compiler."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

import forestc
from forestc.backends.c.header import emit
from forestc.backends.c.layouts import LAYOUTS
from forestc.backends.c.options import COptions
from forestc.checks.bench import sample_vectors
from forestc.compilation import layouts as compiled_layouts
from forestc.compilation.layouts import measured_choice
from forestc.errors import MissingToolError, OptionError, ToolError
from forestc.firmware.bounds import bound_of_walks
from forestc.firmware.workbench import Workbench
from forestc.rows.batches import ArrayRows
from forestc.toolchain import firmware

CPU = "cortex-m0plus"
MISSING = {"cortex-m4f": r'pip install "forestc\[firmware\]"', "avr": "apt install gcc-avr avr-libc"}


@pytest.fixture(scope="module")
def forest():
    X, y = load_digits(return_X_y=True)
    return forestc.quantize(RandomForestClassifier(12, max_depth=5, random_state=0).fit(X, y), X, y)


@pytest.fixture
def vectors(forest, need_tool):
    for name in ("arm-none-eabi-gcc", "unicorn", "elftools"):
        need_tool(name)
    return sample_vectors(forest, ArrayRows(load_digits().data[:200]))


def test_the_choice_keeps_budgets_and_goals(forest, vectors):
    free = measured_choice(forest, COptions(cpu=CPU), vectors)
    known = free.layouts
    assert set(known) == set(LAYOUTS) and free.tool.startswith("arm-none-eabi-gcc") and free.entry == "predict"
    assert known["nodes"].flash < known["branches"].flash and known["nodes"].most > known["branches"].most
    assert known["nodes"].bound >= known["nodes"].most and known["branches"].bound is None

    def taken(**options):
        return measured_choice(forest, COptions(cpu=CPU, **options), vectors).layout

    least, fastest = min(own.flash for own in known.values()), min(own.most for own in known.values())
    within = [own.flash for own in known.values() if own.most <= 2 * fastest]
    assert known[free.layout].flash == known[taken(c_layout="balanced")].flash == min(within)
    assert known[taken(c_layout="smallest")].flash == least == known[taken(instructions="1M")].flash
    assert known[taken(c_layout="fastest")].most == fastest == known[taken(flash="1M")].most
    assert taken(flash=least) == taken(flash=least, c_layout="fastest") == "nodes"
    assert taken(instructions=known["nodes"].bound) == "nodes"
    assert known[taken(instructions=known["nodes"].bound - 1)].flash > least
    assert taken(c_layout="mixed", flash="1M") == "mixed"
    for budget, why in (
        ({"flash": least - 1}, rf"keeps {least - 1:,} bytes on {CPU}: nodes needs the least, {least:,}, by arm-none"),
        ({"ram": 4}, "keeps 4 bytes"),
        ({"instructions": 9}, "keeps 9 instructions"),
        ({"flash": 9, "instructions": 10**6}, r"keeps all budgets \(flash 9, .*nodes: flash .* for any input"),
        ({"flash": 2000, "c_layout": "branches"}, "branches needs the least"),
    ):
        with pytest.raises(OptionError, match=why):
            taken(**budget)


def test_the_largest_forests_are_tried_in_two_layouts(forest, vectors, monkeypatch):
    monkeypatch.setattr("forestc.backends.c.choice.MOST_BRANCHES", 10)
    assert set(measured_choice(forest, COptions(cpu=CPU), vectors).layouts) == {"nodes", "ranked"}


def test_layouts_that_do_not_build_are_left_out(forest, vectors, monkeypatch):
    def built(bench, entry, stem):
        if stem in lost:
            raise ToolError("an array is too large", where="gcc", do="")
        return before(bench, entry, stem)

    before, lost = Workbench.built, {"branches", "mixed"}
    monkeypatch.setattr(Workbench, "built", built)
    assert set(measured_choice(forest, COptions(cpu=CPU), vectors).layouts) == set(LAYOUTS) - lost
    lost |= set(LAYOUTS)
    with pytest.raises(ToolError, match=f"no layout of C builds and runs on {CPU}: an array .* smaller"):
        measured_choice(forest, COptions(cpu=CPU), vectors)


def test_compile_records_the_choice(tmp_path, need_tool):
    for name in ("arm-none-eabi-gcc", "unicorn", "elftools"):
        need_tool(name)
    X, y = load_breast_cancer(return_X_y=True)
    model = RandomForestClassifier(5, max_depth=4, random_state=0).fit(X, y)
    done = forestc.compile(model, X, tmp_path / "d", targets="c", cpu="cortex-m4f", flash=4000, name="m")
    output = done.figures["firmware"]
    assert output["cpu"] == "cortex-m4f" and output["layouts"][output["layout"]]["flash"] <= 4000
    assert done.design.manifest["made"]["firmware"] == json.loads(json.dumps(output))
    assert "the budgets count predict and what it calls; m_quantize and other" in " ".join(done.figures["notes"])
    assert done.design.c_options == COptions(c_layout=output["layout"], cpu="cortex-m4f", flash=4000)
    assert "C of predict alone, measured for cortex-m4f" in (tmp_path / "d" / "report.md").read_text()
    assert done.design.path("c").read_text() == emit(done.design.forest, done.design.c_options)["m.h"]
    measured = forestc.measure(done.design, "cortex-m4f", X, entries=["predict"])
    assert measured["flash"] == output["layouts"][output["layout"]]["flash"] and measured["over_budget"] == ""
    with pytest.raises(OptionError, match="keeps 100 bytes"):
        forestc.compile(model, X, tmp_path / "e", targets="c", cpu="cortex-m4f", flash=100)
    assert not (tmp_path / "e").exists()


def test_regressions_run_scores(tmp_path, need_tool):
    need_tool("avr-gcc")
    need_tool("simavr")
    X, y = load_diabetes(return_X_y=True)
    model = RandomForestRegressor(3, max_depth=3, random_state=0).fit(X, y)
    with pytest.raises(OptionError, match="no layout of scores keeps 9 bytes on avr"):
        forestc.compile(model, X, tmp_path / "d", targets="c", cpu="avr", flash=9)


@pytest.mark.parametrize("cpu", MISSING)
def test_without_a_compiler(tmp_path, monkeypatch, cpu):
    """Budgets and `auto` name what to install, before the model is read; a named layout needs nothing."""
    X, y = load_iris(return_X_y=True)
    model = RandomForestClassifier(3, max_depth=2, random_state=0).fit(X, y)
    monkeypatch.setattr(firmware, "find", lambda *_: None)
    monkeypatch.setattr(firmware, "package_folders", lambda _: [])
    with pytest.raises(MissingToolError, match=MISSING[cpu]):
        forestc.compile("no such model", X, tmp_path / "d", targets="c", cpu=cpu, flash=1000)
    with pytest.raises(MissingToolError, match=MISSING[cpu] + ".*c_layout"):
        forestc.compile("no such model", X, tmp_path / "d", targets="c", cpu=cpu)
    named = forestc.compile(model, X, tmp_path / "d", targets="c", cpu=cpu, c_layout="nodes")
    assert "firmware" not in named.figures and named.design.c_options.c_layout == "nodes"


@pytest.mark.parametrize(
    "given, ways, never",
    [
        ({"level": 1}, "-O2, -O3, prune-trees", "held"),
        ({"level": 2}, "-O3 with held_out=FILE and a larger tolerance", "-O2"),
        ({"level": 2, "held_out": 0.3}, "-O3 with a larger tolerance", "FILE"),
        ({"level": 3, "held_out": 0.3, "effort": 1}, "smaller: a larger tolerance", "-O2"),
    ],
)
def test_a_refusal_advises_what_the_level_has_left(tmp_path, need_tool, given, ways, never):
    need_tool("arm-none-eabi-gcc")
    X, y = load_iris(return_X_y=True)
    model = RandomForestClassifier(3, max_depth=2, random_state=0).fit(X, y)
    with pytest.raises(OptionError, match="keeps 9 bytes") as refused:
        forestc.compile(model, X, tmp_path / "d", label=y, targets="c", cpu="Cortex-M0+", flash=9, **given)
    assert ways in str(refused.value) and never not in str(refused.value)


def test_a_bound_holds_for_the_longest_paths():
    """Two trees walked by blocks 10 (before), 20 (a turn), 30 (to the next tree) and 40 (after)."""

    def call(*turns):
        walks = [[(20, 24, 5)] * count + [(30, 34, 3)] for count in turns]
        return np.array([(10, 14, 2), *walks[0], *walks[1], (40, 44, 4)])

    traces, turns = [call(1, 2), call(3, 2), call(2, 2)], np.array([3, 5, 4])
    assert bound_of_walks(traces, turns, 8, 2, 1) == call(4, 4)[:, 2].sum()
    same = [call(2, 2), call(2, 2)]
    assert bound_of_walks(same, np.array([4, 4]), 4, 2, 1) == same[0][:, 2].sum()
    assert bound_of_walks(traces, np.array([3, 6, 6]), 8, 2, 1) is None


def test_measured_choices_are_of_known_names():
    assert not compiled_layouts.is_measured(COptions()) and not compiled_layouts.is_measured(
        COptions(cpu=CPU, c_layout="nodes")
    )
    assert compiled_layouts.is_measured(COptions(cpu=CPU)) and compiled_layouts.is_measured(
        COptions(cpu=CPU, c_layout="nodes", flash=9)
    )
