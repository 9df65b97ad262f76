"""Tests the layout of ranks in C: exact if all features are ranked, some, or none."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from thinned import thinned

import forestc
from forestc.backends.c import header as c
from forestc.backends.c.options import COptions

ALL, NONE = -(10**6), 10**6  # bytes that ranking costs: so few that it always pays, or more than it can gain


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return RandomForestClassifier(20, max_depth=6, random_state=0).fit(X, y), X, y


@pytest.fixture(scope="module")
def designs(cancer, tmp_path_factory):
    model, X, y = cancer
    folder = tmp_path_factory.mktemp("layouts")
    return {
        layout: forestc.compile(
            model, X, folder / layout, label=y, level=0, targets="c", c_layout=layout, c_values="none", name="m"
        ).design
        for layout in ("branches", "ranked", "nodes")
    }


@pytest.mark.parametrize("cpu", thinned(["cortex-m0plus", "avr", "cortex-m4f"], keep=1))
def test_it_is_smaller_than_branches_and_faster_than_nodes(need_tool, cancer, designs, cpu):
    """Requires at most three quarters of the bytes and two thirds of the instructions, for forests like one of 100
    trees."""
    need_tool("avr-gcc" if cpu == "avr" else "arm-none-eabi-gcc")
    found = {}
    for layout, compiled in designs.items():
        found[layout] = forestc.measure(compiled, cpu, cancer[1], entries=["predict"], most=40)
        assert found[layout]["differences"] == 0
    taken = {layout: (figures["instructions"] or figures["cycles"])["mean"] for layout, figures in found.items()}
    assert found["ranked"]["flash"] < 0.75 * found["branches"]["flash"]
    assert taken["ranked"] < 0.67 * taken["nodes"]


def test_more_slots_than_a_load_reaches_have_two_pointers_in_thumb(cancer):
    """Uses 60 slots, two for each feature that may be missing; a load of two bytes reaches 32."""
    model, X, y = cancer
    text = c.emit(replace(forestc.quantize(model, X, y, level=0), name="m"), COptions(c_layout="ranked"))["m.h"]
    slots = int(re.search(r"uint8_t slots\[(\d+)\];", text)[1])
    assert slots > 32 and "#if defined(__thumb__)" in text and "M_FAR(32) <" in text and "slots[31] <" in text
    assert f"M_FAR({slots - 1}) <" in text and "slots[32] <" not in text
    short = c.emit(replace(forestc.quantize(model, X, y, level=1), name="m"), COptions(c_layout="ranked"))["m.h"]
    assert "__thumb__" not in short and "m_tree_0(int_fast8_t sum, " in short


def test_ranks_beyond_a_byte(tmp_path):
    """Uses a feature with 300 thresholds, more than a byte counts; missing values go both ways."""
    random = np.random.default_rng(0)
    X = random.normal(size=(3000, 2))
    X[random.random(X.shape) < 0.05] = np.nan
    y = np.sin(40 * np.nan_to_num(X[:, 0])) + np.nan_to_num(X[:, 1]) > 0
    model = RandomForestClassifier(4, random_state=0).fit(X, y)
    design = forestc.compile(
        model, X, tmp_path / "d", label=y, level=0, targets="c", c_layout="ranked", name="m", c_values="none"
    ).design
    text = (tmp_path / "d" / "c" / "m.h").read_text()
    assert "uint16_t slots[4];" in text
    assert forestc.check(design, X, engines=["c"]).ok
