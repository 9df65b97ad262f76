"""Small decision rules by column generation (Dash, Gunluk and Wei, Boolean Decision Rules via Column Generation, 2018).

A rule in disjunctive normal form is an OR of clauses, each an AND of literals; in conjunctive normal form it is an AND
of clauses, each an OR. `learn_rules` minimizes the Hamming loss: the weight of positive rows that no clause covers,
plus, for each clause, the weight of the negative rows that it covers, where the rule's complexity, its clauses plus
their literals, is at most a bound. The conjunctive form is learnt as the disjunctive form of the negated labels over
the negated literals.

Of several classes each has a rule, one against the rest. Where several rules claim a row, the first in an order of
priority wins; where none does, the row is of a default class. Both are chosen for the accuracy on the training rows.
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
from forestc.algorithms.covers.boolean_pricing import SpanLiterals, all_clauses, beam_search, best_clauses, literals_of
from forestc.algorithms.covers.column_generation import COLUMNS_A_ROUND, Generated, Priced, Progress, generate
from forestc.algorithms.covers.selection import Column, Cover, CoverSearch
from forestc.errors import OptionError, RowsError

Form = Literal["dnf", "cnf"]
Clause = tuple[int, ...]

WIDTH = 20  # clauses that the beam search keeps of each length
LONGEST_IN_BEAM = 6  # literals of a clause in the beam search
MOST_KNOWN = 20_000  # columns that are kept while rules are learnt
MOST_ROWS, MOST_BITS = 2000, 100_000  # of the samples that are drawn from larger tables
SAMPLE_STEPS = 3 * 10**7  # of the search over a sample
MOST_LISTED, LISTING_SHARE = 20_000, 0.3  # clauses that are listed for a proof, and the share of the time for it
PROGRAM_NODES = 50  # of the final integer program where rounds are limited
PROGRAM_SHARE = 0.25  # of the time limit, kept for the final integer program
FIRST_RUNG = 4  # a rule is learnt after those of complexity 4, 8, 16, ... below its own
LADDER_SHARE = 0.75  # of the time limit, for all of these, of which each gets time as its complexity
RUNG_ROUNDS = 10  # of column generation for each of these, at most


@dataclass(frozen=True)
class RuleLearning:
    """clauses: each the literals (columns of the bits) that it is made of, ascending. form: how they are joined. loss:
    Hamming loss on the training rows. complexity: clauses + literals. bound: no rule within the limits has a smaller
    loss. optimal: the loss is the smallest there is. interrupted: Ctrl-C was pressed, and this is the best rule found
    until then. candidates: every clause that was generated, those of the rule first, for another choice among them."""

    clauses: tuple[Clause, ...]
    form: Form
    loss: float
    complexity: int
    bound: float
    optimal: bool
    interrupted: bool
    rounds: int
    candidates: tuple[Clause, ...]

    @property
    def gap(self) -> float:
        """(loss - bound) / loss, 0 if optimal."""
        return 0.0 if self.optimal or self.loss <= 0 else (self.loss - self.bound) / self.loss

    def predict(self, bits: Bits) -> Bits:
        """(rows,) whether the rule holds. bits: (rows, literals), as it was learnt on."""
        return holds(self.clauses, self.form, bits)


def holds(clauses: Sequence[Clause], form: Form, bits: Bits) -> Bits:
    """(rows,) whether a rule holds on rows of bits. No clause at all: false as a DNF, true as a CNF."""
    negated = form == "cnf"
    result = np.zeros(len(bits), dtype=bool)
    for clause in clauses:
        result |= (bits[:, list(clause)] != negated).all(axis=1)
    return np.asarray(result != negated)


def hamming_loss(clauses: Sequence[Clause], form: Form, bits: Bits, y: NDArray[Any], weight: Floats) -> float:
    """The Hamming loss of a rule: of rows of class 1, the weight of those no clause covers (of a CNF: of class 0, the
    weight of those that satisfy all), and of the others, their weight for each clause that must change."""
    negated = form == "cnf"
    positive = np.asarray(y, dtype=bool) != negated
    count = np.zeros(len(bits), dtype=np.int64)
    for clause in clauses:
        count += (bits[:, list(clause)] != negated).all(axis=1)
    return float(weight[positive & (count == 0)].sum() + (weight * count)[~positive].sum())


@dataclass(frozen=True)
class RuleLimits:
    """What a rule may be, and how long it is searched for.

    complexity: C, the most clauses plus literals; a clause takes at least 2. longest: D, the most literals of a clause.
    time_limit: in seconds; the bound says how far from the best the rule may be. rounds: the most rounds of column
    generation for a rule; the programs after it are then limited by their nodes, so that the result depends on the
    machine's speed only where the time limit is reached. Raises OptionError for limits below 1.
    """

    complexity: int
    form: Form = "dnf"
    time_limit: float = 60.0
    seed: int = 0
    longest: int | None = None
    rounds: int | None = None

    def __post_init__(self) -> None:
        if self.complexity < 1 or self.time_limit <= 0 or (self.longest is not None and self.longest < 1):
            raise OptionError(
                "complexity, time_limit and longest must be above 0",
                where=f"{self.complexity}, {self.time_limit}, {self.longest}",
            )
        if self.form not in ("dnf", "cnf"):
            raise OptionError(f"no form of rules is called {self.form}", do="choose dnf or cnf")


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
    """The rule of least Hamming loss with at most this complexity, ties broken by lower complexity.

    bits: (rows, literals) booleans, negated literals among them where they may be used. y: (rows,) of 0 and 1.
    groups: (literals,) the feature that each literal is about, for faster pricing; see `literals_of`. weight: (rows,)
    >= 0 of each row, such as class weights. start: clauses to begin with instead of smaller rules, such as the
    candidates of another run, whose rule comes first: what is returned is no worse, if that rule fits. Without them
    rules of complexity 4, 8, 16, ... are learnt first, and each starts from the one before: where time is short, a
    large rule that starts from nothing ends behind them.

    Raises RowsError for rows that are no bits, or labels that are not 0 and 1.
    """
    bits, y, weight = _checked(bits, y, weight)
    if groups is not None and np.shape(groups) != (bits.shape[1],):
        raise RowsError("there must be one group a literal", where=f"{np.shape(groups)} for {bits.shape[1]} literals")
    for literal in (literal for clause in start for literal in clause):
        if not 0 <= literal < bits.shape[1]:
            raise OptionError(f"there is no literal {literal} to start with", where=f"{bits.shape[1]} literals")
    _compile()
    deadline, complexity, form = time.monotonic() + limits.time_limit, limits.complexity, limits.form
    negated = form == "cnf"
    problem = _RuleProblem.of(bits != negated, y != negated, weight, complexity, limits.longest, groups, limits.seed)
    cover = problem.cover
    if not len(cover.penalty) or complexity < 2 or not bits.shape[1]:
        loss = float(cover.penalty.sum())
        return RuleLearning((), form, loss, 0, loss, True, False, 0, ())
    columns = [problem.column(tuple(sorted(set(clause)))) for clause in start]
    rungs = [] if columns else [FIRST_RUNG << k for k in range(complexity.bit_length())]
    rungs = [smaller for smaller in rungs if smaller < complexity]
    ladder = time.monotonic() + LADDER_SHARE * limits.time_limit
    few = replace(limits, rounds=RUNG_ROUNDS if limits.rounds is None else min(limits.rounds, RUNG_ROUNDS))
    for place, smaller in enumerate(rungs):
        begin = time.monotonic()
        until = begin + (ladder - begin) * smaller / sum(rungs[place:])
        rule, columns = _learnt(problem.within(smaller), columns, few, until, progress)
        if rule.interrupted:
            return replace(rule, bound=0.0, optimal=rule.loss <= 0)
    return _learnt(problem, columns, limits, deadline, progress)[0]


def _learnt(
    problem: _RuleProblem, start: list[Column], limits: RuleLimits, deadline: float, progress: Progress | None
) -> tuple[RuleLearning, list[Column]]:
    """A rule, and all columns that are known then, those of the rule first."""
    seed, rounds = limits.seed, limits.rounds
    selection = CoverSearch(problem.cover, seed)
    until = deadline - PROGRAM_SHARE * (deadline - time.monotonic())
    generated = generate(problem, selection, start=start, deadline=until, seed=seed, progress=progress, rounds=rounds)
    interrupted, proved = generated.interrupted, False
    if not interrupted and generated.bound < selection.best[0]:
        # the integer program over the clauses generated, and where they are few enough, over all that a better rule
        # may have, which proves it the best
        try:
            reachable = problem.in_reach(generated, selection.best[0], deadline) if rounds is None else None
            if reachable is not None:
                known = {column.key for column in selection.columns}
                selection.add([column for column in reachable if column.key not in known])
            nodes = None if rounds is None else PROGRAM_NODES
            proved = selection.solve(deadline, generated.bound, seed, nodes) and reachable is not None
        except KeyboardInterrupt:
            interrupted = True
    loss, chosen = selection.best
    bound = loss if proved else min(loss, generated.bound)
    clauses = tuple(sorted(selection.columns[place].key for place in chosen))
    candidates = *clauses, *(column.key for column in generated.columns if column.key not in clauses)
    rule = RuleLearning(
        clauses, limits.form, loss, sum(len(clause) + 1 for clause in clauses), bound, bool(bound >= loss - 1e-9),
        interrupted, generated.rounds, candidates,
    )  # fmt: skip
    return rule, sorted(selection.columns, key=lambda column: column.key not in clauses)


@cache
def _compile() -> None:
    """Compiles what will run, so that the time limit doesn't count it."""
    y = np.array([True, False])
    problem = _RuleProblem.of(np.stack([y, ~y], axis=1), y, np.ones(2), 4, None, None, 0)
    selection = CoverSearch(problem.cover, 0)
    generate(problem, selection, deadline=time.monotonic() + 60, seed=0)
    problem.quick(np.ones(1), 0.0)
    selection.improve(np.ones(len(selection.columns)))


def _checked(bits: Bits, y: NDArray[Any], weight: Floats | None) -> tuple[Bits, Bits, Floats]:
    bits, y = np.asarray(bits), np.asarray(y)
    if bits.ndim != 2 or not len(bits) or not np.isin(bits, (0, 1)).all():
        raise RowsError("rules are learnt from a table of bits", where=f"bits of shape {bits.shape}", do="pass 0 and 1")
    if y.shape != (len(bits),) or not np.isin(y, (0, 1)).all():
        raise RowsError(
            "labels must be 0 and 1, one a row", where=f"{y.shape} labels for {len(bits):,} rows",
            do="use learn_rule_sets for several classes",
        )  # fmt: skip
    weight = np.ones(len(bits)) if weight is None else np.asarray(weight, dtype=np.float64)
    if weight.shape != y.shape or not np.isfinite(weight).all() or (weight < 0).any():
        raise RowsError("weights must be finite and not negative, one a row", where=f"shape {weight.shape}")
    return bits.astype(bool), y.astype(bool), weight


@dataclass(frozen=True)
class _RuleProblem:
    """The pricing problem over distinct rows. literals: of the distinct rows. positive: (covered rows,) the distinct
    rows that are to be covered. negative: (distinct rows,) the weight of those that are not. identity: column numbers
    of the literals that remain, since constant and repeated ones are left out."""

    cover: Cover
    literals: SpanLiterals
    positive: Ints
    negative: Floats
    identity: Ints
    longest: int
    random: np.random.Generator
    known: dict[Clause, Column] = field(default_factory=dict)  # as beam searches find most clauses again and again

    @staticmethod
    def of(
        bits: Bits, y: Bits, weight: Floats, complexity: int, longest: int | None, groups: Ints | None, seed: int
    ) -> _RuleProblem:
        # a literal that never holds or always does is of no use, nor is a copy of another
        varies = np.flatnonzero(bits.any(axis=0) & ~bits.all(axis=0)) if len(bits) else np.zeros(0, dtype=np.int64)
        if not len(varies) and bits.shape[1]:
            varies = np.flatnonzero(bits.all(axis=0))[:1]  # one that always holds makes the rule that is always true
        _, first = np.unique(np.packbits(bits[:, varies], axis=0), axis=1, return_index=True)
        identity = varies[np.sort(first)]
        kept = np.flatnonzero(weight > 0)
        packed = np.packbits(bits[kept][:, identity], axis=1)
        _, place, inverse = np.unique(packed, axis=0, return_index=True, return_inverse=True)
        inverse = inverse.reshape(-1)
        mass, against = (
            np.bincount(inverse, np.where(y[kept] == side, weight[kept], 0.0), minlength=len(place)).astype(np.float64)
            for side in (True, False)
        )
        distinct = bits[kept[place]][:, identity]
        positive = np.flatnonzero(mass > 0)
        integral = bool((weight == np.rint(weight)).all())
        cover = Cover(mass[positive], float(complexity), 2.0, integral)
        literals = literals_of(distinct, None if groups is None else np.asarray(groups)[identity])
        # a clause never gains by more literals than it takes to leave out every negative row
        most = min(complexity - 1, longest or complexity, max(1, len(identity)))
        return _RuleProblem(cover, literals, positive, against, identity, max(1, most), np.random.default_rng(seed))

    def within(self, complexity: int) -> _RuleProblem:
        """The problem of rules of a smaller complexity."""
        cover = replace(self.cover, budget=float(complexity))
        return replace(self, cover=cover, longest=min(self.longest, complexity - 1))

    def weights(self, duals: Floats) -> Floats:
        result = -self.negative
        result[self.positive] += duals
        return result

    def column(self, clause: Clause) -> Column:
        """The column of a clause in literals of the caller."""
        places = np.searchsorted(self.identity, clause)
        if len(clause) == 0 or (places >= len(self.identity)).any() or (self.identity[places] != clause).any():
            return Column(np.zeros(0, dtype=np.int32), float(self.negative.sum()), float(len(clause) + 1), clause)
        covered = self.literals.covered(tuple(places.tolist()))
        rows = np.flatnonzero(covered[self.positive]).astype(np.int32)
        return Column(rows, float(self.negative[covered].sum()), float(len(clause) + 1), clause)

    def columns(self, clauses: Sequence[Clause]) -> list[Column]:
        """Columns of clauses over the literals that remain: of those that cover the same rows, the first."""
        distinct: dict[bytes, Column] = {}
        for clause in clauses:
            if clause not in self.known:
                if len(self.known) >= MOST_KNOWN:
                    self.known.clear()
                self.known[clause] = self.column(tuple(self.identity[list(clause)].tolist()))
            column = self.known[clause]
            distinct.setdefault(column.rows.tobytes() + str(column.cost).encode(), column)
            if len(distinct) == COLUMNS_A_ROUND:
                break
        return list(distinct.values())

    def in_reach(self, generated: Generated, loss: float, deadline: float) -> list[Column] | None:
        """Columns of every clause that a rule of smaller loss may have: a cover costs at least the bound and the
        reduced costs of its columns. None if they are too many to list."""
        dual_bound = float(generated.duals.sum()) - self.cover.budget * generated.price
        slack = (loss - 1 if self.cover.integral else loss) - dual_bound + 1e-6
        until = time.monotonic() + LISTING_SHARE * (deadline - time.monotonic())
        listed = all_clauses(
            self.literals, self.weights(generated.duals), generated.price, self.longest, slack, MOST_LISTED, until
        )
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
        """Clauses, for large tables, from an exact search over some of the rows and literals, drawn anew each time."""
        rows, literals = len(weight), len(self.identity)
        if rows <= MOST_ROWS and rows * literals <= MOST_BITS:
            return []
        share = min(1.0, MOST_ROWS / rows)
        some = np.flatnonzero(self.random.random(rows) < share)
        kept = np.flatnonzero(self.random.random(literals) < MOST_BITS / max(1, len(some) * literals))
        if not len(some) or not len(kept):
            return []
        part = self.literals.of(some, kept)
        clauses = best_clauses(part, weight[some] / share, price, self.longest, SAMPLE_STEPS, math.inf).clauses
        return [tuple(kept[list(clause)].tolist()) for clause in clauses]

    def exact(self, duals: Floats, price: float, steps: int, deadline: float) -> Priced:
        best = best_clauses(self.literals, self.weights(duals), price, self.longest, steps, deadline)
        worth = best.worth if math.isfinite(best.worth) else math.inf
        return Priced(self.columns(best.clauses), worth, best.complete)


@dataclass(frozen=True)
class RuleSets:
    """classes: the labels, ascending. rules: one a class. order: places of classes, the first that claims a row has it.
    default: place of the class of rows that no rule claims."""

    classes: NDArray[Any]
    rules: tuple[RuleLearning, ...]
    order: tuple[int, ...]
    default: int

    def predict(self, bits: Bits) -> NDArray[Any]:
        """(rows,) labels."""
        claims = np.stack([rule.predict(bits) for rule in self.rules])
        return np.asarray(self.classes[_decided(claims, self.order, self.default)])

    @property
    def complexity(self) -> int:
        """The complexity of all rules together."""
        return sum(rule.complexity for rule in self.rules)


def class_weights(y: NDArray[Any]) -> Floats:
    """(rows,) weights by which every class weighs the same, 1 on average."""
    classes, inverse, count = np.unique(y, return_inverse=True, return_counts=True)
    return np.asarray(len(y) / (len(classes) * count[inverse.reshape(-1)]))


def learn_rule_sets(
    bits: Bits,
    y: NDArray[Any],
    limits: RuleLimits,
    *,
    groups: Ints | None = None,
    weight: Floats | None = None,
) -> RuleSets:
    """A rule for each class of y, each with at most this complexity; the time limit is for all together. The rest as
    for `learn_rules`. Two classes take one rule, for the second.

    Raises RowsError if y has one class only, and what `learn_rules` raises.
    """
    y = np.asarray(y)
    classes, label = np.unique(y, return_inverse=True)
    label = label.reshape(-1)
    if len(classes) < 2:
        raise RowsError("all rows are of one class", where=f"{len(y):,} rows", do="pass rows of two classes or more")
    places = range(1, 2) if len(classes) == 2 else range(len(classes))
    share = replace(limits, time_limit=limits.time_limit / len(places))
    rules: list[RuleLearning] = []
    for place in places:
        rule = learn_rules(bits, label == place, share, groups=groups, weight=weight)
        rules.append(rule)
        if rule.interrupted:
            break
    weight = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64)
    claims = np.zeros((len(classes), len(y)), dtype=bool)
    for place, rule in zip(places, rules, strict=False):
        claims[place] = rule.predict(np.asarray(bits, dtype=bool))
    order, default = _priorities(claims, label, weight)
    nothing = RuleLearning((), "dnf", 0.0, 0, 0.0, False, bool(rules[-1].interrupted), 0, ())
    known = dict(zip(places, rules, strict=False))
    return RuleSets(classes, tuple(known.get(place, nothing) for place in range(len(classes))), order, default)


def _decided(claims: Bits, order: Sequence[int], default: int) -> Ints:
    result = np.full(claims.shape[1], default)
    for place in reversed(order):
        result[claims[place]] = place
    return result


def _priorities(claims: Bits, label: Ints, weight: Floats) -> tuple[tuple[int, ...], int]:
    """The order of classes and the default: by precision, then by swaps of two that raise the accuracy."""
    free = ~claims.any(axis=0)
    among = np.bincount(label, np.where(free, weight, 0.0) if free.any() else weight, minlength=len(claims))
    default = int(np.argmax(among))

    def accuracy(order: Sequence[int]) -> float:
        return float(weight[_decided(claims, order, default) == label].sum())

    hits = np.array([weight[row & (label == place)].sum() for place, row in enumerate(claims)])
    order = np.argsort(-hits / np.maximum((claims * weight).sum(axis=1), 1e-12), kind="stable").tolist()
    best, better = accuracy(order), True
    while better:
        better = False
        for first, second in combinations(range(len(order)), 2):
            order[first], order[second] = order[second], order[first]
            if accuracy(order) > best + 1e-9:
                best, better = accuracy(order), True
            else:
                order[first], order[second] = order[second], order[first]
    return tuple(order), default
