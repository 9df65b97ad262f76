"""Shared AND terms: clauses over literals at the least number of two-input gates.

The 0/1 matrix of clauses and literals is covered exactly by bicliques, sets of clauses times sets of literals, each an
AND that is computed once (the matrix of Kovacs, Gunluk and Hauser 2021, covered without error instead of at a rank).
An entry may also be free: the clause's other literals imply the literal, so that a term may or may not cover it.

A biclique of r clauses and s literals costs s - 1 gates for the term and r operands of the clauses; an entry that none
covers is an operand of its own. So with one operand less a clause than it has gates,

    gates = sum of (r + s - 1) over the bicliques + entries not covered - clauses,

which is the penalized cover of `column_generation`; columns are priced by a biclique search with duals as the weights
of entries, 0 of free ones and -inf of zeros. This counts terms built from literals alone. Terms of terms may be cheaper
still, so the bicliques of the best cover, and those that the relaxation uses, then become a family of sets that
a local search improves (`improved`). The result is never worse than greedy extraction.

Two bounds are given: one on covers by bicliques, from column generation, and one on any circuit that shares AND gates
(`least_gates`), which proves results optimal.

A set of literals is an integer, a bit a literal. A clause is the AND of the literals it needs; it may also take those
it allows, which they imply. A family holds sets that are computed once. A clause, and each set of the family, is built
from smaller sets of the family and from literals; of k operands that takes k - 1 gates of two inputs.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.covers.biclique_pricing import Bits, heaviest_biclique
from forestc.algorithms.covers.column_generation import COLUMNS_A_ROUND, Generated, Priced, Progress, generate
from forestc.algorithms.covers.selection import Column, Cover, CoverSearch, Floats
from forestc.errors import OptionError, RowsError

Mask = int
MOST_CANDIDATES = 400  # sets that the local search may add in one sweep
MOST_SWEEPS = 50  # of the local search over its candidates


@dataclass(frozen=True)
class Clauses:
    """needs, allows: of each clause; what it needs it allows."""

    needs: tuple[Mask, ...]
    allows: tuple[Mask, ...]

    @property
    def flat(self) -> int:
        """The gates of the distinct clauses without shared terms."""
        return sum(max(0, need.bit_count() - 1) for need in set(self.needs))


@dataclass(frozen=True)
class AndTerms:
    """clauses: of each clause its operands; an operand of one bit is a literal, any other a key of `terms`. terms: of
    each shared set its operands."""

    clauses: tuple[tuple[Mask, ...], ...]
    terms: dict[Mask, tuple[Mask, ...]]

    @property
    def gates(self) -> int:
        """Two-input gates; equal clauses are one."""
        distinct = {operands for operands in self.clauses if len(operands) > 1}
        built = sum(len(operands) - 1 for operands in self.terms.values())
        return built + sum(len(operands) - 1 for operands in distinct - set(self.terms.values()))


def bits_of(mask: Mask) -> list[Mask]:
    """The single bits of a mask, ascending."""
    bits = []
    while mask:
        bits.append(mask & -mask)
        mask &= mask - 1
    return bits


def built(clauses: Clauses, family: Iterable[Mask]) -> AndTerms:
    """The clauses built from a family, each from the sets that add most; sets that nothing uses are left out."""
    ordered = sorted(set(family), key=lambda mask: (-mask.bit_count(), mask))
    terms: dict[Mask, tuple[Mask, ...]] = {}
    operands = [
        _covered(need, tuple([mask for mask in ordered if mask & ~allow == 0 and (mask & need).bit_count() > 1]))
        for need, allow in zip(clauses.needs, clauses.allows, strict=True)
    ]
    open_ = [operand for operands_of in operands for operand in operands_of]
    while open_:
        term = open_.pop()
        if term.bit_count() > 1 and term not in terms:
            terms[term] = _covered(term, tuple([mask for mask in ordered if mask & ~term == 0 and mask != term]))
            open_ += terms[term]
    return AndTerms(tuple(operands), terms)


@lru_cache(1 << 16)
def _covered(need: Mask, usable: Sequence[Mask]) -> tuple[Mask, ...]:
    chosen: list[Mask] = []
    while usable:
        best = max(usable, key=lambda term: (term & need).bit_count())
        if (best & need).bit_count() < 2:
            break
        chosen.append(best)
        need &= ~best
        usable = [term for term in usable if (term & need).bit_count() > 1]
    return tuple(sorted([*chosen, *bits_of(need)]))


def most_shared_first(clauses: Clauses) -> AndTerms:
    """The pair of operands that most clauses and terms have becomes a term, as long as two have one (the greedy
    extraction of common cubes of multi-level logic synthesis: Brayton and McMullen 1982; Rajski and Vasudevamurthy
    1992)."""
    distinct = list(dict.fromkeys(clauses.needs))
    sets: list[set[Mask]] = [set(bits_of(need)) for need in distinct]
    terms: dict[Mask, set[Mask]] = {}
    while True:
        users = [used for used in [*sets, *terms.values()] if len(used) > 1]
        pairs = Counter(pair for used in users for pair in combinations(sorted(used), 2))
        best = max(pairs.items(), key=lambda item: (item[1], [-x for x in item[0]]), default=((0, 0), 0))
        if best[1] < 2:
            break
        (a, b), _ = best
        for used in users:
            if a in used and b in used:
                used -= {a, b}
                used.add(a | b)
        terms[a | b] = {a, b}
    operands = {need: tuple(sorted(used)) for need, used in zip(distinct, sets, strict=True)}
    return AndTerms(
        tuple(operands[need] for need in clauses.needs),
        {term: tuple(sorted(used)) for term, used in terms.items()},
    )


def improved(clauses: Clauses, start: AndTerms, more: Sequence[Mask], tries: int, seed: int, until: float) -> AndTerms:
    """Local search from a start: sets are added to the family or taken from it as long as that saves gates, then again
    from families a little beside the best one. more: sets to try beside what two clauses have in common. tries: random
    restarts. until: of time.monotonic()."""
    random = np.random.default_rng(seed)
    pool = _candidates(clauses, more)
    best = start
    for attempt in range(1 + tries):
        if time.monotonic() > until:
            break
        family = set(best.terms)
        if attempt and pool:
            for term in random.permutation(np.array(sorted(family), dtype=object))[:2]:
                family.discard(term)
            family.add(pool[int(random.integers(len(pool)))])
        descended = _descended(clauses, family, pool, until)
        if descended.gates < best.gates:
            best = descended
    return best


def _candidates(clauses: Clauses, more: Sequence[Mask]) -> list[Mask]:
    """What two clauses have in common, by how many gates it would save by itself; then `more`."""
    needs = list(dict.fromkeys(clauses.needs))
    common = {a & b for a, b in combinations(needs, 2)} | set(needs) | set(more)
    worth: dict[Mask, int] = {}
    for shared in common:
        users = sum(shared & ~allow == 0 and (shared & need).bit_count() > 1 for need, allow in _pairs(clauses))
        if shared.bit_count() > 1 and users > 1:
            worth[shared] = (shared.bit_count() - 1) * (users - 1)
    return sorted(worth, key=lambda term: (-worth[term], term))[:MOST_CANDIDATES]


def _pairs(clauses: Clauses) -> list[tuple[Mask, Mask]]:
    return list(dict.fromkeys(zip(clauses.needs, clauses.allows, strict=True)))


def _descended(clauses: Clauses, family: set[Mask], pool: Sequence[Mask], until: float) -> AndTerms:
    best = built(clauses, family)
    for _ in range(MOST_SWEEPS):
        before = best.gates
        for term in [*pool, *sorted(best.terms)]:
            if time.monotonic() > until:
                return best
            family = set(best.terms) ^ {term}
            tried = built(clauses, family)
            if tried.gates < best.gates:
                best = tried
        if best.gates == before:
            break
    return best


FREE = 2  # an entry of the matrix that may be covered or not
ROUNDS = 60  # of column generation
PROGRAM_NODES = 1  # of the integer program over the columns
TRIES = 8  # random restarts of the local search
SHARES = (0.1, 0.5, 0.7)  # of the time: when a first local search, column generation, and the integer program end
MOST_STARTS = 400  # pairs of literals from which quick pricing starts
LONGEST_EXACT = 9  # literals of a clause up to which its bound is computed over all its subsets
LIKELY = 0.01  # share of a column in the relaxation from which its term is tried


@dataclass(frozen=True)
class TermSharing:
    """terms: of each shared AND its operands: literals 0 .. m - 1, or m + t for an earlier term t. clauses: operands of
    each clause. gates: two-input ANDs of all that; flat: without sharing; greedy: of the greedy extraction.

    bound: no circuit of ANDs that shares what it computes has fewer gates; optimal: gates equals it. cover_gates,
    cover_bound: best cover by bicliques of literals alone that was found, and the bound on these; flat and bound where
    none was looked for, as the greedy extraction is optimal. late: the time limit
    cut the search short. interrupted: Ctrl-C was pressed."""

    terms: tuple[tuple[int, ...], ...]
    clauses: tuple[tuple[int, ...], ...]
    gates: int
    flat: int
    greedy: int
    bound: int
    cover_gates: int
    cover_bound: int
    late: bool
    interrupted: bool

    @property
    def optimal(self) -> bool:
        return self.gates == self.bound

    @property
    def gap(self) -> float:
        """(gates - bound) / gates, 0 if proved optimal."""
        return (self.gates - self.bound) / self.gates if self.gates else 0.0


def share_terms(
    matrix: NDArray[Any], *, time_limit: float = 10.0, seed: int = 0, progress: Progress | None = None
) -> TermSharing:
    """Terms for clauses. matrix: (clauses, literals) of 1 where a clause needs a literal, 0 where it must not have it,
    and FREE where it may. time_limit: in seconds; results that do not reach it depend on the seed alone. A clause
    without literals always holds and has no operands.

    Raises RowsError for other entries, OptionError for no time.
    """
    matrix = np.asarray(matrix)
    if matrix.ndim != 2 or not np.isin(matrix, (0, 1, FREE)).all():
        raise RowsError(
            f"a matrix of 0, 1 and {FREE} is needed", where=f"shape {matrix.shape}", do="give clauses by literals"
        )
    if not time_limit > 0:
        raise OptionError(f"time_limit {time_limit}", do="use seconds above 0")
    begin, count = time.monotonic(), matrix.shape[1]
    until = begin + time_limit
    clauses = Clauses(tuple(map(_mask, matrix == 1)), tuple(map(_mask, matrix > 0)))
    greedy = best = most_shared_first(clauses)
    floor = least_gates(clauses)
    covered = _Covered(clauses.flat, 0, (), False, False)
    interrupted = late = False
    try:
        if best.gates > floor:
            best = improved(clauses, best, (), 0, seed, begin + SHARES[0] * time_limit)
            late = time.monotonic() > begin + SHARES[0] * time_limit
            covered = _covered_by_bicliques(clauses, count, begin, time_limit, seed, progress)
            interrupted, late = covered.interrupted, late or covered.late
        if best.gates > floor and not interrupted:
            for start in (best, built(clauses, covered.terms)):
                better = improved(clauses, start, covered.terms, TRIES, seed, until)
                best = min(best, better, key=lambda circuit: circuit.gates)
    except KeyboardInterrupt:
        interrupted = True
    bound = min(max(floor, 0), best.gates)
    cover_bound = max(covered.bound, bound) if covered.terms or best.gates > floor else bound
    terms, operands = _numbered(best, count)
    return TermSharing(
        terms, operands, best.gates, clauses.flat, greedy.gates, bound, covered.gates, min(cover_bound, covered.gates),
        late or time.monotonic() > until, interrupted,
    )  # fmt: skip


def _mask(row: NDArray[np.bool_]) -> Mask:
    return sum(1 << int(place) for place in np.flatnonzero(row))


def _numbered(circuit: AndTerms, count: int) -> tuple[tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]]:
    """Terms, those that others are built from first, and clauses by numbers of their operands."""
    order = sorted(circuit.terms, key=lambda mask: (mask.bit_count(), mask))
    number = {term: count + place for place, term in enumerate(order)}

    def numbers(operands: Sequence[Mask]) -> tuple[int, ...]:
        return tuple(sorted(number.get(mask, mask.bit_length() - 1) for mask in operands))

    return tuple(numbers(circuit.terms[term]) for term in order), tuple(map(numbers, circuit.clauses))


# ---- a bound on all circuits ----------------------------------------------------------------------------


def least_gates(clauses: Clauses) -> int:
    """No circuit of two-input ANDs has fewer gates that gives each clause.

    Each clause is a tree of gates of the circuit that joins its literals two parts at a time. A gate that joins to the
    set S of a clause's literals is in the trees of at most c(S) clauses, those that allow S; so it costs each of them
    at least 1 / c(S). The bound is the sum over the clauses of their cheapest trees, found over all subsets of a
    clause; of long clauses, it is the cheapest spanning tree with 1 / c of two literals, which is no more.
    """
    distinct = sorted(set(clauses.needs))
    allows = [allow for need, allow in dict(zip(clauses.needs, clauses.allows, strict=True)).items()]

    @cache
    def share(mask: Mask) -> float:
        return 1.0 / sum(mask & ~allow == 0 for allow in allows)

    @cache
    def cheapest(mask: Mask) -> float:
        if mask & (mask - 1) == 0:
            return 0.0
        first, best = mask & -mask, float("inf")
        others = mask ^ first
        part = others
        while part:  # the side without the first literal
            best = min(best, cheapest(part) + cheapest(mask ^ part))
            part = (part - 1) & others
        return best + share(mask)

    total = 0.0
    for need in distinct:
        total += cheapest(need) if need.bit_count() <= LONGEST_EXACT else _spanning(bits_of(need), share)
    return int(np.ceil(total - 1e-6))


def _spanning(literals: Sequence[Mask], share: Callable[[Mask], float]) -> float:
    """The weight of the cheapest spanning tree (Prim)."""
    near = {literal: share(literals[0] | literal) for literal in literals[1:]}
    total = 0.0
    while near:
        taken = min(near, key=lambda literal: near[literal])
        total += near.pop(taken)
        near = {literal: min(old, share(taken | literal)) for literal, old in near.items()}
    return total


# ---- covers by bicliques --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Covered:
    """gates, bound: of covers by bicliques. terms: of the best cover, and those of the relaxation."""

    gates: int
    bound: int
    terms: tuple[Mask, ...]
    late: bool
    interrupted: bool


def _covered_by_bicliques(
    clauses: Clauses, count: int, begin: float, time_limit: float, seed: int, progress: Progress | None
) -> _Covered:
    pairs = {need: allow for need, allow in zip(clauses.needs, clauses.allows, strict=True) if need}
    ones, free = (np.array([[bool(mask >> j & 1) for j in range(count)] for mask in masks]) for masks in
                  (list(pairs), [allow & ~need for need, allow in pairs.items()]))  # fmt: skip
    entries = int(ones.sum())
    # each biclique of a best cover saves a gate, so more than the flat form has are never needed
    cover = Cover(np.ones(entries), float(max(1, clauses.flat)), 1.0, True)
    pricer = _Terms(ones, ones | free)
    selection = CoverSearch(cover, seed)
    start = [column for pair in pricer.pairs() if (column := pricer.column(*pricer.grown(pair, np.ones(entries))))]
    generated = generate(
        pricer, selection, start=start, deadline=begin + SHARES[1] * time_limit, seed=seed, progress=progress,
        rounds=ROUNDS,
    )  # fmt: skip
    late = time.monotonic() > begin + SHARES[1] * time_limit
    if not generated.interrupted and selection.best[0] > generated.bound:
        selection.solve(begin + SHARES[2] * time_limit, generated.bound, seed, PROGRAM_NODES)
        late = late or time.monotonic() > begin + SHARES[2] * time_limit
    value, chosen = selection.best
    used = [selection.columns[place] for place in chosen] + _used(generated)
    terms = tuple(dict.fromkeys(_mask(np.frombuffer(column.key[1], dtype=np.bool_)) for column in used))
    gates = round(value) - len(ones)
    return _Covered(gates, min(gates, round(generated.bound) - len(ones)), terms, late, generated.interrupted)


def _used(generated: Generated) -> list[Column]:
    """Columns whose cost the duals of the bound nearly pay."""
    gains = [float(generated.duals[column.rows].sum()) - column.cost for column in generated.columns]
    return [column for column, gain in zip(generated.columns, gains, strict=True) if gain > -LIKELY]


class _Terms:
    """Prices bicliques within the ones and free entries of a matrix."""

    def __init__(self, ones: Bits, allowed: Bits) -> None:
        self.ones, self.allowed = ones, allowed
        self.place = np.full(ones.shape, -1, dtype=np.int64)
        self.place[ones] = np.arange(np.count_nonzero(ones))
        self.order: NDArray[np.int64] = np.argsort(allowed.sum(axis=0), kind="stable")  # rare literals first

    def weights(self, duals: Floats) -> Floats:
        """(n, m) the duals of the ones, 0 elsewhere."""
        weights = np.zeros(self.ones.shape)
        weights[self.ones] = duals
        return weights

    def pairs(self) -> list[Bits]:
        """Pairs of literals that two clauses have, most first."""
        together = self.ones.T.astype(np.int64) @ self.ones.astype(np.int64)
        a, b = np.triu_indices(len(together), 1)
        order = np.argsort(-together[a, b], kind="stable")[:MOST_STARTS]
        pairs = []
        for place in order[together[a, b][order] > 1]:
            pair = np.zeros(len(together), dtype=bool)
            pair[[a[place], b[place]]] = True
            pairs.append(pair)
        return pairs

    def column(self, rows: Bits, literals: Bits) -> Column | None:
        """The column of a biclique; None if it covers nothing worth a term."""
        inside = np.outer(rows, literals) & self.ones
        if not rows.any() or literals.sum() < 2 or not inside.any():
            return None
        cost = float(rows.sum() + literals.sum() - 1)
        return Column(self.place[inside].astype(np.int32), cost, 1.0, (rows.tobytes(), literals.tobytes()))

    def grown(self, literals: Bits, duals: Floats) -> tuple[Bits, Bits]:
        """The biclique reached by taking the best clauses for literals and the best literals for clauses in turn."""
        weights, best, result = self.weights(duals), -np.inf, (np.zeros(len(self.ones), dtype=bool), literals)
        while True:
            rows = self.allowed[:, literals].all(axis=1) & (weights[:, literals].sum(axis=1) > 1)
            if not rows.any():
                return result
            value = float(weights[np.ix_(rows, literals)].sum() - rows.sum() - literals.sum() + 1)
            if value <= best + 1e-9:
                return result
            best, result = value, (rows, literals)
            literals = self.allowed[rows].all(axis=0) & (weights[rows].sum(axis=0) > 1)
            if not literals.any():
                return result

    def quick(self, duals: Floats, price: float) -> list[Column]:
        columns = [self.column(*self.grown(pair, duals)) for pair in self.pairs()]
        distinct = {column.key: column for column in columns if column is not None}
        order = sorted(distinct.values(), key=lambda column: column.cost - float(duals[column.rows].sum()))
        return order[:COLUMNS_A_ROUND]

    def fitting(self, duals: Floats, price: float, room: float) -> list[Column]:
        return [column for column in self.quick(duals, price) if column.size <= room]

    def exact(self, duals: Floats, price: float, steps: int, deadline: float) -> Priced:
        """For each literal, the best bicliques that have it and none of the literals before it. Their gain, the sum of
        duals - rows - literals + 1, is a weight in the matrix of its clauses and the literals after it, with a column
        of its duals - 1 and a row of -1, whose common entry is so heavy that all bicliques of interest have both."""
        weights, columns, worth, complete = self.weights(duals), list[Column](), price, True
        for place, literal in enumerate(self.order):
            rows = np.flatnonzero(self.allowed[:, literal])
            later = self.order[place + 1 :]
            others = later[self.allowed[np.ix_(rows, later)].sum(axis=0) > 1]
            if len(rows) < 2 or not len(others):
                continue
            inner = np.ix_(rows, others)
            forbidden = 4.0 * (len(rows) + len(others))  # more than a biclique can weigh
            sure = 2.0 * len(rows) * forbidden  # more than all else can weigh, and so first in the search
            matrix = np.full((len(rows) + 1, len(others) + 1), -1.0)
            matrix[:-1, :-1] = np.where(self.allowed[inner], weights[inner], -forbidden)
            matrix[:-1, -1] = weights[rows, literal] - 1
            matrix[-1, -1] = sure
            bicliques, weight, over = heaviest_biclique(matrix, sure + price, steps, deadline)
            worth, complete = max(worth, weight - sure), complete and over
            for biclique in bicliques:
                chosen, literals = np.zeros(len(self.ones), dtype=bool), np.zeros(len(self.order), dtype=bool)
                chosen[rows[biclique.rows[:-1]]] = True
                literals[[literal, *others[biclique.columns[:-1]]]] = True
                column = self.column(chosen, literals)
                columns += [] if column is None else [column]
        columns.sort(key=lambda column: column.cost - float(duals[column.rows].sum()))
        return Priced(columns[:COLUMNS_A_ROUND], worth, complete)
