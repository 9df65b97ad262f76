"""Proves that nets hold the values of trees, for every word of every feature."""

from __future__ import annotations

import numpy as np

from forestc.checks.proof.evidence import Evidence, Form, form_of, named
from forestc.checks.proof.parts import UnprovedError
from forestc.checks.proof.solver import Solver
from forestc.forest.ir import LEAF
from forestc.lowering.draft import Operand
from forestc.netlist.ir import BIT, Const, Net, WordType


def prove_trees(evidence: Evidence) -> list[Form]:
    """Proves the nets that hold the trees' values. Returns each output's sum, with the bias, as a linear form."""
    forest = evidence.forest
    terms: list[dict[Net, int]] = [{} for _ in range(forest.n_outputs)]
    offsets = [int(bias) for bias in forest.bias]
    asked = sum(len(tree.outputs) for tree in forest.trees)
    with evidence.part("trees", asked) as part:
        solver = Solver(forest, evidence.netlist)
        for index, tree in enumerate(forest.trees):
            for column, output in enumerate(tree.outputs):
                used = tree.values[tree.leaf[tree.left == LEAF], column]
                smallest, largest = int(used.min()), int(used.max())
                offsets[output] += smallest
                if largest > smallest:
                    operands = _prove_tree(evidence, solver, (index, column), smallest, largest - smallest)
                    for bit, operand in enumerate(operands):
                        if isinstance(operand, Const):
                            offsets[output] += operand.value << bit
                        else:
                            terms[output][operand] = terms[output].get(operand, 0) + (1 << bit)
                    # A value without a net has no statement to prove, so the numbers of statements leave it out.
                    if operands[0] in range(-len(evidence.absent), 0):
                        part.asked -= 1
                        part.proved -= 1
                part.proved += 1
    return [form_of(term, offset) for term, offset in zip(terms, offsets, strict=True)]


def _prove_tree(
    evidence: Evidence, solver: Solver, position: tuple[int, int], smallest: int, largest: int
) -> tuple[Operand, ...]:
    """Proves and returns the operands of a tree's value: one word, or its bits."""
    index, column = position
    tree = evidence.forest.trees[index]
    held = evidence.witness.trees.get((index, tree.outputs[column]), -1)
    operands: tuple[Operand, ...] = (held,) if isinstance(held, int | Const) else held
    if -1 in operands:
        # Trees of a class that can't win may lack a net. Negative net numbers replace the missing nets.
        absent = -1 - len(evidence.absent)
        evidence.absent.append((index, column))
        evidence.largest[absent] = largest
        return (absent,)
    where = f"tree {index}, output {tree.outputs[column]}"
    word = evidence.type_of(operands[0])
    if len(operands) > 1:
        if any(evidence.type_of(net) != BIT for net in operands):
            raise UnprovedError(f"{where}: {named(operands)} are no bits")
        word = WordType(len(operands), False)
    if word.low > 0 or word.high < largest:
        raise UnprovedError(f"{where}: {named(operands)} does not hold {largest}")
    values = tree.values[tree.leaf, column].astype(np.int64) - smallest
    nets = solver.joined([solver.operand(net, {}) for net in operands])
    wrong = solver.differ(solver.tree(tree, values, word), nets)
    if wrong is not None:
        raise UnprovedError(
            f"{where}: {named(operands)} differs at {solver.described(wrong)}", solver.feature_words(wrong)
        )
    for net in operands:
        if not isinstance(net, Const):
            most = 1 if len(operands) > 1 else largest
            evidence.largest[net] = min(most, evidence.largest.get(net, most))
    return operands
