"""The cheapest trees, with weights, that keep the decisions of some inputs: the pruning model of Emine et al., Free
Lunch in the Forest, AAAI 2025, as an integer program on HiGHS."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.highs import make_highs
from forestc.algorithms.separation_mip import most_nodes, steps_of


def select(
    trees: NDArray[np.int64],
    shifts: NDArray[np.int64],
    least: NDArray[np.int64],
    cost: NDArray[np.float64],
    largest: int,
    reach: int,
    limit: int,
    seconds: float,
) -> tuple[tuple[NDArray[np.int64], NDArray[np.int64], bool] | None, int]:
    """Whole weights (trees,) from 0 to `largest` and shifts, from -reach to reach, with
    `trees @ weights + shifts @ found >= least`, such that the cost of the trees with a weight is least, then the sum of
    weights.

    trees: (demands, trees). shifts: (demands, shifts). cost: (trees,) whole numbers. limit: of steps, see
    `separation_mip.solve`. seconds: further limit. Returns weights, shifts, and whether no cheaper choice exists, or
    None if nothing was found before the limit; and the steps taken.
    """
    import highspy  # imported here: it takes a while, and few need it

    demands, count = trees.shape
    width = shifts.shape[1]
    linked = largest > 1  # the cost of a tree is that of a binary, and its weight at most `largest` times that
    columns = count + width + count * linked
    rows = np.zeros((demands + count * linked, columns))
    rows[:demands, :count], rows[:demands, count : count + width] = trees, shifts
    if linked:
        own = np.arange(count)
        rows[demands + own, own], rows[demands + own, count + width + own] = -1, largest
    entry = rows != 0
    solver = make_highs(time_limit=seconds, mip_rel_gap=0.0, mip_max_nodes=most_nodes(limit, int(entry.sum())))
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = columns, len(rows)
    nothing = np.zeros(count + width)
    lp.col_cost_ = np.concatenate([cost, np.zeros(width)])
    if linked:
        nothing[:count] = 0.5 / (count * largest)
        lp.col_cost_ = np.concatenate([nothing, cost])
    lp.col_lower_ = np.concatenate([np.zeros(count), np.full(width, -reach), np.zeros(count * linked)])
    lp.col_upper_ = np.concatenate([np.full(count, largest), np.full(width, reach), np.ones(count * linked)])
    lp.row_lower_ = np.concatenate([least, np.zeros(count * linked)]).astype(np.float64)
    lp.row_upper_ = np.full(len(rows), np.inf)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.concatenate([[0], np.cumsum(entry.sum(axis=1))]).astype(np.int32)
    lp.a_matrix_.index_ = np.nonzero(entry)[1].astype(np.int32)
    lp.a_matrix_.value_ = rows[entry]
    lp.integrality_ = [highspy.HighsVarType.kInteger] * columns
    solver.passModel(lp)
    solver.run()
    info = solver.getInfo()
    steps = steps_of(solver)
    values: Any = np.array(solver.getSolution().col_value)
    if info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return None, steps
    whole = np.rint(values).astype(np.int64)
    weights, found = whole[:count], whole[count : count + width]
    if (trees @ weights + shifts @ found < least).any():  # rounding of the solver
        return None, steps
    return (weights, found, solver.getModelStatus() == highspy.HighsModelStatus.kOptimal), steps
