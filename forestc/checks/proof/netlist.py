"""Proves that the netlist equals the quantized forest, for every input.

The proof is a chain of small proofs, each cut where the next begins, as solvers do not finish on the whole:

| part     | statement                                                                              | proved by      |
|----------|----------------------------------------------------------------------------------------|----------------|
| ports    | features and results are words of the right widths and signs                           | comparison     |
| trees    | a net holds the tree's value, for every word of every feature                          | bit vectors    |
| votes    | a net holds a part's weight if the part decides for a class, else 0                    | bit vectors    |
| scores   | each sum adds the nets of its trees, each once, and a constant, and can't overflow     | linear forms   |
| decision | the class is the one that the sums decide, for any sums                                | cells, vectors |
| whole    | if a part above can't be proved alone, or trees are not added: the results, from the   | see `whole`    |
|          | features to the outputs                                                                |                |

Lowering names the net of each tree and vote; the proof verifies that it holds the value. Registers are ignored: the
netlist's verifier shows that all paths pass the same number of them, so that a pipelined netlist computes what its
logic does, later.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from forestc.checks.proof.decision import Form, is_argmax, lone_tree
from forestc.checks.proof.parts import Proof, ProofPart, Running, UnprovedError
from forestc.checks.proof.shares import Argument, ShareProof
from forestc.checks.proof.solver import Counterexample, Solver, Term
from forestc.checks.proof.whole import Meaning, equal_everywhere, wrong_result
from forestc.errors import InternalError
from forestc.forest.ir import LEAF, Decision, Forest, Part
from forestc.lowering.trees import Place, Witness, feature_word
from forestc.netlist.ir import BIT, Const, Input, LinearCell, Net, Netlist, Not, Register, WordType, linear, reads
from forestc.netlist.ports import IN_VALID, OUT_VALID, Port, label_port, score_port
from forestc.netlist.verify import verify
from hw_sim import evaluate_from

FREE_SECONDS, TREES_SECONDS = 60, 20  # time limits for a decision on free sums, and on sums of trees
MOST_VALUES = 1 << 17  # values of a score up to which a curve is tried on each of them
SOME_VALUES = 1 << 12  # of these, tried at once
MOST_NODES = 1500  # of a forest up to which decisions are proved on the trees


def prove_netlist(
    forest: Forest,
    netlist: Netlist,
    witness: Witness,
    progress: Callable[[str], None] = lambda _: None,
) -> Proof:
    """Proves a netlist equal to its quantized forest. witness: from the lowering. Raises MissingToolError without
    bitwuzla."""
    return _NetlistProof(forest, netlist, witness, progress).run()


class _NetlistProof:
    def __init__(self, forest: Forest, netlist: Netlist, witness: Witness, progress: Callable[[str], None]) -> None:
        self.forest, self.netlist, self.witness, self.proof, self.progress = forest, netlist, witness, Proof(), progress
        self.largest: dict[Net, int] = {}  # largest value of each net that holds a tree or a vote
        self.absent: list[tuple[int, int]] = []  # trees and output columns that no net holds
        self.forms: dict[Net, Form] = {}

    def run(self) -> Proof:
        try:
            self.steps()
        except UnprovedError as error:
            if error.wrong:
                self.proof.refuted = True
            else:
                self.settle(error.words)
        except TimeoutError:
            self.settle(None)
        return self.proof

    def steps(self) -> None:
        outputs = dict(self.netlist.outputs)
        self.ports(outputs)
        labels = [net for port, net in sorted(outputs.items(), key=lambda pair: pair[0].index) if port.kind == "label"]
        scores = {port.index: net for port, net in outputs.items() if port.kind == "score"}
        if not self.forest.adds:
            self.whole()
            return
        expected = self.trees()
        targets = self.forest.targets
        if self.forest.combine.kind == "median":
            self.medians(expected, {port: net for port, net in outputs.items() if port.kind != "valid"})
            return
        if self.forest.combine.kind == "average":
            judged = targets[0].decision.kind == "threshold"  # of the last class alone
            expected = self.averages(expected, [1] if judged and not scores else range(len(self.forest.classes)))
            if judged:
                for net in labels:
                    with self.part("decision", 1) as part:
                        self.decided(net, targets[0].decision, expected[1:])
                        part.proved += 1
                labels = []
        if self.forest.combine.kind == "vote":
            expected = self.votes(expected)
        if scores:
            with self.part("scores", len(scores)) as part:
                for index, net in scores.items():
                    if self.form(net) != expected[index]:
                        raise UnprovedError(f"score{index} is not the sum of its trees{self.absent_note()}")
                    part.proved += 1
        if labels:
            with self.part("decision", len(labels)) as part:
                for net, target in zip(labels, targets, strict=True):
                    here = expected[target.start : target.stop]
                    if self.forest.combined or not self.is_lone_tree(net, target):
                        self.decided(net, target.decision, here)
                    part.proved += 1

    def settle(self, words: Counterexample | None) -> None:
        """After a part that can't be proved alone: refutes the design with an input on which it is wrong, or, if none
        is found, tries to prove the results as a whole."""
        part = self.proof.parts[-1]
        whole = self.whole(words)
        if whole.proved:
            self.proof.parts.remove(part)  # not needed any more
        elif not self.proof.refuted and part.why:
            whole.why = f"{whole.why}; {part.why}"

    def whole(self, words: Counterexample | None = None) -> ProofPart:
        """Refutes or proves the results from the features to the outputs, or says why neither can be done. words: an
        input to try first."""
        with Running(self.proof, ProofPart("whole", asked=1)) as whole:
            self.progress("proof: the results as a whole")
            difference = wrong_result(self.forest, self.netlist, words)
            if difference is None:
                try:
                    seconds = TREES_SECONDS if self.forest.n_nodes <= MOST_NODES else 0
                    difference = equal_everywhere(self.forest, self.netlist, seconds)
                    whole.proved = int(difference is None)
                except TimeoutError as error:
                    whole.why = str(error)
            if difference is not None:
                self.proof.refuted = True
                whole.why = difference
        return whole

    def ports(self, outputs: dict[Port, Net]) -> None:
        """Proves that the outputs are all labels, all scores or both, that valid has the latency, and the inputs'
        types."""
        with self.part("ports", 1) as part:
            verify(self.netlist)
            targets = len(self.forest.targets)
            labels = {label_port(index, targets) for index in range(targets)}
            scores = {score_port(index) for index in range(self.forest.n_scores)}
            present = set(outputs) - {OUT_VALID}
            if present not in ([scores, labels, scores | labels] if self.forest.decides else [scores]):
                raise UnprovedError(f"the outputs are {', '.join(sorted(p.name for p in outputs))}", wrong=True)
            if (OUT_VALID in outputs) != (self.netlist.latency > 0):
                raise UnprovedError(f"{OUT_VALID.name} and the latency of {self.netlist.latency} don't fit", wrong=True)
            if self.netlist.latency:
                net = outputs[OUT_VALID]
                for _ in range(self.netlist.latency):
                    cell = self.netlist.cells[net]
                    net = cell.a if isinstance(cell, Register) else -1
                if net < 0 or self.netlist.cells[net] != Input(IN_VALID, 1, False):
                    raise UnprovedError(
                        f"{OUT_VALID.name} is not {IN_VALID.name}, {self.netlist.latency} cycles later", wrong=True
                    )
            words = [(cell.port, net) for net, cell in self.netlist.inputs if cell.port != IN_VALID]
            order = [("word", index) for index in range(len(self.forest.features))]
            if [(port.kind, port.index) for port, _ in words] != order:
                raise UnprovedError(f"the inputs are {', '.join(port.name for port, _ in words)}", wrong=True)
            for port, net in words:
                wanted = feature_word(self.forest, port.index)
                if self.netlist.types[net] != wanted:
                    raise UnprovedError(f"{port.name} is of {self.netlist.types[net]}, not {wanted}", wrong=True)
            for port in labels & present:
                if self.netlist.types[outputs[port]].signed:
                    raise UnprovedError(f"{port.name} is signed", wrong=True)
            part.proved = 1

    def absent_note(self) -> str:
        return f"; no net holds the value of tree {self.absent[0][0]}" if self.absent else ""

    def part(self, name: str, asked: int) -> Running:
        self.progress(f"proof: {name}")
        return Running(self.proof, ProofPart(name, asked))

    # ---- trees ------------------------------------------------------------------------------------------

    def trees(self) -> list[Form]:
        """Proves the net of each tree and output. Returns the form that each output's sum must have."""
        forest = self.forest
        terms: list[dict[Net, int]] = [{} for _ in range(forest.n_outputs)]
        offsets = [int(bias) for bias in forest.bias]
        asked = sum(len(tree.outputs) for tree in forest.trees)
        with self.part("trees", asked) as part:
            solver = Solver(forest, self.netlist)
            for index, tree in enumerate(forest.trees):
                for column, output in enumerate(tree.outputs):
                    used = tree.values[tree.leaf[tree.left == LEAF], column]
                    smallest, largest = int(used.min()), int(used.max())
                    offsets[output] += smallest
                    if largest > smallest:
                        places = self.tree(solver, (index, column), smallest, largest - smallest)
                        for bit, place in enumerate(places):
                            if isinstance(place, Const):
                                offsets[output] += place.value << bit
                            else:
                                terms[output][place] = terms[output].get(place, 0) + (1 << bit)
                        if places[0] in range(-len(self.absent), 0):  # not asked of the netlist
                            part.asked -= 1
                            part.proved -= 1
                    part.proved += 1
        return [_form(term, offset) for term, offset in zip(terms, offsets, strict=True)]

    def tree(self, solver: Solver, place: tuple[int, int], smallest: int, largest: int) -> tuple[Place, ...]:
        """Where tree and output column `place` lie, counted from the smallest leaf: one word, or bits from the lowest
        on, of one bit each. Raises UnprovedError."""
        index, column = place
        tree = self.forest.trees[index]
        held = self.witness.trees.get((index, tree.outputs[column]), -1)
        places: tuple[Place, ...] = (held,) if isinstance(held, int | Const) else held
        if -1 in places:
            # No net holds it, and perhaps none must: a class that can't win has no sum. A negative number stands for
            # it, which no sum of nets contains.
            absent = -1 - len(self.absent)
            self.absent.append((index, column))
            self.largest[absent] = largest
            return (absent,)
        where = f"tree {index}, output {tree.outputs[column]}"
        word = self.type_of(places[0])
        if len(places) > 1:
            if any(self.type_of(net) != BIT for net in places):
                raise UnprovedError(f"{where}: {_named(places)} are no bits")
            word = WordType(len(places), False)
        if word.low > 0 or word.high < largest:
            raise UnprovedError(f"{where}: {_named(places)} does not hold {largest}")
        values = tree.values[tree.leaf, column].astype(np.int64) - smallest
        nets = solver.joined([solver.place(net, {}) for net in places])
        wrong = solver.differ(solver.tree(tree, values, word), nets)
        if wrong is not None:
            raise UnprovedError(
                f"{where}: {_named(places)} differs at {solver.described(wrong)}", solver.feature_words(wrong)
            )
        for net in places:
            if not isinstance(net, Const):
                most = 1 if len(places) > 1 else largest
                self.largest[net] = min(most, self.largest.get(net, most))
        return places

    # ---- votes ------------------------------------------------------------------------------------------

    def votes(self, sums: list[Form]) -> list[Form]:
        """Proves the label of each part, then the weight of each vote. Returns the forms of the classes' votes."""
        forest = self.forest
        totals: list[dict[Net, int]] = [{} for _ in forest.classes]
        fixed = [0] * len(forest.classes)
        with self.part("votes", len(forest.parts) * (1 + len(forest.classes))) as part:
            for index, (voter, weight) in enumerate(zip(forest.parts, forest.integer_weights, strict=True)):
                label = self.label_of(index, voter, sums[voter.start : voter.stop])
                part.proved += 1
                for kind in range(len(forest.classes)):
                    place = self.ballot(label, (index, kind), weight)
                    if isinstance(place, Const):
                        fixed[kind] += place.value
                    else:
                        self.largest[place] = weight
                        totals[kind][place] = totals[kind].get(place, 0) + 1
                    part.proved += 1
        self.forms.clear()
        return [_form(term, more) for term, more in zip(totals, fixed, strict=True)]

    def averages(self, sums: list[Form], classes: Iterable[int]) -> list[Form]:
        """Proves the nets of curves and shares of each part for some classes. Returns the forms of all classes, empty
        for the others."""
        totals: list[dict[Net, int]] = [{} for _ in self.forest.classes]
        fixed = [0] * len(totals)
        classes = list(classes)
        with self.part("curves", len(self.forest.parts) * len(classes)) as part:
            for index, (member, weight) in enumerate(zip(self.forest.parts, self.forest.integer_weights, strict=True)):
                scores = sums[member.start : member.stop]
                shared = bool(member.curves) and member.link.kind in ("softmax", "shares")
                shares = ShareProof(self, index, member, scores) if shared else None
                for kind in classes:
                    if shares:
                        place = self.ballot_place(index, kind)
                        shares.share(kind, place)
                        counted, times = self.known(place, self.forest.steps), weight
                    elif member.curves:
                        falls = member.width == 1 and not kind
                        step = (-weight, weight * self.forest.steps) if falls else (weight, 0)
                        place, score = self.ballot_place(index, kind), kind % member.width
                        where = f"the curve of part {index} for class {kind}"
                        most = self.stepped(place, where, member.curve_of(score), step, scores[score])
                        counted, times = self.known(place, most), 1
                    else:
                        counted, times = scores[kind], weight
                    fixed[kind] += times * counted[1]
                    for net, often in counted[0]:
                        totals[kind][net] = totals[kind].get(net, 0) + times * often
                    part.proved += 1
        self.forms.clear()
        return [_form(term, more) for term, more in zip(totals, fixed, strict=True)]

    def ballot_place(self, index: int, kind: int) -> Place:
        """The place of a part's value for a class. Raises UnprovedError."""
        place = self.witness.ballots.get((index, kind), -1)
        if place == -1:
            raise UnprovedError(f"no net holds the value of part {index} for class {kind}")
        return place

    def known(self, place: Place, most: int) -> Form:
        """The form of a place that is proved and may then be used in sums. most: its largest value."""
        if isinstance(place, Const):
            return (), place.value
        self.largest[place] = most
        return ((place, 1),), 0

    def solver(self) -> Solver:
        return Solver(self.forest, self.netlist, seconds=TREES_SECONDS)

    def stepped(self, place: Place, where: str, curve: Sequence[int], step: tuple[int, int], score: Form) -> int:
        """Proves that a place holds the level of a sum, as `curved` does. Returns its largest value."""
        low, high = self.span(score)
        more = {} if isinstance(place, Const) else {
            net: form[1] - score[1] for form, net in self.sums_below(place, {score[0]})
        }  # fmt: skip
        return self.curved(place, where, curve, step, Argument(low, high, more))

    def curved(self, place: Place, where: str, curve: Sequence[int], step: tuple[int, int], free: Argument) -> int:
        """Proves that a place holds step[0] * level + step[1], for each possible value of a word. Returns its largest
        value. Raises UnprovedError."""
        few = free.high - free.low < MOST_VALUES
        wrong = (self.curved_by_values if few else self.curved_by_solver)(place, curve, step, free)
        if wrong:
            raise UnprovedError(f"{where} differs at {wrong}{self.absent_note()}")
        return max(step[1] + step[0] * bisect_right(curve, end) for end in (free.low, free.high))

    def curved_by_values(self, place: Place, curve: Sequence[int], step: tuple[int, int], free: Argument) -> str:
        """A value for which a place is wrong, as text; "" if there is none. Tries all values."""
        for start in range(free.low, free.high + 1, SOME_VALUES):
            values = np.arange(start, min(start + SOME_VALUES, free.high + 1))
            level = step[1] + step[0] * np.searchsorted(np.array(curve), values, side="right")
            known = {net: values + more for net, more in free.more.items()}
            try:
                if isinstance(place, Const):
                    held = np.full(len(values), place.value)
                else:
                    held = evaluate_from(self.netlist, place, known, len(values))
            except (KeyError, InternalError) as error:
                return f"a net that is not of its score alone ({error})"
            wrong = np.flatnonzero(held != level)
            if len(wrong):
                return f"score={values[wrong[0]]}"
        return ""

    def curved_by_solver(self, place: Place, curve: Sequence[int], step: tuple[int, int], free: Argument) -> str:
        """The same, with the solver, for all values at once."""
        solver = self.solver()
        width = max(abs(free.low), abs(free.high), len(curve) * abs(step[0])).bit_length() + 3
        word = solver.word("score", WordType(width, True), free.low, free.high)
        cuts = {
            net: solver.low_bits(solver.plus(word, more, width), self.netlist.types[net].width)
            for net, more in free.more.items()
        }
        level = solver.constant(step[1], width)
        for cut, times in Counter(curve).items():
            if cut > free.high:
                continue
            if cut > free.low:
                below = solver.less(word, solver.constant(cut, width), True)
                more = solver.choose(below, 0, times * step[0], WordType(width, True))
            else:
                more = solver.constant(times * step[0], width)
            level = solver.make(solver.kind.BV_ADD, [level, more])
        got = solver.resized(solver.place(place, cuts), self.type_of(place), width)
        wrong = solver.differ(got, level)
        return "" if wrong is None else solver.described(wrong)

    def medians(self, sums: list[Form], outputs: dict[Port, Net]) -> None:
        """Proves the median, for any values of the trees within their ranges. Raises UnprovedError."""
        solver = self.solver()
        nets = {net for form in sums for net, _ in form[0] if net >= 0}
        cuts = {net: solver.word(f"tree{net}", self.netlist.types[net], 0, self.largest[net]) for net in sorted(nets)}

        def added(width: int) -> list[Term]:
            return [solver.plus(self.added(solver, form[0], width, cuts), form[1], width) for form in sums]

        meaning = Meaning(self.forest, solver, added)
        with self.part("decision", len(outputs)) as part:
            for port, net in outputs.items():
                width = max(meaning.width, self.netlist.types[net].width + 1)
                got = solver.resized(solver.net(net, cuts), self.netlist.types[net], width)
                wrong = solver.differ(got, solver.sign_extended(meaning.result(port), width))
                if wrong is not None:
                    raise UnprovedError(f"{port.name} differs if {solver.described(wrong)}{self.absent_note()}")
                part.proved += 1

    def label_of(self, index: int, part: Part, sums: list[Form]) -> Place:
        """The place of a part's label, which is proved. Raises UnprovedError."""
        label = self.witness.labels[index] if index < len(self.witness.labels) else -1
        if label == -1:
            raise UnprovedError(f"no net holds the label of part {index}")
        if not self.is_lone_tree(label, part):
            self.decided(label, part.decision, sums)
        return label

    def is_lone_tree(self, label: Place, part: Part) -> bool:
        """Whether one tree alone decides the part, and the label is proved to be its class."""
        lone = lone_tree(self.forest, part)
        if lone is None:
            return False
        solver, word = Solver(self.forest, self.netlist), self.type_of(label)
        wanted = solver.tree(*lone, word)
        return max(lone[1]) <= word.high and solver.differ(wanted, solver.place(label, {})) is None

    def ballot(self, label: Place, vote: tuple[int, int], weight: int) -> Place:
        """The place of a part's vote for a class, which is proved to be `weight` if the label is that class, else 0.
        Raises UnprovedError."""
        index, kind = vote
        place = self.witness.ballots.get(vote, -1)
        if place == -1:
            raise UnprovedError(f"no net holds the vote of part {index} for class {kind}")
        held, word = self.type_of(place), self.type_of(label)
        solver = Solver(self.forest, self.netlist)
        cuts: dict[Net, Term] = {}
        if isinstance(label, Const):
            free = solver.constant(label.value, word.width)
        else:
            free = cuts[label] = solver.word(f"label{label}", word)
            cell = self.netlist.cells[label]
            if isinstance(cell, Not):  # the vote for the other class may read the net that the label inverts
                cuts[cell.a] = solver.inverted(free)
        if held.low > 0 or held.high < weight:
            raise UnprovedError(f"{_named(place)} does not hold a weight of {weight}")
        chosen = solver.equals(free, kind, word) if word.low <= kind <= word.high else solver.terms.mk_false()
        if solver.differ(solver.choose(chosen, weight, 0, held), solver.place(place, cuts)) is not None:
            raise UnprovedError(f"{_named(place)} is not the vote of part {index} for class {kind}")
        return place

    def type_of(self, place: Place) -> WordType:
        return WordType(place.width, place.signed) if isinstance(place, Const) else self.netlist.types[place]

    # ---- sums -------------------------------------------------------------------------------------------

    def form(self, net: Net) -> Form:
        """A net as a sum of proved nets and a constant. Raises UnprovedError if it is no such sum or may overflow."""
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
        """The form of a net that is proved or adds nets whose forms are known."""
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
        form = _form(counts, constant)
        low, high = self.span(form)
        word = self.netlist.types[net]
        if low < word.low or high > word.high:
            raise UnprovedError(f"net {net} holds {low} to {high} in {word.width} bits")
        return form

    def span(self, form: Form) -> tuple[int, int]:
        return form[1], form[1] + sum(times * self.largest[net] for net, times in form[0])

    # ---- decisions --------------------------------------------------------------------------------------

    def decided(self, label: Place, decision: Decision, sums: list[Form]) -> None:
        """Proves that a net is the class that some sums decide: for any sums or, if that fails, for every input. Raises
        UnprovedError."""
        if not isinstance(label, Const) and is_argmax(self.netlist, label, decision, sums, self.form, self.span):
            return
        try:
            wrong = self.other_class(label, decision, sums, free=True)
        except TimeoutError as error:
            wrong = str(error), None
        if wrong is None:
            return
        if self.forest.n_nodes > MOST_NODES:
            raise UnprovedError(f"{_named(label)} decides otherwise, if sums can be {wrong[0]}{self.absent_note()}")
        # Some combinations of sums never occur: try again with the trees, where counterexamples are features' words.
        wrong = self.other_class(label, decision, sums, free=False)
        if wrong is not None:
            raise UnprovedError(f"{_named(label)} decides otherwise at {wrong[0]}{self.absent_note()}", wrong[1])

    def other_class(
        self, label: Place, decision: Decision, sums: list[Form], free: bool
    ) -> tuple[str, Counterexample | None] | None:
        """A counterexample to a net being the class that sums decide, as text and as features' words. free: the sums
        are free words within their ranges, rather than sums of the trees' values."""
        solver = Solver(self.forest, self.netlist, seconds=FREE_SECONDS if free else TREES_SECONDS)
        held: list[tuple[Form, Net]] = []
        if free:
            wanted = {form[0] for form in sums if form[0]}
            held = [] if isinstance(label, Const) else self.sums_below(label, wanted)
        shift = _shift_of(sums, held)
        reach = [bound for form in [*sums, *(form for form, _ in held)] for bound in self.span(form)]
        width = max(abs(bound) + abs(shift) + abs(int(decision.threshold)) for bound in [0, *reach]).bit_length() + 3
        width = max([width, *(self.netlist.types[net].width for _, net in held)])
        wide = WordType(width, True)
        words: dict[tuple[tuple[Net, int], ...], Term] = {}
        for form in [*(form for form, _ in held), *sums]:
            if form[0] and form[0] not in words:
                words[form[0]] = (
                    solver.word(f"sum{len(words)}", wide, 0, self.span((form[0], 0))[1])
                    if free
                    else self.added(solver, form[0], width)
                )
        cuts = {net: solver.low_bits(solver.plus(words[form[0]], form[1], width), self.netlist.types[net].width)
                for form, net in held}  # fmt: skip
        scores = [
            solver.plus(words[form[0]], form[1] + shift, width) if form[0] else solver.constant(form[1] + shift, width)
            for form in sums
        ]
        wrong = solver.wrong_class(solver.place(label, cuts), self.type_of(label), scores, decision, shift)
        if wrong is None:
            return None
        return solver.described(wrong), None if free else solver.feature_words(wrong)

    def added(
        self, solver: Solver, terms: tuple[tuple[Net, int], ...], width: int, cuts: Mapping[Net, Term] | None = None
    ) -> Term:
        """The sum of trees and votes; absent trees are taken from the forest. cuts: nets that are free words."""
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

    def sums_below(self, label: Net, wanted: set[tuple[tuple[Net, int], ...]]) -> list[tuple[Form, Net]]:
        """The nets, as reached from a decision, that hold the wanted sums."""
        held: list[tuple[Form, Net]] = []
        stack, seen = [label], {label}
        while stack:
            net = stack.pop()
            cell = self.netlist.cells[net]
            if isinstance(cell, LinearCell) or net in self.largest:
                try:
                    form = self.form(net)
                except UnprovedError:
                    form = (), 0  # not a sum: follow its logic
                if form[0] in wanted:
                    held.append((form, net))
                    continue
            for read in reads(cell):
                if read not in seen:
                    seen.add(read)
                    stack.append(read)
        return sorted(held, key=lambda pair: pair[1])


def _named(place: Place | tuple[Place, ...]) -> str:
    if not isinstance(place, int | Const):
        return " and ".join(map(_named, place))
    return f"the constant {place.value}" if isinstance(place, Const) else f"net {place}"


def _form(counts: dict[Net, int], constant: int) -> Form:
    return tuple(sorted(counts.items())), constant


def _shift_of(sums: list[Form], held: list[tuple[Form, Net]]) -> int:
    """The constant by which the sums that a decision reads exceed the scores. Only their differences matter."""
    votes: dict[int, int] = {}
    for form in sums:
        for (nets, constant), _ in held:
            if nets == form[0]:
                votes[constant - form[1]] = votes.get(constant - form[1], 0) + 1
    return max(votes, key=lambda shift: (votes[shift], -abs(shift)), default=0)
