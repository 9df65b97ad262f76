"""Records the proved nets of a netlist, proves those of trees, and finds nets that hold sums of proved nets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np

from forestc.checks.proof.parts import Proof, ProofPart, Running, UnprovedError
from forestc.checks.proof.solver import Solver, Term
from forestc.forest.ir import LEAF, Forest
from forestc.lowering.draft import Operand, Witness
from forestc.netlist.ir import BIT, Const, LinearCell, Net, Netlist, WordType, linear, reads

TREES_SECONDS = 20  # seconds for one question to the solver about trees
# A linear form: (net, factor) pairs in ascending order, and a constant.
Form: TypeAlias = tuple[tuple[tuple[Net, int], ...], int]


class Evidence:
    """A forest, its netlist, and the facts proved about its nets so far."""

    def __init__(self, forest: Forest, netlist: Netlist, witness: Witness, progress: Callable[[str], None]) -> None:
        self.forest, self.netlist, self.witness = forest, netlist, witness
        self.proof, self.progress = Proof(), progress
        self.largest: dict[Net, int] = {}  # largest value of each proved net; the smallest is 0
        self.absent: list[tuple[int, int]] = []  # (tree, output column) pairs of values without a net
        self.forms: dict[Net, Form] = {}  # linear forms of nets, computed when needed

    def part(self, name: str, asked: int) -> Running:
        self.progress(f"proof: {name}")
        return Running(self.proof, ProofPart(name, asked))

    def absent_note(self) -> str:
        return f"; no net holds the value of tree {self.absent[0][0]}" if self.absent else ""

    def solver(self) -> Solver:
        return Solver(self.forest, self.netlist, seconds=TREES_SECONDS)

    def type_of(self, operand: Operand) -> WordType:
        return WordType(operand.width, operand.signed) if isinstance(operand, Const) else self.netlist.types[operand]

    def proved(self, operand: Operand, most: int) -> Form:
        """Records that an operand is proved to hold a value from 0 to `most`. Returns its linear form."""
        if isinstance(operand, Const):
            return (), operand.value
        self.largest[operand] = most
        return ((operand, 1),), 0

    def form(self, net: Net) -> Form:
        """Returns a net as a linear form of proved nets. Raises UnprovedError if it has none, or if the net may
        overflow."""
        stack = [net]
        while stack:
            at = stack[-1]
            cell = self.netlist.cells[at]
            inside = linear(cell).terms if isinstance(cell, LinearCell) and at not in self.largest else ()
            missing = [a for a, _ in inside if a not in self.forms]
            if at not in self.forms and missing:
                stack += missing
                continue
            if at not in self.forms:
                self.forms[at] = self.form_of(at)
            stack.pop()
        return self.forms[net]

    def form_of(self, net: Net) -> Form:
        """Returns the linear form of one net. The nets that it adds must already have an entry in `forms`."""
        cell = self.netlist.cells[net]
        counts: dict[Net, int] = {}
        constant = 0
        if net in self.largest:
            counts[net] = 1
        elif isinstance(cell, LinearCell):
            terms, constant = linear(cell)
            for addend, factor in terms:
                some, more = self.forms[addend]
                constant += factor * more
                for part, times in some:
                    counts[part] = counts.get(part, 0) + factor * times
        else:
            raise UnprovedError(f"net {net} ({type(cell).__name__}) is not a sum of trees")
        form = form_of(counts, constant)
        low, high = self.span(form)
        word = self.netlist.types[net]
        if low < word.low or high > word.high:
            raise UnprovedError(f"net {net} holds {low} to {high} in {word.width} bits")
        return form

    def span(self, form: Form) -> tuple[int, int]:
        return form[1], form[1] + sum(times * self.largest[net] for net, times in form[0])

    def added(
        self, solver: Solver, terms: tuple[tuple[Net, int], ...], width: int, cuts: Mapping[Net, Term] | None = None
    ) -> Term:
        """Returns a sum of proved nets as a term of `width` bits. terms: (net, factor) pairs. A net -1 - i means the
        tree value `absent[i]`, which has no net. cuts: terms that replace nets."""
        total = solver.constant(0, width)
        for net, times in terms:
            if net < 0:
                index, column = self.absent[-1 - net]
                tree = self.forest.trees[index]
                used = tree.values[tree.leaf[tree.left == LEAF], column]
                values = tree.values[tree.leaf, column].astype(np.int64) - int(used.min())
                addend = solver.tree(tree, values, WordType(width, True))
            else:
                addend = solver.resized(solver.net(net, cuts or {}), self.netlist.types[net], width)
            for _ in range(times):
                total = solver.make(solver.kind.BV_ADD, [total, addend])
        return total

    def sums_below(self, label: Net, sums: set[tuple[tuple[Net, int], ...]]) -> list[tuple[Form, Net]]:
        """Searches backwards from `label` for the nearest nets that hold one of `sums` plus any constant. Returns a
        list of (form, net), sorted by net."""
        held: list[tuple[Form, Net]] = []
        stack, seen = [label], {label}
        while stack:
            net = stack.pop()
            cell = self.netlist.cells[net]
            if isinstance(cell, LinearCell) or net in self.largest:
                try:
                    form = self.form(net)
                except UnprovedError:
                    form = (), 0  # The net is no sum: the search goes on behind it.
                if form[0] in sums:
                    held.append((form, net))
                    continue
            for read in reads(cell):
                if read not in seen:
                    seen.add(read)
                    stack.append(read)
        return sorted(held, key=lambda pair: pair[1])


def named(operand: Operand | tuple[Operand, ...]) -> str:
    if not isinstance(operand, int | Const):
        return " and ".join(map(named, operand))
    return f"the constant {operand.value}" if isinstance(operand, Const) else f"net {operand}"


def form_of(counts: dict[Net, int], constant: int) -> Form:
    return tuple(sorted(counts.items())), constant


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
