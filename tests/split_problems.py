"""Makes random ensembles in the form for the pruning of splits: leaves of rows, and the splits above."""

from __future__ import annotations

import numpy as np

from forestc.algorithms.splits.leaf_fitting import Trees
from forestc.algorithms.splits.pruning import Splits, as_given
from forestc.algorithms.splits.state import Outcomes


def grown(random, depth):
    """Grows a random tree; returns (leaves, [(first, middle, last, size)]) with children first."""
    splits = []

    def grow(level, first):
        if level == depth or random.random() < 0.25:
            return first + 1, 0
        middle, left = grow(level + 1, first)
        last, right = grow(level + 1, middle)
        splits.append((first, middle, last, left + right + 1))
        return last, left + right + 1

    leaves, _ = grow(0, 0)
    return leaves, splits


def problem(random, classes, count, rows, wide, largest=3):
    shapes = [grown(random, 4) for _ in range(count)]
    leaf = np.stack([random.integers(0, leaves, rows) for leaves, _ in shapes]).astype(np.int32)
    outputs = np.array([[0, classes] if wide else [k := int(random.integers(0, classes)), k + 1] for _ in shapes])
    sizes = np.array([leaves for leaves, _ in shapes]) * (outputs[:, 1] - outputs[:, 0])
    start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    trees = Trees(leaf, start, random.integers(0, largest + 1, int(start[-1])), outputs)
    table = np.array([(t, *split) for t, (_, own) in enumerate(shapes) for split in own], dtype=np.int64).reshape(-1, 5)
    condition = random.integers(0, 6, len(table))
    return trees, Splits(*table.T.copy(), condition, np.ones(6), node=0.1, sum=3.0)


def outcomes_of(holds, pool):
    """Makes rows of given outcomes: (rows, conditions), 1 if a row goes left. Each condition has a column of
    its own."""
    count = holds.shape[1]
    return Outcomes(
        (1 - holds).astype(np.uint8), np.arange(count), np.ones(count, np.int64), np.arange(0, 2 * count + 1, 2), pool
    )


def shape_of(trees, splits):
    return as_given(trees, splits)[0]


def state_of(trees, splits, **changed):
    """Returns the initial state, with some fields replaced."""
    return as_given(trees, splits)[1]._replace(**changed)


def collapsed(trees, splits, split, chosen):
    """Returns the leaf values after those of a subtree become `chosen`."""
    value, width, start = trees.value.copy(), len(chosen), trees.start[splits.tree[split]]
    for slot in range(int(splits.first[split]), int(splits.last[split])):
        value[start + slot * width : start + (slot + 1) * width] = chosen
    return value


def loss_of(odds, label):
    """Returns the mean logistic loss in nats. odds: (rows, outputs) log odds; with one output those of class 1."""
    if odds.shape[1] == 1:
        return float(np.logaddexp(0, np.where(label == 1, -odds[:, 0], odds[:, 0])).mean())
    top = odds.max(axis=1, keepdims=True)
    total = np.log(np.exp(odds - top).sum(axis=1)) + top[:, 0]
    return float((total - odds[np.arange(len(label)), label]).mean())
