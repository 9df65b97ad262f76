"""The gates of a forest's shared terms, each built once."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from functools import cached_property

from forestc.forest.conditions import Condition
from forestc.forest.ir import Forest
from forestc.forest.terms import Literal, Operand, Root
from forestc.netlist.builder import NetlistBuilder
from forestc.netlist.ir import Net, Origin


def balanced(nets: Sequence[Net], join: Callable[[Net, Net], Net]) -> Net:
    """The nets joined two at a time, in as few levels as can be."""
    nets = list(nets)
    while len(nets) > 1:
        nets = [join(a, b) for a, b in zip(nets[::2], nets[1::2], strict=False)] + nets[len(nets) & ~1 :]
    return nets[0]


class TermNets:
    """condition: makes the net of a condition, for a node."""

    def __init__(self, forest: Forest, builder: NetlistBuilder, condition: Callable[[Condition, Origin], Net]) -> None:
        self.forest, self.builder, self.condition = forest, builder, condition
        self.alone = {root.trees[0]: root.operand for root in forest.shared.roots if len(root.trees) == 1}

    def joined(self, trees: Container[int]) -> list[Root]:
        """The roots of several of these trees, and of no others."""
        return [
            root for root in self.forest.shared.roots if len(root.trees) > 1 and all(one in trees for one in root.trees)
        ]

    def net(self, operand: Operand) -> Net:
        """The net of a literal or a term."""
        return self._literal(operand) if isinstance(operand, Literal) else self._terms[operand]

    def _literal(self, literal: Literal) -> Net:
        at = self._origins[literal.condition]
        net = self.condition(literal.condition, at)
        return net if literal.holds else self.builder.not_(net, at)

    @cached_property
    def _terms(self) -> list[Net]:
        nets: list[Net] = []
        for term in self.forest.shared.terms:
            operands = [self._literal(one) if isinstance(one, Literal) else nets[one] for one in term.operands]
            nets.append(balanced(operands, self.builder.and_ if term.kind == "and" else self.builder.or_))
        return nets

    @cached_property
    def _origins(self) -> dict[Condition, Origin]:
        """The first node that has each condition."""
        table, found = self.forest.conditions, dict[int, Origin]()
        for index, (tree, places) in enumerate(zip(self.forest.trees, table.places, strict=True)):
            for node in tree.inner.tolist():
                found.setdefault(int(places[node]), Origin(index, int(tree.ids[node])))
        return {table[place]: origin for place, origin in found.items()}
