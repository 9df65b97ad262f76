"""Solves the integer program of ensemble selection (M. A. Mendes Bastos et al., INOC 2024) with HiGHS, from a given
selection. Constraints (3) and (6) are redundant and left out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from forestc.algorithms.arrays import Bits, Floats
from forestc.algorithms.highs import make_highs, make_model, most_calls, most_nodes, run
from forestc.algorithms.members.search import MemberChoice
from forestc.algorithms.members.selection_run import SelectionRun
from forestc.algorithms.members.vote_patterns import Diversity, Limits, Patterns

# Assumes this many seconds for a nonzero entry of a program, until HiGHS begins its search.
SECONDS_AN_ENTRY = 3e-6
ENTRIES_A_PAIR = 9  # adds this many nonzero entries for two members if diversity is limited


@dataclass(frozen=True)
class Solved:
    """The best selection found, with a bound on all selections."""

    found: MemberChoice
    bound: float  # upper bound on the value of any selection
    nodes: int  # nodes of HiGHS's search tree


class _Program:
    """An integer program under construction. A constraint (row) is (lower bound, {column: coefficient})."""

    def __init__(self) -> None:
        self.cost: list[float] = []
        self.upper: list[float] = []
        self.rows: list[tuple[float, dict[int, float]]] = []

    def columns(self, count: int, *, upper: float = 1.0, cost: Floats | float = 0.0) -> int:
        """Adds `count` variables with values from 0 to `upper` to the program. Returns the index of the first."""
        first = len(self.cost)
        self.cost += np.broadcast_to(cost, count).astype(float).tolist()
        self.upper += [upper] * count
        return first

    def at_least(self, lowest: float, terms: dict[int, float]) -> None:
        self.rows.append((lowest, terms))


def seconds_to_build(patterns: Patterns, limits: Limits) -> float:
    """Estimates the seconds until HiGHS begins its search."""
    pairs = 0 if limits.diversity is None else patterns.members * (patterns.members - 1) // 2
    return SECONDS_AN_ENTRY * (np.count_nonzero(patterns.votes) + ENTRIES_A_PAIR * pairs)


def solve(
    patterns: Patterns,
    limits: Limits,
    start: MemberChoice,
    cuts: tuple[tuple[int, ...], ...],
    bound: float,
    steps: int | None,
    running: SelectionRun,
    seed: int = 0,
) -> Solved:
    """Returns the better of `start` and the best selection that HiGHS finds.

    cuts: sets of patterns (rows with equal votes); each set must lose at least one pattern's gain.
    bound: upper bound on the value of any selection.
    steps: limits the work, in nonzero entries times simplex iterations.
    """
    import highspy

    program = _Program()
    members = patterns.members
    program.columns(members)
    most = patterns.size - 1  # no sum of votes is larger
    threshold = program.columns(1, upper=most)
    right = program.columns(len(patterns.gain), cost=np.abs(patterns.gain))
    for row, gain in enumerate(patterns.gain):
        if not running.left:
            return Solved(start, bound, 0)
        voters = np.flatnonzero(patterns.votes[:, row])
        sign = 1.0 if gain > 0 else -1.0
        # Constraints (2) and (5) apply if the row's `right` is 1; otherwise `slack` lifts them.
        votes = patterns.votes[voters, row].astype(float)
        slack = most + 1.0 if gain > 0 else float(votes.sum())
        terms = {int(k): sign * vote for k, vote in zip(voters, votes, strict=True)}
        terms |= {threshold: -sign, right + row: -slack}
        program.at_least((1.0 if gain > 0 else 0.0) - slack, terms)
    largest = patterns.votes.max(axis=1, initial=0).astype(float)
    program.at_least(0.0, {**dict(enumerate(largest.tolist())), threshold: -1.0})
    program.at_least(float(-limits.most), dict.fromkeys(range(members), -1.0))
    for rows in cuts:
        program.at_least(1.0 - len(rows), dict.fromkeys((right + row for row in rows), -1.0))
    chosen = start.times > 0
    completed = _add_bills(program, limits, chosen)
    if limits.diversity is not None:
        completed += _add_diversity(program, limits.diversity, chosen)
    values = np.zeros(len(program.cost))
    for first, start_values in completed:
        values[first : first + len(start_values)] = start_values
    sums = patterns.sums(start.times)
    values[:members], values[threshold] = chosen, start.threshold
    values[right : right + len(sums)] = (sums > start.threshold) == (patterns.gain > 0)
    options = {}
    if steps is not None:
        entries = sum(len(terms) for _, terms in program.rows)
        options["mip_max_nodes"] = most_nodes(steps, entries)
    solver = make_highs(seed=seed, mip_rel_gap=0.0, **options)
    # All variables are integers: with continuous ones, HiGHS 1.14 called wrong solutions optimal.
    columns, lowest = len(program.cost), [least for least, _ in program.rows]
    lines = [(list(terms), list(terms.values())) for _, terms in program.rows]
    unbounded = np.full(len(lowest), np.inf)
    solver.passModel(
        make_model(program.cost, program.upper, (lowest, unbounded), lines, by_rows=True, whole=columns, maximize=True)
    )
    first_solution = highspy.HighsSolution()
    first_solution.col_value = values.tolist()
    solver.setSolution(first_solution)
    # The program's objective omits a constant, the sum of all negative gains.
    lost = float(patterns.gain[patterns.gain < 0].sum())
    calls = None if steps is None else most_calls(options["mip_max_nodes"])
    watch = partial(_tell, running, start.gained, bound, lost)
    if run(solver, calls, running.left, watch=watch, patient=True):
        running.interrupt()
    info = solver.getInfo()
    solution = np.array(solver.getSolution().col_value)
    bound = min(bound, float(info.mip_dual_bound) + lost)
    best = start
    if len(solution) and info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible:
        times = (solution[:members] > 0.5).astype(np.int64)
        value, best_threshold = patterns.value(patterns.sums(times))
        if value > start.gained and limits.violation(times > 0) <= 0:
            best = MemberChoice(times, best_threshold, value)
    return Solved(best, bound, int(info.mip_node_count))


def _tell(running: SelectionRun, value_found: float, highest: float, lost: float, value: float, bound: float) -> None:
    running.tell(max(value_found, value + lost), min(highest, bound + lost))


StartValues = list[tuple[int, Floats]]  # index of a block's first column, and the block's start values


def _add_bills(program: _Program, limits: Limits, chosen: Bits) -> StartValues:
    """Adds the limits on hardware cost. Returns the new variables' values for the members `chosen`."""
    start_values: StartValues = []
    for bill in limits.bills:
        if not np.isfinite(bill.most):
            continue
        parts = program.columns(len(bill.part))
        for part in range(len(bill.part)):
            for member in np.flatnonzero(bill.uses[:, part]):
                program.at_least(0.0, {parts + part: 1.0, int(member): -1.0})
        terms = {k: -float(cost) for k, cost in enumerate(bill.own)}
        program.at_least(-bill.most, terms | {parts + j: -float(price) for j, price in enumerate(bill.part)})
        if len(bill.part):
            start_values.append((parts, np.asarray(bill.uses[chosen].any(axis=0), dtype=np.float64)))
    return start_values


def _add_diversity(program: _Program, diversity: Diversity, chosen: Bits) -> StartValues:
    """Adds the limits on diversity. Returns the new variables' values for the members `chosen`."""
    members = len(chosen)
    a, b = np.triu_indices(members, 1)
    first = program.columns(len(a))
    column_of = np.zeros((members, members), dtype=np.int64)
    column_of[a, b] = column_of[b, a] = first + np.arange(len(a))
    credits, tau, gamma = diversity.credits, diversity.tau, diversity.gamma
    for k, m in zip(a.tolist(), b.tolist(), strict=True):
        y = int(column_of[k, m])
        program.at_least(-1.0, {y: 1.0, k: -1.0, m: -1.0})  # (14)
        program.at_least(0.0, {k: 1.0, y: -1.0})  # (15)
        program.at_least(0.0, {m: 1.0, y: -1.0})  # (16)
    if tau:
        for k in range(members):  # (18), with K tau (1 - x_k) on the left
            terms = {int(column_of[k, m]): float(credits[k, m]) for m in range(members) if m != k}
            terms |= dict.fromkeys((m for m in range(members) if m != k), -tau)
            terms[k] = -tau - tau * members
            program.at_least(-tau - tau * members, terms)
    if gamma:  # (20)
        program.at_least(0.0, {int(column_of[k, m]): float(credits[k, m]) - gamma for k, m in zip(a, b, strict=True)})
    program.at_least(2.0, dict.fromkeys(range(members), 1.0))
    return [(first, np.asarray(chosen[a] & chosen[b], dtype=np.float64))]
