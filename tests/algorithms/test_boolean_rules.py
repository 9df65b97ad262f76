"""Tests rules against the best of all, bounds, and odd tables, which are learnt or refused."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from thinned import thinned

from forestc.algorithms.covers.boolean_pricing import beam_search, best_clauses, literals_of
from forestc.algorithms.covers.boolean_rules import (
    RuleLimits,
    _RuleProblem,
    class_weights,
    learn_rule_sets,
    learn_rules,
)
from forestc.errors import OptionError, RowsError
from forestc.papers.rules.boolean_rules_table import condition_bits, conditions_of, table_columns

LONG = 10**17


def bits_of(*columns, quantiles=10):
    """Returns the bits of a table's conditions, and the column of each."""
    made = table_columns(np.array(columns, dtype=object).T)
    conditions = conditions_of(made, [f"x{index}" for index in range(len(made))], np.ones(len(columns[0])), quantiles)
    return condition_bits(conditions, made), np.array([condition.column for condition in conditions])


def every_clause(literals, longest):
    return [clause for size in range(1, longest + 1) for clause in combinations(range(literals), size)]


def hamming_loss(clauses, form, bits, y, weight):
    """The weight of uncovered rows of class 1, and that of rows of class 0 once per covering clause; mirrored for a
    CNF."""
    negated = form == "cnf"
    positive = np.asarray(y, dtype=bool) != negated
    count = sum(((bits[:, list(clause)] != negated).all(axis=1).astype(int) for clause in clauses), np.zeros(len(bits)))
    return float(weight[positive & (count == 0)].sum() + (weight * count)[~positive].sum())


def least_loss(bits, y, complexity, weight, form="dnf"):
    """Tries every set of distinct clauses; returns the least loss, and the least complexity that reaches it."""
    clauses = every_clause(bits.shape[1], complexity - 1)
    best = (hamming_loss((), form, bits, y, weight), 0)
    for many in range(1, complexity // 2 + 1):
        for chosen in combinations(clauses, many):
            size = sum(len(clause) + 1 for clause in chosen)
            if size <= complexity:
                best = min(best, (hamming_loss(chosen, form, bits, y, weight), size))
    return best


def random_table(seed, rows=24, literals=5):
    random = np.random.default_rng(seed)
    bits = random.random((rows, literals)) < random.random()
    bits[:, 2] |= seed % 3 == 0  # a literal that always holds
    y = random.random(rows) < 0.5 if seed % 2 else (bits[:, 0] & bits[:, 1]) | bits[:, -1]
    return bits, y, random


@pytest.mark.slow
@settings(max_examples=examples(12), deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.integers(2, 6), st.sampled_from(["dnf", "cnf"]), st.booleans())
def test_the_rule_is_the_best_of_all_where_it_says_so_and_the_bound_holds(seed, complexity, form, weighted):
    bits, y, random = random_table(seed)
    weight = random.integers(0, 4, len(y)).astype(float) if weighted else np.ones(len(y))
    found = learn_rules(bits, y, RuleLimits(complexity, form=form, time_limit=20), weight=weight)
    best, size = least_loss(bits, y, complexity, weight, form)
    assert found.bound <= best + 1e-9 <= found.loss + 2e-9
    assert found.loss == hamming_loss(found.clauses, form, bits, y, weight)
    assert found.complexity == sum(len(clause) + 1 for clause in found.clauses) <= complexity
    assert found.optimal  # All clauses can be listed, so the rule is proved optimal.
    assert found.loss == best and found.complexity >= size
    negated = form == "cnf"
    expected = np.zeros(len(y), dtype=bool)
    for clause in found.clauses:
        expected |= np.logical_and.reduce([bits[:, literal] != negated for literal in clause])
    assert np.array_equal(found.predict(bits), expected != negated)


@settings(max_examples=examples(20), deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.integers(1, 5), st.sampled_from([0.0, 0.3, 1.0]), st.booleans())
def test_the_exact_search_finds_the_clause_of_highest_worth(seed, longest, price, chains):
    random = np.random.default_rng(seed)
    numbers = random.integers(0, 4, (40, 2)).astype(float)
    bits, groups = bits_of(*numbers.T, np.array(list("abc"))[random.integers(0, 3, 40)], quantiles=4)
    literals = literals_of(bits, groups if chains else None)
    weight = np.where(random.random(40) < 0.5, random.random(40), -1.0 * random.integers(0, 2, 40))
    gains = {}
    for clause in every_clause(bits.shape[1], min(longest, 3)):
        inside = bits[:, list(clause)].all(axis=1)
        assert np.array_equal(literals.covered(clause), inside)
        gains[clause] = weight[inside].sum()
    best = max(price, *(gain / (len(clause) + 1) for clause, gain in gains.items()))
    found = best_clauses(literals, weight, price, min(longest, 3), LONG, float("inf"))
    assert found.complete and found.worth == pytest.approx(best)
    if best > price + 1e-6:
        worths = [gains[clause] / (len(clause) + 1) for clause in found.clauses]
        assert max(worths) == pytest.approx(best)
    few = best_clauses(literals, weight, price, min(longest, 3), 1, float("inf"))
    assert few.worth >= best - 1e-9  # A search that is cut short still gives a bound.
    for clause in beam_search(literals, weight, price, min(longest, 3), 5).clauses:
        assert gains[clause] > price * (len(clause) + 1)


def test_chains_change_the_speed_but_not_the_rule():
    random = np.random.default_rng(1)
    columns = list(random.normal(size=(3, 200)))
    y = (columns[0] > 0.2) & (columns[1] < 0.5) | (columns[2] > 1.3)
    bits, groups = bits_of(*columns)
    literals = literals_of(bits, groups)
    assert literals.codes.shape[1] == 3  # Each feature has one code.
    assert np.array_equal(literals.covered((0, 30)), bits[:, 0] & bits[:, 30])
    one, two = (learn_rules(bits, y, RuleLimits(8, time_limit=30), groups=each) for each in (None, groups))
    assert one.optimal and two.optimal
    assert (one.loss, one.complexity) == (two.loss, two.complexity)
    shuffled = random.integers(0, 3, bits.shape[1])  # Shuffled literals form no groups.
    assert learn_rules(bits, y, RuleLimits(8, time_limit=30), groups=shuffled).loss == one.loss


def test_equal_losses_are_distinguished_by_complexity():
    a, b = np.array([1, 1, 0, 0], bool), np.array([1, 1, 1, 0], bool)
    found = learn_rules(np.stack([b, a], axis=1), a, RuleLimits(9))
    assert found.clauses == ((1,),) and found.complexity == 2 and found.optimal


def test_clauses_are_no_longer_than_asked():
    random = np.random.default_rng(0)
    bits = random.random((80, 6)) < 0.7
    y = bits[:, :4].all(axis=1)
    assert learn_rules(bits, y, RuleLimits(12)).clauses == ((0, 1, 2, 3),)
    short = learn_rules(bits, y, RuleLimits(12, longest=2))
    assert short.loss > 0 and all(len(clause) <= 2 for clause in short.clauses)


def test_the_same_seed_gives_the_same_rule():
    bits, y, _ = random_table(3, rows=120, literals=9)
    one, two = (learn_rules(bits, y, RuleLimits(8, seed=5)) for _ in range(2))
    assert one == two and one.rounds > 0


@pytest.mark.parametrize("form", ["dnf", "cnf"])
@pytest.mark.parametrize("side", [False, True])
def test_rows_of_one_class(form, side):
    bits = np.array([[1, 0], [0, 1], [1, 0]], dtype=bool)
    found = learn_rules(bits, np.full(3, side), RuleLimits(4, form=form))
    assert found.loss == 0 and found.optimal and (found.predict(bits) == side).all()


def test_constant_bits_and_contradictory_rows():
    constant = np.array([[1, 0]] * 5, dtype=bool)
    y = np.array([1, 1, 1, 0, 0])
    found = learn_rules(constant, y, RuleLimits(5))
    assert found.clauses == ((0,),) and found.loss == 2 and found.optimal  # always true: two of five rows are wrong
    assert learn_rules(~constant[:, :1] & False, y, RuleLimits(5)).clauses == ()
    bits = np.repeat(np.array([[1], [0]], dtype=bool), 3, axis=0)
    found = learn_rules(bits, np.array([1, 1, 0, 0, 0, 1]), RuleLimits(5))
    assert found.loss == 2 and found.clauses == ((0,),)


def test_a_literal_that_always_holds_gives_a_rule_beside_literals_that_vary():
    bits = np.array([[1, 1], [1, 0], [1, 1], [1, 0], [1, 0]], dtype=bool)
    found = learn_rules(bits, np.array([1, 1, 1, 1, 0]), RuleLimits(2))
    assert found.clauses == ((0,),) and found.loss == found.bound == 1 and found.optimal


def test_no_clause_fits_into_a_complexity_of_one():
    bits, y, _ = random_table(0)
    found = learn_rules(bits, y, RuleLimits(1))
    assert found.clauses == () and found.optimal and found.loss == found.bound == y.sum()
    assert not found.predict(bits).any()
    assert learn_rules(bits, y, RuleLimits(1, form="cnf")).predict(bits).all()


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"bits": np.full((4, 2), 3)}, RowsError, "a table of 0 and 1"),
        ({"bits": np.zeros((0, 2))}, RowsError, "a table of 0 and 1"),
        ({"y": np.array([0, 1, 2, 0])}, RowsError, "labels: "),
        ({"y": np.array([0, 1])}, RowsError, "labels: "),
        ({"complexity": 0}, OptionError, "above 0"),
        ({"time_limit": 0.0}, OptionError, "above 0"),
        ({"longest": 0}, OptionError, "above 0"),
        ({"form": "xor"}, OptionError, "form: .*dnf or cnf"),
        ({"weight": -np.ones(4)}, RowsError, "weights: "),
        ({"groups": np.zeros(3, int)}, RowsError, "groups: "),
        ({"start": [(0, 7)]}, OptionError, "no literal 7"),
    ],
)
def test_what_can_not_be_learnt_from_is_refused(change, error, words):
    given = {"bits": np.eye(4, 2) > 0, "y": np.array([1, 0, 1, 0]), "complexity": 4, **change}
    limits = {name: given.pop(name) for name in ("complexity", "time_limit", "longest", "form") if name in given}
    with pytest.raises(error, match=words):
        learn_rules(given.pop("bits"), given.pop("y"), RuleLimits(**limits), **given)


def test_an_interrupt_keeps_the_best_rule_so_far():
    random = np.random.default_rng(2)
    bits = random.random((300, 14)) < 0.5
    y = (bits[:, 0] & bits[:, 1]) | (bits[:, 2] & bits[:, 3]) | (random.random(300) < 0.1)
    output = []

    def progress(line):
        output.append(line)
        if len(output) == 3:
            raise KeyboardInterrupt

    found = learn_rules(bits, y, RuleLimits(10), progress=progress)
    assert found.interrupted and found.clauses and found.loss < y.sum()
    assert found.bound <= found.loss == hamming_loss(found.clauses, "dnf", bits, y, np.ones(300))
    assert "incumbent" in output[0].text and output[0].value >= found.loss and output[0].bound is None


def test_clauses_to_begin_with_are_used():
    bits, y, _ = random_table(2)
    found = learn_rules(bits, y, RuleLimits(6), start=[(1, 0), (0, 1), (4,)])
    assert found.loss == 0 and {(0, 1), (4,)} <= set(found.candidates)


@pytest.mark.parametrize("seed", thinned(range(4), keep=1))
def test_a_larger_complexity_never_ends_with_a_larger_loss_after_few_rounds(seed):
    random = np.random.default_rng(seed)
    bits = random.random((400, 30)) < 0.5
    y = (bits[:, :3].all(axis=1) | bits[:, 3:6].all(axis=1) | bits[:, 6:9].all(axis=1)) ^ (random.random(400) < 0.1)
    bits = np.concatenate([bits, ~bits], axis=1)
    losses = [learn_rules(bits, y, RuleLimits(4 << step, rounds=1)).loss for step in range(5)]
    assert losses == sorted(losses, reverse=True) and losses[-1] < losses[0]


def test_the_rule_of_another_run_is_kept_or_beaten_even_without_any_time():
    random = np.random.default_rng(1)
    bits = random.random((200, 12)) < 0.5
    y = bits[:, :4].sum(axis=1) > 2
    first = learn_rules(bits, y, RuleLimits(10, rounds=4))
    assert set(first.candidates[: len(first.clauses)]) == set(first.clauses)
    assert len(set(first.candidates)) == len(first.candidates)
    again = learn_rules(bits, y, RuleLimits(12, time_limit=1e-9), start=first.candidates)
    assert again.rounds == 0 and again.loss <= first.loss < y.sum()


def test_several_classes_and_their_priorities():
    random = np.random.default_rng(0)
    number = random.integers(0, 9, 150).astype(float)
    label = np.array(["low", "mid", "top"])[np.digitize(number, [3, 6])]
    bits, groups = bits_of(number)
    found = learn_rule_sets(bits, label, RuleLimits(4), groups=groups)
    assert (found.predict(bits) == label).all()
    assert found.classes.tolist() == ["low", "mid", "top"] and found.complexity <= 12
    two = learn_rule_sets(bits, label == "top", RuleLimits(4))
    assert two.rules[0].clauses == () and two.complexity == 2 and two.tried == (1,)
    one = learn_rule_sets(bits, np.full(150, 7), RuleLimits(4))
    assert one.tried == () and (one.predict(bits) == 7).all()


def test_weights_of_classes_move_the_rule_to_the_rare_class():
    bits = np.array([[1]] * 10 + [[0]] * 90, dtype=bool)
    y = np.array([1] * 4 + [0] * 6 + [0] * 90)
    assert learn_rules(bits, y, RuleLimits(2)).clauses == ()
    assert class_weights(y).sum() == pytest.approx(100)
    assert learn_rules(bits, y, RuleLimits(2), weight=class_weights(y)).clauses == ((0,),)


def test_large_tables_are_also_priced_by_samples_and_the_last_word_is_on_all_rows():
    random = np.random.default_rng(0)
    bits = random.random((5000, 60)) < 0.5
    y = bits[:, [3, 17, 29]].all(axis=1) | (bits[:, [5, 44]].all(axis=1) & ~bits[:, 8])
    bits = np.concatenate([bits, ~bits], axis=1)
    problem = _RuleProblem.of(bits, y, np.ones(len(y)), 12, None, None, 0)
    clauses = problem.sampled(problem.weights(np.ones(len(problem.positive))), 0.0)
    assert clauses and all(0 <= literal < len(problem.identity) for clause in clauses for literal in clause)
    small = _RuleProblem.of(bits[:500, :40], y[:500], np.ones(500), 12, None, None, 0)
    assert small.sampled(small.weights(np.ones(len(small.positive))), 0.0) == []
    found = learn_rules(bits, y, RuleLimits(8, time_limit=20))
    assert found.loss == 0 and found.complexity == 8
    assert np.array_equal(found.predict(bits), y)
