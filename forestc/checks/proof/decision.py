"""Proves that a net holds the class decided by scores.

An argmax is recognized by its cells, as a solver needs minutes for twenty sums. If `a` is the largest of some sums and
`b` of others, then `a < b ? b : a` is the largest of all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from forestc.checks.proof.evidence import TREES_SECONDS, Evidence, Form, named
from forestc.checks.proof.parts import UnprovedError
from forestc.checks.proof.solver import Counterexample, Solver, Term
from forestc.forest.ir import Decision, Forest, Part, Tree
from forestc.lowering.draft import Operand
from forestc.netlist.ir import Compare, Const, Mux, Net, Register, WordType

FREE_SECONDS = 60  # seconds for the proof of a decision for any sums
MOST_NODES = 1500  # nodes of a forest; larger ones are not proved from their trees


def lone_tree(forest: Forest, part: Part) -> tuple[Tree, list[int]] | None:
    """Returns the only tree of a member model (part), and a list with the class of each leaf at the leaf's node; None
    if the part does not have exactly one tree."""
    feeding = [tree for tree in forest.trees if any(part.start <= output < part.stop for output in tree.outputs)]
    if len(feeding) != 1:
        return None
    (tree,) = feeding
    classes = []
    for leaf in tree.leaf.tolist():
        scores = [int(bias) for bias in forest.bias[part.start : part.stop]]
        for output, value in zip(tree.outputs, tree.values[leaf].tolist(), strict=True):
            if part.start <= output < part.stop:
                scores[output - part.start] += int(value)
        if part.decision.kind == "threshold":
            classes.append(int(scores[-1] >= int(part.decision.threshold)))
        else:
            best = [kind for kind, score in enumerate(scores) if score == max(scores)]
            classes.append(best[-1] if part.decision.ties == "last" else best[0])
    return tree, classes


def is_argmax(evidence: Evidence, label: Net, decision: Decision, sums: Sequence[Form]) -> bool:
    """Returns True if the cells of `label` are recognized as the argmax of `sums`. Unrecognized cells may still be
    right."""
    try:
        entrants = _Tournament(evidence).entrants(label)
    except UnprovedError:
        return False
    if entrants is None:
        return False
    kinds = [kind for _, kind in entrants]
    last = decision.ties == "last"
    ordered = sorted(set(kinds), reverse=last)
    if decision.kind != "argmax" or kinds != ordered or not 0 <= min(kinds) <= max(kinds) < len(sums):
        return False
    shifts = {held[1] - sums[kind][1] for held, kind in entrants}
    if len(shifts) != 1 or any(held[0] != sums[kind][0] for held, kind in entrants):
        return False
    # A class may be missing from the tournament only if another class always beats it.
    out = set(range(len(sums))) - set(kinds)
    return all(any(_never_wins(sums, loser, kind, last, evidence.span) for kind in kinds) for loser in out)


def largest_of(evidence: Evidence, net: Net) -> set[Form]:
    """Returns the sums among which a net selects the largest. Raises UnprovedError if the cells select among other
    nets."""
    tournament, netlist = _Tournament(evidence), evidence.netlist
    sums: set[Form] = set()
    stack = [net]
    while stack:
        value = tournament.behind(stack.pop())
        cell = netlist.cells[value]
        chosen = netlist.cells[tournament.behind(cell.select)] if isinstance(cell, Mux) else None
        if isinstance(cell, Mux) and isinstance(chosen, Compare):
            arms = [tournament.behind(arm) for arm in (cell.b, cell.a)]
            if arms == [tournament.behind(operand) for operand in (chosen.a, chosen.b)]:
                stack += arms
                continue
        sums.add(evidence.form(value))
    return sums


def _never_wins(
    sums: Sequence[Form], loser: int, winner: int, last: bool, span: Callable[[Form], tuple[int, int]]
) -> bool:
    ties = int((winner > loser) == last)  # 1 if the winner wins ties
    if sums[loser][0] == sums[winner][0]:
        return sums[loser][1] < sums[winner][1] + ties
    return span(sums[loser])[1] < span(sums[winner])[0] + ties


class _Tournament:
    def __init__(self, evidence: Evidence) -> None:
        self.netlist, self.form = evidence.netlist, evidence.form

    def behind(self, net: Net) -> Net:
        while isinstance(cell := self.netlist.cells[net], Register):
            net = cell.a
        return net

    def entrants(self, label: Net) -> list[tuple[Form, int]] | None:
        """Returns (sum, class index) pairs, if the cells of `label` select the class of the largest sum; otherwise
        None. Of equal sums, the earlier pair wins."""
        cell = self.netlist.cells[self.behind(label)]
        if not isinstance(cell, Mux):
            return None
        chosen = self.netlist.cells[self.behind(cell.select)]
        if not isinstance(chosen, Compare):
            return None
        return self.both(cell, chosen)

    def both(self, index: Mux, chosen: Compare) -> list[tuple[Form, int]] | None:
        first, second = self.entrants_of(index.b, chosen.a), self.entrants_of(index.a, chosen.b)
        return None if first is None or second is None else first + second

    def entrants_of(self, index: Net, value: Net) -> list[tuple[Form, int]] | None:
        index, value = self.behind(index), self.behind(value)
        kind = self.netlist.cells[index]
        if isinstance(kind, Const):
            return [(self.form(value), kind.value)]
        largest = self.netlist.cells[value]
        if not isinstance(kind, Mux) or not isinstance(largest, Mux):
            return None
        select = self.behind(kind.select)
        chosen = self.netlist.cells[select]
        if select != self.behind(largest.select) or not isinstance(chosen, Compare):
            return None
        if (self.behind(largest.a), self.behind(largest.b)) != (self.behind(chosen.b), self.behind(chosen.a)):
            return None
        return self.both(kind, chosen)


def prove_decision(evidence: Evidence, label: Operand, decision: Decision, sums: list[Form]) -> None:
    """Proves that `label` is the class decided by the scores `sums`: for all values of the sums or, in a small forest,
    for all inputs. Raises UnprovedError or TimeoutError."""
    if not isinstance(label, Const) and is_argmax(evidence, label, decision, sums):
        return
    try:
        wrong = _other_class(evidence, label, decision, sums, free=True)
    except TimeoutError as error:
        wrong = str(error), None
    if wrong is None:
        return
    if evidence.forest.n_nodes > MOST_NODES:
        raise UnprovedError(f"{named(label)} decides otherwise, if sums can be {wrong[0]}{evidence.absent_note()}")
    # Not all values of the sums occur together; the solver now gets the trees.
    wrong = _other_class(evidence, label, decision, sums, free=False)
    if wrong is not None:
        raise UnprovedError(f"{named(label)} decides otherwise at {wrong[0]}{evidence.absent_note()}", wrong[1])


def prove_runner_up(evidence: Evidence, nets: tuple[Net, Net], decision: Decision, sums: list[Form]) -> None:
    """Proves that two nets hold the second best class and the distance of the scores, for all values of the sums.
    Raises UnprovedError or TimeoutError."""
    second, distance = nets
    types = evidence.netlist.types
    solver = Solver(evidence.forest, evidence.netlist, seconds=FREE_SECONDS)
    held = evidence.sums_below(distance, {form[0] for form in sums if form[0]})
    reach = [bound for form in [*sums, *(form for form, _ in held)] for bound in evidence.span(form)]
    most = max(abs(bound) for bound in [*reach, int(decision.threshold)])
    width = max([most.bit_length() + 3, types[distance].width + 1, *(types[net].width for _, net in held)])
    wide = WordType(width, True)
    words = {
        form[0]: solver.word(f"sum{index}", wide, 0, evidence.span((form[0], 0))[1])
        for index, form in enumerate([*(form for form, _ in held), *sums]) if form[0]
    }  # fmt: skip
    scores = [
        solver.plus(words[form[0]], form[1], width) if form[0] else solver.constant(form[1], width) for form in sums
    ]
    cuts = {net: solver.low_bits(solver.plus(words[form[0]], form[1], width), types[net].width) for form, net in held}
    meant = solver.runner_up(scores, decision)
    for net, right in zip((second, distance), meant, strict=True):
        wrong = solver.differ(solver.resized(solver.net(net, cuts), types[net], width), right)
        if wrong is not None:
            raise UnprovedError(f"{named(net)} differs if {solver.described(wrong)}{evidence.absent_note()}")


def is_lone_tree(evidence: Evidence, label: Operand, part: Part) -> bool:
    """Returns True if a member model (part) has a single tree and `label` is proved to be that tree's class."""
    lone = lone_tree(evidence.forest, part)
    if lone is None:
        return False
    solver, word = Solver(evidence.forest, evidence.netlist), evidence.type_of(label)
    expected = solver.tree(*lone, word)
    return max(lone[1]) <= word.high and solver.differ(expected, solver.operand(label, {})) is None


def _other_class(
    evidence: Evidence, label: Operand, decision: Decision, sums: list[Form], free: bool
) -> tuple[str, Counterexample | None] | None:
    """Returns a case in which `label` is not the class decided by `sums`, as (text, input or None); None if there is no
    such case."""
    solver = Solver(evidence.forest, evidence.netlist, seconds=FREE_SECONDS if free else TREES_SECONDS)
    held: list[tuple[Form, Net]] = []
    if free:
        summed = {form[0] for form in sums if form[0]}
        held = [] if isinstance(label, Const) else evidence.sums_below(label, summed)
    shift = _shift_of(sums, held)
    reach = [bound for form in [*sums, *(form for form, _ in held)] for bound in evidence.span(form)]
    width = max(abs(bound) + abs(shift) + abs(int(decision.threshold)) for bound in [0, *reach]).bit_length() + 3
    width = max([width, *(evidence.netlist.types[net].width for _, net in held)])
    wide = WordType(width, True)
    words: dict[tuple[tuple[Net, int], ...], Term] = {}
    for form in [*(form for form, _ in held), *sums]:
        if form[0] and form[0] not in words:
            words[form[0]] = (
                solver.word(f"sum{len(words)}", wide, 0, evidence.span((form[0], 0))[1])
                if free
                else evidence.added(solver, form[0], width)
            )
    cuts = {net: solver.low_bits(solver.plus(words[form[0]], form[1], width), evidence.netlist.types[net].width)
            for form, net in held}  # fmt: skip
    scores = [
        solver.plus(words[form[0]], form[1] + shift, width) if form[0] else solver.constant(form[1] + shift, width)
        for form in sums
    ]
    wrong = solver.wrong_class(solver.operand(label, cuts), evidence.type_of(label), scores, decision, shift)
    if wrong is None:
        return None
    return solver.described(wrong), None if free else solver.feature_words(wrong)


def _shift_of(sums: list[Form], held: list[tuple[Form, Net]]) -> int:
    votes: dict[int, int] = {}
    for form in sums:
        for (nets, constant), _ in held:
            if nets == form[0]:
                votes[constant - form[1]] = votes.get(constant - form[1], 0) + 1
    return max(votes, key=lambda shift: (votes[shift], -abs(shift)), default=0)
