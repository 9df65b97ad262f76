"""Families of AND terms from which clauses are built: the cost of a family, a greedy start, and a local search.

A set of literals is an integer, a bit a literal. A clause is the AND of the literals it needs; it may also take those
it allows, which they imply. A family holds sets that are computed once. A clause, and each set of the family, is built
from smaller sets of the family and from literals; of k operands that takes k - 1 gates of two inputs.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np

Mask = int
MOST_CANDIDATES = 400  # sets that the local search may add in one sweep
MOST_SWEEPS = 50


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
    found = []
    while mask:
        found.append(mask & -mask)
        mask &= mask - 1
    return found


def built(clauses: Clauses, family: Iterable[Mask]) -> AndTerms:
    """The clauses built from a family, each from the sets that add most; sets that nothing uses are left out."""
    ordered = sorted(set(family), key=lambda one: (-one.bit_count(), one))
    terms: dict[Mask, tuple[Mask, ...]] = {}
    operands = [
        _covered(need, tuple([one for one in ordered if one & ~allow == 0 and (one & need).bit_count() > 1]))
        for need, allow in zip(clauses.needs, clauses.allows, strict=True)
    ]
    open_ = [each for own in operands for each in own]
    while open_:
        term = open_.pop()
        if term.bit_count() > 1 and term not in terms:
            terms[term] = _covered(term, tuple([one for one in ordered if one & ~term == 0 and one != term]))
            open_ += terms[term]
    return AndTerms(tuple(operands), terms)


@lru_cache(1 << 16)
def _covered(need: Mask, usable: Sequence[Mask]) -> tuple[Mask, ...]:
    chosen: list[Mask] = []
    while usable:
        best = max(usable, key=lambda one: (one & need).bit_count())
        if (best & need).bit_count() < 2:
            break
        chosen.append(best)
        need &= ~best
        usable = [one for one in usable if (one & need).bit_count() > 1]
    return tuple(sorted([*chosen, *bits_of(need)]))


def most_shared_first(clauses: Clauses) -> AndTerms:
    """The pair of operands that most clauses and terms have becomes a term, as long as two have one (the greedy
    extraction of common cubes of multi-level logic synthesis: Brayton and McMullen 1982; Rajski and Vasudevamurthy
    1992)."""
    distinct = list(dict.fromkeys(clauses.needs))
    sets: list[set[Mask]] = [set(bits_of(need)) for need in distinct]
    terms: dict[Mask, set[Mask]] = {}
    while True:
        users = [own for own in [*sets, *terms.values()] if len(own) > 1]
        pairs = Counter(pair for own in users for pair in combinations(sorted(own), 2))
        best = max(pairs.items(), key=lambda one: (one[1], [-x for x in one[0]]), default=((0, 0), 0))
        if best[1] < 2:
            break
        (a, b), _ = best
        for own in users:
            if a in own and b in own:
                own -= {a, b}
                own.add(a | b)
        terms[a | b] = {a, b}
    operands = {need: tuple(sorted(own)) for need, own in zip(distinct, sets, strict=True)}
    return AndTerms(
        tuple(operands[need] for need in clauses.needs), {term: tuple(sorted(own)) for term, own in terms.items()}
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
            for each in random.permutation(np.array(sorted(family), dtype=object))[:2]:
                family.discard(each)
            family.add(pool[int(random.integers(len(pool)))])
        found = _descended(clauses, family, pool, until)
        if found.gates < best.gates:
            best = found
    return best


def _candidates(clauses: Clauses, more: Sequence[Mask]) -> list[Mask]:
    """What two clauses have in common, by how many gates it would save by itself; then `more`."""
    needs = list(dict.fromkeys(clauses.needs))
    common = {a & b for a, b in combinations(needs, 2)} | set(needs) | set(more)
    worth: dict[Mask, int] = {}
    for each in common:
        users = sum(each & ~allow == 0 and (each & need).bit_count() > 1 for need, allow in _pairs(clauses))
        if each.bit_count() > 1 and users > 1:
            worth[each] = (each.bit_count() - 1) * (users - 1)
    return sorted(worth, key=lambda one: (-worth[one], one))[:MOST_CANDIDATES]


def _pairs(clauses: Clauses) -> list[tuple[Mask, Mask]]:
    return list(dict.fromkeys(zip(clauses.needs, clauses.allows, strict=True)))


def _descended(clauses: Clauses, family: set[Mask], pool: Sequence[Mask], until: float) -> AndTerms:
    best = built(clauses, family)
    for _ in range(MOST_SWEEPS):
        before = best.gates
        for each in [*pool, *sorted(best.terms)]:
            if time.monotonic() > until:
                return best
            family = set(best.terms) ^ {each}
            found = built(clauses, family)
            if found.gates < best.gates:
                best = found
        if best.gates == before:
            break
    return best
