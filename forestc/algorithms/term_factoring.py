"""Circuits of AND and OR for groups of clauses: a * b + a * c becomes a * (b + c), besides terms that are shared.

Each group is the OR of its clauses. Two moves save gates: what r clauses of one OR have in common, s operands, is taken
out of it, which saves s * (r - 1); and operands that r ANDs, or r ORs, have in common become a term of their own, which
saves (s - 1) * (r - 1). The move that saves most comes first (greedy extraction of cubes and kernels: Brayton and
McMullen 1982), again and again with noise on what moves save. Every circuit multiplies out to the clauses it is of.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

NOISE = 0.5  # relative noise on what a move saves, at most
AND, OR = "and", "or"
Ops = frozenset[int]


@dataclass(frozen=True)
class Circuit:
    """terms: kind ("and" or "or") and operands, literals 0 .. m - 1 or m + t for an earlier term t. groups: of each
    group the operand that is its OR of clauses. gates: of two inputs."""

    terms: tuple[tuple[str, tuple[int, ...]], ...]
    groups: tuple[int, ...]

    @property
    def gates(self) -> int:
        return sum(len(operands) - 1 for _, operands in self.terms)


@dataclass(frozen=True)
class Start:
    """groups: of each group of clauses, each clause's operands; terms: ANDs of operands, numbered as in `Circuit`.
    Groups and clauses have one member or more."""

    groups: Sequence[Sequence[Iterable[int]]]
    terms: Sequence[Iterable[int]] = ()


def factor(starts: Sequence[Start], count: int, *, tries: int, seed: int, until: float) -> Circuit:
    """A circuit for groups of clauses over literals 0 .. count - 1, at no more gates than any of the starts. tries:
    random restarts after the greedy ones; until: of time.monotonic(), when these end."""
    random = np.random.default_rng(seed)
    best: _Network | None = None
    for attempt in range(len(starts) + tries):
        greedy = attempt < len(starts)
        if not greedy and time.monotonic() > until:
            break
        network = _Network(starts[attempt % len(starts)], count)
        noise = 0.0 if greedy else NOISE * float(random.random())
        while network.improve(random, noise):
            pass
        if best is None or network.gates < best.gates:
            best = network
    assert best is not None
    return best.circuit()


class _Network:
    """Nodes by number: kind and operands, no two alike. Literals are the numbers below `count`."""

    def __init__(self, start: Start, count: int) -> None:
        self.count = count
        self.kind: dict[int, str] = {}
        self.ops: dict[int, Ops] = {}
        self.known: dict[tuple[str, Ops], int] = {}
        numbers = list(range(count))
        for term in start.terms:
            numbers.append(self.node(AND, frozenset(numbers[one] for one in term)))
        self.roots = [
            self.node(OR, frozenset(self.node(AND, frozenset(numbers[one] for one in clause)) for clause in group))
            for group in start.groups
        ]
        self.tidy()

    @property
    def gates(self) -> int:
        return sum(len(operands) - 1 for operands in self.ops.values())

    def node(self, kind: str, operands: Ops) -> int:
        """The number of a node; of one operand, this operand's."""
        if len(operands) == 1:
            return next(iter(operands))
        key = kind, operands
        number = self.known.setdefault(key, self.count + len(self.known))
        self.kind[number], self.ops[number] = kind, operands  # again, if it was removed
        return number

    def tidy(self) -> None:
        """Removes what no root uses, and takes nodes that one node of their own kind alone uses into it."""
        while True:
            users = self.users()
            for number in self.ops.keys() - users.keys():
                del self.ops[number], self.kind[number]
            inner = next(
                (
                    (number, one)
                    for number in sorted(self.ops)
                    for one in sorted(self.ops[number])
                    if one >= self.count and self.kind[one] == self.kind[number] and len(users[one]) == 1
                ),
                None,
            )
            if inner is None:
                return
            number, one = inner
            self.replace({number: (self.kind[number], (self.ops[number] - {one}) | self.ops[one])})

    def users(self) -> dict[int, list[int]]:
        """The nodes that use each node in reach of the roots; -1 for a root."""
        users: dict[int, list[int]] = defaultdict(list)
        for root in self.roots:
            users[root].append(-1)
        open_ = [root for root in dict.fromkeys(self.roots) if root >= self.count]
        seen = set(open_)
        while open_:
            number = open_.pop()
            for one in self.ops[number]:
                users[one].append(number)
                if one >= self.count and one not in seen:
                    seen.add(one)
                    open_.append(one)
        return users

    def replace(self, changed: dict[int, tuple[str, Ops]]) -> None:
        """Nodes get other operands; the nodes that use them are made anew."""
        new: dict[int, int] = {}

        def renewed(number: int) -> int:
            if number < self.count:
                return number
            if number not in new:
                kind, operands = changed.get(number) or (self.kind[number], self.ops[number])
                new[number] = self.node(kind, frozenset(map(renewed, operands)))
            return new[number]

        self.roots = [renewed(root) for root in self.roots]

    def improve(self, random: np.random.Generator, noise: float) -> bool:
        """Makes the move that saves most; False if none saves a gate."""
        moves = [*self.taken_out(), *self.shared()]
        if not moves:
            return False
        weight = np.array([saved for saved, *_ in moves]) * (1 + noise * random.standard_normal(len(moves)))
        _, parent, members, common = moves[int(np.argmax(weight))]
        if parent >= 0:
            rest = self.node(OR, frozenset(self.node(AND, self.ops[one] - common) for one in members))
            factored = self.node(AND, common | {rest})
            self.replace({parent: (OR, (self.ops[parent] - members) | {factored})})
        else:
            kind = self.kind[min(members)]
            term = self.node(kind, common)
            self.replace({one: (kind, (self.ops[one] - common) | {term}) for one in members if one != term})
        self.tidy()
        return True

    def taken_out(self) -> list[tuple[int, int, Ops, Ops]]:
        """(gates saved, OR, some of its ANDs, what these have in common)."""
        users, found = self.users(), {}
        for number in sorted(self.ops):
            if self.kind[number] != OR:
                continue
            having: dict[int, list[int]] = defaultdict(list)
            for one in sorted(self.ops[number]):
                if one >= self.count and self.kind[one] == AND and len(users[one]) == 1:
                    for operand in self.ops[one]:
                        having[operand].append(one)
            for members in having.values():
                common = frozenset.intersection(*(self.ops[one] for one in members))
                if len(members) > 1 and all(len(self.ops[one]) > len(common) for one in members):
                    found[number, frozenset(members)] = len(common) * (len(members) - 1), common
        return [(saved, parent, members, common) for (parent, members), (saved, common) in found.items()]

    def shared(self) -> list[tuple[int, int, Ops, Ops]]:
        """(gates saved, -1, nodes of one kind, what these have in common)."""
        found = {}
        for kind in (AND, OR):
            having: dict[tuple[int, int], list[int]] = defaultdict(list)
            for number in sorted(self.ops):
                if self.kind[number] == kind:
                    for pair in combinations(sorted(self.ops[number]), 2):
                        having[pair].append(number)
            for members in having.values():
                if len(members) > 1:
                    common = frozenset.intersection(*(self.ops[one] for one in members))
                    found[frozenset(members)] = (len(common) - 1) * (len(members) - 1), common
        return [(saved, -1, members, common) for members, (saved, common) in found.items()]

    def circuit(self) -> Circuit:
        """The nodes that the roots use, operands first."""
        number: dict[int, int] = {}
        terms: list[tuple[str, tuple[int, ...]]] = []

        def place(one: int) -> int:
            if one < self.count:
                return one
            if one not in number:
                operands = tuple(sorted(map(place, sorted(self.ops[one]))))
                number[one] = self.count + len(terms)
                terms.append((self.kind[one], operands))
            return number[one]

        groups = tuple(map(place, self.roots))
        return Circuit(tuple(terms), groups)
