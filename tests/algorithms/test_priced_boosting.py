"""Tests boosting with prices against its definitions, written out."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from forestc.algorithms.boosting.boost import Boosted, Charges, boost, integer_bias
from forestc.algorithms.boosting.cuts import MOST_CUTS, comparator_bits, cuts_of, grid_cuts, quantile_cuts, roundest
from forestc.algorithms.boosting.kernels import Scoring, answer, lowered
from forestc.algorithms.boosting.trees import GrownTree, Growth
from forestc.errors import OptionError


def rows_of(n=300, columns=4, seed=0, missing=0.0):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, columns)) * 4, 1)
    y = ((X[:, 0] > 1) ^ (X[:, 1] > 0)).astype(float)
    X[rng.random(X.shape) < missing] = np.nan
    return X, y


def free(cuts, cut=0.0, split=0.0, tree=0.0):
    return Charges(
        tuple(np.full(len(each), cut) for each in cuts.thresholds), np.zeros(len(cuts.thresholds)), (split,) * 6, tree
    )


def answers(grown: GrownTree, cuts, row: int) -> float:
    node = 0
    while grown.left[node] >= 0:
        code = cuts.codes[grown.column[node], row]
        left = grown.missing_left[node] if code == cuts.missing else code <= grown.cut[node]
        node = grown.left[node] if left else grown.right[node]
    return grown.value[node]


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0.3, 0.9, 0.5), (5, 9, 8), (-3, 5, 0), (-9, -5, -8), (4, 5, 5), (4.9, 5, 5), (0, 3, 2), (-1, 0, 0), (7, 8, 8)],
)
def test_the_roundest_number(low, high, expected):
    assert roundest(low, high) == expected


def test_the_roundest_number_lies_between_neighbors():
    low = 0.1
    assert low < roundest(low, np.nextafter(low, 1)) <= np.nextafter(low, 1)


def test_thresholds_part_the_rows_into_quantiles():
    column = np.random.default_rng(0).lognormal(size=10_000)
    found = quantile_cuts(column, 15)
    shares = np.diff(np.concatenate([[0], np.searchsorted(np.sort(column), found), [len(column)]])) / len(column)
    assert len(found) == 15 and shares.max() < 0.2
    assert quantile_cuts(np.ones(5), 9).size == 0 and quantile_cuts(np.array([1.0, 2, 3]), 9).tolist() == [2, 3]


def test_no_quantile_is_left_out():
    column = np.arange(1000.0)
    for count in (1, 2, 5, 100):
        found = quantile_cuts(column, count)
        assert len(found) == count
        assert found[-1] >= 1000 - 1000 / count - 1, "the last rows are parted, too"


def test_more_thresholds_than_codes_are_refused():
    X = np.arange(600.0)[:, None]
    assert cuts_of(X, lambda column: quantile_cuts(column, MOST_CUTS)).codes.max() == MOST_CUTS
    with pytest.raises(OptionError, match=r"column 0: 400 thresholds to choose from.*at most 250"):
        cuts_of(X, lambda column: quantile_cuts(column, 400))


def test_the_levels_of_a_table_have_prices_of_their_own():
    """Checks that a level is left out if it costs more than it gains, and so is a cheaper one before it."""
    X, y = rows_of(n=800)
    cuts = cuts_of(X, lambda column: quantile_cuts(column, 15))
    charges = Charges(free(cuts).cuts, np.zeros(4), (0.0, 0.0, 1e9), 0.0)
    grown = boost(cuts, y, "logistic", 1, charges, Growth(rounds=3, depth=5, symmetric=True, price=1e-4))
    assert {(tree.left < 0).sum() for tree in grown.trees} == {4} and grown.spent == 0


def test_a_grid_has_multiples_of_a_power_of_two():
    found = grid_cuts(np.linspace(-10, 10, 1001), 4)
    step = np.diff(found)
    assert set(step) == {2.0} and 0 in found
    assert grid_cuts(np.ones(3), 4).size == 0


def test_a_comparator_reads_no_trailing_zeros():
    column = np.array([0.0, 200.0])
    assert comparator_bits(np.array([128.0, 64, 192, 1, 0.5]), column).tolist() == [1, 2, 2, 8, 9]
    assert comparator_bits(np.array([0.0, 64.0]), np.array([-100.0, 100.0])).tolist() == [1, 2]


def test_codes_count_the_thresholds_not_above():
    X, _ = rows_of(missing=0.1)
    cuts = cuts_of(X, lambda column: quantile_cuts(column, 7))
    for column, thresholds in enumerate(cuts.thresholds):
        expected = (thresholds <= X[:, [column]]).sum(axis=1)
        expected[np.isnan(X[:, column])] = cuts.missing
        assert (cuts.codes[column] == expected).all()


def test_answers_of_few_bits_are_the_best_of_their_levels():
    for gradient, curvature, bits in itertools.product((-9.0, -1.3, 0.0, 0.2, 7.0), (0.5, 4.0), (1, 2, 3)):
        top = (1 << bits) - 1
        levels = (np.arange(top + 1) - top / 2) * 0.5
        lower = -(gradient * levels + 0.5 * (curvature + 1) * levels**2)
        assert answer(gradient, curvature, Scoring(1.0, 0.5, top)) in levels
        assert lowered(gradient, curvature, Scoring(1.0, 0.5, top)) == pytest.approx(lower.max())
    free_leaf = Scoring(1.0, 0.0, 0)
    assert answer(3.0, 2.0, free_leaf) == -1.0 and lowered(3.0, 2.0, free_leaf) == pytest.approx(1.5)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("leaf_bits", [0, 2])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_the_first_split_is_the_best_of_all(symmetric, leaf_bits, missing):
    X, _ = rows_of(missing=missing)
    y = np.where(np.nan_to_num(X[:, 2], nan=9) < 2.5, 1.0, 3.0)
    cuts = cuts_of(X, lambda column: quantile_cuts(column, 9))
    growth = Growth(rounds=1, depth=1, symmetric=symmetric, leaf_bits=leaf_bits, unit=0.5, rate=1.0)
    grown = boost(cuts, y, "squared", 1, free(cuts), growth)
    gradient = grown.bias[0] - y
    best = -np.inf
    for column, thresholds in enumerate(cuts.thresholds):
        for cut, side in itertools.product(range(len(thresholds)), (False, True)):
            code = cuts.codes[column]
            left = np.where(code == cuts.missing, side, code <= cut)
            parts = [(gradient[part].sum(), float(part.sum())) for part in (left, ~left)]
            best = max(best, sum(lowered(g, h, growth.scoring) for g, h in parts))
    (tree,) = grown.trees
    left = np.array([answers(tree, cuts, row) for row in range(len(y))])
    got = sum(
        lowered(gradient[left == value].sum(), float((left == value).sum()), growth.scoring) for value in set(left)
    )
    assert got == pytest.approx(best)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("loss", ["logistic", "softmax", "squared"])
def test_the_losses_are_those_of_the_trees(symmetric, loss):
    X, y = rows_of(missing=0.1)
    cuts = cuts_of(X, lambda column: quantile_cuts(column, 15))
    outputs = 2 if loss == "softmax" else 1
    growth = Growth(rounds=8, depth=3, symmetric=symmetric, leaf_bits=2, unit=0.5)
    grown = boost(cuts, y, loss, outputs, free(cuts), growth)
    scores = np.repeat(grown.bias[:, None], len(y), axis=1)
    for tree in grown.trees:
        scores[tree.output] += [answers(tree, cuts, row) for row in range(len(y))]
    if loss == "squared":
        expected = ((scores[0] - y) ** 2).mean() / 2
    elif loss == "logistic":
        expected = -np.log(1 / (1 + np.exp(-np.where(y > 0, scores[0], -scores[0])))).mean()
    else:
        expected = -np.log((np.exp(scores) / np.exp(scores).sum(axis=0))[y.astype(int), np.arange(len(y))]).mean()
    assert grown.losses[-1] == pytest.approx(expected)
    assert grown.losses[-1] < grown.losses[0]
    levels = {round(value / 0.5 * 2) for tree in grown.trees for value in tree.value[tree.left < 0]}
    assert levels <= {-3, -1, 1, 3}


@pytest.mark.parametrize("symmetric", [False, True])
def test_prices_buy_fewer_thresholds_and_trees(symmetric):
    X, y = rows_of(n=800)
    cuts = cuts_of(X, lambda column: quantile_cuts(column, 31))
    sizes = []
    for price in (0.0, 3e-4, 3e-3, 1.0):
        growth = Growth(rounds=20, depth=3, symmetric=symmetric, price=price)
        grown = boost(cuts, y, "logistic", 1, free(cuts, cut=1.0, split=0.1, tree=1.0), growth)
        used = {
            (column, cut)
            for tree in grown.trees
            for column, cut in zip(tree.column[tree.left >= 0], tree.cut[tree.left >= 0], strict=True)
        }
        splits = sum(
            (tree.left >= 0).sum() if not symmetric else np.log2((tree.left < 0).sum()) for tree in grown.trees
        )
        if price:
            assert grown.spent == pytest.approx(len(used) + 0.1 * splits + len(grown.trees))
        sizes.append(len(used))
    assert sizes[0] > sizes[1] > sizes[2] > sizes[3] == 0


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("price", [0.0, 1e-4])
def test_sweeps_lower_the_loss_and_its_price(symmetric, price):
    X, _ = rows_of(n=800)
    y = (X @ [1, -2, 3, 1] + np.random.default_rng(1).normal(size=len(X)) * 4 > 0).astype(float)
    cuts = cuts_of(X, lambda column: quantile_cuts(column, 15))
    objective = []
    for sweeps in (0, 1, 4):
        growth = Growth(rounds=6, depth=2, symmetric=symmetric, price=price, leaf_bits=1, unit=0.5, sweeps=sweeps)
        grown = boost(cuts, y, "logistic", 1, free(cuts, cut=1.0, split=0.1, tree=1.0), growth)
        scores = grown.bias[0] + sum(
            np.array([answers(tree, cuts, row) for row in range(len(y))]) for tree in grown.trees
        )
        loss = np.logaddexp(0, np.where(y > 0, -scores, scores)).mean()
        assert grown.losses[-1] == pytest.approx(loss)
        objective.append(loss + price * grown.spent)
    assert max(objective[1:]) < objective[0]  # A tree is chosen by second order, so a single sweep need not be better.


def test_it_depends_on_the_seed_alone():
    X, y = rows_of(columns=12)
    cuts = cuts_of(X, lambda column: quantile_cuts(column, 15))
    one, two, other = (
        boost(cuts, y, "logistic", 1, free(cuts), Growth(rounds=4, sampled=0.3, seed=seed)) for seed in (1, 1, 2)
    )
    assert one.losses == two.losses != other.losses


@pytest.mark.parametrize(
    ("trees", "bias"), [((3, 3, 2), (-1, -1, -1)), ((2, 2, 1), (-1, -1, -1)), ((4, 1, 2), (-2, -1, -1)), ((1,), (-1,))]
)
def test_half_votes_are_rounded_where_it_saves_adders(trees, bias):
    """Uses leaves of one bit: counted from 0 they are half a unit above leaves about 0."""
    fed = [GrownTree(output, *[None] * 7) for output, count in enumerate(trees) for _ in range(count)]
    grown = Boosted(tuple(fed), np.zeros(len(trees)), (), 0.0)
    assert tuple(integer_bias(grown, Growth(leaf_bits=1, unit=0.5))) == bias
