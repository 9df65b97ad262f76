"""Tests the estimator of Boolean factors: scikit-learn's checks, codes, bounds and limits."""

import time

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.utils.estimator_checks import parametrize_with_checks

from forestc.algorithms.members import selection_run
from forestc.errors import OptionError, RowsError
from forestc.papers import BinaryMatrixFactorization
from forestc.papers.factorization import estimator


class OfSigns(BinaryMatrixFactorization):
    """Factorizes the signs of a matrix, as scikit-learn's checks pass all numbers."""

    def _dense(self, X, **checks):
        X = super()._dense(X, **checks)
        return np.where(np.isnan(X), np.nan, X > 0)


@pytest.mark.filterwarnings("ignore")  # as scikit-learn's own tests
@parametrize_with_checks([OfSigns(max_iter=2)])
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


def matrix(seed=0, rows=60, columns=20, rank=3, noise=0.05):
    random = np.random.default_rng(seed)
    A, B = random.random((rows, rank)) < 0.4, random.random((rank, columns)) < 0.4
    return (A.astype(int) @ B.astype(int) > 0) ^ (random.random((rows, columns)) < noise)


def test_codes_and_components_give_the_error_above_the_bound():
    X = matrix()
    model = BinaryMatrixFactorization(3, random_state=0)
    codes = model.fit_transform(X)
    assert codes.shape == (60, 3) and model.components_.shape == (3, 20)
    assert model.reconstruction_error_ == np.count_nonzero(model.inverse_transform(codes) != X)
    assert 0 < model.bound_ <= model.reconstruction_error_ and 0 <= model.gap_ < 1
    assert model.model_bound_ <= model.model_error_ + 1e-9 and model.n_iter_ >= 1
    assert list(model.get_feature_names_out()) == [f"binarymatrixfactorization{k}" for k in range(3)]


def test_missing_entries_sparse_matrices_and_frames():
    X = matrix().astype(float)
    X[::5, ::3] = np.nan
    model = BinaryMatrixFactorization(3, max_iter=3, random_state=0).fit(X)
    wrong = model.inverse_transform(model.transform(X)) != (X == 1)
    assert model.reconstruction_error_ == np.count_nonzero(wrong & ~np.isnan(X))
    whole = matrix().astype(float)
    sparse, table = csr_array(whole), pd.DataFrame(whole, columns=[f"c{k}" for k in range(20)])
    each = [BinaryMatrixFactorization(3, max_iter=3, random_state=0).fit(X) for X in (whole, sparse, table)]
    assert len({model.reconstruction_error_ for model in each}) == 1
    assert each[2].feature_names_in_[0] == "c0"


def test_two_fits_are_equal_and_a_warm_start_is_no_worse():
    X = matrix(1, 40, 16, 4, 0.1)
    one, two = (BinaryMatrixFactorization(4, max_iter=2, random_state=0).fit(X) for _ in range(2))
    assert np.array_equal(one.components_, two.components_) and one.bound_ == two.bound_
    again = one.set_params(warm_start=True, max_iter=1, random_state=5).fit(X)
    assert again.reconstruction_error_ <= two.reconstruction_error_


def test_callbacks_interrupts_and_time_limits(capsys):
    X, seen = matrix(2, 50, 20, 6, 0.1), []

    def callback(incumbent, bound, gap):
        seen.append((incumbent, bound, gap))
        if len(seen) == 6:
            raise KeyboardInterrupt

    model = BinaryMatrixFactorization(6, callback=callback, verbose=1, random_state=0).fit(X)
    assert model.interrupted_ and model.bound_ <= model.reconstruction_error_ < X.sum()
    assert all(0 <= bound <= incumbent for incumbent, bound, _ in seen)
    assert "local search 1: error" in capsys.readouterr().out
    short = BinaryMatrixFactorization(6, time_limit=0.2, random_state=0).fit(X)  # the number of rounds is not limited
    assert short.bound_ <= short.reconstruction_error_ < X.sum()


def test_the_search_ends_by_work_that_repeats(monkeypatch, capsys):
    X = matrix(3, 50, 16, 4, 0.1)
    monkeypatch.setattr(estimator, "WORK", 1e6)
    monkeypatch.setattr(selection_run, "QUIET", 0.0)
    one, two = (BinaryMatrixFactorization(4, random_state=0).fit(X) for _ in range(2))
    assert 1 <= one.n_iter_ == two.n_iter_ < estimator.ROUNDS and one.bound_ == two.bound_ > 0
    assert np.array_equal(one.components_, two.components_)
    said = capsys.readouterr()
    assert "[BinaryMatrixFactorization] round 1" in said.err and not said.out
    BinaryMatrixFactorization(4, random_state=0, verbose=0).fit(X)
    assert not capsys.readouterr().err


def test_a_time_limit_holds():
    BinaryMatrixFactorization(1, max_iter=1).fit(np.eye(2))  # compiles functions
    begin = time.process_time()
    BinaryMatrixFactorization(8, time_limit=1, random_state=0).fit(matrix(0, 1500, 200, 8, 0.05))
    assert time.process_time() - begin < 2 * (1 + 1)  # two threads


def test_what_is_refused():
    for X in (np.full((3, 3), 2.0), np.full((3, 3), 0.5)):
        with pytest.raises(RowsError, match="0, 1 and NaN"):
            BinaryMatrixFactorization().fit(X)
    with pytest.raises(RowsError, match="0, 1 and NaN"):
        BinaryMatrixFactorization(max_iter=1).fit(np.eye(4)).transform(np.full((1, 4), 3))
    for wrong in ({"max_iter": 0}, {"time_limit": 0.0}, {"n_components": 0}, {"rho": -1.0}):
        with pytest.raises(OptionError) as raised:
            BinaryMatrixFactorization(**wrong).fit(np.eye(3))
        assert raised.value.do
