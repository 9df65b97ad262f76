"""Tests the column generation engine on covers with columns that can all be listed."""

from __future__ import annotations

import os
import signal
import threading
import time
from itertools import combinations

import numpy as np
import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from forestc.algorithms.covers.column_generation import Priced, generate, refill, stoppable
from forestc.algorithms.covers.selection import Column, Cover, CoverSearch
from forestc.system.compiled import compiled


class Listed:
    """A pricing of columns from a list. Its `quick` finds none, so that the engine must ask for exact ones."""

    def __init__(self, columns):
        self.columns = columns

    def quick(self, duals, price):
        return []

    def fitting(self, duals, price, room):
        return [column for column in self.columns if column.size <= room]

    def exact(self, duals, price, steps, deadline):
        worth = [(duals[c.rows].sum() - c.cost) / c.size for c in self.columns]
        best = int(np.argmax(worth))
        return Priced([self.columns[best]], max(worth[best], price), True)


def problem(seed):
    random = np.random.default_rng(seed)
    rows = 8
    cover = Cover(random.integers(1, 4, rows).astype(float), float(random.integers(2, 7)), 1.0, True)
    columns = []
    for number in range(9):
        covered = np.flatnonzero(random.random(rows) < 0.4).astype(np.int32)
        columns.append(Column(covered, float(random.integers(0, 3)), float(random.integers(1, 4)), number))
    return cover, columns


def objective(cover, chosen):
    missed = cover.penalty.copy()
    for column in chosen:
        missed[column.rows] = 0
    return missed.sum() + sum(column.cost for column in chosen)


def best_of_all(cover, columns):
    return min(
        objective(cover, chosen)
        for many in range(len(columns) + 1)
        for chosen in combinations(columns, many)
        if sum(column.size for column in chosen) <= cover.budget
    )


def relaxed_optimum(cover, columns):
    """Solves the relaxation over all columns with scipy, which shares HiGHS but not the form of the problem."""
    from scipy.optimize import linprog

    rows, many = len(cover.penalty), len(columns)
    A = np.zeros((rows + 1, rows + many))
    A[:rows, :rows] = -np.eye(rows)
    for place, column in enumerate(columns):
        A[column.rows, rows + place] = -1
        A[rows, rows + place] = column.size
    return linprog(
        np.concatenate([cover.penalty, [column.cost for column in columns]]), A, np.append(-np.ones(rows), cover.budget)
    ).fun


@settings(max_examples=examples(30), deadline=None, derandomize=True)
@given(st.integers(0, 10**6))
def test_refilling_keeps_the_budget_and_is_as_good_as_any_one_column(seed):
    cover, columns = problem(seed)
    selection = CoverSearch(cover, 0)

    def add(column):
        if column.key not in (own.key for own in selection.columns):
            selection.add([column])
        return next(place for place, own in enumerate(selection.columns) if own.key == column.key)

    refill(
        Listed(columns), selection, add, 1.0,
        tries=200, until=time.monotonic() + 60, random=np.random.default_rng(seed),
    )  # fmt: skip
    value, chosen = selection.best
    chosen = [selection.columns[place] for place in chosen]
    assert value == objective(cover, chosen) and sum(column.size for column in chosen) <= cover.budget
    alone = [objective(cover, [column]) for column in columns if column.size <= cover.budget]
    assert best_of_all(cover, columns) <= value <= min(alone, default=np.inf)


@settings(max_examples=examples(30), deadline=None, derandomize=True)
@given(st.integers(0, 10**6))
def test_the_relaxation_is_solved_and_bounds_the_best_cover(seed):
    cover, columns = problem(seed)
    selection = CoverSearch(cover, 0)
    made = generate(Listed(columns), selection, deadline=time.monotonic() + 30, seed=0)
    best = best_of_all(cover, columns)
    assert made.bound <= best <= made.value
    assert made.value == objective(cover, [made.columns[place] for place in made.chosen])
    if made.complete:
        assert made.relaxed == pytest.approx(relaxed_optimum(cover, columns), abs=1e-6)
    else:
        assert made.bound == made.value  # The engine ended because nothing better was possible.
    everything = CoverSearch(cover, 0)
    everything.add(columns)
    assert everything.solve(time.monotonic() + 30, 0.0, 0)
    assert everything.best[0] == best


def test_local_search_swaps_to_the_best_cover():
    cover, columns = problem(1)
    selection = CoverSearch(cover, 0)
    selection.add(columns)
    selection.improve(np.ones(len(columns)))
    assert selection.best[0] == best_of_all(cover, columns)


@compiled()
def endless(flag, work):
    steps = 0
    while flag[0] == 0:  # The flag is read in each round, since it might share memory with `work`.
        steps += 1
        work[steps & 3] = steps
    return steps


def test_compiled_code_ends_at_a_deadline_and_on_ctrl_c():
    work = np.zeros(4, dtype=np.int64)
    stoppable(endless, work, deadline=time.monotonic() + 0.01)  # The first call compiled the function.
    assert stoppable(endless, work, deadline=time.monotonic() + 0.1) > 0
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # Background jobs start with SIGINT ignored.
    try:
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            stoppable(endless, work)
    finally:
        signal.signal(signal.SIGINT, before)
