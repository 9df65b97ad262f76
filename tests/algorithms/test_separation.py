"""Tests the search, and the integer program beside it, against all cells. Here another walk through the trees finds the
leaves."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from separation_program import separate_by_program

from forestc.algorithms.separation.oracle import BoxEnsemble, Decider, TreeBoxes, separate

ENGINES = (separate, separate_by_program)
PLENTY = 10**12


def grown(random, size, outputs, depth):
    """Grows a random tree: nested tuples (feature, cut, left, right), or a leaf's values."""
    feature = int(random.integers(len(size)))
    if depth == 0 or size[feature] < 2 or random.random() < 0.1:
        return random.integers(-6, 7, outputs)
    cut = int(random.integers(1, size[feature]))
    return feature, cut, grown(random, size, outputs, depth - 1), grown(random, size, outputs, depth - 1)


def value_at(tree, cells):
    while isinstance(tree, tuple):
        feature, cut, left, right = tree
        tree = left if cells[feature] < cut else right
    return tree


def boxes(tree, size):
    """Returns the leaves of a tree as boxes, without leaves that no cell reaches."""
    found = []

    def walk(node, low, high):
        if any(a >= b for a, b in zip(low, high, strict=True)):
            return
        if not isinstance(node, tuple):
            found.append((low, high, node))
            return
        feature, cut, left, right = node
        walk(left, low, [min(h, cut) if f == feature else h for f, h in enumerate(high)])
        walk(right, [max(a, cut) if f == feature else a for f, a in enumerate(low)], high)

    walk(tree, [0] * len(size), list(size))
    low, high, value = zip(*found, strict=True)
    return TreeBoxes(np.array(low, np.int32), np.array(high, np.int32), np.array(value, np.int64))


def decided(decider, score):
    """Returns the class of one input's scores."""
    if decider.threshold is not None:
        return int(score[-1] >= decider.threshold)
    winners = [k for k, s in enumerate(score) if s == max(score)]
    return winners[-1] if decider.ties_last else winners[0]


def differing(before, after, biases, decider, box):
    """Returns all cells of the box with different decisions before and after."""
    found = []
    for cells in itertools.product(*(range(low, high) for low, high in zip(*box, strict=True))):
        old, new = (
            decided(decider, b + sum(value_at(tree, cells) for tree in trees))
            for trees, b in zip((before, after), biases, strict=True)
        )
        if old != new:
            found.append(cells)
    return found


def cases():
    for seed in range(24):
        random = np.random.default_rng(seed)
        size = random.integers(1, 6, int(random.integers(1, 4)))
        outputs = int(random.integers(1, 4))
        decider = Decider(int(random.integers(-4, 5)) if outputs == 1 else None, bool(seed % 2))
        yield random, size, outputs, decider


def test_engines_agree_with_all_cells():
    output = {"same": 0, "differs": 0}
    for random, size, outputs, decider in cases():
        before = [grown(random, size, outputs, 4) for _ in range(int(random.integers(1, 5)))]
        biases = [random.integers(-2, 3, outputs) for _ in range(2)]
        model = BoxEnsemble(tuple(boxes(tree, size) for tree in before), biases[0])
        for change in range(4):
            after, new = list(before), model
            for index in random.choice(len(before), min(len(before), 1 + change // 2), replace=False).tolist():
                # Either a tree is removed, or it is grown anew, or only its form changes.
                forms = (
                    np.zeros(outputs, np.int64),
                    grown(random, size, outputs, 3),
                    (0, 1, before[index], before[index]),
                )
                after[index] = forms[int(random.integers(3))]
                new = new.with_tree(index, boxes(after[index], size))
            new = replace(new, bias=biases[change % 2])
            low = np.array([int(random.integers(n)) if change == 3 else 0 for n in size], np.int32)
            box = low, np.array(size, np.int32)
            wrong = differing(before, after, [biases[0], new.bias], decider, box)
            for engine in ENGINES:
                found = engine(model, new, decider, box, PLENTY)
                assert found.state == ("differs" if wrong else "same")
                assert (tuple(found.cells.tolist()) in wrong) if wrong else found.cells is None
            output[found.state] += 1
    assert min(output.values()) > 15


@pytest.mark.parametrize("engine", ENGINES)
def test_a_limit_gives_unknown_never_same(engine):
    random = np.random.default_rng(1)
    size = np.full(6, 12)
    trees = tuple(boxes(grown(random, size, 1, 6), size) for _ in range(12))
    model = BoxEnsemble(trees, np.zeros(1, np.int64))
    raised = replace(model, bias=np.ones(1, np.int64))
    box = np.zeros(6, np.int32), size.astype(np.int32)
    # Bounds alone allow this threshold to be reached, but no input reaches it.
    highest = sum(int(tree.value.max()) for tree in trees)
    proofs = (engine(model, raised, Decider(t), box, PLENTY) for t in range(highest + 1, 0, -1))
    place, proof = next((place, one) for place, one in enumerate(proofs) if one.steps)
    assert proof.state == "same"
    short = engine(model, raised, Decider(highest + 1 - place), box, 1 if engine is separate else 0)
    assert short.state == "unknown" and short.cells is None and short.steps < proof.steps
