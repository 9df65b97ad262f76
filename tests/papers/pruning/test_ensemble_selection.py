"""Tests ensemble selection against all subsets of few members, and its limits, bounds and refusals."""

import itertools
from itertools import combinations

import numpy as np
import pytest
from thinned import only

from forestc.algorithms.members.vote_patterns import merged_patterns
from forestc.errors import OptionError, RowsError
from forestc.papers.pruning import baselines, vote_bounds
from forestc.papers.pruning.selection import Weights, diversity_limits, failure_credits, select

WEIGHTS = ("accuracy", "balanced", Weights(2.0, -1.0, 0.5, -3.0))


ALIKE = np.repeat(np.arange(60)[:, None] % 2, 3, axis=1)  # holds the votes of three members that always vote the same


def problem(seed, rows=60, members=8):
    """Makes members of different quality that tend to be wrong on the same rows, and labels of unequal classes."""
    random = np.random.default_rng(seed)
    y = (random.random(rows) < 0.35).astype(np.uint8)
    hard = random.random(rows)
    wrong = random.random((rows, members)) < 0.15 + 0.6 * hard[:, None] * random.random(members)
    return (y[:, None] ^ wrong).astype(np.uint8), y


def worth(decided, y, weights):
    """Computes objective (1) of the paper row by row."""
    values = {(1, 1): weights.true_positive, (1, 0): weights.false_negative}
    values |= {(0, 0): weights.true_negative, (0, 1): weights.false_positive}
    return sum(values[int(truth), int(said)] for truth, said in zip(y, decided, strict=True)) / len(y)


def diversities(credits, members):
    """Returns (least PFC, mean PFC) by the paper's definition."""
    own = [sum(credits[k, m] for m in members if m != k) / (len(members) - 1) for k in members]
    return min(own), sum(own) / len(own)


def best_of_all(votes, y, weights, tau=0.0, gamma=0.0, most=99):
    """Returns the largest objective of all subsets and thresholds."""
    weights = Weights.named(weights, y) if isinstance(weights, str) else weights
    credits, best = failure_credits(votes, y), -np.inf
    for size in range(2 if tau or gamma else 1, min(most, votes.shape[1]) + 1):
        for members in combinations(range(votes.shape[1]), size):
            if (tau or gamma) and not (
                diversities(credits, members)[0] >= tau - 1e-12 and diversities(credits, members)[1] >= gamma - 1e-12
            ):
                continue
            sums = votes[:, members].sum(axis=1)
            best = max(best, *(worth(sums > threshold, y, weights) for threshold in range(size + 1)))
    return best


@pytest.mark.parametrize("seed", only(range(4), 0, 1))
@pytest.mark.parametrize("weights", WEIGHTS, ids=str)
def test_the_optimum_of_few_members(seed, weights):
    votes, y = problem(seed)
    best = best_of_all(votes, y, weights)
    found = select(votes, y, weights=weights, time_limit=20, starts=4)
    assert found.optimal and found.objective == pytest.approx(best) and found.bound == pytest.approx(best)
    named = Weights.named(weights, y) if isinstance(weights, str) else weights
    assert worth(found.decide(votes), y, named) == pytest.approx(found.objective)
    searched = select(votes, y, weights=weights, prove=False)
    assert searched.bound >= best - 1e-9 and searched.objective >= best - 0.01 * abs(best)


@pytest.mark.parametrize("seed", only(range(3), 0, 2))
def test_limits_are_kept_at_the_optimum(seed):
    votes, y = problem(seed)
    credits = failure_credits(votes, y)
    for form, most in (("F2", 99), ("F3", 99), ("F3", 3)):
        tau, gamma = diversity_limits(credits, form)
        found = select(votes, y, tau=tau, gamma=gamma, max_members=most, time_limit=20, starts=4)
        least, mean = diversities(credits, found.members)
        assert len(found.members) <= most and least >= tau - 1e-9 and mean >= gamma - 1e-9
        assert found.optimal
        assert found.objective == pytest.approx(best_of_all(votes, y, "accuracy", tau, gamma, most))


def test_failure_credits_of_the_papers_example():
    right = np.array([[0, 0, 1, 1, 0, 1, 1, 1, 0, 1], [0, 1, 1, 0, 0, 0, 1, 1, 1, 0]]).T  # section 4: FC = 5/9
    assert failure_credits(right.astype(np.uint8), np.ones(10, dtype=np.uint8))[0, 1] == 5 / 9


@pytest.mark.slow
def test_bounds_hold_and_larger_sets_tighten_them():
    """Uses rows that contradict one another, and three rows without a contradicting pair among them."""
    votes = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]], dtype=np.uint8)
    pairs = vote_bounds.bound(merged_patterns(votes[[0, 3]], np.array([1.0, -1.0])), 5)
    assert pairs.value == 0  # The members vote the same on rows of both classes: together these rows are worth nothing.
    votes, y = problem(5, rows=150, members=10)
    patterns = merged_patterns(votes, np.where(y == 1, 1.0, -1.0))
    by_pairs, by_sets = vote_bounds.bound(patterns, 0), vote_bounds.bound(patterns, 5)
    best = 150 * best_of_all(votes, y, "accuracy") - (y == 0).sum()
    assert by_pairs.value >= by_sets.value >= best - 1e-6
    assert by_sets.value < by_pairs.value and max(map(len, by_sets.sets)) > 2
    choices = np.array(list(itertools.product((0, 1), repeat=10)))
    sums = choices @ patterns.votes
    for rows in map(list, by_sets.sets):  # No members and threshold decide all rows of a set rightly.
        wished = patterns.gain[rows] > 0
        lowest = np.where(wished, sums[:, rows], 99).min(axis=1)
        assert (lowest <= np.maximum(np.where(wished, 0, sums[:, rows]).max(axis=1), 0)).all()


def test_the_same_seed_gives_the_same_members():
    votes, y = problem(7, rows=200, members=30)
    one, other = (select(votes, y, prove=False, seed=3, starts=4) for _ in range(2))
    assert one.members == other.members and one.objective == other.objective


@pytest.mark.parametrize(
    "change, words",
    [
        ({"y": np.ones(60, dtype=np.uint8)}, "no row is of class 0"),
        ({"y": np.zeros(60, dtype=np.uint8)}, "no row is of class 1"),
        ({"votes": np.full((60, 3), 2)}, "votes: holds other values than 0 and 1"),
        ({"votes": np.zeros((60, 0))}, "no members"),
        ({"votes": np.zeros((59, 3))}, r"shapes \(59, 3\)"),
        ({"votes": ALIKE, "tau": 0.1}, "tau: 0.1 is more than the diversity of any two members"),
        ({"votes": ALIKE, "gamma": 0.1}, "gamma: 0.1 is more than the diversity of any two members"),
        ({"tau": 1.5}, "tau: 1.5"),
        ({"tau": 0.1, "max_members": 1}, "at most one is allowed"),
        ({"max_members": 0}, "max_members: 0"),
        ({"weights": "f1"}, "weights: 'f1'"),
    ],
)
def test_what_can_not_be_selected_is_refused(change, words):
    votes, y = problem(0)
    given = {"votes": votes, "y": y} | change
    with pytest.raises((OptionError, RowsError), match=words):
        select(given.pop("votes"), given.pop("y"), prove=False, **given)


def test_one_member():
    votes, y = problem(0, members=1)
    found = select(votes, y, time_limit=5)
    assert found.members == (0,) and found.optimal
    with pytest.raises(OptionError, match="needs two members, and there is one"):
        select(votes, y, tau=0.1)


def test_baselines_choose_what_they_say():
    votes, y = problem(11, rows=200, members=20)
    accuracy = {
        name: (baselines.majority(votes, method(votes, y)) == y).mean() for name, method in baselines.BASELINES.items()
    }
    single = (votes == y[:, None]).mean(axis=0).max()
    sizes = {name: len(method(votes, y)) for name, method in baselines.BASELINES.items()}
    assert sizes["full"] == 20 and 4 <= sizes["backfitting"] <= 16 and 4 <= sizes["kappa"] <= 16
    for name in ("accuracy", "concurrency", "complementariness", "uncertainty-weighted"):
        assert accuracy[name] >= single  # The climb begins with the best member.
    assert accuracy["backfitting"] >= accuracy["kappa"]
    assert select(votes, y, prove=False).objective >= max(accuracy.values()) - 1e-9


def test_fitness_by_hand():
    """Uses two rows for each member, which is right or wrong; 3 of 4 votes of the ensemble are right on one row, 1 of 4
    on the other."""
    member = np.array([[True, False], [True, False]])
    ensemble, share = np.array([True, False]), np.array([0.75, 0.25])
    assert baselines._complementariness(member, ensemble, share).tolist() == [1, 0]
    assert baselines._concurrency(member, ensemble, share).tolist() == [3, -2]
    # The member and the ensemble: right and right 1/4, right and wrong 1/4, wrong and right -1/4, wrong and wrong -1/4.
    assert baselines._uncertainty_weighted(member, ensemble, share).tolist() == [0.5, -0.5]
