"""Tests noise on rows: values move to near values of their column, by ranks."""

from __future__ import annotations

import numpy as np
import pytest
from random_forests import random_forest, troublesome_rows

from forestc.errors import OptionError
from forestc.forest.evaluate import missing_words
from forestc.forest.numbers import Category
from forestc.passes.mixed_rows import rows_to_fit
from forestc.rows.batches import ArrayRows
from forestc.rows.encode import encode
from forestc.rows.noise import with_noise


def rng():
    return np.random.default_rng(0)


def test_values_are_those_of_the_column_and_nan_stays():
    X = rng().normal(size=(300, 4)) * [1, 10, 0, 1e6]
    X[::7, 1] = np.nan
    X[:, 3] = np.nan
    moved = with_noise(X, X, 0.1, rng())
    assert (np.isnan(moved) == np.isnan(X)).all()
    for before, after in zip(X.T, moved.T, strict=True):
        assert np.isin(after[~np.isnan(after)], before).all()
    assert (moved[:, 0] != X[:, 0]).mean() > 0.9
    stays = rng().random(X.shape) < 0.5
    some = with_noise(X, X, 0.1, rng(), stays)
    assert (np.isnan(some) == np.isnan(X)).all() and np.array_equal(some[stays], X[stays], equal_nan=True)


@pytest.mark.parametrize("noise", [0.02, 0.1])
def test_noise_is_a_share_of_the_ranks(noise):
    X = rng().permutation(2000)[:, None]
    moved = with_noise(X, X, noise, rng())
    inner = (X > 800) & (X < 1200)  # Ranks are cut off at the ends, so only inner values are compared.
    assert 0.85 * noise < (moved - X)[inner].std() / len(X) < 1.15 * noise


def test_no_noise_moves_nothing_whatever_the_ties():
    X = rng().integers(0, 5, size=(200, 3))
    assert (with_noise(X, X, 0.0, rng()) == X).all()


def test_scale_and_spread_do_not_matter():
    X = rng().normal(size=(500, 2))
    assert (with_noise(np.exp(3 * X), np.exp(3 * X), 0.1, rng()) == np.exp(3 * with_noise(X, X, 0.1, rng()))).all()


def test_common_values_stay_common():
    X = np.where(rng().random((3000, 1)) < 0.8, 0.0, rng().random((3000, 1)))
    moved = with_noise(X, X, 0.1, rng())
    assert 0.75 < (moved == 0).mean() < 0.85
    assert (moved[X == 0] == 0).mean() > 0.9


def test_categories_and_missing_words_of_copies_stay():
    categories, absent = 0, 0
    for seed in range(30):
        forest = random_forest(seed, True)
        X = troublesome_rows(forest, seed, 60)
        try:
            drawn = rows_to_fit(forest, ArrayRows(X), 10_000, own_labels=True, copies=2, mix=0.0, noise=0.2)
        except OptionError:
            continue
        words = encode(forest, X)
        taken, missing = missing_words(forest)
        for copy in drawn.words[len(X) :].reshape(2, *words.shape):
            gone = taken & (words == missing)
            assert ((taken & (copy == missing)) == gone).all()
            absent += int(gone.sum())
            for index, feature in enumerate(forest.features):
                if isinstance(feature.number, Category):
                    assert (copy[:, index] == words[:, index]).all()
                    categories += 1
        assert (drawn.words[: len(X)] == words).all()
    assert categories > 5 and absent > 50
