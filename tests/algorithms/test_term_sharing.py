"""Shared AND terms, against every circuit of small clauses."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from forestc.algorithms.covers.term_sharing import FREE, share_terms
from forestc.errors import OptionError, RowsError


def masks(matrix):
    """(needs, allows) of clauses as sets of bits."""
    bits = 1 << np.arange(matrix.shape[1])
    return [int(row) for row in (matrix == 1) @ bits], [int(row) for row in (matrix > 0) @ bits]


def least_by_force(matrix):
    """The fewest two-input ANDs with which every clause is computed, by trying all."""
    goals = {pair for pair in zip(*masks(matrix), strict=True) if pair[0].bit_count() > 1}
    literals = [1 << place for place in range(matrix.shape[1])]
    useful = {part for _, allow in goals for part in range(1, allow + 1) if part & ~allow == 0}

    def met(made, goal):
        return any(one & ~goal[1] == 0 and goal[0] & ~one == 0 for one in made)

    def reached(made, left, last):
        missing = sum(not met(made, goal) for goal in goals)
        if not missing:
            return True
        if not left:
            return False
        after = sorted({a | b for a, b in combinations(made, 2)} & useful - set(made))
        return any(reached([*made, one], left - 1, one) for one in after if one > last or one & last == last)

    return next(gates for gates in range(20) if reached(literals, gates, 0))


def fewest_of_covers(matrix):
    """The fewest gates of covers by bicliques of literals alone, each needed set of literals tried."""
    needs = sorted({need for need in masks(matrix)[0] if need})
    sets = sorted({part for need in needs for part in range(need + 1) if part & ~need == 0 and part.bit_count() > 1})
    best = sum(need.bit_count() - 1 for need in needs)
    for many in range(1, 4):
        for family in combinations(sets, many):
            gates = sum(one.bit_count() - 1 for one in family)
            for need in needs:
                inside = [one for one in family if one & ~need == 0]
                costs = []
                for chosen in product((0, 1), repeat=len(inside)):
                    covered = 0
                    for taken, one in zip(chosen, inside, strict=True):
                        covered |= one * taken
                    costs.append(sum(chosen) + (need & ~covered).bit_count() - 1)
                gates += min(costs)
            best = min(best, gates)
    return best


def multiplied(found, count):
    """Each clause's literals, as bits."""
    sets = [1 << place for place in range(count)]
    for term in found.terms:
        assert len(term) > 1 and max(term) < len(sets)
        sets.append(int(np.bitwise_or.reduce([sets[one] for one in term])))
    return [int(np.bitwise_or.reduce([0, *(sets[one] for one in own)])) for own in found.clauses]


def check_sharing(matrix, found):
    for got, need, allow in zip(multiplied(found, matrix.shape[1]), *masks(matrix), strict=True):
        assert need & ~got == 0 and got & ~allow == 0
    distinct = {own for own in found.clauses if len(own) > 1} - set(found.terms)
    assert found.gates == sum(len(own) - 1 for own in [*found.terms, *distinct])
    assert found.bound <= found.gates <= found.greedy <= found.flat
    assert found.bound <= found.cover_bound <= found.cover_gates <= found.flat
    assert found.optimal == (found.gap == 0)


def random_matrix(seed, rows, columns, free=0.0):
    random = np.random.default_rng(seed)
    matrix = (random.random((rows, columns)) < random.uniform(0.3, 0.8)).astype(int)
    return np.where((matrix == 0) & (random.random(matrix.shape) < free), FREE, matrix)


@pytest.mark.parametrize("free", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(20))
def test_gates_and_bounds_enclose_the_least(seed, free):
    matrix = random_matrix(seed, 3 + seed % 2, 4 + seed % 2, free)
    found = share_terms(matrix)
    check_sharing(matrix, found)
    assert found.bound <= least_by_force(matrix) <= found.gates
    if not free:
        assert found.gates == least_by_force(matrix)
        assert found.cover_bound <= fewest_of_covers(matrix)


@settings(deadline=None, max_examples=examples(8))
@given(st.integers(0, 10**6), st.integers(1, 8), st.integers(1, 8), st.sampled_from([0.0, 0.2]))
def test_every_clause_is_kept(seed, rows, columns, free):
    matrix = random_matrix(seed, rows, columns, free)
    found = share_terms(matrix)
    check_sharing(matrix, found)
    assert found == share_terms(matrix)


def test_column_generation_proves_covers_the_best():
    random = np.random.default_rng(1)
    matrix = np.zeros((15, 20), dtype=int)
    for row in matrix:
        row[random.choice(20, size=random.integers(2, 7), replace=False, p=np.arange(1, 21) / 210)] = 1
    found = share_terms(matrix)
    check_sharing(matrix, found)
    assert found.cover_gates - 1 <= found.cover_bound < found.cover_gates + 1 and found.gates <= found.greedy, found


def test_terms_of_terms_are_shared():
    """abc, abcd and abcde."""
    found = share_terms(np.tri(5, dtype=int)[2:])
    assert (found.gates, found.bound, found.flat) == (4, 4, 9) and found.optimal


def test_free_literals_make_one_term_of_two():
    """The second clause may take the literal that it does not need, and so be the first."""
    assert share_terms(np.array([[1, 1, 1], [1, 1, 0]])).gates == 2
    found = share_terms(np.array([[1, 1, 1, 0], [1, FREE, 1, 1], [0, 1, 0, 1]]))
    assert found.gates == 4
    check_sharing(np.array([[1, 1, 1, 0], [1, FREE, 1, 1], [0, 1, 0, 1]]), found)


@pytest.mark.parametrize(
    ("matrix", "gates"),
    [(np.zeros((0, 3)), 0), (np.zeros((2, 0)), 0), (np.zeros((2, 3)), 0), (np.ones((1, 4)), 3), (np.ones((3, 4)), 3)],
    ids=["no clauses", "no literals", "empty clauses", "one clause", "equal clauses"],
)
def test_trivial_clauses(matrix, gates):
    found = share_terms(matrix.astype(int))
    assert found.gates == found.bound == gates and found.optimal and found.gap == 0
    assert len(found.clauses) == len(matrix)


def test_bad_input_is_refused():
    with pytest.raises(RowsError, match=r"a matrix of 0, 1 and 2 is needed"):
        share_terms(np.full((2, 2), 3))
    with pytest.raises(RowsError, match="a matrix"):
        share_terms(np.ones(3))
    with pytest.raises(OptionError, match="time_limit 0"):
        share_terms(np.ones((2, 2)), time_limit=0)


def test_little_time_still_gives_a_result():
    matrix = random_matrix(0, 60, 40)
    found = share_terms(matrix, time_limit=0.2)
    check_sharing(matrix, found)
    assert found.late
