"""Finds small changes of integers ("nudges") that put sums of them on the right side, by an integer program on HiGHS.

Only sums that are wrong, or would become wrong, are rows of the program; they are added round by round. A leaf of few
bits can make thousands of sums wrong, so programs are limited in size, and all rounds together in steps. At a limit the
result is the best nudges so far, at worst none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.arrays import Bits, Int32s, Ints
from forestc.algorithms.highs import make_highs, make_model, most_nodes, run, steps_of

ROUNDS = 24  # rounds of solving and adding wrong sums at most
MOST_NODES = 200  # nodes of the solver in each round; a limit in seconds would make results differ from run to run
MOST_ENTRIES = 50_000  # entries of a program at most; it takes the wrong sums of largest count
# These heuristics are turned off. They solve smaller integer programs, without callbacks, for ten seconds and more.
SMALLER_PROGRAMS = ("rins", "rens", "root_reduced_cost")
WRONG = 1e4  # weighs a unit by which a sum stays on the wrong side, against 1 for a unit of a nudge


@dataclass(frozen=True)
class Sums:
    """Sums of integers that nudges may change. A sum is right if room + (sign * nudges[integer]).sum() >= 0. integer:
    (sums, terms) index of the integer that a term adds. sign: (sums, terms) 1, -1, or 0 for a term that does not count.
    room: (sums,). count: (sums,) weight of each sum."""

    integer: Int32s
    sign: NDArray[np.int8]
    room: Ints
    count: Ints

    def wrong(self, nudges: Ints) -> Bits:
        """Returns for each sum whether it is wrong after these nudges."""
        return np.asarray(self.room + (self.sign * nudges[self.integer]).sum(axis=1) < 0)


def nudges_for(sums: Sums, integers: int, most: int, steps: int) -> tuple[Ints, int]:
    """Returns nudges, (integers,), with the fewest wrong sums found, weighted by count, and the steps taken. Nudges are
    at most `most` up or down, and small. No round begins after `steps`, and none takes many more."""
    best = np.zeros(integers, dtype=np.int64)
    wrong = sums.wrong(best)
    fewest = int(sums.count[wrong].sum())
    chosen, taken = wrong, 0
    for _ in range(ROUNDS):
        if not fewest or taken >= steps:
            break
        nudges, more = _solved(sums, _most_counted(sums, chosen), integers, most, steps - taken)
        taken += more
        wrong = sums.wrong(nudges)
        if int(sums.count[wrong].sum()) < fewest:
            best, fewest = nudges, int(sums.count[wrong].sum())
        if not (wrong & ~chosen).any():
            break
        chosen = chosen | wrong
    return best, taken


def _most_counted(sums: Sums, chosen: Bits) -> Ints:
    """Returns the chosen sums; if a program cannot hold all their terms, those of the largest counts."""
    index = np.flatnonzero(chosen)
    terms = np.count_nonzero(sums.sign[index], axis=1)
    if terms.sum() <= MOST_ENTRIES:
        return index
    order = np.argsort(-sums.count[index], kind="stable")
    return np.sort(index[order[np.cumsum(terms[order]) <= MOST_ENTRIES]])


def _solved(sums: Sums, chosen: Ints, integers: int, most: int, steps: int) -> tuple[Ints, int]:
    """Returns nudges for some of the sums, and the steps taken, at most about `steps`. They minimize the total by which
    sums stay wrong, then the total of the nudges."""
    import highspy

    integer, sign = sums.integer[chosen], sums.sign[chosen].astype(np.float64)
    used = np.unique(integer[sign != 0])
    row, term = np.nonzero(sign)
    column, value = np.searchsorted(used, integer[row, term]), sign[row, term]
    n, rows = len(used), len(chosen)
    # The columns are nudges up, nudges down, and how far each sum stays wrong.
    matrix: list[dict[int, float]] = [{2 * n + at: 1.0} for at in range(rows)]
    for at, k, v in zip(row.tolist(), column.tolist(), value.tolist(), strict=True):
        matrix[at][k] = matrix[at].get(k, 0.0) + v
        matrix[at][n + k] = matrix[at].get(n + k, 0.0) - v
    lines = [(sorted(terms), [terms[k] for k in sorted(terms)]) for terms in matrix]
    model = make_model(
        np.concatenate([np.ones(2 * n), WRONG * np.ones(rows)]),
        np.concatenate([np.full(2 * n, float(most)), np.full(rows, np.inf)]),
        (-sums.room[chosen], np.full(rows, np.inf)),
        lines,
        by_rows=True,
        whole=2 * n,
    )
    without = {f"mip_heuristic_run_{name}": False for name in SMALLER_PROGRAMS}
    solver = make_highs(mip_max_nodes=MOST_NODES, **without)
    solver.passModel(model)
    entries = sum(map(len, matrix))
    run(solver, most_nodes(steps, entries))  # HiGHS calls back at least once for each node
    solution = np.array(solver.getSolution().col_value)
    result = np.zeros(integers, dtype=np.int64)
    if (
        len(solution) == 2 * n + rows
        and solver.getInfo().primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    ):
        result[used] = np.rint(solution[:n] - solution[n : 2 * n]).astype(np.int64)
    return result, steps_of(solver)
