"""Solves the separation problem as an integer program with HiGHS, to compare with the search in `separation`.

A binary variable for each threshold says whether the input's cell lies below it; the variables of a feature are
chained. A variable for each leaf says whether the input lies in it: one leaf a tree, and on each side of a threshold
only if its binary allows (the formulation of Misic, Optimization of Tree Ensembles, Operations Research 2020).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forestc.algorithms.highs import make_highs, make_model, most_nodes, steps_of
from forestc.algorithms.separation.oracle import Box, BoxEnsemble, Decider, Problem, Separation, differ, problems
from forestc.algorithms.separation.search import FOUND, NONE, STOPPED

SLACK = 0.5  # adds this much to each integer sum, as room for the solver's tolerance
MOST_SUM = 1e8  # limits the sums, since beyond it the solver's tolerance could hide an input


def separate_by_program(before: BoxEnsemble, after: BoxEnsemble, decider: Decider, box: Box, limit: int) -> Separation:
    """Separates as `separate` does. limit: of steps, see `solve`."""
    steps = 0
    unknown = False
    for problem in problems(before, after, decider, box):
        state, cells, taken = solve(problem, limit - steps)
        steps += taken
        if state == FOUND and differ(before, after, decider, cells[np.newaxis])[0]:
            return Separation("differs", cells, steps)
        unknown |= state != NONE  # An input that decides alike results from the solver's rounding.
        if unknown and steps >= limit:
            break
    return Separation("unknown" if unknown else "same", None, steps)


def solve(problem: Problem, limit: int) -> tuple[int, NDArray[np.int32], int]:
    """Solves the program. Returns NONE, FOUND or STOPPED, the cells (features,) of the input, and the steps: one for
    each entry of the program in each iteration of the simplex method. An input may be wrong within the solver's
    tolerance.

    limit: of the steps, roughly.
    """
    import highspy  # The import takes a while, and few callers need it.

    low, high, value = problem.low, problem.high, problem.value[:, : problem.single]
    start = problem.start[: problem.single]
    nothing = np.zeros(low.shape[1], dtype=np.int32)
    if max(float(np.abs(value).sum()), float(np.abs(start).max(initial=0))) > MOST_SUM or limit <= 0:
        return STOPPED, nothing, 0
    box_low, box_high = problem.box
    low, high = np.maximum(low, box_low), np.minimum(high, box_high)
    cuts = [np.unique(np.concatenate([low[:, f], high[:, f]])) for f in range(low.shape[1])]
    cuts = [own[(own > box_low[f]) & (own < box_high[f])] for f, own in enumerate(cuts)]
    first = len(low) + np.concatenate([[0], np.cumsum([len(own) for own in cuts])])
    lines: list[tuple[ArrayLike, ArrayLike]] = []
    bounds: list[tuple[float, float]] = []

    def add(index: ArrayLike, factors: ArrayLike, lower: float, upper: float) -> None:
        lines.append((index, factors))
        bounds.append((lower, upper))

    trees = np.unique(problem.tree)
    for tree in trees.tolist():
        own = np.flatnonzero(problem.tree == tree)
        add(own, np.ones(len(own)), 1, 1)
        for f in range(low.shape[1]):
            for cut in np.unique(np.concatenate([low[own, f], high[own, f]])).tolist():
                if not box_low[f] < cut < box_high[f]:
                    continue
                below = int(first[f] + np.searchsorted(cuts[f], cut))
                inside, outside = own[high[own, f] <= cut], own[low[own, f] >= cut]
                add([*inside, below], [*np.ones(len(inside)), -1], -np.inf, 0)
                add([*outside, below], [*np.ones(len(outside)), 1], -np.inf, 1)
    for f, own in enumerate(cuts):
        for place in range(int(first[f]), int(first[f]) + len(own) - 1):
            add([place, place + 1], [1, -1], -np.inf, 0)
    for total in range(problem.single):
        own = np.flatnonzero(value[:, total])
        add(own, value[own, total], -float(start[total]) - SLACK, np.inf)
    solver = make_highs(mip_max_nodes=most_nodes(limit, sum(len(np.asarray(index)) for index, _ in lines)))
    columns = int(first[-1])
    limits = tuple(np.array(bounds).T)
    # The leaves are integral without being declared so.
    solver.passModel(make_model(np.zeros(columns), np.ones(columns), limits, lines, by_rows=True, whole=columns))
    solver.run()
    steps = steps_of(solver)
    status = solver.getModelStatus()
    if status == highspy.HighsModelStatus.kInfeasible:
        return NONE, nothing, steps
    if status != highspy.HighsModelStatus.kOptimal:
        return STOPPED, nothing, steps
    is_below = np.array(solver.getSolution().col_value) > 0.5
    cells = box_low.copy()
    for f, own in enumerate(cuts):
        at = own[~is_below[first[f] : first[f + 1]]]
        cells[f] = max([int(box_low[f]), *at.tolist()])
    return FOUND, cells, steps
