"""Finds small changes of integers ("nudges") that make sums of them nonnegative, by integer programs on HiGHS. Programs
are limited, so some sums may stay negative."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.arrays import Bits, Int32s, Ints
from forestc.algorithms.highs import make_highs, make_model, most_nodes, run, steps_of

ROUNDS = 24  # rounds of solving and adding wrong sums at most
MOST_NODES = 200  # nodes of the solver in each round; unlike seconds, nodes are repeatable
MOST_ENTRIES = 50_000  # terms of all sums in one integer program at most
# Turns off heuristics that solve smaller integer programs, without callbacks, for ten seconds and more.
SMALLER_PROGRAMS = ("rins", "rens", "root_reduced_cost")
WRONG = 1e4  # weighs a unit of negative sum against one unit of change


@dataclass(frozen=True)
class Sums:
    """Sums that small changes of integers ("nudges") should make nonnegative: room + (sign * nudges[integer]).sum()."""

    integer: Int32s  # (sums, terms) index of each term's integer
    sign: NDArray[np.int8]  # (sums, terms) 1, -1, or 0 for no term
    room: Ints  # (sums,) value of each sum without changes
    count: Ints  # (sums,) weight of each sum

    def wrong(self, nudges: Ints) -> Bits:
        return np.asarray(self.room + (self.sign * nudges[self.integer]).sum(axis=1) < 0)


def nudges_for(sums: Sums, integers: int, most: int, steps: int) -> tuple[Ints, int]:
    """Returns changes of the integers, (integers,), that leave few sums negative, and the number of solver steps taken.
    most: largest change, up or down."""
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
    """Returns indices of chosen sums that fit into one program, preferring large counts."""
    index = np.flatnonzero(chosen)
    terms = np.count_nonzero(sums.sign[index], axis=1)
    if terms.sum() <= MOST_ENTRIES:
        return index
    order = np.argsort(-sums.count[index], kind="stable")
    return np.sort(index[order[np.cumsum(terms[order]) <= MOST_ENTRIES]])


def _solved(sums: Sums, chosen: Ints, integers: int, most: int, steps: int) -> tuple[Ints, int]:
    """Returns changes of all integers that leave few chosen sums negative, and the solver's steps."""
    import highspy

    integer, sign = sums.integer[chosen], sums.sign[chosen].astype(np.float64)
    used = np.unique(integer[sign != 0])
    row, term = np.nonzero(sign)
    column, value = np.searchsorted(used, integer[row, term]), sign[row, term]
    n, rows = len(used), len(chosen)
    # Variables are changes up, changes down, and how negative each sum stays.
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
