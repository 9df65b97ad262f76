"""The clauses of a forest as a matrix of clauses and literals, and the forest's shared terms from what was found in it.

Literals that hold for the same words are one. A clause does not need a literal that its others imply, as of two upper
limits of a feature only the lower one counts; such literals are free: a term of the clause may have them or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.term_factoring import Circuit, Start
from forestc.algorithms.term_sharing import FREE, TermSharing
from forestc.forest.clauses import Clause, Meanings, clause_of
from forestc.forest.extremes import start_and_steps
from forestc.forest.ir import Forest
from forestc.forest.terms import Kind, Literal, Operand, Root, SharedTerms, Term


@dataclass(frozen=True)
class RuleMatrix:
    """literals: of the columns. matrix: (clauses, literals) of 1 (needed), 0 and FREE, without equal rows. trees: of
    each row those that are this clause. groups: rows that are joined by OR, or that stand alone. flat: ANDs of two
    inputs that the distinct clauses take as they stand, with what others imply."""

    literals: tuple[Literal, ...]
    matrix: NDArray[np.int8]
    trees: tuple[tuple[int, ...], ...]
    groups: tuple[tuple[int, ...], ...]
    flat: int

    @property
    def flat_start(self) -> Start:
        """The groups without shared terms."""
        return Start([[np.flatnonzero(self.matrix[row] == 1).tolist() for row in group] for group in self.groups])

    def shared_start(self, found: TermSharing) -> Start:
        """The groups with the ANDs of a result."""
        return Start([[found.clauses[row] for row in group] for group in self.groups], found.terms)

    @property
    def ors(self) -> int:
        """The two-input ORs that join the clauses of each group."""
        return sum(len(group) - 1 for group in self.groups)


def rule_matrix(forest: Forest) -> RuleMatrix | None:
    """The matrix of the trees that are clauses; None if no tree is one. Those that never or always hold are left out.
    Clauses of one output are a group of their own where their trees are joined by OR."""
    clauses = {index: one for index in range(len(forest.trees)) if (one := clause_of(forest, index)) is not None}
    if not clauses:
        return None
    meanings = Meanings(forest)
    columns: dict[tuple[int, int], tuple[int, Literal]] = {}
    rows: dict[tuple[int, frozenset[int]], list[int]] = {}  # by output, as a root is of one output
    for index, clause in clauses.items():
        needed = _needed(clause, meanings)
        for key, literal in needed.items():
            columns.setdefault(key, (len(columns), literal))
        if needed:
            own = frozenset(columns[key][0] for key in needed)
            rows.setdefault((_joined_output(forest, index), own), []).append(index)
    matrix = np.zeros((len(rows), len(columns)), dtype=np.int8)
    for row, trees in enumerate(rows.values()):
        meaning = dict(meanings.of(clauses[trees[0]].literals) or ())
        for (feature, mask), (column, _) in columns.items():
            implied = feature in meaning and meaning[feature] & ~mask == 0
            matrix[row, column] = FREE if implied else 0
        matrix[row, [columns[key][0] for key in _needed(clauses[trees[0]], meanings)]] = 1
    groups: dict[int, list[int]] = {}
    for row, (output, _) in enumerate(rows):
        groups.setdefault(output if output >= 0 else -1 - row, []).append(row)
    literals = tuple(literal for _, literal in columns.values())
    written = {frozenset(clauses[tree].literals) for trees in rows.values() for tree in trees}
    flat = sum(len(own) - 1 for own in written)
    return RuleMatrix(literals, matrix, tuple(map(tuple, rows.values())), tuple(map(tuple, groups.values())), flat)


def _needed(clause: Clause, meanings: Meanings) -> dict[tuple[int, int], Literal]:
    """The literals of a clause by feature and mask, without those that the others imply; none if it never holds."""
    if meanings.of(clause.literals) is None:
        return {}
    found = {(one.condition.feature, meanings.mask(one)): one for one in clause.literals}
    for feature, mask in sorted(found, key=lambda key: -key[1].bit_count()):  # the weakest first
        others = meanings.full(feature)
        for other, own in found:
            if other == feature and own != mask:
                others &= own
        if others & ~mask == 0:
            del found[feature, mask]
    return found


def _joined_output(forest: Forest, index: int) -> int:
    """The output whose bit is the OR of some trees, this one among them; -1 if the tree is in no such OR."""
    output = forest.trees[index].outputs[0]
    if forest.parts or forest.aggregate.kind == "sum":
        return -1
    _, steps = start_and_steps(forest, output)
    used = [steps[tree][forest.trees[tree].leaf[forest.trees[tree].leaf >= 0]] for tree in steps]
    higher = {int(step) for own in used for step in own.tolist()} - {0}
    return output if index in steps and len(higher) == 1 else -1


def of_sharing(matrix: RuleMatrix, found: TermSharing) -> SharedTerms:
    """Shared ANDs, a root for each clause."""
    terms = [Term("and", _operands(matrix, own)) for own in found.terms]
    place: dict[tuple[int, ...], int] = {own: at for at, own in enumerate(found.terms)}
    roots = []
    for own, trees in zip(found.clauses, matrix.trees, strict=True):
        if len(own) > 1 and own not in place:
            place[own] = len(terms)
            terms.append(Term("and", _operands(matrix, own)))
        operand = place[own] if len(own) > 1 else _operands(matrix, own)[0]
        roots += [Root((tree,), operand) for tree in trees]
    return SharedTerms(tuple(terms), tuple(roots))


def of_circuit(matrix: RuleMatrix, found: Circuit) -> SharedTerms:
    """A root for each group."""
    kinds: dict[str, Kind] = {"and": "and", "or": "or"}
    terms = tuple(Term(kinds[kind], _operands(matrix, own)) for kind, own in found.terms)
    roots = []
    for group, operand in zip(matrix.groups, found.groups, strict=True):
        trees = tuple(sorted(tree for row in group for tree in matrix.trees[row]))
        joined = [trees] if len(group) > 1 else [(tree,) for tree in trees]
        roots += [Root(own, _operands(matrix, [operand])[0]) for own in joined]
    return SharedTerms(terms, tuple(roots))


def _operands(matrix: RuleMatrix, numbers: Sequence[int]) -> tuple[Operand, ...]:
    count = len(matrix.literals)
    return tuple(matrix.literals[one] if one < count else one - count for one in numbers)
