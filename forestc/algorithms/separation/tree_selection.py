"""The cheapest trees that keep the decisions of some inputs: the pruning model of Emine et al., Free Lunch in the
Forest, AAAI 2025, without its weights, as an integer program on HiGHS."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.highs import make_highs, most_calls, most_nodes, run, steps_of


def select(
    trees: NDArray[np.int64],
    shifts: NDArray[np.int64],
    least: NDArray[np.int64],
    cost: NDArray[np.float64],
    reach: int,
    limit: int,
    seconds: float,
) -> tuple[tuple[NDArray[np.int64], NDArray[np.int64], bool] | None, int]:
    """The trees to keep, (trees,) of 0 and 1, and shifts, from -reach to reach, with
    `trees @ kept + shifts @ shift >= least`, such that the cost of the kept trees is least.

    trees: (demands, trees). shifts: (demands, shifts). cost: (trees,) whole numbers. limit: of steps, see
    `highs.most_nodes`. seconds: further limit. Returns kept, shifts, and whether no cheaper choice exists, or
    None if nothing was found before the limit; and the steps taken.
    """
    import highspy  # imported here: it takes a while, and few need it

    demands, count = trees.shape
    width = shifts.shape[1]
    rows = np.concatenate([trees, shifts], axis=1).astype(np.float64)
    entry = rows != 0
    nodes = most_nodes(limit, int(entry.sum()))
    solver = make_highs(time_limit=seconds, mip_rel_gap=0.0, mip_max_nodes=nodes)
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = count + width, demands
    lp.col_cost_ = np.concatenate([cost, np.zeros(width)])
    lp.col_lower_ = np.concatenate([np.zeros(count), np.full(width, -reach)])
    lp.col_upper_ = np.concatenate([np.ones(count), np.full(width, reach)])
    lp.row_lower_ = least.astype(np.float64)
    lp.row_upper_ = np.full(demands, np.inf)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.concatenate([[0], np.cumsum(entry.sum(axis=1))]).astype(np.int32)
    lp.a_matrix_.index_ = np.nonzero(entry)[1].astype(np.int32)
    lp.a_matrix_.value_ = rows[entry]
    lp.integrality_ = [highspy.HighsVarType.kInteger] * (count + width)
    solver.passModel(lp)
    run(solver, most_calls(nodes))
    info = solver.getInfo()
    steps = steps_of(solver)
    values: Any = np.array(solver.getSolution().col_value)
    if info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return None, steps
    whole = np.rint(values).astype(np.int64)
    kept, shift = whole[:count], whole[count:]
    if (trees @ kept + shifts @ shift < least).any():  # rounding of the solver
        return None, steps
    return (kept, shift, solver.getModelStatus() == highspy.HighsModelStatus.kOptimal), steps
