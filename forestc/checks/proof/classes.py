"""Proves that a net holds the class decided by scores."""

from __future__ import annotations

from forestc.checks.proof.decision import is_argmax, lone_tree
from forestc.checks.proof.evidence import TREES_SECONDS, Evidence, Form, named
from forestc.checks.proof.parts import UnprovedError
from forestc.checks.proof.solver import Counterexample, Solver, Term
from forestc.forest.ir import Decision, Part
from forestc.lowering.draft import Operand
from forestc.netlist.ir import Const, Net, WordType

FREE_SECONDS = 60  # seconds for the proof of a decision for any sums
MOST_NODES = 1500  # nodes of a forest; larger ones are not proved from their trees


def prove_decision(evidence: Evidence, label: Operand, decision: Decision, sums: list[Form]) -> None:
    """Proves that `label` is the class decided by the scores `sums`: for all values of the sums or, in a small forest,
    for all inputs. Raises UnprovedError or TimeoutError."""
    if not isinstance(label, Const) and is_argmax(evidence, label, decision, sums):
        return
    try:
        wrong = _other_class(evidence, label, decision, sums, free=True)
    except TimeoutError as error:
        wrong = str(error), None
    if wrong is None:
        return
    if evidence.forest.n_nodes > MOST_NODES:
        raise UnprovedError(f"{named(label)} decides otherwise, if sums can be {wrong[0]}{evidence.absent_note()}")
    # Not all values of the sums occur together; the solver now gets the trees.
    wrong = _other_class(evidence, label, decision, sums, free=False)
    if wrong is not None:
        raise UnprovedError(f"{named(label)} decides otherwise at {wrong[0]}{evidence.absent_note()}", wrong[1])


def is_lone_tree(evidence: Evidence, label: Operand, part: Part) -> bool:
    """Returns True if a member model (part) has a single tree and `label` is proved to be that tree's class."""
    lone = lone_tree(evidence.forest, part)
    if lone is None:
        return False
    solver, word = Solver(evidence.forest, evidence.netlist), evidence.type_of(label)
    expected = solver.tree(*lone, word)
    return max(lone[1]) <= word.high and solver.differ(expected, solver.operand(label, {})) is None


def _other_class(
    evidence: Evidence, label: Operand, decision: Decision, sums: list[Form], free: bool
) -> tuple[str, Counterexample | None] | None:
    """Returns a case in which `label` is not the class decided by `sums`, as (text, input or None); None if there is no
    such case."""
    solver = Solver(evidence.forest, evidence.netlist, seconds=FREE_SECONDS if free else TREES_SECONDS)
    held: list[tuple[Form, Net]] = []
    if free:
        summed = {form[0] for form in sums if form[0]}
        held = [] if isinstance(label, Const) else evidence.sums_below(label, summed)
    shift = _shift_of(sums, held)
    reach = [bound for form in [*sums, *(form for form, _ in held)] for bound in evidence.span(form)]
    width = max(abs(bound) + abs(shift) + abs(int(decision.threshold)) for bound in [0, *reach]).bit_length() + 3
    width = max([width, *(evidence.netlist.types[net].width for _, net in held)])
    wide = WordType(width, True)
    words: dict[tuple[tuple[Net, int], ...], Term] = {}
    for form in [*(form for form, _ in held), *sums]:
        if form[0] and form[0] not in words:
            words[form[0]] = (
                solver.word(f"sum{len(words)}", wide, 0, evidence.span((form[0], 0))[1])
                if free
                else evidence.added(solver, form[0], width)
            )
    cuts = {net: solver.low_bits(solver.plus(words[form[0]], form[1], width), evidence.netlist.types[net].width)
            for form, net in held}  # fmt: skip
    scores = [
        solver.plus(words[form[0]], form[1] + shift, width) if form[0] else solver.constant(form[1] + shift, width)
        for form in sums
    ]
    wrong = solver.wrong_class(solver.operand(label, cuts), evidence.type_of(label), scores, decision, shift)
    if wrong is None:
        return None
    return solver.described(wrong), None if free else solver.feature_words(wrong)


def _shift_of(sums: list[Form], held: list[tuple[Form, Net]]) -> int:
    votes: dict[int, int] = {}
    for form in sums:
        for (nets, constant), _ in held:
            if nets == form[0]:
                votes[constant - form[1]] = votes.get(constant - form[1], 0) + 1
    return max(votes, key=lambda shift: (votes[shift], -abs(shift)), default=0)
