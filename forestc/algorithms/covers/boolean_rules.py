"""Learns small decision rules by column generation (Dash, Gunluk and Wei, Boolean Decision Rules via Column Generation,
2018).

A DNF rule is an OR of ANDs of literals; a CNF rule is an AND of ORs.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.arrays import Bits, Floats, Ints
from forestc.algorithms.covers.boolean_pricing import (
    LONG,
    SpanLiterals,
    all_clauses,
    beam_search,
    best_clauses,
    grouped_rows,
    literals_of,
)
from forestc.algorithms.covers.column_generation import (
    COLUMNS_A_ROUND,
    Generated,
    Priced,
    Progress,
    SearchState,
    generate,
)
from forestc.algorithms.covers.selection import Column, Cover, CoverSearch
from forestc.algorithms.highs import most_nodes
from forestc.errors import OptionError, RowsError

Form = Literal["dnf", "cnf"]
Clause = tuple[int, ...]

WIDTH = 20  # clauses of each length that the beam search extends
LONGEST_IN_BEAM = 6  # literals of a clause in the beam search at most
TIE = 1e-6  # treats smaller differences of shares of the weight as equal
LEAST_SECONDS = 0.001  # seconds for each rule of a set at least
MOST_CACHED = 20_000  # columns in the cache at most; one more clears the cache
MOST_ROWS, MOST_BITS = 2000, 100_000  # rows and bits of the samples drawn from larger tables
SAMPLE_STEPS = 3 * 10**7  # steps of the exact search over a sample at most
# Limits the clauses listed to prove optimality, and their share of the remaining time.
MOST_LISTED, LISTING_SHARE = 20_000, 0.3
PROGRAM_NODES = 50  # nodes of the final integer program at most if rounds and time are limited
# Limits the steps of the final integer program, and of listing clauses for it, if there is no time limit.
PROGRAM_STEPS, LISTING_STEPS = 10**8, 3 * 10**8
PROGRAM_SHARE = 0.25  # share of the time reserved for the final integer program
FIRST_COMPLEXITY = 4  # starts with this complexity if no clauses are given, then doubles it
SMALLER_SHARE = 0.75  # share of the time limit for rules of smaller complexity
SMALLER_ROUNDS = 10  # rounds of column generation for each smaller rule at most


@dataclass(frozen=True)
class RuleLearning:
    """A learnt rule."""

    clauses: tuple[Clause, ...]  # ascending tuples of literals (columns of the bits)
    form: Form
    loss: float  # Hamming loss on the training rows
    complexity: int  # number of clauses plus literals
    bound: float  # lower bound on the loss of any rule within the limits
    optimal: bool  # True if the loss equals the bound
    interrupted: bool  # True if Ctrl-C ended the search early
    rounds: int  # number of rounds of column generation at the last complexity tried
    candidates: tuple[Clause, ...]  # all clauses generated; the rule's clauses come first

    @property
    def gap(self) -> float:
        """Relative gap, (loss - bound) / loss; 0 if optimal."""
        return 0.0 if self.optimal or self.loss <= 0 else (self.loss - self.bound) / self.loss

    def predict(self, bits: Bits) -> Bits:
        """Returns for each row whether the rule holds. bits: (rows, literals), columns as in training."""
        return holds(self.clauses, self.form, bits)


def holds(clauses: Sequence[Clause], form: Form, bits: Bits) -> Bits:
    """Returns for each row of bits whether a rule holds. A rule without clauses is false as a DNF, true as a CNF."""
    negated = form == "cnf"
    result = np.zeros(len(bits), dtype=bool)
    for clause in clauses:
        result |= (bits[:, list(clause)] != negated).all(axis=1)
    return np.asarray(result != negated)


@dataclass(frozen=True)
class RuleLimits:
    """Limits of a rule and of the search for it. Raises OptionError unless complexity, time_limit and longest are above
    0."""

    complexity: int  # most clauses plus literals of the rule
    form: Form = "dnf"
    time_limit: float = 60.0  # seconds
    seed: int = 0
    longest: int | None = None  # most literals of a clause
    rounds: int | None = None  # most rounds of column generation

    def __post_init__(self) -> None:
        limits = (self.complexity, self.time_limit, self.longest, self.rounds)
        if not all(limit is None or limit > 0 for limit in limits):
            raise OptionError(
                f"one of {', '.join(map(str, limits))} is not above 0",
                where="complexity, time_limit, longest and rounds",
                do="give larger ones",
            )
        if not self.timed and self.rounds is None:
            raise OptionError("neither is given", where="time_limit and rounds", do="give one of the limits")
        if self.form not in ("dnf", "cnf"):
            raise OptionError(f"{self.form!r} is unknown", where="form", do="choose dnf or cnf")

    @property
    def timed(self) -> bool:
        return math.isfinite(self.time_limit)


def learn_rules(
    bits: Bits,
    y: NDArray[Any],
    limits: RuleLimits,
    *,
    groups: Ints | None = None,
    weight: Floats | None = None,
    start: Sequence[Clause] = (),
    progress: Progress | None = None,
) -> RuleLearning:
    """Returns the rule of least Hamming loss found for bits, (rows, literals), and labels y. `start` holds clauses to
    begin with. Raises RowsError for invalid data, OptionError for unknown literals."""
    bits, y, weight = _checked(bits, y, weight)
    if groups is not None and np.shape(groups) != (bits.shape[1],):
        raise RowsError(
            f"{np.shape(groups)} for {bits.shape[1]} literals",
            where="groups",
            do="give an array (literals,)",
        )
    for literal in (literal for clause in start for literal in clause):
        if not 0 <= literal < bits.shape[1]:
            raise OptionError(
                f"there is no literal {literal} of {bits.shape[1]}",
                where="start",
                do="give indices of literals",
            )
    _compile()
    deadline, complexity, form = time.monotonic() + limits.time_limit, limits.complexity, limits.form
    negated = form == "cnf"
    problem = _RuleProblem.of(bits != negated, y != negated, weight, complexity, limits.longest, groups, limits.seed)
    cover = problem.cover
    if not len(cover.penalty) or complexity < 2 or not bits.shape[1]:
        loss = float(cover.penalty.sum())
        return RuleLearning((), form, loss, 0, loss, True, False, 0, ())
    columns = [problem.column(tuple(sorted(set(clause)))) for clause in start]
    complexities = [] if columns else [FIRST_COMPLEXITY << k for k in range(complexity.bit_length())]
    complexities = [smaller for smaller in complexities if smaller < complexity]
    smaller_end = time.monotonic() + SMALLER_SHARE * limits.time_limit
    few = replace(limits, rounds=SMALLER_ROUNDS if limits.rounds is None else min(limits.rounds, SMALLER_ROUNDS))

    def without_bound(state: SearchState) -> None:
        if progress is not None:  # the bound of a smaller complexity is none of the larger
            progress(replace(state, bound=None))

    for index, smaller in enumerate(complexities):
        begin = time.monotonic()
        until = begin + (smaller_end - begin) * smaller / sum(complexities[index:])
        rule, columns = _learnt(problem.within(smaller), columns, few, until, without_bound)
        if rule.interrupted:
            return replace(rule, bound=0.0, optimal=rule.loss <= 0)
    return _learnt(problem, columns, limits, deadline, progress)[0]


def _learnt(
    problem: _RuleProblem, start: list[Column], limits: RuleLimits, deadline: float, progress: Progress | None
) -> tuple[RuleLearning, list[Column]]:
    seed, rounds = limits.seed, limits.rounds
    selection = CoverSearch(problem.cover, seed, timed=limits.timed)
    begin = time.monotonic()
    until = begin + (1 - PROGRAM_SHARE) * (deadline - begin)
    generated = generate(problem, selection, start=start, deadline=until, seed=seed, progress=progress, rounds=rounds)
    interrupted, proved = generated.interrupted, False
    proves = limits.timed or problem.cover.budget == limits.complexity  # without a clock, smaller rules need no proof
    if proves and not interrupted and generated.bound < selection.best[0]:
        # An integer program over all clauses that can help may prove the rule optimal.
        try:
            lists = rounds is None or not limits.timed
            reachable = problem.in_reach(generated, selection.best[0], deadline) if lists else None
            if reachable is not None:
                keys = {column.key for column in selection.columns}
                selection.add([column for column in reachable if column.key not in keys])
            nodes = None if rounds is None else PROGRAM_NODES
            if not limits.timed:
                entries = sum(len(column.rows) for column in selection.columns)
                nodes = most_nodes(PROGRAM_STEPS, entries)
            if limits.timed or reachable is not None:  # without a clock, only a proof is worth the work
                proved = selection.solve(deadline, generated.bound, seed, nodes) and reachable is not None
        except KeyboardInterrupt:
            interrupted = True
    loss, chosen = selection.best
    bound = loss if proved else min(loss, generated.bound)
    clauses = tuple(sorted(selection.columns[index].key for index in chosen))
    candidates = *clauses, *(column.key for column in generated.columns if column.key not in clauses)
    rule = RuleLearning(
        clauses, limits.form, loss, sum(len(clause) + 1 for clause in clauses), bound, bool(bound >= loss - 1e-9),
        interrupted, generated.rounds, candidates,
    )  # fmt: skip
    return rule, sorted(selection.columns, key=lambda column: column.key not in clauses)


@cache
def _compile() -> None:
    """Compiles the functions in advance, so that compiling does not count against the time limit."""
    y = np.array([True, False])
    problem = _RuleProblem.of(np.stack([y, ~y], axis=1), y, np.ones(2), 4, None, None, 0)
    selection = CoverSearch(problem.cover, 0)
    generate(problem, selection, deadline=time.monotonic() + 60, seed=0)
    problem.quick(np.ones(1), 0.0)
    selection.improve(np.ones(len(selection.columns)))


def _checked(bits: Bits, y: NDArray[Any], weight: Floats | None) -> tuple[Bits, Bits, Floats]:
    bits, y = np.asarray(bits), np.asarray(y)
    if bits.ndim != 2 or not len(bits) or not (bits.dtype == bool or np.isin(bits, (0, 1)).all()):
        raise RowsError(f"they have shape {bits.shape}", where="bits", do="pass a table of 0 and 1")
    if y.shape != (len(bits),) or not np.isin(y, (0, 1)).all():
        raise RowsError(
            f"{y.shape} labels for {len(bits):,} rows, or others than 0 and 1", where="labels",
            do="use learn_rule_sets for several classes",
        )  # fmt: skip
    weight = np.ones(len(bits)) if weight is None else np.asarray(weight, dtype=np.float64)
    if weight.shape != y.shape or not np.isfinite(weight).all() or (weight < 0).any():
        raise RowsError(
            f"they have shape {weight.shape}, or are not all finite and from 0 on",
            where="weights",
            do="give an array (rows,) of weights from 0 on",
        )
    return bits.astype(bool), y.astype(bool), weight


@dataclass(frozen=True)
class _RuleProblem:
    """The covering problem of a rule over distinct rows."""

    cover: Cover
    literals: SpanLiterals
    positive: Ints  # indices of the distinct rows to cover
    negative: Floats  # (distinct rows,) weight of the rows not to cover
    identity: Ints  # column of each literal in the caller's bits
    longest: int  # most literals of a clause
    random: np.random.Generator
    # Caches columns by clause, because beam searches find most clauses repeatedly.
    cached: dict[Clause, Column] = field(default_factory=dict)

    @staticmethod
    def of(
        bits: Bits, y: Bits, weight: Floats, complexity: int, longest: int | None, groups: Ints | None, seed: int
    ) -> _RuleProblem:
        holds_somewhere = np.flatnonzero(bits.any(axis=0))  # a literal that always holds gives the clause "true"
        identity = holds_somewhere[np.sort(grouped_rows(bits[:, holds_somewhere].T)[0])]
        selected = np.flatnonzero(weight > 0)
        first_row, inverse = grouped_rows(bits[selected][:, identity])
        mass, against = (
            np.bincount(inverse, np.where(y[selected] == side, weight[selected], 0.0), minlength=len(first_row)).astype(
                np.float64
            )
            for side in (True, False)
        )
        distinct = bits[selected[first_row]][:, identity]
        positive = np.flatnonzero(mass > 0)
        integral = bool((weight == np.rint(weight)).all())
        cover = Cover(mass[positive], float(complexity), 2.0, integral)
        literals = literals_of(distinct, None if groups is None else np.asarray(groups)[identity])
        # A clause of n literals has complexity n + 1.
        most = min(complexity - 1, longest or complexity, max(1, len(identity)))
        return _RuleProblem(cover, literals, positive, against, identity, max(1, most), np.random.default_rng(seed))

    def within(self, complexity: int) -> _RuleProblem:
        cover = replace(self.cover, budget=float(complexity))
        return replace(self, cover=cover, longest=min(self.longest, complexity - 1))

    def weights(self, duals: Floats) -> Floats:
        result = -self.negative
        result[self.positive] += duals
        return result

    def column(self, clause: Clause) -> Column:
        """Returns the column (covered rows and cost) of a clause over the caller's literals."""
        indices = np.searchsorted(self.identity, clause)
        if len(clause) == 0 or (indices >= len(self.identity)).any() or (self.identity[indices] != clause).any():
            return Column(np.zeros(0, dtype=np.int32), float(self.negative.sum()), float(len(clause) + 1), clause)
        covered = self.literals.covered(tuple(indices.tolist()))
        rows = np.flatnonzero(covered[self.positive]).astype(np.int32)
        return Column(rows, float(self.negative[covered].sum()), float(len(clause) + 1), clause)

    def columns(self, clauses: Sequence[Clause]) -> list[Column]:
        """Returns at most `COLUMNS_A_ROUND` distinct columns, of clauses with indices into `identity`."""
        distinct: dict[bytes, Column] = {}
        for clause in clauses:
            if clause not in self.cached:
                if len(self.cached) >= MOST_CACHED:
                    self.cached.clear()
                self.cached[clause] = self.column(tuple(self.identity[list(clause)].tolist()))
            column = self.cached[clause]
            distinct.setdefault(column.rows.tobytes() + str(column.cost).encode(), column)
            if len(distinct) == COLUMNS_A_ROUND:
                break
        return list(distinct.values())

    def in_reach(self, generated: Generated, loss: float, deadline: float) -> list[Column] | None:
        """Returns the columns of all clauses that a rule of smaller loss may use; None if they cannot all be listed."""
        dual_bound = float(generated.duals.sum()) - self.cover.budget * generated.price
        slack = (loss - 1 if self.cover.integral else loss) - dual_bound + 1e-6
        until = time.monotonic() + LISTING_SHARE * (deadline - time.monotonic())
        steps = LONG if math.isfinite(deadline) else LISTING_STEPS
        listed = all_clauses(
            self.literals, self.weights(generated.duals), generated.price, self.longest, slack, MOST_LISTED, until,
            steps=steps,
        )  # fmt: skip
        if not listed.complete:
            return None
        return [self.column(tuple(self.identity[list(clause)].tolist())) for clause in listed.clauses]

    def quick(self, duals: Floats, price: float) -> list[Column]:
        weight = self.weights(duals)
        clauses = beam_search(self.literals, weight, price, min(self.longest, LONGEST_IN_BEAM), WIDTH).clauses
        return self.columns(clauses) + self.columns(self.sampled(weight, price))

    def fitting(self, duals: Floats, price: float, room: float) -> list[Column]:
        longest = min(self.longest, LONGEST_IN_BEAM, int(room) - 1)
        return self.columns(beam_search(self.literals, self.weights(duals), price, longest, WIDTH).clauses)

    def sampled(self, weight: Floats, price: float) -> list[Clause]:
        """Returns clauses from a branch and bound over a random sample of rows and literals; none for a small table."""
        rows, literals = len(weight), len(self.identity)
        if rows <= MOST_ROWS and rows * literals <= MOST_BITS:
            return []
        share = min(1.0, MOST_ROWS / rows)
        some = np.flatnonzero(self.random.random(rows) < share)
        selected = np.flatnonzero(self.random.random(literals) < MOST_BITS / max(1, len(some) * literals))
        if not len(some) or not len(selected):
            return []
        part = self.literals.of(some, selected)
        clauses = best_clauses(part, weight[some] / share, price, self.longest, SAMPLE_STEPS, math.inf).clauses
        return [tuple(selected[list(clause)].tolist()) for clause in clauses]

    def exact(self, duals: Floats, price: float, steps: int, deadline: float) -> Priced:
        best = best_clauses(self.literals, self.weights(duals), price, self.longest, steps, deadline)
        worth = best.worth if math.isfinite(best.worth) else math.inf
        return Priced(self.columns(best.clauses), worth, best.complete)


@dataclass(frozen=True)
class RuleSets:
    """Rules for several classes, one for each."""

    classes: NDArray[Any]  # labels, ascending
    rules: tuple[RuleLearning, ...]
    order: tuple[int, ...]  # class indices; the first class with a rule that holds wins
    default: int  # index of the class for rows where no rule holds

    def predict(self, bits: Bits) -> NDArray[Any]:
        """Returns the predicted label of each row."""
        claims = np.stack([rule.predict(bits) for rule in self.rules])
        return np.asarray(self.classes[_decided(claims, self.order, self.default)])

    @property
    def tried(self) -> tuple[int, ...]:
        """Class indices whose rules can hold, in order, without the default class at the end."""
        order = self.order[:-1] if self.order[-1:] == (self.default,) else self.order
        return tuple(index for index in order if self.rules[index].clauses or self.rules[index].form == "cnf")

    @property
    def complexity(self) -> int:
        return sum(rule.complexity for rule in self.rules)


def class_weights(y: NDArray[Any]) -> Floats:
    """Returns (rows,) weights that give every class the same total; their mean is 1."""
    classes, inverse, count = np.unique(y, return_inverse=True, return_counts=True)
    return np.asarray(len(y) / (len(classes) * count[inverse.reshape(-1)]))


def learn_rule_sets(
    bits: Bits,
    y: NDArray[Any],
    limits: RuleLimits,
    *,
    groups: Ints | None = None,
    weight: Floats | None = None,
    start: Sequence[Sequence[Clause]] = (),
    progress: Progress | None = None,
) -> RuleSets:
    """Learns a rule for each class against the rest; with two classes, only for the second. The time limit is for all
    rules together. start: clauses to begin with, for each class. If all rows are of one class, it is the default."""
    y = np.asarray(y)
    classes, label = np.unique(y, return_inverse=True)
    label = label.reshape(-1)
    learnt = range(1, 2) if len(classes) == 2 else range(len(classes) if len(classes) > 1 else 0)
    _compile()
    end = time.monotonic() + limits.time_limit
    rules: list[RuleLearning] = []
    for index in learnt:
        seconds = max(LEAST_SECONDS, (end - time.monotonic()) / (len(learnt) - len(rules)))
        rule = learn_rules(
            bits, label == index, replace(limits, time_limit=seconds), groups=groups, weight=weight,
            start=start[index] if start else (), progress=progress,
        )  # fmt: skip
        rules.append(rule)
        if rule.interrupted:
            break
    weight = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64)
    claims = np.zeros((len(classes), len(y)), dtype=bool)
    for index, rule in zip(learnt, rules, strict=False):
        claims[index] = rule.predict(np.asarray(bits, dtype=bool))
    order, default = _priorities(claims, label, weight) if len(classes) > 2 else (tuple(learnt), 0)
    nothing = RuleLearning((), "dnf", 0.0, 0, 0.0, False, any(rule.interrupted for rule in rules), 0, ())
    rule_of = dict(zip(learnt, rules, strict=False))
    return RuleSets(classes, tuple(rule_of.get(index, nothing) for index in range(len(classes))), order, default)


def _decided(claims: Bits, order: Sequence[int], default: int) -> Ints:
    result = np.full(claims.shape[1], default)
    for index in reversed(order):
        result[claims[index]] = index
    return result


def _priorities(claims: Bits, label: Ints, weight: Floats) -> tuple[tuple[int, ...], int]:
    """Returns class indices, the highest priority first, and the default class."""
    free = ~claims.any(axis=0)
    among = np.bincount(label, np.where(free, weight, 0.0) if free.any() else weight, minlength=len(claims))
    default = int(np.argmax(among))

    def accuracy(order: Sequence[int]) -> float:
        return float(weight[_decided(claims, order, default) == label].sum())

    hits = np.array([weight[row & (label == index)].sum() for index, row in enumerate(claims)])
    precision = np.round(hits / np.maximum((claims * weight).sum(axis=1), 1e-12) / TIE)
    order = np.lexsort((-hits, -precision)).tolist()
    best, better = accuracy(order), True
    while better:
        better = False
        for first, second in combinations(range(len(order)), 2):
            order[first], order[second] = order[second], order[first]
            if accuracy(order) > best + TIE * weight.sum():
                best, better = accuracy(order), True
            else:
                order[first], order[second] = order[second], order[first]
    return tuple(order), default
