"""Tests factors against the best of all, bounds, and odd matrices, which are factored or refused."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from forestc.errors import OptionError, RowsError
from forestc.papers.factorization.biclique_pricing import greedy_bicliques, heaviest_biclique, improved
from forestc.papers.factorization.binary_matrix_factorization import best_rows, factorize
from forestc.papers.factorization.factor_search import WeightedMatrix, boolean_product, k_greedy, searched


def patterns(m):
    return np.array([[place >> bit & 1 for bit in range(m)] for place in range(1, 2**m)], dtype=bool)


def least_error(X, k):
    """Returns the least error over all B, where each row of A takes the best OR of rows of B."""
    known = ~np.isnan(X)
    every, best = patterns(X.shape[1]), np.count_nonzero(X == 1)
    for chosen in combinations(range(len(every)), k):
        B = every[list(chosen)]
        sums = np.array([np.zeros(X.shape[1], bool), *(B[row].any(axis=0) for row in patterns(k))])
        wrong = ((sums[None] != (X == 1)[:, None]) & known[:, None]).sum(axis=2)
        best = min(best, wrong.min(axis=1).sum())
    return best


def random_matrix(seed, n=7, m=4, missing=0.0):
    random = np.random.default_rng(seed)
    X = (random.random((n, m)) < 0.5).astype(float)
    X[random.random((n, m)) < missing] = np.nan
    return X


@pytest.mark.slow
@settings(max_examples=examples(6), deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.integers(1, 3), st.sampled_from([0.0, 0.2]), st.sampled_from([3.0, 1.0, 0.95, 0.5]))
def test_the_factors_are_the_best_of_all_and_bounds_hold(seed, k, missing, rho):
    X = random_matrix(seed, missing=missing)
    found = factorize(X, k, rho=rho, time_limit=20)
    best = least_error(X, k)
    assert found.A.shape == (7, k) and found.B.shape == (k, 4)
    assert found.error == np.count_nonzero((boolean_product(found.A, found.B) != X) & ~np.isnan(X))
    assert found.bound <= best <= found.error
    assert found.error == best  # The search always finds the best factors of matrices as small as these.
    assert found.optimal == (found.bound >= found.error)
    assert found.model_bound <= found.model_error + 1e-9
    if rho >= 1.0:
        assert found.model_error >= best


def test_the_model_charges_rho_for_a_zero():
    X = np.array([[1, 1, 0], [1, 1, 1], [0, 1, 1], [1, 0, 1]], dtype=float)
    found = factorize(X, 1, rho=3.0, time_limit=20)
    # Rank 1 covers either all entries, with three zeros at 3, or a biclique of ones alone.
    assert found.error == 3 and found.model_error == found.model_bound == 5 and found.model_gap == 0


@settings(max_examples=examples(20), deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.integers(2, 6), st.integers(2, 6))
def test_the_exact_search_finds_the_heaviest_biclique(seed, n, m):
    random = np.random.default_rng(seed)
    H = random.normal(size=(n, m)).round(2)
    best = max(np.maximum(H[:, b].sum(axis=1), 0).sum() for b in patterns(m))
    found, bound, complete = heaviest_biclique(H, 0.0)
    assert complete and bound == pytest.approx(best)
    for each in found:
        assert each.weight == pytest.approx(H[np.ix_(each.rows, each.columns)].sum())
    if best > 0:
        assert found[0].weight == pytest.approx(best)
    assert heaviest_biclique(H, 0.0, steps=1)[1] >= best - 1e-9
    for each in greedy_bicliques(H, random):
        assert 0 < each.weight <= best + 1e-9
        assert improved(H, each.columns).weight == pytest.approx(each.weight)  # no alternating step improves it


def test_a_matrix_of_low_rank_is_recovered():
    random = np.random.default_rng(0)
    A, B = random.random((40, 3)) < 0.4, random.random((3, 12)) < 0.4
    found = factorize(boolean_product(A, B), 3, time_limit=20)
    assert found.error == 0 and found.optimal and found.gap == 0
    more = factorize(boolean_product(A, B), 20, time_limit=20)  # The rank is larger than both sides of the matrix.
    assert more.error == 0 and more.A.shape == (40, 20) and more.B.shape == (20, 12)


def test_equal_rows_and_columns_weigh_as_many():
    X = random_matrix(5, 6, 4)
    twice = np.repeat(np.repeat(X, 3, axis=0), 2, axis=1)
    one, six = (factorize(each, 2, time_limit=20) for each in (X, twice))
    assert six.error == 6 * one.error and six.bound <= six.error


@pytest.mark.parametrize(("X", "error"), [(np.zeros((3, 4)), 0), (np.ones((3, 4)), 0), (np.full((3, 4), np.nan), 0)])
def test_matrices_with_nothing_to_do(X, error):
    found = factorize(X, 2, time_limit=5)
    assert found.error == error and found.optimal


@pytest.mark.parametrize(
    ("X", "k", "more", "error", "words"),
    [
        (np.full((2, 2), 2), 1, {}, RowsError, "0, 1 and NaN"),
        (np.zeros(3), 1, {}, RowsError, "0, 1 and NaN"),
        (np.zeros((0, 3)), 1, {}, RowsError, "0, 1 and NaN"),
        (np.eye(3), 0, {}, OptionError, "above 0"),
        (np.eye(3), 1, {"rho": 0.0}, OptionError, "above 0"),
        (np.eye(3), 1, {"time_limit": -1.0}, OptionError, "above 0"),
    ],
)
def test_what_can_not_be_factorized_is_refused(X, k, more, error, words):
    with pytest.raises(error, match=words):
        factorize(X, k, **more)


def test_the_same_seed_gives_the_same_factors():
    X = random_matrix(9, 20, 9)
    one, two = (factorize(X, 3, seed=4, time_limit=30) for _ in range(2))
    assert np.array_equal(one.A, two.A) and np.array_equal(one.B, two.B) and one.bound == two.bound


def test_an_interrupt_keeps_the_best_factors_so_far():
    output = []

    def progress(line):
        output.append(line)
        if line.text.startswith("round 2"):
            raise KeyboardInterrupt

    X = random_matrix(1, 30, 12)
    found = factorize(X, 4, time_limit=30, progress=progress)
    assert found.interrupted and output[0].text.startswith("local search 1")
    assert found.bound <= found.error == np.count_nonzero(boolean_product(found.A, found.B) != X) < X.sum()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("shape", [(30, 10), (70, 130)])
def test_local_search_counts_weighted_errors_and_never_ends_worse_than_it_began(seed, shape):
    random = np.random.default_rng(seed)
    X, known = random.random(shape) < 0.5, random.random(shape) < 0.9
    problem = WeightedMatrix(X, known, random.integers(1, 6, shape[0]), random.integers(1, 4, shape[1]))
    start = k_greedy(problem, 4, random)
    for found in searched(problem, [start, start], 200, seed):
        assert found.error <= start.error < problem.weight[X].sum()
        assert found.error == problem.weight[boolean_product(found.A, found.B) != X].sum()
        for bits in (found.A, found.B):  # no flip of a single bit lowers the error
            for at in random.permutation(bits.size)[:40]:
                bits.flat[at] ^= True
                assert problem.weight[boolean_product(found.A, found.B) != X].sum() >= found.error
                bits.flat[at] ^= True


@pytest.mark.parametrize("seed", range(4))
def test_rows_take_their_best_factors(seed):
    random = np.random.default_rng(seed)
    B = random.random((5, 9)) < 0.4
    X = random_matrix(seed, 40, 9, missing=0.1)
    A = best_rows(X, B)
    every = np.concatenate([np.zeros((1, 5), bool), patterns(5)])
    wrong = (boolean_product(every, B)[None] != (X == 1)[:, None]) & ~np.isnan(X)[:, None]
    error = ((boolean_product(A, B) != (X == 1)) & ~np.isnan(X)).sum(axis=1)
    assert np.array_equal(error, wrong.sum(axis=2).min(axis=1))


def test_a_fit_without_a_time_limit_is_repeatable_and_begins_with_given_factors():
    X = random_matrix(2, 30, 12)
    one, two = (factorize(X, 3, rounds=3, time_limit=np.inf, seed=1) for _ in range(2))
    assert np.array_equal(one.A, two.A) and one.error == two.error and one.bound == two.bound
    more = factorize(X, 3, rounds=1, time_limit=np.inf, start=one.B, seed=7)
    assert more.error <= one.error
    with pytest.raises(OptionError, match="time_limit and rounds: neither"):
        factorize(X, 3, time_limit=np.inf)
