"""Tests that engines answer as the evaluator does, clock by clock: models of every kind, stalls, loads in
mid-stream."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from example_counts import examples
from models import trained
from random_forests import random_forest
from sklearn.base import clone
from thinned import only, thinned
from walkers import KINDS, NARROW, Bench, same_rows

import forestc
from forestc.backends.engine.walking import Load, Simulation, unpacked_results
from forestc.backends.vectors import vectors
from forestc.engine.capacity import RING, ROWS, Capacity
from forestc.engine.image import image_of, packed_rows
from forestc.engine.vectors import results_of
from forestc.engine.verilog import emit
from forestc.forest.evaluate import evaluate_words
from forestc.rows.batches import ArrayRows
from forestc.toolchain.run import find
from forestc.toolchain.verilator import find_verilator

ANY = Capacity(3, 512, 8, 6, word_bits=11, outputs=5, scores=True)
SMALL = Capacity(3, 512, 8, 6, word_bits=8, outputs=5, scores=True, user_bits=8)


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    return Bench.of(ANY, tmp_path_factory.mktemp("any")) if find("iverilog") else None


def words_of(forest, count=400):
    found = vectors(forest, ArrayRows(np.empty((0, forest.columns))), 150)
    return np.concatenate([some.words for some in found])[:count]


@pytest.mark.parametrize("kind", KINDS)
def test_random_forests(kind, bench, need_tool):
    """Covers thresholds, cuts, categories of one mask and of several, missing values, ties, and leaves of several
    outputs."""
    need_tool("iverilog")
    for seed in range(examples(3)):
        forest = random_forest(seed, True, kind, NARROW)
        verdict = bench.run([forest], words_of(forest), stall=seed % 3 * 5, seed=seed)
        assert verdict.passed, (seed, verdict.text)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_many_random_forests(kind, bench):
    for seed in range(6, 60):
        forest = random_forest(seed, True, kind, NARROW)
        assert bench.run([forest], words_of(forest), stall=seed % 3 * 5, seed=seed).passed, seed


SLOW = ("xgboost-multi", "forest-regression")  # lists slow kinds; random forests have several classes and values, too
TRAINED = [
    "xgboost-binary",
    "forest-multi",
    "xgboost-missing",
    *(pytest.param(k, marks=pytest.mark.long) for k in SLOW),
]


@pytest.mark.parametrize("kind", TRAINED)
def test_trained_models_are_compiled_and_checked(kind, tmp_path, need_tool):
    need_tool("iverilog")
    model, X, y = trained(kind)
    if kind not in SLOW:  # More trees only take Icarus longer.
        model = clone(model).set_params(n_estimators=3, max_depth=4).fit(X, y)
    done = forestc.compile(model, X[:200], tmp_path / "out", label=y[:200], targets="engine", name="m")
    assert done.design.engine.banks == 2 and not done.design.has_hardware
    assert done.figures["engine"].keys() == {"walkers", "clocks", "bytes"}
    assert re.search(r"walkers of the engine +│ +│? *\d+ +│ image of [\d,]+ bytes", done.summary(200))
    result = forestc.check(done.design, X[:200], engines=["engine-icarus"], random_rows=100)
    assert result.ok and result.engines["engine-icarus"].vectors > 300


VARIANTS = {
    "two banks": SMALL,
    "registers": replace(SMALL, load="axi-lite"),
    "one bank": replace(SMALL, banks=1),
    "one port": replace(SMALL, banks=1, memory="spram"),
    "one walker": replace(SMALL, walkers=1, slots=16),
}


@pytest.mark.parametrize("variant", thinned(VARIANTS, keep=3))
def test_models_change_in_mid_stream(variant, tmp_path, need_tool):
    need_tool("iverilog")
    capacity = VARIANTS[variant]
    bench, models = Bench.of(capacity, tmp_path / "bench"), same_rows(4)
    words = np.random.default_rng(0).integers(0, 256, (400, 5))
    for stall in (0, 9):
        images = [(100 * place, image_of(model, capacity)) for place, model in enumerate(models)]
        verdict = bench.run(models, words, images, stall=stall, seed=stall + 3)
        assert verdict.passed and verdict.taken == 4, verdict.text


@pytest.mark.parametrize("variant", only(VARIANTS, 0, 3))
def test_a_reset_drops_rows_and_half_an_image_and_keeps_the_model(variant, tmp_path, need_tool):
    """Rows inside the engine get no results, later rows get theirs, and no result comes from before the reset."""
    need_tool("iverilog")
    capacity, (first, second) = VARIANTS[variant], same_rows(2)
    bench = Bench.of(capacity, tmp_path / "bench")
    words = np.random.default_rng(1).integers(0, 256, (300, 5))
    whole = _lines(image_of(first, capacity).words)
    half = [f"0 {word:08x}\n" for word in image_of(second, capacity).words[:40].tolist()]
    for clocks in (1, 2, 9):
        lines = ["wait 0\n", *whole, "wait 60\n", f"reset {clocks}\n"]
        # No image came since, so the old model answers. Then come half an image, and a complete one.
        lines += ["wait 150\n", *whole, "wait 200\n", *half, f"reset {clocks}\n", *whole]
        verdict = bench.verdict("".join(lines), [first], words, clocks % 4, clocks)
        assert verdict.passed and (verdict.taken, verdict.refused) == (3, 0), verdict.text


def test_resets_of_any_length_lose_the_rows_under_way_alone(tmp_path, need_tool):
    """Even a reset of one clock leaves no result on its way, no part of a row and none of an image."""
    need_tool("iverilog")
    bench, models = Bench.of(SMALL, tmp_path / "bench"), same_rows(4)
    words = np.random.default_rng(2).integers(0, 256, (240, 5))
    for stall in (0, 5):
        lines = ["wait 0\n", *_lines(image_of(models[0], SMALL).words)]
        for clocks, model in enumerate(models[1:], 1):
            half = image_of(model, SMALL).words[:40].tolist()
            lines += [f"wait {60 * clocks}\n", *(f"0 {word:08x}\n" for word in half)]
            lines += [f"reset {clocks}\n", *_lines(image_of(model, SMALL).words)]
        verdict = bench.verdict("".join(lines), models, words, stall, 1, "+cut=4")
        assert verdict.passed and (verdict.taken, verdict.refused) == (4, 0), verdict.text


def _lines(words):
    return [f"{int(place == len(words) - 1)} {word:08x}\n" for place, word in enumerate(words.tolist())]


def test_a_row_takes_the_clocks_that_the_image_says(tmp_path, need_tool):
    need_tool("iverilog")
    capacity = replace(SMALL, features=5, word_bits=6)
    forest = next(
        f
        for f in (random_forest(seed, True, "argmax", [NARROW[1]]) for seed in range(99))
        if f.depth > 3 and len(f.trees) > 3
    )
    image = image_of(forest, capacity)
    words = np.random.default_rng(0).integers(0, 15, (600, len(forest.features)))
    verdict = Bench.of(capacity, tmp_path / "bench").run([forest], words)
    assert verdict.passed
    waiting = len(image.words) + 200
    assert image.clocks * 600 <= verdict.clocks <= image.clocks * 600 + waiting
    assert sum(slot.steps for slot in image.slots) >= forest.depth and image.clocks > ROWS // 2


def test_verilator_runs_swaps_and_stalls(tmp_path, need_tool):
    need_tool("verilator")
    models = same_rows(2)
    (tmp_path / "engine.v").write_text(emit(SMALL))
    simulation = Simulation.of(SMALL, "engine.v", tmp_path)
    words = np.random.default_rng(0).integers(0, 256, (4000, 5))
    images = [image_of(model, SMALL).words for model in models]
    loads = [Load(200 * turn, images[turn % 2]) for turn in range(20)]
    got, said = simulation.run(loads, packed_rows(models[0], SMALL, words), stall=4)
    results = unpacked_results(SMALL, got)
    expected = [results_of(SMALL, evaluate_words(model, words)) for model in models]
    matches = np.stack([(results == each).all(axis=1) for each in expected], axis=1)
    assert matches.any(axis=1).all()
    turn = 0
    for row, fits in enumerate(matches.tolist()):
        if not fits[turn % 2]:
            turn += 1
        assert fits[turn % 2] and row >= 200 * turn - RING  # Some rows wait inside the engine when a model changes.
    assert turn == 19 and "status 00001401" in said


LINTED = (
    SMALL,
    Capacity(1, 1024, 16, 30, word_bits=16, banks=1, memory="spram"),
    Capacity(5, 64, 4, 20, word_bits=12, outputs=3, load="axi-lite"),
    Capacity(7, 32, 4, 2, word_bits=20, outputs=128, score_bits=12),
)


def test_capacities_pass_the_linters(tmp_path, need_tool):
    need_tool("verilator")
    found = find_verilator()
    for capacity in LINTED:
        (tmp_path / "engine.v").write_text(emit(capacity))
        command = [found.binary, "--lint-only", "-Wall", "-Wno-DECLFILENAME", "--language", "1364-2005"]
        environment = {**os.environ, "VERILATOR_ROOT": str(found.root)}
        command += ["--top-module", "engine", "engine.v"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 0 and not done.stderr, done.stderr[:800]
