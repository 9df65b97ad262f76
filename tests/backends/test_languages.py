"""Tests what the contract of targets does not reach, in every language: hard number types and rounding of raw rows,
sums in a number type, names, and the widest integers."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest
from forest_designs import design, differences
from forest_kinds import HARD, hostile, typed_sums
from needs import REQUIRED
from random_forests import random_forest, random_tree

from forestc.backends.c.types import score_type
from forestc.backends.languages import LANGUAGES
from forestc.backends.languages.core import integer_bits
from forestc.errors import MissingToolError, ModelError
from forestc.forest.builder import changed, make_forest
from forestc.forest.ir import Aggregate, Decision, Feature, Link
from forestc.forest.numbers import FLOAT32, FLOAT64, Fixed, Ordered, word_range
from forestc.toolchain.run import run_tool

ENGINES = [(language, name) for language in LANGUAGES.values() for name in language.runs]
NAMES = [
    "class", "fn", "func", "type", "import", "package", "Object", "String", "json", "struct", "array", "math", "main",
    "core", "std", "fmt", "init", "java", "lambda", "None", "self", "Math", "loop", "score", "decide", "x", "Double",
]  # fmt: skip


@pytest.fixture(params=ENGINES, ids=lambda pair: f"{pair[0].name}-{pair[1]}")
def engine(request):
    return request.param


@pytest.fixture
def compared(engine, tmp_path):
    """Returns a function: how many of a forest's results in a language differ from the evaluator's."""

    def run(forest, seed=1):
        folder = tmp_path / f"{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        try:
            return differences(engine[1], design(forest, folder, targets=(engine[0].name,)), folder, seed).count
        except MissingToolError as error:
            if REQUIRED:
                raise
            pytest.skip(str(error))

    return run


def on(types, seed, raw, missing):
    """Makes a forest on a feature of each type."""
    random = np.random.default_rng(seed)
    features = [
        Feature(f"f{index}", number, index, missing and word_range(number, False).top > 2, raw or number)
        for index, number in enumerate(types)
    ]
    trees = [random_tree(random, features, (0,), True, 4) for _ in range(4)]
    return make_forest(
        name="hard", features=features, columns=len(features), trees=trees, n_outputs=1, bias=[0],
        aggregate=Aggregate(), link=Link(), decision=Decision("none"), classes=(), scale=1.0,
    )  # fmt: skip


@pytest.mark.parametrize(("raw", "missing"), [(FLOAT32, True), (FLOAT32, False), (FLOAT64, True)])
def test_words_of_rows_on_the_borders_of_hard_types(compared, engine, raw, missing):
    types = [one for one in HARD if raw == FLOAT64 or one != Ordered(64)]
    forest = on(types, 3, raw, missing)
    narrow = [one for one in types if integer_bits(on([one], 3, raw, missing)) <= engine[0].widest]
    assert len(narrow) > len(types) // 2
    assert not compared(on(narrow, 3, raw, missing) if narrow != types else forest)


@pytest.mark.parametrize("overflow", ["AP_SAT", "AP_WRAP"])
def test_rows_that_are_first_rounded_to_a_fixed_point_type(compared, overflow):
    own = [
        Fixed(bits, fraction, signed, rounding, overflow)
        for bits, fraction, signed in ((10, 5, True), (8, -2, False), (49, 30, True), (12, 12, False), (5, 60, True))
        for rounding in ("AP_TRN", "AP_RND", "AP_RND_CONV")
    ]
    for less in (0, 2):
        forest = on([Fixed(one.bits - less, one.fraction - less, one.signed) for one in own], 5, FLOAT64, False)
        features = (replace(feature, raw=one) for feature, one in zip(forest.features, own, strict=True))
        assert not compared(replace(forest, features=tuple(features)))


@pytest.mark.parametrize("order", ["sequential", "tree"])
@pytest.mark.parametrize("overflow", ["AP_SAT", "AP_WRAP"])
def test_sums_in_a_number_type(compared, order, overflow):
    for forest in typed_sums(order, overflow):
        assert not compared(forest)


def test_a_model_of_any_name(compared):
    small = random_forest(3, True, "argmax", [Fixed(8)])
    for name in NAMES:
        assert not compared(replace(small, name=name))


def test_names_of_a_model_s_parts_are_text(compared):
    forest = hostile(0)
    labels = ('"; }', "é\n\\u000a\\\0", "${x}$'", "\ud800\U0001f600*/")
    for at in (0, 2):
        assert not compared(replace(forest, parts=(), classes=labels[at : at + 2]))


def test_integers_that_a_language_lacks_are_refused(engine, tmp_path):
    language, forest = engine[0], random_forest(3, True, "regression", [Fixed(8)])
    wide = changed(forest, bias=forest.bias + (1 << 54))
    if language.widest < 64:
        with pytest.raises(ModelError, match=r"round-leaves\{leaf_bits="):
            design(wide, tmp_path, targets=(language.name,))


LOADED = """
import { readFileSync } from "node:fs";
import { load, LABELS } from "./%s.mjs";
import * as plain from "../javascript/%s.mjs";
const design = await load(readFileSync("%s.wasm"));
for (let k = 0; k < 200; k++) {
    const row = Array.from({ length: plain.COLUMNS }, () => Math.round(2000 * Math.random() - 600) / 8);
    const x = design.words(row);
    const got = [x, design.scores(x), design.predict(x), LABELS];
    const wanted = [plain.words(row), plain.scores(x), plain.predict(x), plain.LABELS];
    if (JSON.stringify(got) !== JSON.stringify(wanted)) throw new Error(`${row}: ${got}, not ${wanted}`);
}
"""


@pytest.mark.parametrize("kind", ["argmax", "binary", "each"])
def test_the_loader_of_the_webassembly_gives_what_the_javascript_gives(kind, tmp_path, need_tool):
    need_tool("node")
    forest = random_forest(5, True, kind, [Fixed(8), Fixed(6, 2, True), Fixed(40, 10, True)])
    made = design(forest, tmp_path, targets=("javascript", "wasm"))
    (tmp_path / "wasm" / "run.mjs").write_text(LOADED % ((made.path("wasm").stem,) * 3))
    run_tool(["node", "run.mjs"], tmp_path / "wasm")


PROGRAM = """
#include "m.h"
__attribute__((section("xdp"), used)) int value(m_word *x)
{
    SCORE scores[M_OUTPUTS];
    m_scores(x, scores);
    return (int)scores[0];
}
"""


def test_the_c_of_branches_is_a_program_of_ebpf_without_loops_and_relocations(tmp_path):
    pytest.importorskip("ziglang")
    elffile = pytest.importorskip("elftools.elf.elffile")
    forests = (random_forest(seed, True, "regression", [Fixed(8)]) for seed in range(100))
    forest = replace(next(one for one in forests if len(one.conditions.comparators) > 9), name="m")
    made = design(forest, tmp_path, targets=("c",), layout="branches", quantizer="none", values="none")
    (tmp_path / "c" / "main.c").write_text(PROGRAM.replace("SCORE", score_type(forest)))
    build = ["-m", "ziglang", "cc", "-target", "bpfel-freestanding", "-O2", "-c", "main.c", "-o", "main.o"]
    run_tool([sys.executable, *build], made.path("c").parent)
    with (tmp_path / "c" / "main.o").open("rb") as file:
        sections = {section.name: section.data() for section in elffile.ELFFile(file).iter_sections()}
    assert ".relxdp" not in sections and len(sections["xdp"]) > 100
    jumps = [sections["xdp"][at : at + 8] for at in range(0, len(sections["xdp"]), 8)]
    ahead = [int.from_bytes(code[2:4], "little", signed=True) for code in jumps if code[0] & 7 in (5, 6)]
    assert ahead and min(ahead) >= 0
