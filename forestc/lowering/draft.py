"""A netlist under construction: input ports, trees as multiplexers with shared comparisons, and a record of nets for
proofs.

Multiplexers took fewer LUTs than sums of products over a tree's leaves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from forestc.errors import ModelError
from forestc.forest.conditions import INFINITY, Below, Condition, InSpans, OneOf, Span
from forestc.forest.ir import LEAF, Forest
from forestc.forest.numbers import Category, Fixed, Float, Ordered, word_range
from forestc.forest.words import word_note
from forestc.netlist.builder import NetlistBuilder, width_for
from forestc.netlist.ir import FALSE, Const, Net, Origin, WordType
from forestc.netlist.ports import Port

Operand: TypeAlias = Net | Const
Step: TypeAlias = tuple[str, int, int, int]


@dataclass(frozen=True)
class Witness:
    """The nets or constants that hold a forest's intermediate values, for proofs of a netlist; -1 for a removed net."""

    trees: Mapping[tuple[int, int], Operand | tuple[Operand, ...]]  # summand of (tree, output), or its ascending bits
    labels: Sequence[Operand] = ()  # class index of each member model (part) that votes
    ballots: Mapping[tuple[int, int], Operand] = field(default_factory=dict)  # votes or averaged terms by (part, class)
    steps: Mapping[Step, Operand] = field(default_factory=dict)  # values within shares by (name, part, class, bit)

    def renamed(self, nets: Sequence[Net]) -> Witness:
        """Returns the witness with renumbered nets. nets: the new number of each old net, -1 if removed."""

        def new(operand: Operand) -> Operand:
            return operand if isinstance(operand, Const) else nets[operand]

        trees = {
            # A Const is a tuple, too, so Const is tested before tuple.
            k: new(operand) if isinstance(operand, int | Const) else tuple(map(new, operand))
            for k, operand in self.trees.items()
        }
        ballots = {k: new(operand) for k, operand in self.ballots.items()}
        steps = {k: new(operand) for k, operand in self.steps.items()}
        return Witness(trees, tuple(map(new, self.labels)), ballots, steps)


def feature_port(forest: Forest, index: int) -> Port:
    return Port(f"x{index}", "word", index, forest.features[index].name, word_note(forest, index))


def feature_word(forest: Forest, index: int) -> WordType:
    """Returns the type of a feature's input words. Raises ModelError for a float feature."""
    feature = forest.features[index]
    match feature.number:
        case Fixed(bits, _, signed):
            return WordType(bits, signed)
        case Ordered(bits):
            return WordType(bits, True)
        case Category():
            return width_for(0, word_range(feature.number, feature.missing).top)
        case Float():
            raise ModelError("a float feature has no word", where="lowering", do="run quantize-inputs first")


class Draft:
    """A forest's netlist under construction. counting: True if LUTs have six inputs or more, so that tables may count
    bits."""

    def __init__(self, forest: Forest, counting: bool) -> None:
        self.forest, self.counting = forest, counting
        self.builder = NetlistBuilder(forest.name, f"{len(forest.trees)} trees, {forest.n_nodes} nodes")
        self.ports = [
            self.builder.input(feature_port(forest, index), feature_word(forest, index))
            for index in range(len(forest.features))
        ]
        self.missing = [word_range(f.number, f.missing).missing for f in forest.features]
        self.trees: dict[tuple[int, int], Operand | tuple[Operand, ...]] = {}
        self.labels: list[Operand] = []
        self.ballots: dict[tuple[int, int], Operand] = {}
        self.steps: dict[Step, Operand] = {}

    def witness(self) -> Witness:
        return Witness(self.trees, self.labels, self.ballots, self.steps)

    def operand_of(self, net: Net) -> Operand:
        cell = self.builder.cell_of(net)
        return cell if isinstance(cell, Const) else net

    def number(self, value: int) -> Net:
        return self.builder.const(value, width_for(min(value, 0), max(value, 0)))

    def mux_tree(self, index: int, values: Sequence[int], word: WordType) -> Net:
        """Builds a tree as multiplexers, and returns the net of its result. values: the result at each leaf, of type
        `word`."""
        tree = self.forest.trees[index]
        left, right, leaf = tree.left.tolist(), tree.right.tolist(), tree.leaf.tolist()
        conditions, table = self.forest.conditions.node_conditions[index].tolist(), self.forest.conditions
        nets: dict[int, Net] = {}
        for level in reversed(tree.levels):
            for node in level.tolist():
                if left[node] == LEAF:
                    nets[node] = self.builder.const(values[leaf[node]], word)
                    continue
                at = Origin(index, int(tree.ids[node]))
                a, b = nets.pop(left[node]), nets.pop(right[node])
                nets[node] = a if a == b else self.builder.mux(self._condition(table[conditions[node]], at), a, b, at)
        return nets[0]

    def _condition(self, condition: Condition, at: Origin) -> Net:
        port, reserved = self.ports[condition.feature], self.missing[condition.feature]
        match condition.test:
            case OneOf(codes):
                missing = [reserved] if reserved is not None and condition.missing_left else []
                return self.builder.in_set(port, [*codes, *missing], at)
            case InSpans():
                return self._within(port, condition.test.spans, reserved, condition.missing_left, at)
            case Below(threshold):
                below = self.builder.less(port, int(threshold), at)
                if reserved is None or not condition.missing_left:
                    return below  # The missing word is the highest, so it goes right.
                present = self.builder.less(port, reserved, at)
                return self.builder.or_(below, self.builder.not_(present, at), at)

    def _within(self, port: Net, spans: tuple[Span, ...], reserved: int | None, missing_left: bool, at: Origin) -> Net:
        """Builds a bit that is 1 if a word is in one of the spans. reserved: the word for missing values, if any."""
        inside = FALSE
        for low, high in spans:
            span = self.builder.not_(self.builder.less(port, int(low), at), at)
            if high != INFINITY:
                span = self.builder.and_(span, self.builder.less(port, int(high), at), at)
            inside = self.builder.or_(inside, span, at)
        last_is_open = bool(spans) and spans[-1][1] == INFINITY
        if reserved is None or last_is_open == missing_left:
            return inside  # The missing word is the highest, so the last span decides.
        present = self.builder.less(port, reserved, at)
        if missing_left:
            return self.builder.or_(inside, self.builder.not_(present, at), at)
        return self.builder.and_(inside, present, at)
