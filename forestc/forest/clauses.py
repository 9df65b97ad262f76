"""Clauses: trees that are an AND of literals, what ANDs of literals mean, and whether shared terms mean the clauses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from forestc.errors import ModelError
from forestc.forest.conditions import Condition
from forestc.forest.ir import LEAF, Forest
from forestc.forest.numbers import Category, word_range
from forestc.forest.terms import Literal, Operand, reads_of

Meaning: TypeAlias = frozenset[tuple[int, int]]  # (feature, mask of its words) for each feature that is restricted


@dataclass(frozen=True)
class Clause:
    """literals: that hold for the rows of one leaf, and only together. inside, outside: rows of the tree's values, of
    that leaf and of another."""

    literals: tuple[Literal, ...]
    inside: int
    outside: int


def clause_of(forest: Forest, index: int) -> Clause | None:
    """A tree as a clause; None if it is not one. See `forestc.forest.terms`."""
    tree = forest.trees[index]
    leaves = np.flatnonzero(tree.left == LEAF)
    values = tree.values[tree.leaf[leaves]]
    if values.shape[1] != 1 or not tree.depth:
        return None
    column = values[:, 0]
    inside, outside = (column.min(), column.max()) if forest.aggregate.kind == "min" else (column.max(), column.min())
    if int((column == inside).sum()) != 1 or not ((column == inside) | (column == outside)).all():
        return None
    leaf = int(leaves[column == inside][0])
    parent = {int(child): node for side in (tree.left, tree.right) for node, child in enumerate(side) if child != LEAF}
    literals, node = [], leaf
    while node:
        node, below = parent[node], node
        condition = forest.conditions[int(forest.conditions.places[index][node])]
        literals.append(Literal(condition, below == tree.left[node]))
    other = int(leaves[column == outside][0])
    return Clause(tuple(reversed(literals)), int(tree.leaf[leaf]), int(tree.leaf[other]))


class Meanings:
    """What literals of a forest's conditions mean: for each feature, one word of each set of words that no condition
    tells apart, and a missing value, are the bits of a mask."""

    def __init__(self, forest: Forest) -> None:
        self.words: list[np.ndarray[tuple[int], np.dtype[np.int64]]] = []
        self.absent: list[np.ndarray[tuple[int], np.dtype[np.bool_]]] = []
        for index, feature in enumerate(forest.features):
            span = word_range(feature.number, feature.missing)
            held = {span.low}
            if isinstance(feature.number, Category):
                held = set(range(span.low, span.high + 1))
            held |= {cut for cut in forest.conditions.thresholds(index).tolist() if span.low < cut <= span.high}
            words = sorted(held)
            self.words.append(np.array([*words, *[words[0]] * feature.missing], dtype=np.int64))
            self.absent.append(np.arange(len(words) + feature.missing) >= len(words))
        self._known: dict[Condition, int] = {}

    def full(self, feature: int) -> int:
        """The mask of all words."""
        return (1 << len(self.words[feature])) - 1

    def mask(self, literal: Literal) -> int:
        """The words of its feature for which the literal holds."""
        condition = literal.condition
        if condition not in self._known:
            left = condition.sends_left(self.words[condition.feature], self.absent[condition.feature])
            self._known[condition] = sum(1 << int(place) for place in np.flatnonzero(left))
        mask = self._known[condition]
        return mask if literal.holds else self.full(condition.feature) & ~mask

    def of(self, literals: Iterable[Literal]) -> Meaning | None:
        """What the AND of literals means, the same for all that hold for the same words; None if it never holds."""
        masks: dict[int, int] = {}
        for literal in literals:
            feature = literal.condition.feature
            masks[feature] = masks.get(feature, self.full(feature)) & self.mask(literal)
        if not all(masks.values()):
            return None
        return frozenset((feature, mask) for feature, mask in masks.items() if mask != self.full(feature))


def verify_terms(forest: Forest) -> None:
    """Raises ModelError for shared terms that are not of a quantized forest, or do not mean what its clauses do.

    Each root is multiplied out to ANDs of literals, which must mean the same as its clauses, one by one.
    """
    shared = forest.shared
    if not forest.quantised:
        raise ModelError("shared terms are of a forest of integers", do="quantize the forest before share-terms")
    known = set(forest.conditions)
    for place, term in enumerate(shared.terms):
        where = f"term {place}"
        if len(term.operands) < 2 or not all(0 <= number < place for number in reads_of(term.operands)):
            raise ModelError("a term needs two operands or more, terms before it among them", where=where)
        _verify_literals(term.operands, known, where)
    meanings = Meanings(forest)
    products = _multiplied_out(forest)
    taken: set[int] = set()
    for place, root in enumerate(shared.roots):
        where = f"root {place}"
        if not root.trees or len(set(root.trees)) < len(root.trees) or taken & set(root.trees):
            raise ModelError("a tree is in two roots, or a root has none", where=where)
        if not 0 <= min(root.trees) <= max(root.trees) < len(forest.trees):
            raise ModelError(f"a root has tree {max(root.trees)} of {len(forest.trees)}", where=where)
        taken |= set(root.trees)
        if len(root.trees) > 1 and (
            forest.parts
            or forest.aggregate.kind == "sum"
            or len({forest.trees[number].outputs for number in root.trees}) > 1
        ):
            raise ModelError("trees of several outputs, or of a sum, are joined", where=where)
        _verify_literals([root.operand], known, where)
        if not all(0 <= number < len(shared.terms) for number in reads_of([root.operand])):
            raise ModelError(f"a root has term {root.operand} of {len(shared.terms)}", where=where)
        wanted = set()
        for index in root.trees:
            clause = clause_of(forest, index)
            if clause is None:
                raise ModelError(f"tree {index} is not an AND of conditions", where=where)
            wanted.add(meanings.of(clause.literals))
        got = [frozenset([root.operand])] if isinstance(root.operand, Literal) else products[root.operand]
        if {meanings.of(product) for product in got} != wanted:
            raise ModelError("its term does not mean what its trees do", where=where, do="run share-terms again")


def _verify_literals(operands: Sequence[Operand], known: set[Condition], where: str) -> None:
    for operand in operands:
        if isinstance(operand, Literal) and operand.condition not in known:
            raise ModelError("a term has a condition that no tree has", where=where)


def _multiplied_out(forest: Forest) -> list[list[frozenset[Literal]]]:
    """The ANDs of literals whose OR is the term, for each term."""
    products: list[list[frozenset[Literal]]] = []
    for place, term in enumerate(forest.shared.terms):
        ands = [frozenset[Literal]()] if term.kind == "and" else []
        for operand in term.operands:
            part = [frozenset([operand])] if isinstance(operand, Literal) else products[operand]
            many = len(ands) * len(part) if term.kind == "and" else len(ands) + len(part)
            if many > len(forest.trees):  # each is a clause in the end; checked before memory is taken
                raise ModelError(
                    f"multiplied out it has more ANDs than the forest's {len(forest.trees)} trees",
                    where=f"term {place}",
                )
            ands = [a | b for a in ands for b in part] if term.kind == "and" else ands + part
        products.append(list(dict.fromkeys(ands)))
    return products
