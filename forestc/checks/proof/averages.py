"""Proves the values of member models in a weighted average.

A value is a level, which is a step function of a score (its quantized link), or a class's share: its level divided by
the sum of all classes' levels. As a solver can't prove a whole division, it proves each of its steps, of one bit, for
any remainder.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from forestc.checks.proof.decision import largest_of
from forestc.checks.proof.evidence import Evidence, Form, form_of
from forestc.checks.proof.parts import UnprovedError
from forestc.checks.proof.solver import Solver, Term
from forestc.errors import InternalError
from forestc.forest.ir import Part
from forestc.lowering.draft import Operand
from forestc.netlist.ir import Const, Net, WordType
from hw_sim import evaluate_from

MOST_VALUES = 1 << 17  # tries each value if a score has fewer; otherwise the solver decides
SOME_VALUES = 1 << 12  # limits the values of a score tried at once


@dataclass(frozen=True)
class Argument:
    """The argument of a step function, from `low` to `high`."""

    low: int
    high: int
    more: Mapping[Net, int]  # by net: the constant that it holds beyond the argument


def prove_step_function(
    evidence: Evidence, operand: Operand, where: str, curve: Sequence[int], step: tuple[int, int], score: Form
) -> int:
    """Proves that `operand` holds step[0] * level + step[1]. The level is the number of entries of `curve` not above
    the score. Returns the operand's largest value. Raises UnprovedError or TimeoutError."""
    low, high = evidence.span(score)
    more = {} if isinstance(operand, Const) else {
        net: form[1] - score[1] for form, net in evidence.sums_below(operand, {score[0]})
    }  # fmt: skip
    return prove_curve(evidence, operand, where, curve, step, Argument(low, high, more))


def prove_curve(
    evidence: Evidence, operand: Operand, where: str, curve: Sequence[int], step: tuple[int, int], free: Argument
) -> int:
    """Proves that `operand` holds step[0] * level + step[1] for each value of the argument `free`. The level is the
    number of entries of `curve` not above the argument. Returns the operand's largest value. Raises UnprovedError or
    TimeoutError."""
    few = free.high - free.low < MOST_VALUES
    wrong = (_wrong_value if few else _wrong_by_solver)(evidence, operand, curve, step, free)
    if wrong:
        raise UnprovedError(f"{where} differs at {wrong}{evidence.absent_note()}")
    return max(step[1] + step[0] * bisect_right(curve, end) for end in (free.low, free.high))


def _wrong_value(
    evidence: Evidence, operand: Operand, curve: Sequence[int], step: tuple[int, int], free: Argument
) -> str:
    for start in range(free.low, free.high + 1, SOME_VALUES):
        values = np.arange(start, min(start + SOME_VALUES, free.high + 1))
        level = step[1] + step[0] * np.searchsorted(np.array(curve), values, side="right")
        free_nets = {net: values + more for net, more in free.more.items()}
        try:
            if isinstance(operand, Const):
                held = np.full(len(values), operand.value)
            else:
                held = evaluate_from(evidence.netlist, operand, free_nets, len(values))
        except (KeyError, InternalError) as error:
            return f"a net that is not of its score alone ({error})"
        wrong = np.flatnonzero(held != level)
        if len(wrong):
            return f"score={values[wrong[0]]}"
    return ""


def _wrong_by_solver(
    evidence: Evidence, operand: Operand, curve: Sequence[int], step: tuple[int, int], free: Argument
) -> str:
    solver = evidence.solver()
    width = max(abs(free.low), abs(free.high), len(curve) * abs(step[0])).bit_length() + 3
    word = solver.word("score", WordType(width, True), free.low, free.high)
    cuts = {
        net: solver.low_bits(solver.plus(word, more, width), evidence.netlist.types[net].width)
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
    got = solver.resized(solver.operand(operand, cuts), evidence.type_of(operand), width)
    wrong = solver.differ(got, level)
    return "" if wrong is None else solver.described(wrong)


class ShareProof:
    """Proves each class's share in a part (member model) of an average. sums: the part's scores."""

    def __init__(self, evidence: Evidence, index: int, part: Part, sums: Sequence[Form]) -> None:
        self.evidence, self.index, self.part, self.sums = evidence, index, part, sums
        self.steps = evidence.forest.steps
        self.bits = self.steps.bit_length()
        if part.link.kind == "softmax":
            self.distances()
        levels = [self.level(kind, "level", 1) for kind in range(part.width)]
        self.total = _total(levels)
        self.dividends = [self.level(kind, "dividend", 2 << self.bits) for kind in range(part.width)]
        self.evidence.forms.clear()

    def found(self, what: str, kind: int, bit: int = 0) -> Operand:
        operand = self.evidence.witness.steps.get((what, self.index, kind, bit), -1)
        if operand == -1:
            raise UnprovedError(f"no net holds {self.named(what, kind)}")
        return operand

    def named(self, what: str, kind: int) -> str:
        return f"the {what} of part {self.index} for class {kind}"

    def form(self, operand: Operand) -> Form:
        return ((), operand.value) if isinstance(operand, Const) else self.evidence.form(operand)

    def free(self, solver: Solver, operand: Operand, name: str, width: int, high: int, cuts: dict[Net, Term]) -> Term:
        """Returns an operand as a term: a constant's value or, for a net, a new free word from 0 to `high`. The new
        word is also added to `cuts`."""
        if isinstance(operand, Const):
            return solver.constant(operand.value, width)
        term = solver.word(name, WordType(width, True), 0, high)
        cuts[operand] = solver.low_bits(term, self.evidence.netlist.types[operand].width)
        return term

    def distances(self) -> None:
        """Proves that nets hold each score minus the largest score, plus a constant, for any values of the scores."""
        if all(self.evidence.witness.steps.get(("below", self.index, k, 0), -1) == -1 for k in range(self.part.width)):
            return  # no net reads the distances: the levels are constants
        top = self.found("largest", 0)
        raised = [self.form(self.found("raised", kind)) for kind in range(self.part.width)]
        shifts = {compared[1] - form[1] for compared, form in zip(raised, self.sums, strict=True)}
        if len(shifts) != 1 or any(compared[0] != form[0] for compared, form in zip(raised, self.sums, strict=True)):
            raise UnprovedError(f"the compared scores of part {self.index} are not its scores")
        entrants = {self.form(top)} if isinstance(top, Const) else largest_of(self.evidence, top)
        never = {form for form in raised if any(_never_above(form, other, self.evidence.span) for other in entrants)}
        if not entrants <= set(raised) or not set(raised) <= entrants | never:
            raise UnprovedError(f"the largest score of part {self.index} is not recognized")
        high = max(self.evidence.span(form)[1] for form in raised)
        for kind in range(self.part.width):
            solver, below = self.evidence.solver(), self.found("below", kind)
            word = self.evidence.type_of(below)
            width = max(word.width, high.bit_length()) + 3
            cuts: dict[Net, Term] = {}
            largest = self.free(solver, top, "largest", width, high, cuts)
            score = self.free(solver, self.found("raised", kind), "score", width, high, cuts)
            solver.limits.append(solver.make(solver.kind.NOT, [solver.less(largest, score, True)]))
            expected = solver.plus(solver.make(solver.kind.BV_SUB, [score, largest]), word.high, width)
            self.prove_value(solver, below, expected, cuts, self.named("distance", kind))

    def prove_value(self, solver: Solver, operand: Operand, expected: Term, cuts: dict[Net, Term], where: str) -> None:
        got = solver.resized(solver.operand(operand, cuts), self.evidence.type_of(operand), expected.sort().bv_size())
        wrong = solver.differ(got, expected)
        if wrong is not None:
            raise UnprovedError(f"{where} differs if {solver.described(wrong)}")

    def level(self, kind: int, what: str, times: int) -> Operand:
        """Proves that an operand holds a class's level times `times`; the level is the class's step function of its
        score. Returns the operand.
        what: the operand's name in the witness."""
        operand, curve, where = self.found(what, kind), self.part.curve_of(kind), self.named(what, kind)
        if self.part.link.kind == "softmax":
            below = self.evidence.witness.steps.get(("below", self.index, kind, 0), -1)
            top = 0 if below == -1 else self.evidence.type_of(below).high
            if isinstance(below, Const):
                free = Argument(below.value - top, below.value - top, {})
            else:
                spans = [self.evidence.span(form) for form in self.sums]
                lowest = min(low for low, _ in spans) - max(high for _, high in spans)
                free = Argument(lowest, 0, {below: top} if below != -1 else {})
            most = prove_curve(self.evidence, operand, where, curve, (times, 0), free)
        else:
            most = prove_step_function(self.evidence, operand, where, curve, (times, 0), self.sums[kind])
        if not isinstance(operand, Const):
            self.evidence.largest[operand] = most
        return operand

    def share(self, kind: int, operand: Operand) -> None:
        """Proves that an operand holds a class's level divided by the sum of the levels of all classes. kind: index of
        the class."""
        evidence, taken = self.evidence, self.found("taken", kind)
        self.level(kind, "taken", (2 << self.bits) - 2 * self.steps)
        evidence.forms.clear()
        dividend = self.found("sum", kind)
        if self.form(dividend) != _total([self.dividends[kind]], self.total):
            raise UnprovedError(f"{self.named('dividend', kind)} is not that of its level and the total")
        if self.form(self.found("double", 0)) != self.total:
            raise UnprovedError(f"the total of part {self.index} is not recognized")
        rest, top = self.rest(kind, dividend, taken)
        for bit in reversed(range(self.bits)):
            double = self.found("double", 0, bit + 1)
            if self.form(double) != _times(self.total, 2 << bit):
                raise UnprovedError(f"2^{bit + 1} times the total of part {self.index} is not recognized")
            rest = self.bit(kind, bit, rest, double, top)
        self.bits_joined(kind, operand, evidence.span(self.total)[1])

    def rest(self, kind: int, dividend: Operand, taken: Operand) -> tuple[Operand, int]:
        """Proves that a net holds `top` minus the division's first remainder. Returns (net, top); `top` is the largest
        value of the net's word."""
        solver, rest = self.evidence.solver(), self.found("rest", kind, self.bits)
        high, most = (self.evidence.span(self.form(operand))[1] for operand in (dividend, taken))
        top = self.evidence.type_of(rest).high
        width = max(top, high, most).bit_length() + 3
        cuts: dict[Net, Term] = {}
        minuend = self.free(solver, dividend, "dividend", width, high, cuts)
        less = self.free(solver, taken, "taken", width, most, cuts)
        solver.limits.append(solver.make(solver.kind.NOT, [solver.less(minuend, less, True)]))
        left = solver.make(solver.kind.BV_SUB, [less, minuend])
        self.prove_value(solver, rest, solver.plus(left, top, width), cuts, self.named("rest", kind))
        return rest, top

    def bit(self, kind: int, bit: int, before: Operand, double: Operand, top: int) -> Operand:
        """Proves one bit of the quotient for every value of the remainder `before`. Returns the operand that holds the
        next remainder; for bit 0 `before` itself."""
        solver, where = self.evidence.solver(), self.named(f"bit {bit} of the share", kind)
        most = self.evidence.span(self.form(double))[1]
        width = (top + most).bit_length() + 3
        word = WordType(width, True)
        cuts: dict[Net, Term] = {}
        rest = self.free(solver, before, "rest", width, top, cuts)
        less = solver.make(solver.kind.BV_ADD, [rest, self.free(solver, double, "double", width, most, cuts)])
        fits = solver.less(less, solver.constant(top + 1, width), True)
        self.prove_value(solver, self.found("fits", kind, bit), solver.choose(fits, 1, 0, word), cuts, where)
        if not bit:
            return before  # no net reads the last remainder
        afterwards = self.found("rest", kind, bit)
        self.prove_value(solver, afterwards, solver.make(solver.kind.ITE, [fits, less, rest]), cuts, where)
        return afterwards

    def bits_joined(self, kind: int, operand: Operand, most: int) -> None:
        """Proves that an operand holds the quotient, joined from its bits. With the link `shares`, a total of 0 must
        give all classes equal shares.
        most: the largest total."""
        solver, width = self.evidence.solver(), max(most, self.steps).bit_length() + 3
        cuts: dict[Net, Term] = {}
        share = solver.constant(0, width)
        for bit in range(self.bits):
            fits = self.free(solver, self.found("fits", kind, bit), f"fits{bit}", width, 1, cuts)
            addend = solver.choose(solver.equals(fits, 1, WordType(width, True)), 1 << bit, 0, WordType(width, True))
            share = solver.make(solver.kind.BV_ADD, [share, addend])
        if self.part.link.kind == "shares":
            total = self.free(solver, self.found("double", 0), "total", width, most, cuts)
            none = solver.equals(total, 0, WordType(width, True))
            alike = solver.constant(self.steps // self.part.width, width)
            share = solver.make(solver.kind.ITE, [none, alike, share])
        self.prove_value(solver, operand, share, cuts, self.named("share", kind))


def _never_above(form: Form, other: Form, span: Callable[[Form], tuple[int, int]]) -> bool:
    return span(form)[1] <= span(other)[0]


def _total(operands: Sequence[Operand], more: Form = ((), 0)) -> Form:
    counts, constant = dict(more[0]), more[1]
    for operand in operands:
        if isinstance(operand, Const):
            constant += operand.value
        else:
            counts[operand] = counts.get(operand, 0) + 1
    return form_of(counts, constant)


def _times(form: Form, factor: int) -> Form:
    return tuple((net, factor * times) for net, times in form[0]), factor * form[1]
