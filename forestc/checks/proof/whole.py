"""Compares a netlist with its forest in one piece, if smaller proofs fail. It searches for an input with a difference,
or for a proof that there is none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice, product

import numpy as np
from numpy.typing import NDArray

from forestc.backends.running import simulated
from forestc.backends.vectors import expected, random_words
from forestc.checks.proof.solver import Counterexample, Solver, Term
from forestc.errors import InternalError
from forestc.forest.boundary import boundary_inputs
from forestc.forest.conditions import NO_SET
from forestc.forest.ir import LEAF, Forest, Part
from forestc.forest.numbers import word_range
from forestc.forest.typed_sums import added, integer_type
from forestc.netlist.ir import Input, InSet, Less, Netlist, Register, WordType, reads
from forestc.netlist.ports import Port
from forestc.system.compiled import announce
from hw_sim import Simulator

TRIED = 4096  # inputs drawn at random; about as many more lie on thresholds and beside them
MOST_TRIALS = 20_000_000  # inputs times trees; with more, the solver decides instead of trying all inputs
CHUNK = 16384  # inputs simulated at once


def trial_words(forest: Forest, count: int = TRIED) -> Iterator[NDArray[np.int64]]:
    """Yields arrays (n, features) of words: random words, then words on thresholds and beside them."""
    random = np.random.default_rng(0)
    base = random_words(forest, np.zeros((1, len(forest.features)), dtype=np.int64), count, random)
    yield base
    yield from boundary_inputs(forest, base[:64], 0, count)


def wrong_result(forest: Forest, netlist: Netlist, words: Counterexample | None = None) -> str | None:
    """Simulates a netlist and returns its first difference from the forest as text; None if none was found. words: an
    input to try first."""
    announce()
    try:
        simulator = Simulator(netlist)
        if words is not None and len(forest.features):
            first = np.array([[words.get(index, 0) for index in range(len(forest.features))]], dtype=np.int64)
            if difference := _difference(forest, netlist, simulator, first):
                return difference
        for some in trial_words(forest):
            if difference := _difference(forest, netlist, simulator, some):
                return difference
    except InternalError as error:  # the sum of a net overflows, or the netlist is invalid
        return str(error)
    return None


def equal_everywhere(forest: Forest, netlist: Netlist, seconds: float) -> str | None:
    """Returns None if netlist and forest are equal for every input; otherwise a difference as text. seconds: the
    solver's time limit; 0 means no solver. Raises TimeoutError if undecided."""
    values = _representatives(forest, netlist)
    count = 1
    for some in values or []:
        count *= len(some)
    if values is not None and count * max(1, len(forest.trees)) <= MOST_TRIALS:
        announce()
        simulator = Simulator(netlist)
        rows = product(*(some.tolist() for some in values))
        while chunk := list(islice(rows, CHUNK)):
            words = np.array(chunk, dtype=np.int64).reshape(len(chunk), len(values))
            if difference := _difference(forest, netlist, simulator, words):
                return difference
        return None
    if not seconds:
        raise TimeoutError("too many inputs to try, and the forest is too large for the solver")
    return _solved(forest, netlist, seconds)


def _difference(forest: Forest, netlist: Netlist, simulator: Simulator, words: NDArray[np.int64]) -> str | None:
    got, reference = simulated(simulator.run, netlist, words), expected(forest, netlist, words)
    wrong = np.flatnonzero((got != reference).any(axis=1))
    if not len(wrong):
        return None
    first = int(wrong[0])
    where = ", ".join(f"x{index}={value}" for index, value in enumerate(words[first].tolist()))
    return f"gives {got[first].tolist()} where the forest gives {reference[first].tolist()}, at {where}"


def _representatives(forest: Forest, netlist: Netlist) -> list[NDArray[np.int64]] | None:
    """Returns for each feature an array of words that suffice to test all words; None if there are too many."""
    cuts: list[set[int]] = [set() for _ in forest.features]
    sources: dict[int, int] = {}  # by net, the feature index of the word that it holds, perhaps behind registers
    enumerated: set[int] = set()
    for net, cell in enumerate(netlist.cells):
        if isinstance(cell, Input) and cell.port.kind == "word":
            sources[net] = cell.port.index
            continue
        for read in reads(cell):
            if read not in sources:
                continue
            feature_index = sources[read]
            match cell:
                case Register():
                    sources[net] = feature_index
                case Less(_, threshold):
                    cuts[feature_index].add(threshold)
                case InSet(_, members):
                    cuts[feature_index] |= {near for member in members for near in (member, member + 1)}
                case _:
                    enumerated.add(feature_index)
    for tree in forest.trees:
        for node in tree.inner.tolist():
            chosen, cuts_here = int(tree.set_index[node]), cuts[int(tree.feature[node])]
            if chosen == NO_SET:
                cuts_here.add(int(tree.threshold[node]))
            else:
                cuts_here |= {near for member in tree.sets[chosen] for near in (int(member), int(member) + 1)}
    values = []
    for index, feature in enumerate(forest.features):
        span = word_range(feature.number, feature.missing)
        if index in enumerated:
            if span.top - span.low >= CHUNK:
                return None
            values.append(np.arange(span.low, span.top + 1))
            continue
        absent = [] if span.missing is None else [span.missing, span.missing + 1]
        held = {span.low} | {cut for cut in [*cuts[index], *absent] if span.low <= cut <= span.top}
        values.append(np.array(sorted(held), dtype=np.int64))
    return values


def _solved(forest: Forest, netlist: Netlist, seconds: float) -> str | None:
    solver = Solver(forest, netlist, seconds=seconds)
    meaning = ForestMeaning(forest, solver)
    wrong: list[Term] = []
    for port, net in netlist.outputs:
        if port.kind == "valid":
            continue
        wide = max(meaning.width, netlist.types[net].width + 1)
        got = solver.resized(solver.net(net, {}), netlist.types[net], wide)
        wrong.append(solver.make(solver.kind.DISTINCT, [got, solver.sign_extended(meaning.result(port), wide)]))
    model = solver.ask(solver.any(wrong))
    if model is None:
        return None
    return wrong_result(forest, netlist, solver.feature_words(model)) or _unconfirmed(solver.described(model))


def _unconfirmed(words: str) -> str:
    raise TimeoutError(f"the solver sees a difference at {words}, which simulation does not show")


class ForestMeaning:
    """The forest's results as signed terms of `width` bits."""

    def __init__(self, forest: Forest, solver: Solver, sums: Callable[[int], list[Term]] | None = None) -> None:
        self.forest, self.solver = forest, solver
        reach = np.abs(forest.bias.astype(object)).copy()
        for tree in forest.trees:
            used = tree.values[tree.leaf[tree.left == LEAF]]
            for column, output in enumerate(tree.outputs):
                reach[output] += int(np.abs(used[:, column]).max())
        targets = [*forest.targets, *forest.parts]
        limits = [abs(int(part.decision.threshold)) for part in targets]
        cuts = [abs(cut) for part in forest.parts for curve in part.curves for cut in (curve[0], curve[-1])]
        steps, classes = max(1, forest.steps), len(forest.classes)
        value = max(steps, *reach) if any(not part.curves for part in forest.parts) else steps
        shares = steps * (2 * steps + classes) if any(part.width > 1 for part in forest.parts) else 0
        total = value * sum(forest.integer_weights)
        most = max([*(2 * bound for bound in reach), *limits, *cuts, classes, total, shares])
        typed = forest.aggregate.score.bits if forest.aggregate.score else 0
        # A product has the bits of both factors.
        self.width = max(int(most).bit_length(), typed if forest.aggregate.norm == 1 else 2 * typed) + 3
        self.word = WordType(self.width, True)
        own = self._typed if forest.aggregate.score else self._sums if forest.adds else self._extremes
        self.sums = own() if sums is None else sums(self.width)
        combined = {"vote": self._votes, "average": self._averages, "median": self._median}
        self.scores = combined[forest.combine.kind]() if forest.combined else self.sums

    def _sums(self) -> list[Term]:
        solver, width = self.solver, self.width
        sums = [solver.constant(int(bias), width) for bias in self.forest.bias]
        for tree in self.forest.trees:
            for column, output in enumerate(tree.outputs):
                values = tree.values[tree.leaf, column].astype(np.int64)
                addend = solver.tree(tree, values, self.word)
                sums[output] = solver.make(solver.kind.BV_ADD, [sums[output], addend])
        return sums

    def _typed(self) -> list[Term]:
        solver, kind, forest = self.solver, self.solver.kind, self.forest
        number = integer_type(forest.aggregate)
        span = word_range(number, False)
        low, high, turn = (solver.constant(value, self.width) for value in (span.low, span.high, 1 << number.bits))
        saturates = number.overflow == "AP_SAT"

        def add(a: Term, b: Term) -> Term:
            total = solver.make(kind.BV_ADD, [a, b])
            below = low if saturates else solver.make(kind.BV_ADD, [total, turn])
            above = high if saturates else solver.make(kind.BV_SUB, [total, turn])
            raised = solver.make(kind.ITE, [solver.less(total, low, True), below, total])
            return solver.make(kind.ITE, [solver.less(high, total, True), above, raised])

        sums = []
        for output, bias in enumerate(forest.bias.tolist()):
            own = [tree for tree in forest.trees if output in tree.outputs]
            terms = [solver.tree(tree, tree.values[tree.leaf, tree.outputs.index(output)], self.word) for tree in own]
            total = added(solver.constant(bias, self.width), terms, forest.aggregate.order, add)
            sums.append(total if forest.aggregate.norm == 1 else self._typed_product(total))
        return sums

    def _typed_product(self, total: Term) -> Term:
        solver, kind, norm = self.solver, self.solver.kind, self.forest.aggregate.norm
        number = integer_type(self.forest.aggregate)
        factor, divisor = norm.as_integer_ratio()
        span, places = word_range(number, False), divisor.bit_length() - 1
        low, high, one = (solver.constant(value, self.width) for value in (span.low, span.high, 1))

        def shifted(more: Term) -> Term:
            raised = solver.make(kind.BV_ADD, [product, more])
            return solver.make(kind.BV_ASHR, [raised, solver.constant(places, self.width)])

        product = solver.make(kind.BV_MUL, [total, solver.constant(factor, self.width)])
        whole = shifted(solver.constant(divisor // 2 if number.rounding == "AP_RND" else 0, self.width))
        if number.rounding == "AP_RND_CONV" and places:  # half, but less by the smallest step where the floor is even
            last = solver.make(kind.BV_AND, [whole, one])
            whole = shifted(solver.make(kind.BV_ADD, [solver.constant(divisor // 2 - 1, self.width), last]))
        if number.overflow == "AP_WRAP":
            above = solver.make(kind.BV_SUB, [whole, low])
            kept = solver.make(kind.BV_AND, [above, solver.constant(span.high - span.low, self.width)])
            return solver.make(kind.BV_ADD, [kept, low])
        raised = solver.make(kind.ITE, [solver.less(whole, low, True), low, whole])
        return solver.make(kind.ITE, [solver.less(high, raised, True), high, raised])

    def _extremes(self) -> list[Term]:
        solver, smallest = self.solver, self.forest.aggregate.kind == "min"
        extremes: list[Term | None] = [None] * self.forest.n_outputs
        for tree in self.forest.trees:
            for column, output in enumerate(tree.outputs):
                values = tree.values[tree.leaf, column].astype(np.int64)
                extreme, best = solver.tree(tree, values, self.word), extremes[output]
                if best is not None:
                    wins = solver.less(extreme, best, True) if smallest else solver.less(best, extreme, True)
                    extreme = solver.make(solver.kind.ITE, [wins, extreme, best])
                extremes[output] = extreme
        return [
            solver.make(solver.kind.BV_ADD, [extreme, solver.constant(int(bias), self.width)])
            for extreme, bias in zip(extremes, self.forest.bias, strict=True)
        ]

    def _votes(self) -> list[Term]:
        solver = self.solver
        totals = [solver.constant(0, self.width) for _ in self.forest.classes]
        for part, weight in zip(self.forest.parts, self.forest.integer_weights, strict=True):
            label = self.label(part, self.sums[part.start : part.stop])
            for kind in range(len(totals)):
                vote = solver.choose(solver.equals(label, kind, self.word), weight, 0, self.word)
                totals[kind] = solver.make(solver.kind.BV_ADD, [totals[kind], vote])
        return totals

    def _averages(self) -> list[Term]:
        solver, kind = self.solver, self.solver.kind
        totals = [solver.constant(0, self.width) for _ in self.forest.classes]
        for part, weight in zip(self.forest.parts, self.forest.integer_weights, strict=True):
            factor = solver.constant(weight, self.width)
            values = [solver.make(kind.BV_MUL, [addend, factor]) for addend in self._values(part)]
            totals = [solver.make(kind.BV_ADD, [total, addend]) for total, addend in zip(totals, values, strict=True)]
        return totals

    def _values(self, part: Part) -> list[Term]:
        solver, kind, width = self.solver, self.solver.kind, self.width
        scores = self.sums[part.start : part.stop]
        steps = solver.constant(self.forest.steps, width)
        if not part.curves:
            return scores
        if part.link.kind == "softmax":
            largest = scores[0]
            for score in scores[1:]:
                largest = solver.make(kind.ITE, [solver.less(largest, score, True), score, largest])
            scores = [solver.make(kind.BV_SUB, [score, largest]) for score in scores]
        levels = [self.level(score, part.curve_of(index)) for index, score in enumerate(scores)]
        if part.width == 1:
            return [solver.make(kind.BV_SUB, [steps, levels[0]]), levels[0]]
        if part.link.kind not in ("softmax", "shares"):
            return levels
        total = levels[0]
        for level in levels[1:]:
            total = solver.make(kind.BV_ADD, [total, level])
        twice = solver.make(kind.BV_ADD, [total, total])
        none = solver.make(kind.EQUAL, [total, solver.constant(0, width)])
        alike = solver.constant(self.forest.steps // part.width, width)
        shares = []
        for level in levels:
            times = solver.make(kind.BV_MUL, [level, solver.constant(2 * self.forest.steps, width)])
            share = solver.make(kind.BV_UDIV, [solver.make(kind.BV_ADD, [times, total]), twice])
            shares.append(solver.make(kind.ITE, [none, alike, share]))
        return shares

    def level(self, score: Term, curve: tuple[int, ...]) -> Term:
        solver = self.solver
        level = solver.constant(0, self.width)
        for cut, times in Counter(curve).items():
            below = solver.less(score, solver.constant(cut, self.width), True)
            level = solver.make(solver.kind.BV_ADD, [level, solver.choose(below, 0, times, self.word)])
        return level

    def _median(self) -> list[Term]:
        """Returns the smallest score with at least half of the weight at or below it."""
        solver, weights = self.solver, self.forest.integer_weights
        half = solver.constant(-(-sum(weights) // 2), self.width)
        median = self.sums[0]
        for score in self.sums:
            upto = below = solver.constant(0, self.width)
            for other, weight in zip(self.sums, weights, strict=True):
                under = solver.choose(solver.less(other, score, True), weight, 0, self.word)
                not_above = solver.choose(solver.less(score, other, True), 0, weight, self.word)
                below = solver.make(solver.kind.BV_ADD, [below, under])
                upto = solver.make(solver.kind.BV_ADD, [upto, not_above])
            enough = solver.make(solver.kind.NOT, [solver.less(upto, half, True)])
            chosen = solver.make(solver.kind.AND, [enough, solver.less(below, half, True)])
            median = solver.make(solver.kind.ITE, [chosen, score, median])
        return [median]

    def label(self, part: Part, scores: list[Term]) -> Term:
        solver, width = self.solver, self.width
        if part.decision.kind == "threshold":
            below = solver.less(scores[-1], solver.constant(int(part.decision.threshold), width), True)
            return solver.choose(below, 0, 1, self.word)
        best, label = scores[0], solver.constant(0, width)
        for kind, score in enumerate(scores[1:], 1):
            # A later class wins with a larger or, if ties are "last", an equal score.
            if part.decision.ties == "last":
                wins = solver.make(solver.kind.NOT, [solver.less(score, best, True)])
            else:
                wins = solver.less(best, score, True)
            best = solver.make(solver.kind.ITE, [wins, score, best])
            label = solver.make(solver.kind.ITE, [wins, solver.constant(kind, width), label])
        return label

    def result(self, port: Port) -> Term:
        scores = self.scores
        if port.kind == "score":
            return scores[port.index]
        part = self.forest.targets[port.index]
        if port.kind in ("second", "distance"):
            return self.solver.runner_up(scores[part.start : part.stop], part.decision)[port.kind == "distance"]
        return self.label(part, scores[part.start : part.stop])
