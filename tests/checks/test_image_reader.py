"""Tests images with a reader that shares no code with their writer, against the evaluator."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from models import trained
from random_forests import random_forest
from verilog_mutants import refused
from walkers import KINDS, NARROW, same_rows

import forestc
from forestc.backends.engine.image_reader import ImageRefusedError, read_image, row_words
from forestc.backends.vectors import vectors
from forestc.checks.images import compare_image
from forestc.engine.capacity import Capacity
from forestc.engine.folder import described
from forestc.engine.image import image_of
from forestc.engine.vectors import results_of
from forestc.errors import CheckError, ForestcError
from forestc.forest.evaluate import evaluate_words
from forestc.rows.batches import ArrayRows

ANY = Capacity(3, 512, 8, 6, word_bits=11, outputs=5, scores=True)
WIDE = Capacity(2, 4096, 10, 5, word_bits=16, outputs=5, scores=True, score_bits=24)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("capacity", [ANY, WIDE], ids=["a word a node", "two words a node"])
def test_random_forests(kind, capacity):
    """Uses words on each threshold and a step beside it, for every kind of condition and leaf."""
    for seed in range(12):
        forest = random_forest(seed, True, kind, NARROW)
        reader = read_image(image_of(forest, capacity).bytes, described(capacity))
        for some in vectors(forest, ArrayRows(np.empty((0, forest.columns))), 200, boundary=2000):
            expected = results_of(capacity, evaluate_words(forest, some.words))
            assert np.array_equal(reader.walked(row_words(forest, reader.shape, some.words)), expected), seed


def test_the_reader_refuses_what_the_hardware_refuses_for_the_same_reason():
    capacity = replace(ANY, word_bits=8)
    model = same_rows(1)[0]
    good = image_of(model, capacity).words
    assert read_image(good.tobytes(), described(capacity)).nodes
    for error, image in refused(good, capacity):
        with pytest.raises(ImageRefusedError) as caught:
            read_image(image.astype("<u4").tobytes(), described(capacity))
        assert caught.value.error == error
    for data in (b"", good.tobytes()[:-1]):
        with pytest.raises(ImageRefusedError):
            read_image(data, described(capacity))


def test_rows_that_leave_an_image_get_no_answer():
    capacity = replace(ANY, word_bits=8)
    model = same_rows(1)[0]
    reader = read_image(image_of(model, capacity).bytes, described(capacity))
    words = np.zeros((4, capacity.features), dtype=np.int64)
    cut = replace(reader, nodes=tuple(nodes[:1] for nodes in reader.nodes))
    with pytest.raises(ForestcError, match="leaves the image"):
        cut.walked(words)
    late = replace(reader, slots=tuple(replace(slot, initial=False) for slot in reader.slots))
    with pytest.raises(ForestcError, match="does not begin"):
        late.walked(words)
    fewer = replace(reader, slots=tuple(replace(slot, first=0, count=1) for slot in reader.slots))
    with pytest.raises(ForestcError, match="no slot adds to output 1"):
        fewer.walked(words)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    model, X, y = trained("xgboost-missing")
    folder = tmp_path_factory.mktemp("image") / "out"
    return forestc.compile(model, X[:200], folder, label=y[:200], targets="engine", name="m").design


def test_check_reads_the_image_of_a_folder(compiled):
    X = trained("xgboost-missing")[1]
    result = forestc.check(compiled, X[:100], engines=["image"], random_rows=300)
    assert result.ok and result.engines["image"].vectors == sum(result.vectors.values())
    path = compiled.path("engine_image")
    lines = path.read_text().splitlines(keepends=True)
    try:
        path.write_text("".join([*lines[:40], "0 00000000\n", *lines[41:]]))
        with pytest.raises(ForestcError, match="the image is refused: its CRC is wrong"):
            forestc.check(compiled, X[:100], engines=["image"], random_rows=10)
        path.write_text("nonsense\n")
        with pytest.raises(ForestcError, match=r"images\.txt is damaged"):
            forestc.check(compiled, X[:100], engines=["image"], random_rows=10)
    finally:
        path.write_text("".join(lines))


def test_an_image_is_compared_before_it_is_written(monkeypatch):
    capacity, (first, second) = replace(ANY, word_bits=8), same_rows(2)
    compare_image(first, capacity, image_of(first, capacity))
    with pytest.raises(CheckError, match="the image does not equal the quantized forest"):
        compare_image(first, capacity, image_of(second, capacity))
