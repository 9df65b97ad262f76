"""From an integer Forest to a Netlist: mux trees over shared comparators, adders, the decision.

A tree becomes nested multiplexers, which took fewer LUTs than sums of products over its leaves. Leaves are counted from
each tree's smallest, which makes the words of small trees narrow. The sum of the smallest leaves becomes a constant at
the end, or part of the decision's threshold; where classes are compared, an operand of the sums.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np

from forestc.costs.devices import DEFAULT_FAMILY, DELAYS
from forestc.errors import ModelError, OptionError, known_names
from forestc.forest.conditions import INFINITY, Below, Condition, OneOf, Span, Within
from forestc.forest.evaluate import decide
from forestc.forest.ir import LEAF, Decision, Forest, Part
from forestc.forest.numbers import Category, Fixed, Float, Ordered, word_range
from forestc.forest.words import word_note
from forestc.lowering.extremes import adds, balanced, extreme_of, largest_of, prioritized, refuse_extremes_of_parts
from forestc.lowering.schedule import pipelined
from forestc.lowering.sums import Sum, Word, added, better_bit_by_bit, in_one_table, sum_of_bits, table_of
from forestc.netlist.builder import NetlistBuilder, width_for
from forestc.netlist.ir import BIT, FALSE, TABLE_BITS, Const, Net, Netlist, Origin, Table, WordType
from forestc.netlist.ports import IN_VALID, OUT_VALID, Port, label_port, score_port

Outputs: TypeAlias = Literal["auto", "label", "scores", "both"]
Place: TypeAlias = Net | Const
Step: TypeAlias = tuple[str, int, int, int]


@dataclass(frozen=True)
class LoweringOptions:
    """latency: clock cycles from input to output; 0 is combinational. outputs: what the ports carry; auto is the label
    for classification and the scores for regression. family: a key of `forestc.costs.devices.DELAYS`; registers are
    placed by the delays of these devices."""

    latency: int = 0
    outputs: Outputs = "auto"
    family: str = DEFAULT_FAMILY

    def __post_init__(self) -> None:
        if not isinstance(self.latency, int) or not 0 <= self.latency <= 1000:
            raise OptionError(f"latency {self.latency}", do="use 0 (combinational) to 1000 cycles")
        if self.outputs not in ("auto", "label", "scores", "both"):
            raise OptionError(f"outputs {self.outputs!r}", do="use auto, label, scores or both")
        if self.family not in DELAYS:
            raise OptionError(f"unknown delay family {self.family!r}", do=known_names(self.family, DELAYS))


@dataclass(frozen=True)
class Witness:
    """The places of the forest's values in the netlist: a net; a constant for a value that never changes; or -1 if
    nothing reads the value, so that its net was removed. Proofs use these places, and verify them.

    trees: (tree, output) -> what the tree adds to the output, counted from its smallest leaf; of a tree whose bits are
    added apart the place of each, from the lowest on.
    labels: for each voting part, the index of its class.
    ballots: (part, class) -> the part's weight if it decides for the class, else 0; in an average the value of the
    part's curve for the class, times the weight, or the share alone.
    steps: (name, part, class, bit) -> an intermediate value of a share, see `_Lowering.shares`; class and bit are 0
    where they do not apply.
    """

    trees: Mapping[tuple[int, int], Place | tuple[Place, ...]]
    labels: tuple[Place, ...] = ()
    ballots: Mapping[tuple[int, int], Place] = field(default_factory=dict)
    steps: Mapping[Step, Place] = field(default_factory=dict)

    def renamed(self, nets: Sequence[Net]) -> Witness:
        """The same places after the nets were renumbered."""

        def new(place: Place) -> Place:
            return place if isinstance(place, Const) else nets[place]

        trees = {
            # a constant is a tuple, too
            k: new(place) if isinstance(place, int | Const) else tuple(map(new, place))
            for k, place in self.trees.items()
        }
        ballots = {k: new(place) for k, place in self.ballots.items()}
        steps = {k: new(place) for k, place in self.steps.items()}
        return Witness(trees, tuple(map(new, self.labels)), ballots, steps)


def lower(forest: Forest, options: LoweringOptions | None = None) -> Netlist:
    """The netlist of a quantized forest.

    Input ports `x0`, `x1`, ... carry the features' words in order; outputs are `label` (class index; of several
    prediction targets `label0`, ...) and `score0`, ... (signed where the bias can make them negative). With latency > 0
    there are also `in_valid` and `out_valid`. Equals `evaluate_words` on every word in range. Time O(nodes * outputs).
    """
    return lower_with_witness(forest, options)[0]


def lower_with_witness(forest: Forest, options: LoweringOptions | None = None) -> tuple[Netlist, Witness]:
    """`lower`, and the places of the results of trees and votes in the netlist."""
    options = options or LoweringOptions()
    netlist, witness = unregistered(forest, options)
    if not options.latency:
        return netlist, witness
    netlist, renamed = pipelined(netlist, options.latency, DELAYS[options.family])
    # the last entry keeps -1, for removed nets, as it is
    return netlist, witness.renamed([*renamed, -1])


def unregistered(forest: Forest, options: LoweringOptions) -> tuple[Netlist, Witness]:
    """The logic without the registers, which `pipelined` adds. With latency > 0 it has in_valid and out_valid."""
    if not forest.quantized:
        raise ModelError("only a quantized forest becomes logic", do="run quantize-inputs and round-leaves first")
    wanted = options.outputs
    if wanted == "auto":
        wanted = "label" if forest.decides else "scores"
    if not forest.decides and wanted != "scores":
        raise OptionError(f"outputs={wanted} of a regression model", do="use outputs=scores")
    refuse_extremes_of_parts(forest)
    lowering = _Lowering(forest, DELAYS[options.family].inputs >= TABLE_BITS)
    extremes = [] if adds(forest) else [extreme_of(lowering, output) for output in range(forest.n_outputs)]
    voting = bool(forest.parts) and forest.combine.kind == "vote"  # scores are votes then, not these sums
    sums = [extreme.score for extreme in extremes]
    if not sums:
        sums = lowering.sums(voting or wanted != "scores", voting or wanted == "label")
    offsets = lowering.offsets
    if forest.parts and forest.combine.kind != "each":
        sums, offsets = _COMBINED[forest.combine.kind](lowering, sums)
    if wanted in ("label", "both"):
        targets = forest.targets
        for index, part in enumerate(targets):
            here = slice(part.start, part.stop) if len(targets) > 1 else slice(None)
            if extremes:
                label = prioritized(lowering.builder, part.decision, extremes)
            else:
                label = None if forest.parts and forest.combine.kind != "each" else lowering.lone_label(part)
            label = lowering.label(part.decision, sums[here], offsets[here]) if label is None else label
            lowering.builder.output(label_port(index, len(targets)), label)
    if wanted in ("scores", "both"):
        for output, (net, low, high) in enumerate(sums):
            lowering.builder.output(score_port(output), lowering.plus(net, low, high, offsets[output])[0])
    if options.latency:
        lowering.builder.output(OUT_VALID, lowering.builder.input(IN_VALID, BIT))
    netlist, renamed = lowering.builder.build_renamed()
    return netlist, lowering.witness().renamed(renamed)


def feature_port(forest: Forest, index: int) -> Port:
    """The port of a feature's words, with the note that backends print for it."""
    return Port(f"x{index}", "word", index, forest.features[index].name, word_note(forest, index))


def feature_word(forest: Forest, index: int) -> WordType:
    """The port type of a feature's words."""
    feature = forest.features[index]
    match feature.number:
        case Fixed(bits, _, signed):
            return WordType(bits, signed)
        case Ordered(bits):
            return WordType(bits, True)
        case Category():
            return width_for(0, word_range(feature.number, feature.missing).top)
        case Float():
            raise ModelError("a float feature has no word", do="run quantize-inputs first")


class _Lowering:
    def __init__(self, forest: Forest, counting: bool) -> None:
        self.forest, self.counting = forest, counting
        self.builder = NetlistBuilder(forest.name, f"{len(forest.trees)} trees, {forest.n_nodes} nodes")
        self.ports = [
            self.builder.input(feature_port(forest, index), feature_word(forest, index))
            for index in range(len(forest.features))
        ]
        self.offsets = [int(b) for b in forest.bias]  # bias plus the sum of the trees' smallest leaves
        self.missing = [word_range(f.number, f.missing).missing for f in forest.features]
        self.tree_nets: dict[tuple[int, int], Place | tuple[Place, ...]] = {}
        self.labels: list[Place] = []
        self.ballots: dict[tuple[int, int], Place] = {}
        self.steps: dict[Step, Place] = {}

    def witness(self) -> Witness:
        return Witness(self.tree_nets, tuple(self.labels), self.ballots, self.steps)

    def place(self, net: Net) -> Place:
        cell = self.builder.cell_of(net)
        return cell if isinstance(cell, Const) else net

    def condition(self, condition: Condition, at: Origin) -> Net:
        """1 if a condition sends the word left."""
        port, reserved = self.ports[condition.feature], self.missing[condition.feature]
        match condition.test:
            case OneOf(codes):
                missing = [reserved] if reserved is not None and condition.missing_left else []
                return self.builder.in_set(port, [*codes, *missing], at)
            case Within():
                return self.within(port, condition.test.spans, reserved, condition.missing_left, at)
            case Below(threshold):
                below = self.builder.less(port, int(threshold), at)
                if reserved is None or not condition.missing_left:
                    return below  # the missing word is the highest, so it goes right
                present = self.builder.less(port, reserved, at)
                return self.builder.or_(below, self.builder.not_(present, at), at)

    def within(self, port: Net, spans: tuple[Span, ...], reserved: int | None, missing_left: bool, at: Origin) -> Net:
        """1 if the word lies in one of the spans. The last may be open."""
        inside = FALSE
        for low, high in spans:
            span = self.builder.not_(self.builder.less(port, int(low), at), at)
            if high != INFINITY:
                span = self.builder.and_(span, self.builder.less(port, int(high), at), at)
            inside = self.builder.or_(inside, span, at)
        last_is_open = bool(spans) and spans[-1][1] == INFINITY
        if reserved is None or last_is_open == missing_left:
            return inside  # the missing word is the highest, so the last span decides
        present = self.builder.less(port, reserved, at)
        if missing_left:
            return self.builder.or_(inside, self.builder.not_(present, at), at)
        return self.builder.and_(inside, present, at)

    def rows_of(self, index: int, output: int) -> tuple[list[int], int]:
        """The rows of a tree's values for an output, counted from its smallest leaf, which goes to the offset; and the
        largest of its leaves."""
        tree = self.forest.trees[index]
        rows = tree.values[:, tree.outputs.index(output)]
        used = rows[tree.leaf[tree.left == LEAF]]
        smallest, largest = int(used.min()), int(used.max())
        self.offsets[output] += smallest
        return (rows - smallest).tolist(), largest - smallest

    def tree_words(self, output: int, trees: Sequence[tuple[int, list[int], int]]) -> list[Word]:
        """The mux trees of some trees for one output. trees: index, rows and largest leaf."""
        words = []
        for index, rows, largest in trees:
            net = self.mux_tree(index, rows, width_for(0, largest))
            self.tree_nets[index, output] = self.place(net)
            words.append((net, largest))
        return words

    def tree_bits(self, output: int, trees: Sequence[tuple[int, list[int], int]]) -> dict[int, list[Net]]:
        """The mux trees of each bit of some trees for one output, by the bit's place."""
        bits: dict[int, list[Net]] = {}
        for index, rows, largest in trees:
            nets = [
                self.mux_tree(index, [row >> place & 1 for row in rows], BIT) for place in range(largest.bit_length())
            ]
            self.tree_nets[index, output] = tuple(self.place(net) for net in nets) or Const(0, 1, False)
            for place, net in enumerate(nets):
                if net != FALSE:
                    bits.setdefault(place, []).append(net)
        return bits

    def mux_tree(self, index: int, values: Sequence[int], word: WordType) -> Net:
        """One tree as multiplexers. values: of each row of its leaves, which fit the word where
        a leaf has them."""
        tree = self.forest.trees[index]
        left, right, leaf = tree.left.tolist(), tree.right.tolist(), tree.leaf.tolist()
        conditions, table = self.forest.conditions.places[index].tolist(), self.forest.conditions
        nets: dict[int, Net] = {}
        for level in reversed(tree.levels):
            for node in level.tolist():
                if left[node] == LEAF:
                    nets[node] = self.builder.const(values[leaf[node]], word)
                    continue
                at = Origin(index, int(tree.ids[node]))
                a, b = nets.pop(left[node]), nets.pop(right[node])
                nets[node] = a if a == b else self.builder.mux(self.condition(table[conditions[node]], at), a, b, at)
        return nets[0]

    def sums(self, compared: bool, alone: bool) -> list[Sum]:
        """For each output the sum of the trees that feed it, without its offset. compared: if the sums of classes are
        compared, they hold what their offsets are above the smallest: an operand among narrow words costs less than
        an adder behind the sum. alone: nothing but the decisions reads the sums."""
        forest = self.forest
        trees = [
            [(index, *self.rows_of(index, output)) for index, tree in enumerate(forest.trees) if output in tree.outputs]
            for output in range(forest.n_outputs)
        ]
        raised = [0] * forest.n_outputs
        judged: set[int] = set()  # compared with a threshold and nothing else
        if compared and (not forest.parts or forest.combine.kind in ("each", "vote")):
            for part in forest.parts or forest.targets:
                outputs = slice(part.start, part.stop) if forest.parts else slice(None)
                if part.decision.kind != "threshold":
                    least = min(self.offsets[outputs])
                    raised[outputs] = [offset - least for offset in self.offsets[outputs]]
                elif self.counting and alone:
                    judged |= set(range(forest.n_outputs)[outputs])
        self.offsets = [offset - more for offset, more in zip(self.offsets, raised, strict=True)]
        return [
            self.judged_sum(output, some) if output in judged else self.added(self.tree_words(output, some), more)
            for output, (some, more) in enumerate(zip(trees, raised, strict=True))
        ]

    def judged_sum(self, output: int, trees: Sequence[tuple[int, list[int], int]]) -> Sum:
        """The sum of trees that is compared with a threshold."""
        largest = [most for *_, most in trees if most]
        if len(largest) > 1 and better_bit_by_bit(largest):
            return sum_of_bits(self.builder, self.tree_bits(output, trees))
        words = [word for word in self.tree_words(output, trees) if word[1]]
        if len(words) > 1 and in_one_table(largest):
            net, most = table_of(self.builder, [(net, most, 1) for net, most in words])
            return net, 0, most
        return self.added(words)

    def added(self, words: Sequence[Word], more: int = 0) -> Sum:
        """The sum of words, each with its largest value, and of a constant: net, smallest and largest value."""
        return added(self.builder, words, more, self.counting)

    def below(self, total: Net, threshold: int) -> Net:
        """1 if a sum is below a threshold: bit by bit in the LUTs of a table, on a carry chain behind an adder's."""
        return self.builder.less(total, threshold, chained=not isinstance(self.builder.cell_of(total), Table))

    def plus(self, net: Net, low: int, high: int, offset: int) -> tuple[Net, int, int]:
        """The word plus a constant: net, smallest and largest value."""
        if offset == 0:
            return net, low, high
        if low == high:
            word = width_for(low + offset, low + offset)
            value = low + offset
            return (self.builder.const(value, word)), value, value
        constant = self.builder.const(offset, width_for(min(offset, 0), max(offset, 0)))
        low, high = low + offset, high + offset
        # the sum must be no narrower than its operands
        word = width_for(min(low, offset, 0), max(high, offset, high - offset))
        return self.builder.add((net, constant), word), low, high

    def weights(self) -> list[int]:
        """The weight of each part."""
        return [int(weight) for weight in self.forest.combine.weights or [1.0] * len(self.forest.parts)]

    def votes(self, sums: Sequence[Sum]) -> tuple[list[Sum], list[int]]:
        """For each class the sum of the weights of the parts that decide for it; and offsets of 0."""
        forest = self.forest
        ballots: list[list[tuple[Net, int]]] = [[] for _ in forest.classes]
        for place, (part, weight) in enumerate(zip(forest.parts, self.weights(), strict=True)):
            here = slice(part.start, part.stop)
            label = self.lone_label(part)
            label = self.label(part.decision, sums[here], self.offsets[here]) if label is None else label
            self.labels.append(self.place(label))
            word = width_for(0, weight)
            for index, ballot in enumerate(ballots):
                if part.decision.kind == "threshold":
                    chosen = label if index else self.builder.not_(label)
                else:
                    chosen = self.builder.in_set(label, {index})
                none = self.builder.const(0, word)
                vote = self.builder.mux(chosen, self.builder.const(weight, word), none)
                self.ballots[place, index] = self.place(vote)
                ballot.append((vote, weight))
        return [self.added(ballot) for ballot in ballots], [0] * len(ballots)

    def averages(self, sums: Sequence[Sum]) -> tuple[list[Sum], list[int]]:
        """For each class the weighted sum of the parts' values; and its offset."""
        forest = self.forest
        words: list[list[tuple[Net, int]]] = [[] for _ in forest.classes]
        offsets = [0] * len(words)
        for place, (part, weight) in enumerate(zip(forest.parts, self.weights(), strict=True)):
            shares = self.shares(place, part, sums) if part.curves and part.link.kind in ("softmax", "shares") else []
            for index, addends in enumerate(words):
                output = part.start + index % part.width
                if shares:
                    self.ballots[place, index] = self.place(shares[index])
                    addends += self.multiples(shares[index], forest.steps, weight)
                elif part.curves:
                    up, down = (weight, 0) if part.width > 1 or index else (-weight, weight * forest.steps)
                    curve = part.curve_of(index % part.width)
                    stepped, most = self.level(sums[output], curve, self.offsets[output], up, down)
                    self.ballots[place, index] = self.place(stepped)
                    addends.append((stepped, most))
                else:
                    addends += self.multiples(sums[output][0], sums[output][2], weight)
                    offsets[index] += weight * self.offsets[output]
        return [self.added(addends) for addends in words], offsets

    def multiples(self, net: Net, largest: int, weight: int) -> list[tuple[Net, int]]:
        """Words whose sum is a word times a weight, each with its largest value."""
        words = []
        while weight:
            if weight & 1:
                words.append((net, largest))
            weight, largest = weight >> 1, 2 * largest
            if weight:
                net = self.builder.shift(net)
        return words

    def level(self, score: Sum, curve: Sequence[int], offset: int, times: int, more: int = 0) -> tuple[Net, int]:
        """The number of cuts that are not above a score, times `times`, plus `more`; and its largest value."""
        net, low, high = score
        cuts = [cut - offset for cut in curve]
        levels = [bisect_right(cuts, low), *(level for level, cut in enumerate(cuts, 1) if low < cut <= high)]
        values = [times * level + more for level in levels]
        at = [cut for cut in cuts if low < cut <= high]
        return self.stepped(net, at, values, width_for(0, max(values))), max(values)

    def shares(self, place: int, part: Part, sums: Sequence[Sum]) -> list[Net]:
        """Each class's share of the sum of a part's levels: (2 * steps * level + total) // (2 * total), by long
        division."""
        steps, outputs = self.forest.steps, slice(part.start, part.stop)
        bits = steps.bit_length()
        scores, offsets = list(sums[outputs]), self.offsets[outputs]
        if part.link.kind == "softmax":
            scores, offsets = self.below_largest(place, scores, offsets)

        def levels(times: int, name: str) -> list[tuple[Net, int]]:
            words = [
                self.level(score, part.curve_of(k), offset, times)
                for k, (score, offset) in enumerate(zip(scores, offsets, strict=True))
            ]
            self.steps |= {(name, place, k, 0): self.place(net) for k, (net, _) in enumerate(words)}
            return words

        total, _, most = self.added(levels(1, "level"))
        doubles = [total]
        for _ in range(bits):
            doubles.append(self.builder.shift(doubles[-1]))
        self.steps |= {("double", place, 0, bit): self.place(net) for bit, net in enumerate(doubles)}
        # 2 * steps is a little below a power of 2: shift, which costs nothing, and subtract the difference at the start
        dividends, taken = levels(2 << bits, "dividend"), levels((2 << bits) - 2 * steps, "taken")
        shares = []
        for k, ((net, high), (start, _)) in enumerate(zip(dividends, taken, strict=True)):
            dividend, _, high = self.added([(net, high), (total, most)])
            self.steps["sum", place, k, 0] = self.place(dividend)
            share = self.quotient((place, k), (dividend, high), start, doubles, most)
            if part.link.kind == "shares":  # the largest level of a softmax is never 0
                word = self.builder.type_of(share)
                share = self.builder.mux(self.below(total, 1), self.builder.const(steps // part.width, word), share)
            shares.append(share)
        return shares

    def below_largest(self, place: int, scores: Sequence[Sum], offsets: Sequence[int]) -> tuple[list[Sum], list[int]]:
        """How far each score is below the largest: words with their offsets."""
        builder = self.builder
        raised, word = self.raised(scores, offsets)
        largest = largest_of(builder, raised)
        self.steps["largest", place, 0, 0] = self.place(largest)
        self.steps |= {("raised", place, k, 0): self.place(net) for k, net in enumerate(raised)}
        least = builder.not_(largest)
        below = [builder.add((score, least), word) for score in raised]
        self.steps |= {("below", place, k, 0): self.place(net) for k, net in enumerate(below)}
        return [(net, 0, word.high) for net in below], [-word.high] * len(below)

    def quotient(
        self, place: tuple[int, int], dividend: tuple[Net, int], start: Net, doubles: Sequence[Net], most: int
    ) -> Net:
        """(dividend - start) // doubles[1], with one bit for each double. most: the largest value of doubles[0].

        The remainder is stored inverted, so that an overflow after adding a double means that the double does not fit.
        """
        builder, bits = self.builder, len(doubles) - 1
        narrow = width_for(0, dividend[1])
        word = width_for(0, narrow.high + (most << bits))
        rest = builder.add((builder.not_(builder.extend(dividend[0], narrow)), start), narrow)
        self.steps["rest", *place, bits] = self.place(rest)
        rest = builder.extend(rest, word)
        quotient = []
        for bit in reversed(range(bits)):
            less = builder.add((rest, doubles[bit + 1]), word)
            fits = self.below(less, narrow.high + 1)
            rest = builder.mux(fits, less, rest)
            bit_word = width_for(0, 1 << bit)
            quotient.append(builder.mux(fits, builder.const(1 << bit, bit_word), builder.const(0, bit_word)))
            self.steps["fits", *place, bit] = self.place(fits)
            self.steps["rest", *place, bit] = self.place(rest)
        return builder.add(quotient, width_for(0, (1 << bits) - 1)) if bits > 1 else quotient[0]

    def stepped(self, net: Net, cuts: Sequence[int], values: Sequence[int], word: WordType) -> Net:
        """values[k] if k of the ascending cuts are not above the word: a balanced tree of multiplexers."""
        if not cuts or len(set(values)) == 1:
            return self.builder.const(values[-1], word)
        middle = len(cuts) // 2
        below = self.stepped(net, cuts[:middle], values[: middle + 1], word)
        above = self.stepped(net, cuts[middle + 1 :], values[middle + 1 :], word)
        return self.builder.mux(self.below(net, cuts[middle]), below, above)

    def median(self, sums: Sequence[Sum]) -> tuple[list[Sum], list[int]]:
        """The weighted median: the smallest score such that the parts with scores up to it have half of the weight."""
        builder, weights = self.builder, self.weights()
        least = min(offset + low for offset, (_, low, _) in zip(self.offsets, sums, strict=True))
        raised = [self.plus(*score, offset - least) for score, offset in zip(sums, self.offsets, strict=True)]
        largest = max(high for _, _, high in raised)
        word = width_for(0, largest)
        scores = [builder.extend(net, word) for net, _, _ in raised]
        above = {  # (i, j): score i is above score j
            (i, j): builder.compare(scores[j], scores[i])
            for i in range(len(scores))
            for j in range(len(scores))
            if i != j
        }
        best: Net | None = None
        for i, score in enumerate(scores):
            up_to = [
                (builder.mux(above[j, i], builder.const(0, width_for(0, w)), builder.const(w, width_for(0, w))), w)
                for j, w in enumerate(weights)
                if j != i
            ]
            weight, _, most = self.added([*up_to, (builder.const(weights[i], width_for(0, weights[i])), weights[i])])
            needed = -(-sum(weights) // 2)
            enough = builder.not_(self.below(weight, needed)) if most >= needed else FALSE
            never = builder.const(largest, word)  # no score is above it
            candidate = builder.mux(enough, score, never)
            best = candidate if best is None else builder.mux(builder.compare(best, candidate), best, candidate)
        assert best is not None
        return [self.plus(best, 0, largest, least)], [0]

    def lone_label(self, part: Part) -> Net | None:
        """The class index of a part that one tree decides: the tree with a class at each leaf, without sums and
        comparisons. None for other parts."""
        outputs = range(part.start, part.stop)
        places = [place for place, tree in enumerate(self.forest.trees) if not set(outputs).isdisjoint(tree.outputs)]
        if len(places) != 1:
            return None
        tree = self.forest.trees[places[0]]
        scores = np.tile(self.forest.bias[part.start : part.stop], (len(tree.values), 1)).astype(np.int64)
        for column, output in enumerate(tree.outputs):
            if output in outputs:
                scores[:, output - part.start] += tree.values[:, column].astype(np.int64)
        most = 1 if part.decision.kind == "threshold" else scores.shape[1] - 1
        return self.mux_tree(places[0], decide(part.decision, scores, scores).tolist(), width_for(0, most))

    def label(self, decision: Decision, sums: Sequence[tuple[Net, int, int]], offsets: Sequence[int]) -> Net:
        """The class index that sums decide. Their offsets are not yet added."""
        if decision.kind == "threshold":
            net, _, high = sums[-1]
            needed = int(decision.threshold) - offsets[-1]
            if needed > high:
                return FALSE
            return self.builder.not_(self.below(net, needed))
        widened, _ = self.raised(sums, offsets)
        if decision.ties == "last":
            widened.reverse()
        return self.argmax(widened, decision.ties == "last")

    def raised(self, sums: Sequence[Sum], offsets: Sequence[int]) -> tuple[list[Net], WordType]:
        """Sums plus their offsets minus the smallest offset, as only differences matter: unsigned words of one type."""
        scores = [self.plus(*score, offset - min(offsets)) for score, offset in zip(sums, offsets, strict=True)]
        word = width_for(0, max(high for _, _, high in scores))
        return [self.builder.extend(net, word) for net, _, _ in scores], word

    def argmax(self, scores: list[Net], backwards: bool) -> Net:
        """Index of the largest score, the first in the list if several are equal: a balanced tree of compare and mux.
        backwards: the list starts with the highest index."""
        word = width_for(0, len(scores) - 1)
        indices = range(len(scores) - 1, -1, -1) if backwards else range(len(scores))

        def better(first: tuple[Net, Net], second: tuple[Net, Net]) -> tuple[Net, Net]:
            """The larger of two scores, with its index."""
            wins = self.builder.compare(first[0], second[0])  # strict: the earlier one wins a tie
            return self.builder.mux(wins, second[0], first[0]), self.builder.mux(wins, second[1], first[1])

        entrants = [(score, self.builder.const(index, word)) for index, score in zip(indices, scores, strict=True)]
        return balanced(entrants, better)[1]


_COMBINED = {"vote": _Lowering.votes, "average": _Lowering.averages, "median": _Lowering.median}
