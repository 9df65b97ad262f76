"""Solves the mixed-integer program of Nie et al. (6a)-(6l) for networks of bounded treewidth with HiGHS.

Rows (6g), (6h) and (6i) are written once for all parent sets of a variable with the same parent or the same two
parents. This is equivalent for integer solutions, since one parent set is chosen, and tighter for fractional ones.
"""

from __future__ import annotations

import time
from itertools import combinations

import numpy as np

from forestc.algorithms.highs import make_highs
from forestc.papers.networks.family_scores import FamilyScorer, useful_parent_sets
from forestc.papers.networks.runs import NetworkProof, ScoredNetwork

MOST_COLUMNS = 40  # columns of a data set at most: the program has about n * n * n rows


class _Rows:
    """Rows of a program: sums of terms between a lower and an upper bound."""

    def __init__(self) -> None:
        self.starts = [0]
        self.columns: list[int] = []
        self.values: list[float] = []
        self.lower: list[float] = []
        self.upper: list[float] = []

    def add(self, terms: dict[int, float], most: float, least: float = -np.inf) -> None:
        self.columns += terms.keys()
        self.values += terms.values()
        self.starts.append(len(self.columns))
        self.upper.append(most)
        self.lower.append(least)


def solve(scorer: FamilyScorer, k: int, most: int, start: ScoredNetwork, *, end: float, seed: int = 0) -> NetworkProof:
    """Solves the program for the best network of treewidth at most k. Returns the best network, and a bound that is its
    score if it is proved.

    most: parents of a variable.
    start: a network of this treewidth, which the solver starts from.
    end: by time.monotonic().
    """
    import highspy

    n = len(scorer.states)
    sets = [useful_parent_sets(scorer, child, most) for child in range(n)]
    z, v, pi = n * n, n * n + n, n * n + 2 * n  # The variables y come first; y[i, i] is fixed at 0.
    first = (pi + np.concatenate([[0], np.cumsum([len(family_sets) for family_sets in sets])])).tolist()
    variables = first[-1]
    rows = _Rows()
    for i in range(n):
        rows.add({i * n + j: 1.0 for j in range(n) if j != i}, k)  # (6c)
        for j in range(n):
            if i == j:
                continue
            rows.add({i * n + j: n + 1.0, z + i: 1.0, z + j: -1.0}, n)  # (6d)
            for other in range(j):
                if other != i:  # (6e)
                    pair = {i * n + j: 1.0, i * n + other: 1.0, j * n + other: -1.0, other * n + j: -1.0}
                    rows.add(pair, 1.0)
        chosen = range(first[i], first[i + 1])
        rows.add(dict.fromkeys(chosen, 1.0), 1.0, 1.0)  # (6f)
        containing: dict[tuple[int, ...], list[int]] = {}
        for at, (parents, _) in zip(chosen, sets[i], strict=True):
            for some in (*combinations(parents, 1), *combinations(parents, 2)):
                containing.setdefault(some, []).append(at)
        for some, columns in containing.items():
            u, w = (i, *some) if len(some) == 1 else some
            rows.add({**dict.fromkeys(columns, 1.0), u * n + w: -1.0, w * n + u: -1.0}, 0.0)  # (6h), (6i)
            if len(some) == 1:  # (6g)
                rows.add({**dict.fromkeys(columns, n + 1.0), v + i: 1.0, v + some[0]: -1.0}, n)
    cost, upper = np.zeros(variables), np.ones(variables)
    cost[pi:] = [score for family_sets in sets for _, score in family_sets]
    upper[z:pi] = n
    upper[[i * n + i for i in range(n)]] = 0.0
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = variables, len(rows.upper)
    model.col_cost_, model.col_lower_, model.col_upper_ = cost, np.zeros(variables), upper
    model.row_lower_, model.row_upper_ = np.array(rows.lower), np.array(rows.upper)
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = np.array(rows.starts, np.int32)
    model.a_matrix_.index_ = np.array(rows.columns, np.int32)
    model.a_matrix_.value_ = np.array(rows.values)
    model.sense_ = highspy.ObjSense.kMaximize
    is_integer = np.ones(variables, bool)
    is_integer[z:pi] = False
    kinds = highspy.HighsVarType
    model.integrality_ = [kinds.kInteger if integral else kinds.kContinuous for integral in is_integer]
    solver = make_highs(time_limit=max(0.1, end - time.monotonic()), seed=seed, mip_rel_gap=0.0)
    solver.passModel(model)
    initial = highspy.HighsSolution()
    initial.col_value = _values(start, sets, first, variables)
    solver.setSolution(initial)
    solver.run()
    info = solver.getInfo()
    bound = max(float(info.mip_dual_bound), start.score)
    best = start
    values = np.array(solver.getSolution().col_value)
    if len(values) and info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible:
        picked = [int(values[first[i] : first[i + 1]].argmax()) for i in range(n)]
        score = sum(sets[i][at][1] for i, at in enumerate(picked))
        if score > start.score:
            order = np.argsort(values[z:v], kind="stable")
            best = ScoredNetwork(score, tuple(sets[i][at][0] for i, at in enumerate(picked)), tuple(order.tolist()))
    return NetworkProof(best, max(bound, best.score), int(info.mip_node_count))


def _values(
    start: ScoredNetwork, sets: list[list[tuple[tuple[int, ...], float]]], first: list[int], variables: int
) -> list[float]:
    """Returns the program's variables for a network. A parent set outside `sets` becomes a subset that scores
    better."""
    n = len(sets)
    values = np.zeros(variables)
    parents: list[tuple[int, ...]] = []
    for i, family in enumerate(start.parents):
        at = next(at for at, (some, _) in enumerate(sets[i]) if set(some) <= set(family))
        values[first[i] + at] = 1.0
        parents.append(sets[i][at][0])
    near: list[set[int]] = [set() for _ in range(n)]
    for i, family in enumerate(parents):
        for u in (i, *family):
            near[u] |= {i, *family}
    for position, i in enumerate(start.order):
        values[n * n + i] = position
        near[i].discard(i)
        for j in near[i]:
            values[i * n + j] = 1.0
            near[j] = (near[j] | near[i]) - {i}
    left, depth = set(range(n)), float(n - 1)
    while left:  # Parents have larger values of v than their children.
        for i in sorted(i for i in left if not left & set(parents[i])):
            values[n * n + n + i] = depth
            depth -= 1.0
            left.discard(i)
    return [float(value) for value in values]
