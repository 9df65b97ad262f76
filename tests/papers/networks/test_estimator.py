"""Tests the estimator of networks: scikit-learn's checks, queries against sums over all rows, limits and text."""

import math
import time
from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from forestc.errors import ModelError, OptionError, RowsError
from forestc.papers import BoundedTreewidthNetwork


class OfSigns(BoundedTreewidthNetwork):
    """Learns from the signs of a table, as scikit-learn's checks pass all numbers."""

    def _dense(self, X, **checks):
        return (super()._dense(X, **checks) > 0).astype(np.int64)


@pytest.mark.filterwarnings("ignore")  # as scikit-learn's own tests
@parametrize_with_checks([OfSigns(n_runs=1)])
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


def rows(seed=0, n=5, count=300):
    random = np.random.default_rng(seed)
    X = np.zeros((count, n), dtype=np.int64)
    X[:, 0] = random.integers(0, 3, count)
    for k in range(1, n):
        X[:, k] = np.where(random.random(count) < 0.2, random.integers(0, 2, count), X[:, k - 1] > 0)
    return X


def test_a_proved_network_answers_as_the_sum_over_all_rows_does():
    X = rows()
    model = BoundedTreewidthNetwork(2, random_state=0).fit(X)
    assert model.score_ == model.bound_ and model.gap_ == 0 and model.treewidth_ <= 2
    assert {tuple(sorted(edge)) for edge in model.edges_} >= {(0, 1), (1, 2)}
    every = np.array(list(product(range(3), *[range(2)] * 4)))
    p = np.exp(model.score_samples(every))
    assert p.sum() == pytest.approx(1)
    inside, given = (every[:, 1] == 1) & (every[:, 4] == 0), np.isin(every[:, 0], [1, 2])
    assert model.probability({1: 1, 4: 0}, given={0: [1, 2]}) == pytest.approx(p[inside & given].sum() / p[given].sum())
    assert model.score(X) == pytest.approx(model.score_samples(X).mean())
    shares = model.conditional(X[:4], 2)
    for row, share in zip(X[:4], shares, strict=True):
        same = (np.delete(every, 2, axis=1) == np.delete(row, 2)).all(axis=1)
        assert share == pytest.approx(p[same] / p[same].sum())
    assert np.array_equal(model.predict(X, 2), model.conditional(X, 2).argmax(axis=1))
    assert np.mean(model.predict(X) == X[:, -1]) > 0.8


def test_samples_follow_the_network_and_the_evidence():
    model = BoundedTreewidthNetwork(2, random_state=0).fit(rows())
    drawn = model.sample(20_000, random_state=1)
    assert drawn.shape == (20_000, 5)
    assert (drawn[:, 4] == 1).mean() == pytest.approx(model.probability({4: 1}), abs=0.02)
    assert set(model.sample(50, given={0: 2}, random_state=0)[:, 0]) == {2}
    assert np.array_equal(model.sample(9, random_state=3), model.sample(9, random_state=3))


def test_names_pictures_and_text(tmp_path):
    table = pd.DataFrame(rows(), columns=["rain", "wet", 'a "b"', "d", "e"])
    model = BoundedTreewidthNetwork(1, random_state=0).fit(table)
    assert model.probability({"wet": 1}, given={"rain": 0}) == model.probability({1: 1}, given={0: 0})
    assert np.array_equal(model.predict(table, "wet"), model.predict(table, 1))
    picture = model.export_graphviz()
    assert picture.startswith("digraph") and '"a \\"b\\""' in picture and picture.count("->") == len(model.edges_)
    model.write(tmp_path / "network")
    assert (tmp_path / "network").read_text().startswith("bayesian-network 1\n")
    again = BoundedTreewidthNetwork.read(tmp_path / "network")
    assert again.edges_ == model.edges_ and again.score_ == model.score_
    assert np.array_equal(again.score_samples(rows()), model.score_samples(table))
    (tmp_path / "other").write_text("nothing")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    for name in ("other", "bytes", "gone", "."):
        with pytest.raises(ModelError) as raised:
            BoundedTreewidthNetwork.read(tmp_path / name)
        assert str(tmp_path / name) in raised.value.where and raised.value.do


def test_two_fits_are_equal_and_a_warm_start_is_no_worse():
    X = (np.random.default_rng(0).random((200, 24)) < 0.4).astype(int)
    X[:, 1:] |= X[:, :-1]
    one, two = (BoundedTreewidthNetwork(n_runs=1, random_state=0).fit(X) for _ in range(2))
    assert one.edges_ == two.edges_ and one.score_ == two.score_ and one.bound_ == math.inf
    again = one.set_params(warm_start=True, time_limit=0.1, random_state=5).fit(X)
    assert again.score_ >= two.score_


def test_callbacks_interrupts_and_time_limits(capsys):
    X, seen = rows(1, 30, 300), []

    def callback(score, bound, gap):
        seen.append((score, bound, gap))
        if len(seen) == 1:
            raise KeyboardInterrupt

    model = BoundedTreewidthNetwork(callback=callback, verbose=1, random_state=0).fit(X)
    assert seen and all(score < 0 < bound for score, bound, _ in seen)
    assert model.score_ >= seen[0][0] and "score -" in capsys.readouterr().out
    assert BoundedTreewidthNetwork(time_limit=0.2, random_state=0).fit(X).treewidth_ <= 3  # runs are not limited


def test_a_time_limit_holds():
    X = np.random.default_rng(0).integers(0, 2, (10_000, 100))
    BoundedTreewidthNetwork(time_limit=0.1).fit(X[:50])  # compiles functions
    begin = time.process_time()
    BoundedTreewidthNetwork(4, time_limit=1, random_state=0).fit(X)
    assert time.process_time() - begin < 2 * (1 + 1)  # two threads


def test_what_is_refused():
    X = rows()
    model = BoundedTreewidthNetwork(1, n_runs=1, random_state=0).fit(X)
    with pytest.raises(RowsError, match="whole numbers"):
        model.score_samples(X + 0.5)
    with pytest.raises(RowsError, match="state 9"):
        model.score_samples(np.where(X == 1, 9, X))
    for column in ("none", 5, -6):
        with pytest.raises(OptionError, match="no column"):
            model.predict(X, column)
    for wrong in ({"n_runs": 0}, {"time_limit": 0}, {"treewidth": 0}, {"method": "guess"}, {"states": [1] * 5}):
        with pytest.raises(OptionError) as raised:
            BoundedTreewidthNetwork(**wrong).fit(X)
        assert raised.value.do
