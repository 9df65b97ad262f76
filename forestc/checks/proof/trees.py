"""Proves that nets hold the values of trees, for every word of every feature."""

from __future__ import annotations

import numpy as np

from forestc.checks.proof.evidence import Evidence, Form, form_of, named
from forestc.checks.proof.parts import UnprovedError
from forestc.checks.proof.solver import Solver
from forestc.forest.ir import LEAF
from forestc.lowering.draft import Place
from forestc.netlist.ir import BIT, Const, Net, WordType


def prove_trees(known: Evidence) -> list[Form]:
    """Proves the net of each tree and output. Returns the form that each output's sum must have."""
    forest = known.forest
    terms: list[dict[Net, int]] = [{} for _ in range(forest.n_outputs)]
    offsets = [int(bias) for bias in forest.bias]
    asked = sum(len(tree.outputs) for tree in forest.trees)
    with known.part("trees", asked) as part:
        solver = Solver(forest, known.netlist)
        for index, tree in enumerate(forest.trees):
            for column, output in enumerate(tree.outputs):
                used = tree.values[tree.leaf[tree.left == LEAF], column]
                smallest, largest = int(used.min()), int(used.max())
                offsets[output] += smallest
                if largest > smallest:
                    places = _prove_tree(known, solver, (index, column), smallest, largest - smallest)
                    for bit, place in enumerate(places):
                        if isinstance(place, Const):
                            offsets[output] += place.value << bit
                        else:
                            terms[output][place] = terms[output].get(place, 0) + (1 << bit)
                    if places[0] in range(-len(known.absent), 0):  # not asked of the netlist
                        part.asked -= 1
                        part.proved -= 1
                part.proved += 1
    return [form_of(term, offset) for term, offset in zip(terms, offsets, strict=True)]


def _prove_tree(
    known: Evidence, solver: Solver, place: tuple[int, int], smallest: int, largest: int
) -> tuple[Place, ...]:
    """Where tree and output column `place` lie, counted from the smallest leaf: one word, or bits from the lowest
    on, of one bit each. Raises UnprovedError."""
    index, column = place
    tree = known.forest.trees[index]
    held = known.witness.trees.get((index, tree.outputs[column]), -1)
    places: tuple[Place, ...] = (held,) if isinstance(held, int | Const) else held
    if -1 in places:
        # No net holds it, and perhaps none must: a class that can't win has no sum. A negative number stands for
        # it, which no sum of nets contains.
        absent = -1 - len(known.absent)
        known.absent.append((index, column))
        known.largest[absent] = largest
        return (absent,)
    where = f"tree {index}, output {tree.outputs[column]}"
    word = known.type_of(places[0])
    if len(places) > 1:
        if any(known.type_of(net) != BIT for net in places):
            raise UnprovedError(f"{where}: {named(places)} are no bits")
        word = WordType(len(places), False)
    if word.low > 0 or word.high < largest:
        raise UnprovedError(f"{where}: {named(places)} does not hold {largest}")
    values = tree.values[tree.leaf, column].astype(np.int64) - smallest
    nets = solver.joined([solver.place(net, {}) for net in places])
    wrong = solver.differ(solver.tree(tree, values, word), nets)
    if wrong is not None:
        raise UnprovedError(
            f"{where}: {named(places)} differs at {solver.described(wrong)}", solver.feature_words(wrong)
        )
    for net in places:
        if not isinstance(net, Const):
            most = 1 if len(places) > 1 else largest
            known.largest[net] = min(most, known.largest.get(net, most))
    return places
