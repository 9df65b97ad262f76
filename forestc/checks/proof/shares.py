"""Proves the shares of an average's part in steps: the largest score, the distances to it, levels, and a long division.

Solvers can't handle a whole division, but each bit of it, for any remainder before: `fits` is whether 2^(bit + 1) times
the total of all levels can be subtracted, and then it is. The first remainder is `dividend - taken`, which is 2 * steps
* level + total, so the bits that fit are those of its quotient by 2 * total. The quotient has no more bits than
`steps`, as no level is above the total. The total of a softmax is not 0: the level of the largest score is `steps`, as
the forest's verifier allows no cut above 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from forestc.checks.proof.curves import Argument, prove_curve, prove_step_function
from forestc.checks.proof.decision import largest_of
from forestc.checks.proof.evidence import Evidence, Form, form_of
from forestc.checks.proof.parts import UnprovedError
from forestc.checks.proof.solver import Solver, Term
from forestc.forest.ir import Part
from forestc.lowering.draft import Place
from forestc.netlist.ir import Const, Net, WordType


class ShareProof:
    """Proves the shares of part `index`, of scores that are `sums`. Raises UnprovedError."""

    def __init__(self, known: Evidence, index: int, part: Part, sums: Sequence[Form]) -> None:
        self.known, self.index, self.part, self.sums = known, index, part, sums
        self.steps = known.forest.steps
        self.bits = self.steps.bit_length()
        if part.link.kind == "softmax":
            self.distances()
        levels = [self.level(kind, "level", 1) for kind in range(part.width)]
        self.total = _total(levels)
        self.dividends = [self.level(kind, "dividend", 2 << self.bits) for kind in range(part.width)]
        self.known.forms.clear()

    def found(self, what: str, kind: int, bit: int = 0) -> Place:
        place = self.known.witness.steps.get((what, self.index, kind, bit), -1)
        if place == -1:
            raise UnprovedError(f"no net holds {self.named(what, kind)}")
        return place

    def named(self, what: str, kind: int) -> str:
        return f"the {what} of part {self.index} for class {kind}"

    def form(self, place: Place) -> Form:
        return ((), place.value) if isinstance(place, Const) else self.known.form(place)

    def free(self, solver: Solver, place: Place, name: str, width: int, high: int, cuts: dict[Net, Term]) -> Term:
        """A free word for the value of a place, from 0 to `high`; for a constant its value."""
        if isinstance(place, Const):
            return solver.constant(place.value, width)
        term = solver.word(name, WordType(width, True), 0, high)
        cuts[place] = solver.low_bits(term, self.known.netlist.types[place].width)
        return term

    # ---- levels -----------------------------------------------------------------------------------------

    def distances(self) -> None:
        """Proves how far each score is below the largest, for any scores."""
        if all(self.known.witness.steps.get(("below", self.index, k, 0), -1) == -1 for k in range(self.part.width)):
            return  # nothing reads them: levels are constants
        top = self.found("largest", 0)
        raised = [self.form(self.found("raised", kind)) for kind in range(self.part.width)]
        shifts = {compared[1] - form[1] for compared, form in zip(raised, self.sums, strict=True)}
        if len(shifts) != 1 or any(compared[0] != form[0] for compared, form in zip(raised, self.sums, strict=True)):
            raise UnprovedError(f"the compared scores of part {self.index} are not its scores")
        entrants = {self.form(top)} if isinstance(top, Const) else largest_of(self.known, top)
        never = {form for form in raised if any(_never_above(form, other, self.known.span) for other in entrants)}
        if not entrants <= set(raised) or not set(raised) <= entrants | never:
            raise UnprovedError(f"the largest score of part {self.index} is not recognized")
        high = max(self.known.span(form)[1] for form in raised)
        for kind in range(self.part.width):
            solver, below = self.known.solver(), self.found("below", kind)
            word = self.known.type_of(below)
            width = max(word.width, high.bit_length()) + 3
            cuts: dict[Net, Term] = {}
            largest = self.free(solver, top, "largest", width, high, cuts)
            score = self.free(solver, self.found("raised", kind), "score", width, high, cuts)
            solver.limits.append(solver.make(solver.kind.NOT, [solver.less(largest, score, True)]))
            wanted = solver.plus(solver.make(solver.kind.BV_SUB, [score, largest]), word.high, width)
            self.same(solver, below, wanted, cuts, self.named("distance", kind))

    def same(self, solver: Solver, place: Place, wanted: Term, cuts: dict[Net, Term], where: str) -> None:
        """Proves that a place holds the wanted value."""
        got = solver.resized(solver.place(place, cuts), self.known.type_of(place), wanted.sort().bv_size())
        wrong = solver.differ(got, wanted)
        if wrong is not None:
            raise UnprovedError(f"{where} differs if {solver.described(wrong)}")

    def level(self, kind: int, what: str, times: int) -> Place:
        """The place of a score's level, multiplied by `times`, which is proved. Its net may then be used in sums."""
        place, curve, where = self.found(what, kind), self.part.curve_of(kind), self.named(what, kind)
        if self.part.link.kind == "softmax":
            below = self.known.witness.steps.get(("below", self.index, kind, 0), -1)
            top = 0 if below == -1 else self.known.type_of(below).high
            if isinstance(below, Const):
                free = Argument(below.value - top, below.value - top, {})
            else:
                spans = [self.known.span(form) for form in self.sums]
                lowest = min(low for low, _ in spans) - max(high for _, high in spans)
                free = Argument(lowest, 0, {below: top} if below != -1 else {})
            most = prove_curve(self.known, place, where, curve, (times, 0), free)
        else:
            most = prove_step_function(self.known, place, where, curve, (times, 0), self.sums[kind])
        if not isinstance(place, Const):
            self.known.largest[place] = most
        return place

    # ---- division ---------------------------------------------------------------------------------------

    def share(self, kind: int, place: Place) -> None:
        """Proves that a place holds a class's share."""
        known, taken = self.known, self.found("taken", kind)
        self.level(kind, "taken", (2 << self.bits) - 2 * self.steps)
        known.forms.clear()
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
        self.bits_joined(kind, place, known.span(self.total)[1])

    def rest(self, kind: int, dividend: Place, taken: Place) -> tuple[Place, int]:
        """The place of the first remainder, stored as the highest value of its word minus the remainder; and that
        value."""
        solver, rest = self.known.solver(), self.found("rest", kind, self.bits)
        high, most = (self.known.span(self.form(place))[1] for place in (dividend, taken))
        top = self.known.type_of(rest).high
        width = max(top, high, most).bit_length() + 3
        cuts: dict[Net, Term] = {}
        whole = self.free(solver, dividend, "dividend", width, high, cuts)
        less = self.free(solver, taken, "taken", width, most, cuts)
        solver.limits.append(solver.make(solver.kind.NOT, [solver.less(whole, less, True)]))
        left = solver.make(solver.kind.BV_SUB, [less, whole])
        self.same(solver, rest, solver.plus(left, top, width), cuts, self.named("rest", kind))
        return rest, top

    def bit(self, kind: int, bit: int, before: Place, double: Place, top: int) -> Place:
        """Proves one bit of the division, for any remainder before. Returns the place of the remainder afterwards."""
        solver, where = self.known.solver(), self.named(f"bit {bit} of the share", kind)
        most = self.known.span(self.form(double))[1]
        width = (top + most).bit_length() + 3
        word = WordType(width, True)
        cuts: dict[Net, Term] = {}
        rest = self.free(solver, before, "rest", width, top, cuts)
        less = solver.make(solver.kind.BV_ADD, [rest, self.free(solver, double, "double", width, most, cuts)])
        fits = solver.less(less, solver.constant(top + 1, width), True)
        self.same(solver, self.found("fits", kind, bit), solver.choose(fits, 1, 0, word), cuts, where)
        if not bit:
            return before  # nothing reads the last remainder
        afterwards = self.found("rest", kind, bit)
        self.same(solver, afterwards, solver.make(solver.kind.ITE, [fits, less, rest]), cuts, where)
        return afterwards

    def bits_joined(self, kind: int, place: Place, most: int) -> None:
        """Proves that the bits make the share, or that a total of 0 gives every class the same share."""
        solver, width = self.known.solver(), max(most, self.steps).bit_length() + 3
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
        self.same(solver, place, share, cuts, self.named("share", kind))


def _never_above(form: Form, other: Form, span: Callable[[Form], tuple[int, int]]) -> bool:
    return span(form)[1] <= span(other)[0]


def _total(places: Sequence[Place], more: Form = ((), 0)) -> Form:
    """The sum of some places and a form."""
    counts, constant = dict(more[0]), more[1]
    for place in places:
        if isinstance(place, Const):
            constant += place.value
        else:
            counts[place] = counts.get(place, 0) + 1
    return form_of(counts, constant)


def _times(form: Form, factor: int) -> Form:
    return tuple((net, factor * times) for net, times in form[0]), factor * form[1]
