"""Proves that the netlist equals the quantized forest, for every input.

A solver can't prove all at once, so the proof has parts:

| part     | statement                                                                          |
|----------|------------------------------------------------------------------------------------|
| ports    | features and results are words of the right widths and signs                       |
| trees    | a net holds the tree's value, for every word of every feature                      |
| votes    | a net holds a part's weight if the part decides for a class, else 0                |
| curves   | a net holds a part's value for a class in a weighted average                       |
| scores   | each sum adds the nets of its trees, each once, and a constant, and can't overflow |
| decision | the class is the one that the sums decide, or the result is their median           |
| second   | the second best class, and the distance, are those of the sums                     |
| whole    | all results at once; only if another part fails or trees are not added             |

The lowering names the net of each value, and the proof verifies it. Registers count as wires.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from forestc.checks.proof.averages import ShareProof, prove_step_function
from forestc.checks.proof.decision import MOST_NODES, is_lone_tree, prove_decision, prove_runner_up
from forestc.checks.proof.evidence import TREES_SECONDS, Evidence, Form, form_of, named, prove_trees
from forestc.checks.proof.parts import Proof, ProofPart, Running, UnprovedError
from forestc.checks.proof.solver import Counterexample, Solver, Term
from forestc.checks.proof.whole import ForestMeaning, equal_everywhere, wrong_result
from forestc.forest.ir import Forest, Part
from forestc.lowering.draft import Operand, Witness, feature_word
from forestc.netlist.ir import Const, Input, Net, Netlist, Not, Register
from forestc.netlist.ports import IN_VALID, OUT_VALID, Port, PortKind, label_port, score_port, target_port
from forestc.netlist.verify import verify

SECOND: tuple[PortKind, PortKind] = "second", "distance"  # of a second best class


def prove_votes(evidence: Evidence, sums: list[Form]) -> list[Form]:
    """Proves the label of each member model (part) and its vote for each class. Returns a list with each class's sum of
    votes as a linear form."""
    forest = evidence.forest
    totals: list[dict[Net, int]] = [{} for _ in forest.classes]
    fixed = [0] * len(forest.classes)
    with evidence.part("votes", len(forest.parts) * (1 + len(forest.classes))) as part:
        for index, (voter, weight) in enumerate(zip(forest.parts, forest.integer_weights, strict=True)):
            label = _label_of(evidence, index, voter, sums[voter.start : voter.stop])
            part.proved += 1
            for kind in range(len(forest.classes)):
                operand = _ballot(evidence, label, (index, kind), weight)
                if isinstance(operand, Const):
                    fixed[kind] += operand.value
                else:
                    evidence.largest[operand] = weight
                    totals[kind][operand] = totals[kind].get(operand, 0) + 1
                part.proved += 1
    evidence.forms.clear()
    return [form_of(term, more) for term, more in zip(totals, fixed, strict=True)]


def prove_averages(evidence: Evidence, sums: list[Form], classes: Iterable[int]) -> list[Form]:
    """Proves the values of member models (parts) for the given classes. Returns a list with each class's sum of values
    as a linear form, empty for the other classes."""
    totals: list[dict[Net, int]] = [{} for _ in evidence.forest.classes]
    fixed = [0] * len(totals)
    classes = list(classes)
    with evidence.part("curves", len(evidence.forest.parts) * len(classes)) as part:
        for index, (member, weight) in enumerate(
            zip(evidence.forest.parts, evidence.forest.integer_weights, strict=True)
        ):
            scores = sums[member.start : member.stop]
            shared = bool(member.curves) and member.link.kind in ("softmax", "shares")
            shares = ShareProof(evidence, index, member, scores) if shared else None
            for kind in classes:
                if shares:
                    operand = _ballot_value(evidence, index, kind)
                    shares.share(kind, operand)
                    counted, times = evidence.proved(operand, evidence.forest.steps), weight
                elif member.curves:
                    falls = member.width == 1 and not kind
                    step = (-weight, weight * evidence.forest.steps) if falls else (weight, 0)
                    operand, score = _ballot_value(evidence, index, kind), kind % member.width
                    where = f"the curve of part {index} for class {kind}"
                    most = prove_step_function(evidence, operand, where, member.curve_of(score), step, scores[score])
                    counted, times = evidence.proved(operand, most), 1
                else:
                    counted, times = scores[kind], weight
                fixed[kind] += times * counted[1]
                for net, often in counted[0]:
                    totals[kind][net] = totals[kind].get(net, 0) + times * often
                part.proved += 1
    evidence.forms.clear()
    return [form_of(term, more) for term, more in zip(totals, fixed, strict=True)]


def prove_medians(evidence: Evidence, sums: list[Form], outputs: dict[Port, Net]) -> None:
    """Proves that outputs hold the weighted median of the member models, for any values of the trees. Raises
    UnprovedError."""
    solver = evidence.solver()
    nets = {net for form in sums for net, _ in form[0] if net >= 0}
    cuts = {
        net: solver.word(f"tree{net}", evidence.netlist.types[net], 0, evidence.largest[net]) for net in sorted(nets)
    }

    def added(width: int) -> list[Term]:
        return [solver.plus(evidence.added(solver, form[0], width, cuts), form[1], width) for form in sums]

    meaning = ForestMeaning(evidence.forest, solver, added)
    with evidence.part("decision", len(outputs)) as part:
        for port, net in outputs.items():
            width = max(meaning.width, evidence.netlist.types[net].width + 1)
            got = solver.resized(solver.net(net, cuts), evidence.netlist.types[net], width)
            wrong = solver.differ(got, solver.sign_extended(meaning.result(port), width))
            if wrong is not None:
                raise UnprovedError(f"{port.name} differs if {solver.described(wrong)}{evidence.absent_note()}")
            part.proved += 1


def _label_of(evidence: Evidence, index: int, part: Part, sums: list[Form]) -> Operand:
    label = evidence.witness.labels[index] if index < len(evidence.witness.labels) else -1
    if label == -1:
        raise UnprovedError(f"no net holds the label of part {index}")
    if not is_lone_tree(evidence, label, part):
        prove_decision(evidence, label, part.decision, sums)
    return label


def _ballot(evidence: Evidence, label: Operand, vote: tuple[int, int], weight: int) -> Operand:
    """Proves that an operand holds `weight` if a member model's label is the vote's class, otherwise 0. Returns the
    operand."""
    index, kind = vote
    operand = evidence.witness.ballots.get(vote, -1)
    if operand == -1:
        raise UnprovedError(f"no net holds the vote of part {index} for class {kind}")
    held, word = evidence.type_of(operand), evidence.type_of(label)
    solver = Solver(evidence.forest, evidence.netlist)
    cuts: dict[Net, Term] = {}
    if isinstance(label, Const):
        free = solver.constant(label.value, word.width)
    else:
        free = cuts[label] = solver.word(f"label{label}", word)
        cell = evidence.netlist.cells[label]
        if isinstance(cell, Not):  # the vote for the other class may read the net that the label inverts
            cuts[cell.a] = solver.inverted(free)
    if held.low > 0 or held.high < weight:
        raise UnprovedError(f"{named(operand)} does not hold a weight of {weight}")
    chosen = solver.equals(free, kind, word) if word.low <= kind <= word.high else solver.terms.mk_false()
    if solver.differ(solver.choose(chosen, weight, 0, held), solver.operand(operand, cuts)) is not None:
        raise UnprovedError(f"{named(operand)} is not the vote of part {index} for class {kind}")
    return operand


def _ballot_value(evidence: Evidence, index: int, kind: int) -> Operand:
    operand = evidence.witness.ballots.get((index, kind), -1)
    if operand == -1:
        raise UnprovedError(f"no net holds the value of part {index} for class {kind}")
    return operand


def prove_netlist(
    forest: Forest,
    netlist: Netlist,
    witness: Witness,
    progress: Callable[[str], None] = lambda _: None,
) -> Proof:
    """Proves a netlist equal to its quantized forest. witness: operands that hold the forest's values, from the
    lowering. Raises MissingToolError if bitwuzla is needed and missing."""
    evidence = Evidence(forest, netlist, witness, progress)
    try:
        _prove(evidence)
    except UnprovedError as error:
        if error.wrong:
            evidence.proof.refuted = True
        else:
            _settle(evidence, error.words)
    except TimeoutError:
        _settle(evidence, None)
    return evidence.proof


def _prove(evidence: Evidence) -> None:
    forest, outputs = evidence.forest, dict(evidence.netlist.outputs)
    _prove_ports(evidence, outputs)
    labels = _by_index(outputs, "label")
    scores = {port.index: net for port, net in outputs.items() if port.kind == "score"}
    if not forest.adds:
        _prove_whole(evidence)
        return
    expected = prove_trees(evidence)
    targets, combined = forest.targets, forest.combine.kind
    if combined == "median":
        prove_medians(evidence, expected, {port: net for port, net in outputs.items() if port.kind != "valid"})
        return
    if combined == "average":
        # A threshold reads only the score of the last class.
        thresholded = targets[0].decision.kind == "threshold"
        expected = prove_averages(evidence, expected, [1] if thresholded and not scores else range(len(forest.classes)))
        if thresholded:
            for net in labels:
                with evidence.part("decision", 1) as part:
                    prove_decision(evidence, net, targets[0].decision, expected[1:])
                    part.proved += 1
            labels = []
    if combined == "vote":
        expected = prove_votes(evidence, expected)
    if scores:
        with evidence.part("scores", len(scores)) as part:
            for index, net in scores.items():
                if evidence.form(net) != expected[index]:
                    raise UnprovedError(f"score{index} is not the sum of its trees{evidence.absent_note()}")
                part.proved += 1
    if labels:
        with evidence.part("decision", len(labels)) as part:
            for net, target in zip(labels, targets, strict=True):
                here = expected[target.start : target.stop]
                if combined != "each" or not is_lone_tree(evidence, net, target):
                    prove_decision(evidence, net, target.decision, here)
                part.proved += 1
    seconds, distances = (_by_index(outputs, kind) for kind in SECOND)
    if seconds:
        with evidence.part("second", len(seconds)) as part:
            for second, distance, target in zip(seconds, distances, targets, strict=True):
                here = expected[target.start : target.stop]
                prove_runner_up(evidence, (second, distance), target.decision, here)
                part.proved += 1


def _by_index(outputs: dict[Port, Net], kind: str) -> list[Net]:
    return [net for port, net in sorted(outputs.items(), key=lambda pair: pair[0].index) if port.kind == kind]


def _settle(evidence: Evidence, words: Counterexample | None) -> None:
    """Tries to refute or prove all results at once; a proof replaces the failed last part. words: an input to try
    first."""
    part = evidence.proof.parts[-1]
    whole = _prove_whole(evidence, words)
    if whole.proved:
        evidence.proof.parts.remove(part)
    elif not evidence.proof.refuted and part.why:
        whole.why = f"{whole.why}; {part.why}"


def _prove_whole(evidence: Evidence, words: Counterexample | None = None) -> ProofPart:
    """Searches for an input with a wrong result, otherwise tries to prove all results. words: an input to try first."""
    with Running(evidence.proof, ProofPart("whole", asked=1)) as whole:
        evidence.progress("proof: the results as a whole")
        difference = wrong_result(evidence.forest, evidence.netlist, words)
        if difference is None:
            try:
                seconds = TREES_SECONDS if evidence.forest.n_nodes <= MOST_NODES else 0
                difference = equal_everywhere(evidence.forest, evidence.netlist, seconds)
                whole.proved = int(difference is None)
            except TimeoutError as error:
                whole.why = str(error)
        if difference is not None:
            evidence.proof.refuted = True
            whole.why = difference
    return whole


def _prove_ports(evidence: Evidence, outputs: dict[Port, Net]) -> None:
    """Checks the netlist's rules, its ports, and that out_valid follows in_valid after the latency."""
    with evidence.part("ports", 1) as part:
        verify(evidence.netlist)
        targets = len(evidence.forest.targets)
        labels = {label_port(index, targets) for index in range(targets)}
        pairs = [target_port(kind, index, targets) for index in range(targets) for kind in SECOND]
        scores = {score_port(index) for index in range(evidence.forest.n_scores)}
        present = set(outputs) - {OUT_VALID}
        if present not in (
            [scores, labels, scores | labels, labels | {*pairs}] if evidence.forest.decides else [scores]
        ):
            raise UnprovedError(f"the outputs are {', '.join(sorted(p.name for p in outputs))}", wrong=True)
        if (OUT_VALID in outputs) != (evidence.netlist.latency > 0):
            raise UnprovedError(f"{OUT_VALID.name} and the latency of {evidence.netlist.latency} don't fit", wrong=True)
        if evidence.netlist.latency:
            net = outputs[OUT_VALID]
            for _ in range(evidence.netlist.latency):
                cell = evidence.netlist.cells[net]
                net = cell.a if isinstance(cell, Register) else -1
            if net < 0 or evidence.netlist.cells[net] != Input(IN_VALID, 1, False):
                raise UnprovedError(
                    f"{OUT_VALID.name} is not {IN_VALID.name}, {evidence.netlist.latency} cycles later", wrong=True
                )
        words = [(cell.port, net) for net, cell in evidence.netlist.inputs if cell.port != IN_VALID]
        order = [("word", index) for index in range(len(evidence.forest.features))]
        if [(port.kind, port.index) for port, _ in words] != order:
            raise UnprovedError(f"the inputs are {', '.join(port.name for port, _ in words)}", wrong=True)
        for port, net in words:
            expected = feature_word(evidence.forest, port.index)
            if evidence.netlist.types[net] != expected:
                raise UnprovedError(f"{port.name} is of {evidence.netlist.types[net]}, not {expected}", wrong=True)
        for port in labels & present:
            if evidence.netlist.types[outputs[port]].signed:
                raise UnprovedError(f"{port.name} is signed", wrong=True)
        part.proved = 1
