"""Tests that the proof of an engine holds for the written Verilog and images, and fails if they differ."""

from __future__ import annotations

import zlib
from dataclasses import replace

import numpy as np
import pytest
from models import trained
from random_forests import random_forest
from thinned import only
from verilog_mutants import CAPACITIES, mutants
from walkers import KINDS, NARROW, same_rows

import forestc
from forestc.backends.engine.image_reader import EngineShape, read_image, row_words
from forestc.backends.vectors import vectors
from forestc.checks.proof import Proof, ProofPart, prove_image
from forestc.checks.proof.engine import Columns, joined, without
from forestc.checks.proof.parts import UnprovedError
from forestc.checks.proof.step import prove_step
from forestc.engine.capacity import Capacity
from forestc.engine.folder import described
from forestc.engine.image import image_of
from forestc.engine.vectors import results_of
from forestc.engine.verilog import emit
from forestc.errors import ForestcError
from forestc.forest.evaluate import evaluate_words
from forestc.forest.numbers import Category, Fixed, word_range
from forestc.rows.batches import ArrayRows

ANY = Capacity(3, 512, 8, 6, word_bits=11, outputs=5, scores=True)
SMALL = replace(ANY, word_bits=8)


def proof_of(forest, capacity, words=None):
    image = image_of(forest, capacity)
    data = (image.words if words is None else words).astype("<u4").tobytes()
    return prove_image(forest, described(capacity), data, [slot.trees for slot in image.slots], Proof())


def resealed(words):
    words[-1] = zlib.crc32(words[:-1].astype("<u4").tobytes())
    return words


@pytest.mark.parametrize("kind", KINDS)
def test_images_of_random_forests_are_proved(kind):
    for seed in range(30):
        forest = random_forest(seed, True, kind, NARROW)
        proof = proof_of(forest, ANY)
        assert proof.proved, (seed, proof.parts)
        assert [part.name for part in proof.parts] == ["image", "trees", "steps", "sums", "decision"]


STEPS = [ANY, SMALL, Capacity(1, 4096, 2, 6, word_bits=2), Capacity(2, 64, 2, 2, word_bits=16, outputs=7)]


@pytest.mark.parametrize("capacity", STEPS)
def test_the_step_of_the_hardware_is_proved(capacity, need_tool):
    need_tool("yosys")
    part = ProofPart("step", 2)
    prove_step(EngineShape.of(described(capacity)), emit(capacity).encode(), capacity, part)
    assert part.proved == 2


def test_changed_steps_are_not_proved(need_tool):
    """Changes each operator and constant, except widths with a bit to spare and the constant LESS, which
    nothing reads."""
    need_tool("yosys")
    changed = [each for each in mutants() if each.module == "step" and each.capacity == "two banks"]
    changed = [each for each in changed if "narrower" not in each.what and "LESS = " not in each.changed][::3]
    assert len(changed) > 7
    shape = EngineShape.of(described(CAPACITIES["two banks"]))
    for mutant in changed:
        with pytest.raises(UnprovedError):
            prove_step(shape, mutant.source().encode(), CAPACITIES["two banks"], ProofPart("step", 2))


def test_flipped_bits_of_nodes_are_not_proved_where_a_result_differs():
    """Checks also that the row named in a refutation gives another result."""
    random, counts = np.random.default_rng(0), {"proved": 0, "refuted": 0, "undecided": 0}
    for seed in range(6):
        forest = random_forest(seed, True, KINDS[seed % 4], NARROW)
        good = image_of(forest, ANY).words
        first = 16 + ANY.outputs + int(good[12])
        rows = np.concatenate([v.words for v in vectors(forest, ArrayRows(np.empty((0, forest.columns))), 99)])[:2000]
        expected = results_of(ANY, evaluate_words(forest, rows))
        for _ in range(25):
            words = good.copy()
            words[int(random.integers(first, len(good) - 1))] ^= np.uint32(1 << int(random.integers(ANY.node_bits)))
            proof = proof_of(forest, ANY, resealed(words))
            counts[proof.verdict] += 1
            try:
                reader = read_image(words.tobytes(), described(ANY))
                same = np.array_equal(reader.walked(row_words(forest, reader.shape, rows)), expected)
            except ForestcError:
                same = False
            assert same or not proof.proved, (seed, proof.parts)
            if proof.refuted and proof.parts[0].proved:
                assert "the image gives" in proof.parts[1].why or not same, proof.parts
    assert counts["refuted"] > 50 and counts["proved"] > 5, counts


def test_each_other_word_of_an_image_is_held():
    forest = next(f for f in (random_forest(seed, True, "argmax", [Fixed(8)]) for seed in range(9)) if len(f.trees) > 3)
    words = image_of(forest, SMALL).words
    table = 16 + SMALL.outputs
    changes = {
        (13, 1 << 2): "decision", (13, 3): "decision", (16, 1): "sums", (table, 1 << 24): "sums", (4, 1): "",
    }  # fmt: skip
    for (place, bits), name in changes.items():
        changed = words.copy()
        changed[place] ^= np.uint32(bits)
        proof = proof_of(forest, SMALL, resealed(changed))
        assert [part.name for part in proof.parts if part.why] == ([name] if name else []), (place, proof.parts)
    fewer = words.copy()
    fewer[table] -= 1
    part = next(part for part in proof_of(forest, SMALL, resealed(fewer)).parts if part.name == "steps")
    assert part.proved < part.asked and "steps, and a walk takes" in part.why
    broken = proof_of(forest, SMALL, np.append(words[:-1], 0).astype(np.uint32))
    assert broken.refuted and "CRC" in broken.parts[0].why


def test_walks_that_never_end_are_not_proved():
    forest = same_rows(1)[0]
    words = image_of(forest, SMALL).words.copy()
    place = 16 + SMALL.outputs + int(words[12]) + 1
    words[place] = int(words[place]) & ~(((1 << SMALL.address_bits) - 1) << 3)  # The node becomes its own child.
    proof = proof_of(forest, SMALL, resealed(words))
    assert not proof.proved and "lead to one another" in proof.parts[1].why


def test_spans():
    assert joined(((4, 6), (0, 2), (2, 3))) == ((0, 3), (4, 6))
    assert without(((0, 10),), ((2, 3), (5, 20))) == ((0, 2), (3, 5))


def test_the_words_that_go_left_are_those_of_the_evaluator():
    """Compares on each side of each end of a span, at the root of trees with every kind of condition."""
    for seed in range(60):
        forest = random_forest(seed, True, KINDS[seed % 4], NARROW)
        columns = Columns.of(forest, EngineShape.of(described(ANY)))
        for tree in forest.trees:
            if not len(tree.inner):
                continue
            column, left = columns.left(tree, 0)
            spans = columns.all(column)
            ends = {end + step for start, stop in (*spans, *left) for end in (start, stop) for step in (-1, 0)}
            for word in (end for end in ends if inside(spans, end)):
                row = np.zeros((1, len(forest.features)), dtype=np.int64)
                row[0, column] = word_of(forest.features[column], word, columns.top)
                leaf = evaluate_words(replace(forest, trees=(tree,)), row).leaves[0, 0]
                child = tree.left[0] if inside(left, word) else tree.right[0]
                assert below(tree, int(child), int(np.flatnonzero(tree.ids == leaf)[0]))


def inside(spans, word):
    return any(start <= word < stop for start, stop in spans)


def word_of(feature, raised, top):
    span = word_range(feature.number, feature.missing)
    missing = span.missing is not None and raised == top and not isinstance(feature.number, Category)
    return span.missing if missing else raised + span.low


def below(tree, node, leaf):
    """Returns True if a leaf is the node or lies below it."""
    if tree.left[node] < 0:
        return node == leaf
    return below(tree, int(tree.left[node]), leaf) or below(tree, int(tree.right[node]), leaf)


@pytest.mark.parametrize("kind", only(["xgboost-multi", "forest-missing"], 1))
def test_a_compiled_folder_is_proved(kind, tmp_path, need_tool):
    need_tool("yosys")
    model, X, y = trained(kind)
    done = forestc.compile(model, X[:200], tmp_path / "out", label=y[:200], targets="engine", name="m")
    result = forestc.check(done.design, X[:50], engines=["image"], random_rows=10, prove=True)
    assert result.ok and result.proof.verdict == "proved"
    assert [part.name for part in result.proof.parts] == ["step", "image", "trees", "steps", "sums", "decision"]
    path = done.design.path("engine")
    text = path.read_text()
    path.write_text(text.replace("x < operand", "x <= operand"))
    broken = forestc.check(done.design, X[:50], engines=["image"], random_rows=10, prove=True)
    assert not broken.ok and broken.proof.verdict == "refuted"
    assert "another next than the definition" in broken.proof.parts[0].why and "refuted: step" in str(broken.problem())
