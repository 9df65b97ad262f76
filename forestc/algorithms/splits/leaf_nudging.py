"""Small changes of integers, "nudges", that put sums of them on the wanted side: an integer program on HiGHS.

Only the sums that are wrong, or would become so, are rows of the program: they are added round by round. A program is
limited in size and all rounds together in steps, as a leaf of few bits makes thousands of sums wrong; at a limit the
best nudges so far are the result, no nudges at worst.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.arrays import Bits, Int32s, Ints
from forestc.algorithms.highs import make_highs, make_model, most_nodes, run, steps_of

ROUNDS = 24  # of solving and adding violated sums, at most
MOST_NODES = 200  # of the solver, for each round: a limit in seconds would make results differ from run to run
MOST_ENTRIES = 50_000  # of a program; of more wrong sums the first that matter most are its rows
# heuristics that solve smaller integer programs, in which HiGHS does not call back, for ten seconds and more
SMALLER_PROGRAMS = ("rins", "rens", "root_reduced_cost")
WRONG = 1e4  # cost of a unit by which a sum stays on the wrong side, against 1 for a unit of a nudge


@dataclass(frozen=True)
class Sums:
    """A sum is right if room + (sign * nudges[place]).sum() >= 0.

    place: (sums, terms) what each sum adds up; sign: (sums, terms) 1, -1, or 0 for a term that does not count. room:
    (sums,). count: (sums,) how much each sum matters.
    """

    place: Int32s
    sign: NDArray[np.int8]
    room: Ints
    count: Ints

    def wrong(self, nudges: Ints) -> Bits:
        """(sums,)"""
        return np.asarray(self.room + (self.sign * nudges[self.place]).sum(axis=1) < 0)


def nudges_for(sums: Sums, places: int, most: int, steps: int) -> tuple[Ints, int]:
    """(places,) Returns the nudges, at most `most` up or down, with the fewest wrong sums that were found, and of these
    small ones; and the steps taken. No round begins after `steps`, and none takes many more."""
    best = np.zeros(places, dtype=np.int64)
    wrong = sums.wrong(best)
    fewest = int(sums.count[wrong].sum())
    chosen, taken = wrong, 0
    for _ in range(ROUNDS):
        if not fewest or taken >= steps:
            break
        nudges, more = _solved(sums, _most_counted(sums, chosen), places, most, steps - taken)
        taken += more
        wrong = sums.wrong(nudges)
        if int(sums.count[wrong].sum()) < fewest:
            best, fewest = nudges, int(sums.count[wrong].sum())
        if not (wrong & ~chosen).any():
            break
        chosen = chosen | wrong
    return best, taken


def _most_counted(sums: Sums, chosen: Bits) -> Ints:
    """The chosen sums, or those of the largest counts whose terms a program can hold."""
    index = np.flatnonzero(chosen)
    terms = np.count_nonzero(sums.sign[index], axis=1)
    if terms.sum() <= MOST_ENTRIES:
        return index
    order = np.argsort(-sums.count[index], kind="stable")
    return np.sort(index[order[np.cumsum(terms[order]) <= MOST_ENTRIES]])


def _solved(sums: Sums, chosen: Ints, places: int, most: int, steps: int) -> tuple[Ints, int]:
    """Nudges for some of the sums: the least total of what these stay short of, then of the nudges; and the steps
    taken, at most about `steps`."""
    import highspy

    place, sign = sums.place[chosen], sums.sign[chosen].astype(np.float64)
    used = np.unique(place[sign != 0])
    row, term = np.nonzero(sign)
    column, value = np.searchsorted(used, place[row, term]), sign[row, term]
    n, rows = len(used), len(chosen)
    # columns: nudges up, nudges down, what each sum stays short of
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
    run(solver, most_nodes(steps, entries))  # HiGHS calls back as often as it solves a node, or more often
    solution = np.array(solver.getSolution().col_value)
    result = np.zeros(places, dtype=np.int64)
    if (
        len(solution) == 2 * n + rows
        and solver.getInfo().primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    ):
        result[used] = np.rint(solution[:n] - solution[n : 2 * n]).astype(np.int64)
    return result, steps_of(solver)
