"""Proves the values of parts for classes, votes, curves and shares; and the median of parts."""

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
from forestc.lowering.draft import Place
from forestc.netlist.ir import Const, Net, Not
from forestc.netlist.ports import Port


def prove_votes(known: Evidence, sums: list[Form]) -> list[Form]:
    """Proves the label of each part, then the weight of each vote. Returns the forms of the classes' votes."""
    forest = known.forest
    totals: list[dict[Net, int]] = [{} for _ in forest.classes]
    fixed = [0] * len(forest.classes)
    with known.part("votes", len(forest.parts) * (1 + len(forest.classes))) as part:
        for index, (voter, weight) in enumerate(zip(forest.parts, forest.integer_weights, strict=True)):
            label = _label_of(known, index, voter, sums[voter.start : voter.stop])
            part.proved += 1
            for kind in range(len(forest.classes)):
                place = _ballot(known, label, (index, kind), weight)
                if isinstance(place, Const):
                    fixed[kind] += place.value
                else:
                    known.largest[place] = weight
                    totals[kind][place] = totals[kind].get(place, 0) + 1
                part.proved += 1
    known.forms.clear()
    return [form_of(term, more) for term, more in zip(totals, fixed, strict=True)]


def prove_averages(known: Evidence, sums: list[Form], classes: Iterable[int]) -> list[Form]:
    """Proves the nets of curves and shares of each part for some classes. Returns the forms of all classes, empty
    for the others."""
    totals: list[dict[Net, int]] = [{} for _ in known.forest.classes]
    fixed = [0] * len(totals)
    classes = list(classes)
    with known.part("curves", len(known.forest.parts) * len(classes)) as part:
        for index, (member, weight) in enumerate(zip(known.forest.parts, known.forest.integer_weights, strict=True)):
            scores = sums[member.start : member.stop]
            shared = bool(member.curves) and member.link.kind in ("softmax", "shares")
            shares = ShareProof(known, index, member, scores) if shared else None
            for kind in classes:
                if shares:
                    place = _ballot_place(known, index, kind)
                    shares.share(kind, place)
                    counted, times = known.proved(place, known.forest.steps), weight
                elif member.curves:
                    falls = member.width == 1 and not kind
                    step = (-weight, weight * known.forest.steps) if falls else (weight, 0)
                    place, score = _ballot_place(known, index, kind), kind % member.width
                    where = f"the curve of part {index} for class {kind}"
                    most = prove_step_function(known, place, where, member.curve_of(score), step, scores[score])
                    counted, times = known.proved(place, most), 1
                else:
                    counted, times = scores[kind], weight
                fixed[kind] += times * counted[1]
                for net, often in counted[0]:
                    totals[kind][net] = totals[kind].get(net, 0) + times * often
                part.proved += 1
    known.forms.clear()
    return [form_of(term, more) for term, more in zip(totals, fixed, strict=True)]


def prove_medians(known: Evidence, sums: list[Form], outputs: dict[Port, Net]) -> None:
    """Proves the median, for any values of the trees within their ranges. Raises UnprovedError."""
    solver = known.solver()
    nets = {net for form in sums for net, _ in form[0] if net >= 0}
    cuts = {net: solver.word(f"tree{net}", known.netlist.types[net], 0, known.largest[net]) for net in sorted(nets)}

    def added(width: int) -> list[Term]:
        return [solver.plus(known.added(solver, form[0], width, cuts), form[1], width) for form in sums]

    meaning = ForestMeaning(known.forest, solver, added)
    with known.part("decision", len(outputs)) as part:
        for port, net in outputs.items():
            width = max(meaning.width, known.netlist.types[net].width + 1)
            got = solver.resized(solver.net(net, cuts), known.netlist.types[net], width)
            wrong = solver.differ(got, solver.sign_extended(meaning.result(port), width))
            if wrong is not None:
                raise UnprovedError(f"{port.name} differs if {solver.described(wrong)}{known.absent_note()}")
            part.proved += 1


def _label_of(known: Evidence, index: int, part: Part, sums: list[Form]) -> Place:
    """The place of a part's label, which is proved. Raises UnprovedError."""
    label = known.witness.labels[index] if index < len(known.witness.labels) else -1
    if label == -1:
        raise UnprovedError(f"no net holds the label of part {index}")
    if not is_lone_tree(known, label, part):
        prove_decision(known, label, part.decision, sums)
    return label


def _ballot(known: Evidence, label: Place, vote: tuple[int, int], weight: int) -> Place:
    """The place of a part's vote for a class, which is proved to be `weight` if the label is that class, else 0.
    Raises UnprovedError."""
    index, kind = vote
    place = known.witness.ballots.get(vote, -1)
    if place == -1:
        raise UnprovedError(f"no net holds the vote of part {index} for class {kind}")
    held, word = known.type_of(place), known.type_of(label)
    solver = Solver(known.forest, known.netlist)
    cuts: dict[Net, Term] = {}
    if isinstance(label, Const):
        free = solver.constant(label.value, word.width)
    else:
        free = cuts[label] = solver.word(f"label{label}", word)
        cell = known.netlist.cells[label]
        if isinstance(cell, Not):  # the vote for the other class may read the net that the label inverts
            cuts[cell.a] = solver.inverted(free)
    if held.low > 0 or held.high < weight:
        raise UnprovedError(f"{named(place)} does not hold a weight of {weight}")
    chosen = solver.equals(free, kind, word) if word.low <= kind <= word.high else solver.terms.mk_false()
    if solver.differ(solver.choose(chosen, weight, 0, held), solver.place(place, cuts)) is not None:
        raise UnprovedError(f"{named(place)} is not the vote of part {index} for class {kind}")
    return place


def _ballot_place(known: Evidence, index: int, kind: int) -> Place:
    """The place of a part's value for a class. Raises UnprovedError."""
    place = known.witness.ballots.get((index, kind), -1)
    if place == -1:
        raise UnprovedError(f"no net holds the value of part {index} for class {kind}")
    return place
