"""Prepares the rows to which passes fit a forest: each row, and copies with some values of other rows.

Without copies, passes overfit if rows are few.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.errors import OptionError, opt
from forestc.forest.evaluate import encode_numbers, missing_words
from forestc.forest.ir import Forest
from forestc.forest.numbers import Category
from forestc.passes.quick_evaluation import evaluate_quickly
from forestc.rows.accuracy import answers_of, truth_of_batch
from forestc.rows.batches import Rows, count_rows, evenly_spaced
from forestc.rows.noise import with_noise


@dataclass(frozen=True)
class RowsToFit:
    """Samples to which a forest is fitted: all rows used, then one copy of these rows after the other."""

    words: NDArray[Any]  # (samples, features) encoded rows
    label: NDArray[Any]  # (samples,) class indices; values of a regression
    rows: int  # number of rows that were given
    copies: int  # number of copies of each row


def rows_to_fit(
    forest: Forest,
    rows: Rows,
    most: int,
    *,
    own_labels: bool = False,
    copies: int = 0,
    most_copied: int | None = None,
    mix: float = 0.1,
    noise: float = 0.0,
    seed: int = 0,
) -> RowsToFit:
    """Returns at most `most` evenly spaced rows, with copies up to `most_copied` samples. Raises OptionError without
    rows.
    mix: share of a copy's values that come from other rows of its class."""
    words, labels = [], []
    count, most = count_rows(rows), max(1, most)
    for batch in evenly_spaced(rows, most, count).batches():
        encoded = encode_numbers(forest, batch.X)
        answers = answers_of(forest, evaluate_quickly(forest, encoded))
        truth = answers if own_labels else truth_of_batch(batch, answers)
        if forest.decides:
            truth = np.where(truth < 0, answers, truth).astype(np.int64)
        words.append(encoded)
        labels.append(truth)
    if not words or not sum(map(len, words)):
        raise OptionError("pruning needs rows, and the file has none", where=opt.rows, do="give a file with rows")
    here, label = np.concatenate(words), np.concatenate(labels)
    copies = max(0, int(min(copies, (most_copied or most) // len(here) - 1))) if mix or noise else 0
    random = np.random.default_rng(seed)
    parts = [here]
    for _ in range(copies):
        mixed = _mixed(here, label, mix, random) if mix else here
        parts.append(with_noise(mixed, here, noise, random, unordered(forest, mixed)) if noise else mixed)
    return RowsToFit(np.concatenate(parts), np.concatenate([label] * (copies + 1)), count, copies)


def unordered(forest: Forest, words: NDArray[Any]) -> NDArray[np.bool_]:
    """Returns an array (samples, features): True for words without an order, namely categories and missing values."""
    taken, missing = missing_words(forest)
    categories = np.array([isinstance(feature.number, Category) for feature in forest.features], dtype=bool)
    return np.asarray(categories | (taken & (words == missing)))


def _mixed(words: NDArray[Any], label: NDArray[Any], share: float, random: np.random.Generator) -> NDArray[Any]:
    """Returns a copy of the rows in which some words, chosen at random, come from other rows of the same class."""
    mixed = words.copy()
    for kind in np.unique(label):
        rows = np.flatnonzero(label == kind)
        others = words[random.choice(rows, len(rows))]
        mixed[rows] = np.where(random.random(others.shape) < share, others, words[rows])
    return mixed
