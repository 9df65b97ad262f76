"""check --prove: the written Verilog equals the quantised forest for every input.

A chain of small proofs, each cut where the next begins, since one question about the whole has no answer in time:

| part     | what is shown                                                                        | by            |
|----------|--------------------------------------------------------------------------------------|---------------|
| ports    | features come in and results go out as words of the widths and signs they have        | looked up     |
| trees    | a net says what the tree says, for every word of every feature                        | bit vectors   |
| votes    | a net adds a part's weight where the part decides for a class                         | bit vectors   |
| scores   | each sum adds the nets of its trees, each once, and a constant, and can't overflow     | linear forms  |
| decision | the class is the one that the sums decide, whatever they are                          | bit vectors   |
| verilog  | the file is the netlist, net by net and register by register, for all time            | yosys         |

Registers are seen through: the netlist's verifier has shown that all paths pass the same number of them, so that a
pipelined netlist is its logic, later. Bit-vector questions go to bitwuzla.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.backends.verilog import module_name
from forestc.checks.candidates import Candidates
from forestc.checks.equality import prove_equal
from forestc.checks.rtlil import rtlil
from forestc.checks.solver import Solver, Term
from forestc.design import Design
from forestc.errors import CheckError
from forestc.forest.ir import LEAF, Decision, Forest
from forestc.forest.ir import Part as ForestPart
from forestc.lowering.trees import LABEL, SCORE, VALID_IN, VALID_OUT, feature_word
from forestc.netlist.builder import width_for
from forestc.netlist.ir import (
    BIT,
    Add,
    Const,
    Input,
    Net,
    Netlist,
    Register,
    WordType,
    reads,
)
from forestc.netlist.verify import verify

FREE_SECONDS, TREES_SECONDS = 300, 20  # for a decision on free sums, and on the trees'
MOST_NODES = 1500  # of a forest whose decision is asked of the trees


@dataclass
class Part:
    """One part: how many questions, how many of them proved, seconds, and why the first that was not."""

    name: str
    asked: int = 0
    proved: int = 0
    seconds: float = 0.0
    why: str = ""


@dataclass
class Proof:
    """What was asked and what was proved. refuted: a part is wrong, rather than not decided."""

    parts: list[Part] = field(default_factory=list)
    refuted: bool = False

    @property
    def proved(self) -> bool:
        return bool(self.parts) and all(part.asked == part.proved for part in self.parts)


class UnprovedError(Exception):
    """A step could not be shown. wrong: it is refuted."""

    def __init__(self, why: str, wrong: bool = False) -> None:
        super().__init__(why)
        self.wrong = wrong


def prove(design: Design, progress: Callable[[str], None] = lambda _: None, *, native: bool = False) -> Proof:
    """Proves what a compiled folder holds equal to its quantised forest: netlist, and Verilog where it is a target.

    Raises MissingExtraError without bitwuzla, ToolError where yosys can't run.
    """
    proof = prove_netlist(design.forest, design.netlist, progress=progress)
    if "verilog" in design.manifest["files"]:
        text = design.path("verilog").read_text(encoding="utf-8", errors="replace")
        prove_verilog(design.forest, design.netlist, text, proof, progress, native)
    return proof


def prove_netlist(
    forest: Forest, netlist: Netlist, proof: Proof | None = None, progress: Callable[[str], None] = lambda _: None
) -> Proof:
    """Proves a netlist equal to its quantised forest. Raises MissingExtraError without bitwuzla."""
    proof = proof or Proof()
    return _NetlistProof(forest, netlist, proof, progress).run()


def prove_verilog(
    forest: Forest,
    netlist: Netlist,
    text: str,
    proof: Proof | None = None,
    progress: Callable[[str], None] = lambda _: None,
    native: bool = False,
) -> Proof:
    """Proves a Verilog text equal to the netlist. Raises ToolError where yosys can't run."""
    proof = proof or Proof()
    progress("proof: the Verilog, net by net")
    part = Part("verilog", asked=1)
    proof.parts.append(part)
    start = time.perf_counter()
    top = module_name(netlist)
    try:
        prove_equal(text, rtlil(forest, netlist, top), top, "the netlist", native=native)
        part.proved = 1
    except CheckError as error:
        part.why = f"{error.what}; {error.where}"
        proof.refuted = True
    part.seconds = time.perf_counter() - start
    return proof


Form = tuple[tuple[tuple[Net, int], ...], int]  # (net, how often) ascending, and a constant


class _NetlistProof:
    def __init__(self, forest: Forest, netlist: Netlist, proof: Proof, progress: Callable[[str], None]) -> None:
        self.forest, self.netlist, self.proof, self.progress = forest, netlist, proof, progress
        self.largest: dict[Net, int] = {}  # of the nets that say what a tree or a vote says
        self.same: dict[Net, Net] = {}  # each of those, to the first that says the same
        self.absent: list[tuple[int, int]] = []  # trees and output columns that no net says
        self.always: dict[Net, int] = {}  # votes that never change
        self.forms: dict[Net, Form] = {}

    def run(self) -> Proof:
        try:
            outputs = dict(self.netlist.outputs)
            self.ports(outputs)
            one = len(self.forest.targets) == 1
            names = [LABEL] if one else [f"{LABEL}{index}" for index in range(len(self.forest.targets))]
            labels = [outputs[name] for name in names if name in outputs]
            scores = {int(name[len(SCORE) :]): net for name, net in outputs.items() if name.startswith(SCORE)}
            expected = self.trees([*labels, *scores.values()])
            if self.forest.parts and self.forest.combine.kind == "vote":
                expected = self.votes(expected)
            if scores:
                with self.part("scores", len(scores)) as part:
                    for index, net in scores.items():
                        if self.form(net) != expected[index]:
                            raise UnprovedError(
                                f"score{index} is not the sum of its trees{self.told_absent()}", wrong=True
                            )
                        part.proved += 1
            if labels:
                targets = self.forest.targets
                with self.part("decision", len(labels)) as part:
                    for net, target in zip(labels, targets, strict=True):
                        here = expected if len(targets) == 1 else expected[target.start : target.stop]
                        self.decided(net, target.decision, here)
                        part.proved += 1
        except (UnprovedError, TimeoutError):
            pass  # the part says why
        return self.proof

    def ports(self, outputs: dict[str, Net]) -> None:
        """All labels, all scores or both, valid through as many registers as there are cycles, features as they are."""
        with self.part("ports", 1) as part:
            verify(self.netlist)
            labels = (
                {LABEL} if len(self.forest.targets) == 1 else {f"{LABEL}{k}" for k in range(len(self.forest.targets))}
            )
            scores = {f"{SCORE}{k}" for k in range(self.forest.n_scores)}
            told = set(outputs) - {VALID_OUT}
            if told not in ([scores, labels, scores | labels] if self.forest.decides else [scores]):
                raise UnprovedError(f"the outputs are {', '.join(sorted(outputs))}", wrong=True)
            if (VALID_OUT in outputs) != (self.netlist.latency > 0):
                raise UnprovedError(f"{VALID_OUT} and the latency of {self.netlist.latency} don't fit", wrong=True)
            if self.netlist.latency:
                net = outputs[VALID_OUT]
                for _ in range(self.netlist.latency):
                    cell = self.netlist.cells[net]
                    net = cell.a if isinstance(cell, Register) else -1
                if net < 0 or self.netlist.cells[net] != Input(VALID_IN, 1, False):
                    raise UnprovedError(
                        f"{VALID_OUT} is not {VALID_IN}, {self.netlist.latency} cycles later", wrong=True
                    )
            for net, cell in self.netlist.inputs:
                wanted = BIT if cell.name == VALID_IN else feature_word(self.forest, int(cell.name[1:]))
                if self.netlist.types[net] != wanted:
                    raise UnprovedError(f"{cell.name} is of {self.netlist.types[net]}, not {wanted}", wrong=True)
            for name in labels & told:
                if self.netlist.types[outputs[name]].signed:
                    raise UnprovedError(f"{name} is signed", wrong=True)
            part.proved = 1

    def told_absent(self) -> str:
        return f"; no net says what tree {self.absent[0][0]} says" if self.absent else ""

    def part(self, name: str, asked: int) -> _Running:
        self.progress(f"proof: {name}")
        return _Running(self.proof, Part(name, asked))

    # ---- trees ------------------------------------------------------------------------------------------

    def trees(self, roots: list[Net]) -> list[Form]:
        """Finds and proves the net of each tree and output. The form that each output's sum must have."""
        forest = self.forest
        self.candidates = candidates = Candidates(forest, self.netlist, roots)
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
                        net, always = self.tree(solver, candidates, (index, column), smallest, largest - smallest)
                        if always is None:
                            terms[output][net] = terms[output].get(net, 0) + 1
                        part.asked -= net < 0  # absent: not asked of the netlist
                        part.proved -= net < 0
                        offsets[output] += always or 0
                    part.proved += 1
        return [self.known(term, offset) for term, offset in zip(terms, offsets, strict=True)]

    def tree(
        self, solver: Solver, candidates: Candidates, place: tuple[int, int], smallest: int, largest: int
    ) -> tuple[Net, int | None]:
        """The net of tree and output column `place`, counted from its smallest leaf; and what it says if that never
        changes, since no word reaches the other leaves. Raises UnprovedError."""
        index, column = place
        tree = self.forest.trees[index]
        values = tree.values[tree.leaf, column].astype(np.int64) - smallest
        found = candidates.nets_that_say(index, column, smallest)
        always = candidates.constant(index, column, smallest)
        if always is not None:
            word = width_for(0, largest)
            if solver.differ(solver.tree(tree, values, word), solver.constant(always, word.width)) is not None:
                always = None
        counter = None
        proved: list[Net] = []
        for net in found:
            if self.same.get(net, -1) in proved or self.netlist.types[net].high < largest:
                continue  # shown to be what the first one is, or too narrow for the largest leaf
            gold = solver.tree(tree, values, self.netlist.types[net])
            counter = solver.differ(gold, solver.net(net, {}))
            if counter is None:
                self.same[net] = proved[0] if proved else self.same.get(net, net)
                self.largest[net] = max(largest, self.largest.get(net, 0))
                proved.append(self.same[net])
                if always is not None:
                    self.always[net] = always
        if proved or always is not None:
            return (proved or [0])[0], always
        if counter is not None:
            raise UnprovedError(f"tree {index}, output {tree.outputs[column]}: differs at {counter}", wrong=True)
        # No net says it, and perhaps none has to: where its class can't win, its sum is not there. A number of its own
        # stands for it, which no sum of nets can then equal.
        absent = -1 - len(self.absent)
        self.absent.append((index, column))
        self.largest[absent] = largest
        return absent, None

    # ---- votes ------------------------------------------------------------------------------------------

    def votes(self, sums: list[Form]) -> list[Form]:
        """Each part decides a label, whose votes are added: proves the labels, then what each vote is worth."""
        forest = self.forest
        weights = [int(weight) for weight in forest.combine.weights or [1.0] * len(forest.parts)]
        totals: list[dict[Net, int]] = [{} for _ in forest.classes]
        fixed = [0] * len(forest.classes)
        with self.part("votes", len(forest.parts) * (1 + len(forest.classes))) as part:
            for index, (one, weight) in enumerate(zip(forest.parts, weights, strict=True)):
                here = sums[one.start : one.stop]
                said = self.candidates.decided(one)
                labels = self.labels_of(one, said, here)
                part.proved += 1
                for kind in range(len(forest.classes)):
                    always, nets = self.ballots(labels, kind, weight, said)
                    if always is None and not nets:
                        raise UnprovedError(f"no net holds the vote of part {index} for class {kind}", wrong=True)
                    first = self.same.get(nets[0], nets[0]) if nets else 0
                    for net in nets:
                        self.largest[net] = weight
                        self.same[net] = first
                        if always is not None:
                            self.always[net] = always
                    if always is None:
                        totals[kind][first] = totals[kind].get(first, 0) + 1
                    else:
                        fixed[kind] += always
                    part.proved += 1
        self.forms.clear()
        return [self.known(term, more) for term, more in zip(totals, fixed, strict=True)]

    def labels_of(self, one: ForestPart, said: NDArray[np.int64], sums: list[Form]) -> list[tuple[Net, bool]]:
        """The nets that decide a part, and with True those that say the opposite of one that decides between two.
        said: what it says on the inputs that nets are looked up by."""
        found, why = [], "no net says what a part decides"
        two = one.decision.kind == "threshold"
        for inverted in (False, True)[: 1 + two]:
            for net in self.candidates.that_say(1 - said if inverted else said):
                try:
                    self.decided(net, one.decision, sums, inverted)
                    found.append((net, inverted))
                except UnprovedError as error:
                    why = str(error)
        if not found:
            raise UnprovedError(why, wrong=True)
        return found

    def ballots(
        self, labels: list[tuple[Net, bool]], kind: int, weight: int, said: NDArray[np.int64]
    ) -> tuple[int | None, list[Net]]:
        """What a part's vote for a class always is, None if it depends, and the nets that hold it: `weight` where a
        label is `kind`, else 0."""
        always, nets = None, []
        for label, inverted in labels:
            word, cell = self.netlist.types[label], self.netlist.cells[label]
            wanted = 1 - kind if inverted else kind
            if not 0 <= wanted <= word.high:
                always = 0
            elif isinstance(cell, Const):
                always = weight * int(cell.value == wanted)
            else:
                for net in self.candidates.that_say(np.where(said == kind, weight, 0)):
                    own = self.netlist.types[net]
                    if own != width_for(0, weight) or not _reads_only(self.netlist, net, label):
                        continue
                    solver = Solver(self.forest, self.netlist)
                    free = solver.word(f"label{label}", word)
                    gold = solver.choose(solver.equals(free, wanted, word), weight, 0, own)
                    if solver.differ(gold, solver.net(net, {label: free})) is None:
                        nets.append(net)
        return always, nets

    # ---- sums -------------------------------------------------------------------------------------------

    def form(self, net: Net) -> Form:
        """A net as a sum of proved nets and a constant. Raises UnprovedError where it is none or may overflow."""
        known = self.forms.get(net)
        if known is not None:
            return known
        cell = self.netlist.cells[net]
        if net in self.always:
            form: Form = ((), self.always[net])
        elif net in self.largest:
            form = (((self.same.get(net, net), 1),), 0)
        elif isinstance(cell, Const):
            form = ((), cell.value)
        elif isinstance(cell, Register):
            form = self.form(cell.a)
        elif isinstance(cell, Add):
            counts: dict[Net, int] = {}
            constant = 0
            for operand in cell.operands:
                some, more = self.form(operand)
                constant += more
                for part, times in some:
                    counts[part] = counts.get(part, 0) + times
            form = (tuple(sorted(counts.items())), constant)
        else:
            raise UnprovedError(f"net {net} ({type(cell).__name__}) is no sum of trees", wrong=True)
        low, high = self.span(form)
        word = self.netlist.types[net]
        if low < word.low or high > word.high:
            raise UnprovedError(f"net {net} holds {low} to {high} in {word.width} bits", wrong=True)
        self.forms[net] = form
        return form

    def known(self, terms: dict[Net, int], constant: int) -> Form:
        """The form of a sum, nets that never change counted as what they are."""
        fixed = sum(times * self.always[net] for net, times in terms.items() if net in self.always)
        return tuple(sorted((net, n) for net, n in terms.items() if net not in self.always)), constant + fixed

    def span(self, form: Form) -> tuple[int, int]:
        return form[1], form[1] + sum(times * self.largest[net] for net, times in form[0])

    # ---- decisions --------------------------------------------------------------------------------------

    def decided(self, label: Net, decision: Decision, sums: list[Form], inverted: bool = False) -> None:
        """Proves that a net is the class that some sums decide: whatever they are, or, where that is not so, for every
        input. Raises UnprovedError."""
        counter = self.other_class(label, decision, sums, inverted, free=True)
        if counter is None:
            return
        if self.forest.n_nodes > MOST_NODES:
            raise UnprovedError(
                f"net {label} decides otherwise at {counter}, if the sums can be so{self.told_absent()}"
            )
        # Some sums never come together: once more, of the trees themselves. A counterexample is then one of words.
        counter = self.other_class(label, decision, sums, inverted, free=False)
        if counter is not None:
            raise UnprovedError(f"net {label} decides otherwise at {counter}{self.told_absent()}", wrong=True)

    def other_class(self, label: Net, decision: Decision, sums: list[Form], inverted: bool, free: bool) -> str | None:
        """Where a net is not the class that sums decide. free: the sums are any words within their range, rather than
        what the trees say."""
        solver = Solver(self.forest, self.netlist, seconds=FREE_SECONDS if free else TREES_SECONDS)
        found: list[tuple[Form, Net]] = []
        if free:
            wanted = {form[0] for form in sums if form[0]}
            found = self.sums_below(label, wanted)
        shift = _shift_of(sums, found)
        reach = [bound for form in [*sums, *(form for form, _ in found)] for bound in self.span(form)]
        width = max(abs(bound) + abs(shift) + abs(int(decision.threshold)) for bound in [0, *reach]).bit_length() + 3
        wide = WordType(width, True)
        words: dict[tuple[tuple[Net, int], ...], Term] = {}
        for form in [*(form for form, _ in found), *sums]:
            if form[0] and form[0] not in words:
                words[form[0]] = (
                    solver.word(f"sum{len(words)}", wide, 0, self.span((form[0], 0))[1])
                    if free
                    else self.added(solver, form[0], width)
                )
        cuts = {net: solver.low_bits(solver.plus(words[form[0]], form[1], width), self.netlist.types[net].width)
                for form, net in found}  # fmt: skip
        scores = [
            solver.plus(words[form[0]], form[1] + shift, width) if form[0] else solver.constant(form[1] + shift, width)
            for form in sums
        ]
        return solver.wrong_class(solver.net(label, cuts), self.netlist.types[label], scores, decision, shift, inverted)

    def added(self, solver: Solver, terms: tuple[tuple[Net, int], ...], width: int) -> Term:
        """The sum of what trees and votes say, of absent ones as the forest has it."""
        total = solver.constant(0, width)
        for net, times in terms:
            if net < 0:
                index, column = self.absent[-1 - net]
                tree = self.forest.trees[index]
                used = tree.values[tree.leaf[tree.left == LEAF], column]
                values = tree.values[tree.leaf, column].astype(np.int64) - int(used.min())
                one = solver.tree(tree, values, WordType(width, True))
            else:
                one = solver.extended(solver.net(net, {}), self.netlist.types[net], width)
            for _ in range(times):
                total = solver.make(solver.kind.BV_ADD, [total, one])
        return total

    def sums_below(self, label: Net, wanted: set[tuple[tuple[Net, int], ...]]) -> list[tuple[Form, Net]]:
        """Where the logic of a decision begins: the nets, as the decision comes to them, that are wanted sums."""
        found: list[tuple[Form, Net]] = []
        stack, seen = [label], {label}
        while stack:
            net = stack.pop()
            cell = self.netlist.cells[net]
            if isinstance(cell, Add | Register) or net in self.largest:
                try:
                    form = self.form(net)
                except UnprovedError:
                    form = (), 0  # not a sum: its logic is gone into
                if form[0] in wanted:
                    found.append((form, net))
                    continue
            for read in reads(cell):
                if read not in seen:
                    seen.add(read)
                    stack.append(read)
        return sorted(found, key=lambda one: one[1])


class _Running:
    """A part while it runs: its time is taken, and what stops it is kept."""

    def __init__(self, proof: Proof, part: Part) -> None:
        self.proof, self.part = proof, part
        proof.parts.append(part)

    def __enter__(self) -> Part:
        self.start = time.perf_counter()
        return self.part

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        self.part.seconds = time.perf_counter() - self.start
        if isinstance(error, UnprovedError):
            self.part.why = str(error)
            self.proof.refuted |= error.wrong
        elif isinstance(error, TimeoutError):
            self.part.why = str(error)


def _reads_only(netlist: Netlist, net: Net, source: Net) -> bool:
    """Whether a net is a function of one other net, and of nothing else."""
    stack, reached = [net], False
    seen: set[Net] = set()
    while stack:
        at = stack.pop()
        if at == source:
            reached = True
        elif at not in seen:
            seen.add(at)
            if isinstance(netlist.cells[at], Input) or (at < source and not isinstance(netlist.cells[at], Const)):
                return False
            stack += reads(netlist.cells[at])
    return reached


def _shift_of(sums: list[Form], found: list[tuple[Form, Net]]) -> int:
    """The constant by which the sums that a decision reads lie above the scores: only differences count there."""
    votes: dict[int, int] = {}
    for form in sums:
        for (nets, constant), _ in found:
            if nets == form[0]:
                votes[constant - form[1]] = votes.get(constant - form[1], 0) + 1
    return max(votes, key=lambda shift: (votes[shift], -abs(shift)), default=0)
