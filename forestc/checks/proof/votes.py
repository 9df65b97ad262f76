"""Proves the votes and values of member models (parts) for each class, and the median of the parts."""

from __future__ import annotations

from collections.abc import Iterable

from forestc.checks.proof.classes import is_lone_tree, prove_decision
from forestc.checks.proof.curves import prove_step_function
from forestc.checks.proof.evidence import Evidence, Form, form_of, named
from forestc.checks.proof.parts import UnprovedError
from forestc.checks.proof.shares import ShareProof
from forestc.checks.proof.solver import Solver, Term
from forestc.checks.proof.whole import ForestMeaning
from forestc.forest.ir import Part
from forestc.lowering.draft import Operand
from forestc.netlist.ir import Const, Net, Not
from forestc.netlist.ports import Port


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
