"""Recognizes an argmax by its cells, as a solver needs minutes for twenty sums.

If `a` is the largest of some sums and `b` of others, then `a < b ? b : a` is the largest of all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from forestc.checks.proof.evidence import Evidence, Form
from forestc.checks.proof.parts import UnprovedError
from forestc.forest.ir import Decision, Forest, Part, Tree
from forestc.netlist.ir import Compare, Const, Mux, Net, Register


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
