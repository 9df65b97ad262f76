"""Tests images: their content, refusals by the hardware, and models that do not fit."""

from __future__ import annotations

import zlib
from dataclasses import replace

import numpy as np
import pytest
from random_forests import random_forest
from thinned import only
from walkers import NARROW, Bench, same_rows

from forestc.engine.capacity import Capacity
from forestc.engine.image import DoesNotFitError, image_of, packed_rows
from forestc.engine.verilog import words_of
from forestc.errors import ModelError, OptionError
from forestc.forest.numbers import Fixed
from forestc.layouts.pairs import Layout

ROOMY = Capacity(3, 512, 8, 6, word_bits=8, outputs=5, scores=True)


@pytest.fixture(scope="module")
def model():
    return same_rows(1)[0]


def resealed(words, place, value):
    """Returns the image with one word replaced, and the matching CRC."""
    changed = words.copy()
    changed[place] = value
    changed[-1] = zlib.crc32(changed[:-1].astype("<u4").tobytes())
    return changed


def test_the_header_and_the_crc(model):
    image = image_of(model, ROOMY)
    words = image.words
    assert image.bytes[:4] == b"FENG" and words[1:4].tolist() == [1, ROOMY.id, len(words)]
    assert words[-1] == zlib.crc32(image.bytes[:-4])
    assert words[12] == len(image.slots) and words[15] == 0
    assert words_of(ROOMY)[0] <= len(words) <= words_of(ROOMY)[1]
    assert words[16 : 16 + model.n_outputs].astype(np.int32).tolist() == model.bias.tolist()
    assert image_of(model, ROOMY).bytes == image.bytes


def test_another_model_has_another_hash():
    first, second = (image_of(model, ROOMY) for model in same_rows(2))
    assert first.words[4:12].tolist() != second.words[4:12].tolist()


def test_capacities_have_numbers_of_their_own():
    others = [replace(ROOMY, **{name: value}) for name, value in (("walkers", 2), ("nodes", 256), ("slots", 7))]
    others += [replace(ROOMY, features=5), replace(ROOMY, outputs=4), replace(ROOMY, scores=False)]
    assert len({each.id for each in [ROOMY, *others]}) == 7
    assert replace(ROOMY, banks=1, load="axi-lite", name="other").id == ROOMY.id  # these take the same images


@pytest.mark.parametrize("load", only(["stream", "axi-lite"], 0))
def test_damaged_images_are_refused_and_the_model_stays(load, model, tmp_path, need_tool):
    """Changes each bit, and drops each part: the old model answers, and the status says why."""
    need_tool("iverilog")
    capacity = replace(ROOMY, load=load)
    bench, good = Bench.of(capacity, tmp_path / "bench"), image_of(model, capacity).words
    other = image_of(same_rows(2)[1], capacity).words
    slots, first = int(other[12]), 16 + capacity.outputs
    bad = {
        1: resealed(other, 0, int(other[0]) ^ 1),
        2: resealed(other, 1, 2),
        3: resealed(other, 2, int(other[2]) ^ 16),
        4: resealed(other, 3, len(other) + 1),
        5: resealed(other, 12, capacity.slots + 1),
        6: resealed(other, 13, int(other[13]) | 3),
        7: resealed(other, first + slots, capacity.nodes + 1),
        8: other ^ (np.arange(len(other)) == len(other) // 2).astype(np.uint32),
        9: other[:-3],
    }
    words = np.random.default_rng(0).integers(0, 256, (30, 5))
    for error, image in bad.items():
        verdict = bench.run([model], words, [(0, good), (10, image)], seed=error)
        assert verdict.passed, verdict.text
        assert (verdict.active, verdict.error, verdict.taken, verdict.refused) == (True, error, 1, 1), error
    random = np.random.default_rng(1)
    flips = [other.copy() for _ in range(40)]
    for flip in flips:
        flip[int(random.integers(len(flip)))] ^= np.uint32(1 << int(random.integers(32)))
    more = [resealed(other, 15, 1), resealed(other, first, 1 << 25), np.append(other, 0).astype(np.uint32), other[:1]]
    images = [(0, good), *((5, image) for image in flips + more)]
    verdict = bench.run([model], words, images)
    assert verdict.passed and (verdict.taken, verdict.refused) == (1, len(flips) + len(more)), verdict.text


def test_one_bank_waits_for_a_whole_image(model, tmp_path, need_tool):
    """A header of another capacity leaves the model; after a matching header there is no model until an image is
    complete."""
    need_tool("iverilog")
    capacity = replace(ROOMY, banks=1)
    bench, good = Bench.of(capacity, tmp_path / "bench"), image_of(model, capacity).words
    words = np.random.default_rng(0).integers(0, 256, (60, 5))
    damaged = good ^ (np.arange(len(good)) == 30).astype(np.uint32)
    images = [(0, good), (20, resealed(good, 2, 0)), (30, damaged), (30, good)]
    verdict = bench.run([model], words, images, stall=3)
    assert verdict.passed and (verdict.taken, verdict.refused) == (2, 2), verdict.text
    verdict = bench.run([model], words, [(0, good), (30, damaged)])
    assert not verdict.passed and not verdict.active and "0 wrong" in verdict.text


def test_hostile_nodes_end_in_time(model, tmp_path, need_tool):
    need_tool("iverilog")
    bench, good = Bench.of(ROOMY, tmp_path / "bench"), image_of(model, ROOMY).words
    first = 16 + ROOMY.outputs + int(good[12])
    hostile = good.copy()
    random = np.random.default_rng(0).integers(0, 1 << 32, len(good), dtype=np.uint32)
    counts, at = {first}, first
    while at + 1 + int(good[at]) * ROOMY.node_words < len(good) - 1:
        at += 1 + int(good[at]) * ROOMY.node_words
        counts.add(at)
    for place in range(first, len(good) - 1):
        hostile[place] = good[place] if place in counts else random[place]
    hostile = resealed(hostile, 15, 0)
    words = np.random.default_rng(0).integers(0, 256, (40, 5))
    verdict = bench.run([model], words, [(0, hostile)])
    assert (verdict.taken == 1 and "40 seen of 40 sent" in verdict.text) or verdict.passed


REFUSED = {
    "nodes": ({"nodes": 16, "slots": 2, "walkers": 6}, r"one needs \d+ nodes, and has 16.*prune-trees.*nodes="),
    "slots": ({"slots": 1, "walkers": 1}, r"trees take \d turns of 1 walkers; there are 1.*prune-trees"),
    "features": ({"features": 3}, r"reads column 5 of its rows, and the engine's have 3.*features=5"),
    "outputs": ({"outputs": 1}, r"the model has \d outputs, and the engine 1.*classes="),
    "words": ({"word_bits": 7}, r"the engine's words have 7 bits, and 8 are needed.*quantize-inputs\{input_bits=7\}"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_does_not_fit_is_said_with_what_would_make_it_fit(what, model):
    changes, message = REFUSED[what]
    kind = OptionError if what == "words" else DoesNotFitError
    with pytest.raises(kind, match=message):
        image_of(model, replace(ROOMY, **changes))


def test_leaves_and_scores_that_are_too_wide(model):
    wide = [replace(tree, values=tree.values * 5000) for tree in model.trees]
    with pytest.raises(DoesNotFitError, match=r"a leaf adds .* bits, and the engine's leaves have 1\d.*leaf_bits"):
        image_of(replace(model, trees=tuple(wide)), replace(ROOMY, nodes=128))
    with pytest.raises(DoesNotFitError, match=r"scores need 1\d bits, and the engine's have 8.*score_bits=1\d"):
        image_of(replace(model, bias=model.bias + 9999), replace(ROOMY, score_bits=8))


def test_what_no_engine_computes():
    regression = random_forest(2, True, "regression", [Fixed(8)])
    with pytest.raises(DoesNotFitError, match=r"gives values, and the engine labels alone.*scores="):
        image_of(regression, replace(ROOMY, scores=False))
    for kind in ("vote", "each", "average"):
        with pytest.raises(ModelError, match=r"several models.*compile to verilog or c"):
            image_of(random_forest(1, True, kind, [Fixed(8)]), ROOMY)
    largest = replace(regression, aggregate=replace(regression.aggregate, kind="max"))
    with pytest.raises(ModelError, match="takes no trees that are not added"):
        image_of(largest, ROOMY)
    with pytest.raises(OptionError, match="takes quantized forests"):
        image_of(random_forest(1, False, "binary"), ROOMY)


def test_trees_of_one_class_share_a_slot_where_that_takes_fewer_clocks():
    """Uses 15 trees of 3 classes on 5 walkers: slots of one class each give one output, not three."""
    base = random_forest(3, True, "vector", [Fixed(4)])
    tree = max(base.trees, key=lambda each: each.depth)
    single = [replace(tree, values=tree.values[:, :1], outputs=(place % 3,)) for place in range(15)]
    forest = replace(base, trees=tuple(single))
    image = image_of(forest, replace(ROOMY, walkers=5))
    assert [slot.count for slot in image.slots] == [1, 1, 1]
    assert {tuple(forest.trees[tree].outputs for tree in slot.trees) for slot in image.slots} == {
        ((k,),) * 5 for k in range(3)
    }
    assert image.clocks == 3 * (Layout.of(forest, 8).blocks(single[0]).steps + 1)


def test_rows_are_placed_by_column():
    """Models of the same rows that read different columns must agree on the position of a column."""
    forest = random_forest(4, True, "argmax", NARROW)
    moved = replace(
        forest, columns=9, features=tuple(replace(each, column=each.column + 1) for each in forest.features)
    )
    capacity = Capacity(2, 512, 8, 8, word_bits=16, outputs=5)
    words = np.stack([np.full(3, 1)] * len(forest.features), axis=1)
    here, there = packed_rows(forest, capacity, words), packed_rows(moved, capacity, words)
    assert (here[:, 0] & 0xFFFF == there[:, 0] >> 16).all()
    doubled = replace(forest, features=tuple(replace(each, column=0) for each in forest.features))
    if len(forest.features) > 1:
        with pytest.raises(ModelError, match="takes no two features of one column"):
            packed_rows(doubled, capacity, words)
