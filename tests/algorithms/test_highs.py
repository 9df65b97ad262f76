"""Tests that HiGHS ends at a reproducible limit, and at a signal."""

from __future__ import annotations

import signal
import time

import highspy
import numpy as np
import pytest

from forestc.algorithms.highs import make_highs, make_model, run


def market_split(**options):
    """Makes a market split problem: pick of 30 columns half the sum in each of four rows of integers below 100. No
    search tree of a sensible size solves it."""
    random = np.random.default_rng(0)
    rows, columns = 4, 30
    matrix = random.integers(1, 100, (rows, columns)).astype(float)
    half = matrix.sum(axis=1) // 2
    cost = np.concatenate([np.zeros(columns), np.ones(2 * rows)])
    upper = np.concatenate([np.ones(columns), np.full(2 * rows, np.inf)])
    whole = np.concatenate([matrix, np.eye(rows), -np.eye(rows)], axis=1)
    lines = [(np.flatnonzero(row), row[row != 0]) for row in whole]
    model = make_model(cost, upper, (half, half), lines, by_rows=True, whole=columns)
    solver = make_highs(**options)
    solver.passModel(model)
    return solver


def test_calls_limit_a_run_and_it_repeats():
    results = []
    for _ in range(2):
        solver = market_split()
        run(solver, 300)
        info = solver.getInfo()
        results.append((list(solver.getSolution().col_value), info.mip_node_count, info.simplex_iteration_count))
        assert solver.getModelStatus() == highspy.HighsModelStatus.kInterrupt
    assert results[0] == results[1] and len(results[0][0]) == 38


def test_a_signal_ends_the_wait():
    def heard(number, frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, heard)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        begun = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            run(market_split(time_limit=60))
        assert time.monotonic() - begun < 20
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_what_the_thread_raises_is_raised():
    class Callbacks(list):
        def __iadd__(self, other):
            self.append(other)
            return self

        def __isub__(self, other):
            self.remove(other)
            return self

    class Broken:
        def __init__(self):
            self.cbMipInterrupt = Callbacks()

        def run(self):
            raise MemoryError

    broken = Broken()
    with pytest.raises(MemoryError):
        run(broken)
    assert not broken.cbMipInterrupt
