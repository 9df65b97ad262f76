"""Writes C that turns scores into probabilities or regression values, with a bound on the error for all scores."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from forestc.backends.c.options import CValues
from forestc.backends.c.types import reach_of
from forestc.forest.ir import Forest, Part

ONE = 1 << 31  # represents a probability of 1 in internal fixed point
UNIT = 2.0**-31  # equals one step of internal fixed point
POWER_ERROR = 3 * UNIT  # bounds the error of a power: all roundings sum up to 2.6 steps
# Entry i is 2^-(i / 32), in steps of UNIT.
TABLE = tuple(round(2.0 ** (31 - index / 32)) for index in range(32))
MOST_EXPONENT = 500  # limits the exponents of 2 in values of the link exp
_FLOAT = 2.0**-24  # bounds the relative error of rounding to float32
# Maps the option for probabilities to (C type, value of one step, largest rounding error).
_SHARES = {
    "q15": ("uint16_t", 2.0**-15, 2.0**-16),
    "q31": ("uint32_t", 2.0**-31, 0.0),
    "float": ("float", 1.0, _FLOAT),
}


@dataclass
class ValuesInC:
    """The C code for a classifier's probabilities or a regression's values."""

    probabilities: bool  # False for values of a regression
    count: int  # values per row
    kind: str  # C type of a value
    step: float  # value of an integer 1
    bound: float  # largest error against exact values of the integer scores
    lines: list[str]  # statements that compute `out` from `scores`

    @property
    def fraction(self) -> int:
        """The number of fraction bits of an integer value."""
        return 1 - math.frexp(self.step)[1]

    @property
    def power(self) -> bool:
        """True if `lines` call the helper function for powers of 2."""
        return "_power(" in "".join(self.lines)

    @property
    def capped(self) -> bool:
        """True if `lines` call the helper function that limits probabilities to 1."""
        return "_capped(" in "".join(self.lines)

    @property
    def shifted(self) -> bool:
        """True if `lines` call the helper function that shifts an integer to the right."""
        return "_shifted(" in "".join(self.lines)

    @property
    def declared(self) -> list[str]:
        """The declarations of the variables in `lines`."""
        variables = {"k": "int k;", "best": "int best;", "total": "uint64_t total;", "p": "uint32_t p;"}
        return [text for name, text in variables.items() if re.search(rf"\b{name} = ", "\n".join(self.lines))]

    @property
    def single(self) -> bool:
        """True if the C function returns one value, False if it fills an array."""
        return not self.probabilities and self.count == 1


def shown(forest: Forest, prefix: str, kind: CValues) -> ValuesInC | None:
    """Returns the C for a classifier's probabilities or a regression's values; None for the option "none", for votes,
    and for a link without C code."""
    if kind == "none" or forest.combine.kind == "vote":
        return None
    if any(part.link.intercept or part.link.points for part in forest.targets):
        return None
    targets = [_Target(forest, part, prefix, kind) for part in forest.targets]
    if forest.decides:
        lines: list[str] = []
        bounds = []
        for target in targets:
            bound = target.probabilities(lines)
            if bound is None:
                return None
            bounds.append(bound)
        c_type, step, rounding = _SHARES[kind]
        count = sum(max(len(t.part.classes), t.part.stop - t.part.start) for t in targets)
        return ValuesInC(True, count, c_type, step, _upwards(max(bounds) + rounding), lines)
    return targets[0].values()


def _reach(forest: Forest, score: int) -> tuple[int, int]:
    """Returns bounds (low, high) of the score with this index, after parts are combined."""
    if not forest.combined:
        return reach_of(forest, score)
    parts = [[reach_of(forest, output) for output in range(part.start, part.stop)] for part in forest.parts]
    if forest.combine.kind == "median":
        bounds = [bound for reaches in parts for reach in reaches for bound in reach]
        return min(bounds), max(bounds)
    weights = forest.integer_weights
    ends = [
        (0, forest.steps) if part.curves else reaches[score] for part, reaches in zip(forest.parts, parts, strict=True)
    ]
    low, high = (sum(w * end[k] for w, end in zip(weights, ends, strict=True)) for k in (0, 1))
    return low, high


def _upwards(bound: float) -> float:
    """Returns the error bound rounded up to two digits, and never below the exact bound."""
    digits = math.floor(math.log10(bound)) - 1
    return float(f"{math.ceil(bound * (1 + 1e-6) / 10.0**digits)}e{digits}")


@dataclass(frozen=True)
class _Rate:
    """The factor c of powers 2^-(c * distance), as the fixed-point number rate / 2^shift."""

    rate: int
    shift: int
    limit: int  # for larger distances the power is 0
    error: float  # largest error of a power

    @staticmethod
    def of(c: float) -> _Rate | None:
        if not 2.0**-40 < c < 2.0**30:
            return None
        shift = min(58, 39 - math.frexp(c)[1])
        rate = round(math.ldexp(c, shift))
        # Rounding changes `rate` by at most 0.5, and a power by 0.5 / (e * rate).
        return _Rate(rate, shift, ((32 << shift) - 1) // rate, POWER_ERROR + 0.5 / rate / math.e)

    def power(self, prefix: str, distance: str) -> str:
        return f"{prefix}_power({distance}, UINT64_C({self.rate}), {self.shift}u, UINT64_C({self.limit}))"


class _Target:
    """Writer of the C for one prediction target. first: the index of its first value in the array `out`."""

    def __init__(self, forest: Forest, part: Part, prefix: str, kind: str) -> None:
        self.forest, self.part, self.prefix, self.kind = forest, part, prefix, kind
        self.scale = part.link.slope * part.scale
        self.first = 0
        for other in forest.targets:
            if other.start < part.start:
                self.first += max(len(other.classes), other.stop - other.start)
        self.reaches = [_reach(forest, score) for score in range(part.start, part.stop)]

    def store(self, index: str, value: str) -> str:
        """Returns the C statement that stores a probability. value: C for the probability in steps of 2^-31."""
        text = {
            "q15": f"(uint16_t)(({value} + UINT32_C(0x8000)) >> 16)",
            "q31": value,
            "float": f"(float){value} * 4.656612873077392578125e-10f",
        }[self.kind]
        return f"out[{index}] = {text};"

    def probabilities(self, lines: list[str]) -> float | None:
        """Appends C statements that compute the target's probabilities to `lines`. Returns the largest error; None if
        there is no C code for this link."""
        part = self.part
        width = part.stop - part.start
        if part.link.shift or (len(part.classes) > 2 and width != len(part.classes)):
            return None
        match part.link.kind:
            case "softmax":
                return self._softmax(lines, width)
            case "sigmoid" | "logistic":
                return self._each(lines, self._sigmoid())
            case "identity":
                return self._each(lines, self._share())
        return None

    def _each(self, lines: list[str], code: tuple[list[str], float] | None) -> float | None:
        """Appends C that computes each probability with the statements in `code`. Returns the largest error; None if
        `code` is None."""
        if code is None:
            return None
        part, first = self.part, self.first
        width = part.stop - part.start
        score = f"scores[{part.start}]" if width == 1 else f"scores[{_from(part.start)}]"
        body = [line.replace("@", score) for line in code[0]]
        if width == 1 and len(part.classes) == 2:
            lines += [*body, self.store(f"{first}", f"(UINT32_C({ONE}) - p)"), self.store(f"{first + 1}", "p")]
        elif width == 1:
            lines += [*body, self.store(f"{first}", "p")]
        else:
            inside = [f"    {line}" for line in [*body, self.store(_from(first), "p")]]
            lines += [f"for (k = 0; k < {width}; k++) {{", *inside, "}"]
        return code[1]

    def _sigmoid(self) -> tuple[list[str], float] | None:
        rate = _Rate.of(abs(self.scale) / math.log(2))
        if rate is None:
            return None
        power = rate.power(self.prefix, f"{self.prefix}_distance(@, 0)")
        sign = "<" if self.scale > 0 else ">"
        body = [
            f"p = {power};",
            f"p = (uint32_t)((UINT64_C({1 << 62}) + ((UINT64_C({ONE}) + p) >> 1)) / (UINT64_C({ONE}) + p));",
            f"p = (@ {sign} 0) ? (UINT32_C({ONE}) - p) : p;",
        ]
        return body, rate.error + UNIT / 2

    def _share(self) -> tuple[list[str], float] | None:
        """Returns (statements, largest error) if the scores, times the scale, are probabilities; otherwise None."""
        decision, least = self.part.decision, 0.5 * abs(self.scale) * (len(self.forest.trees) + 1)
        low = min(self.scale * reach[0] for reach in self.reaches)
        high = max(self.scale * reach[1] for reach in self.reaches)
        past = max(0.0, -low, high - 1.0)
        average = self.forest.combine.kind == "average"  # of probabilities, for which any threshold will do
        about_half = average or decision.kind != "threshold" or 0.25 < float(decision.threshold) * self.scale < 0.75
        if self.scale <= 0 or past > least or not about_half:
            return None
        most = max(1, *(abs(end) for reach in self.reaches for end in reach))
        drop = min(40, 62 - math.frexp(most * self.scale * ONE)[1])
        factor = round(math.ldexp(self.scale * ONE, drop))
        if drop < 1 or factor < 1:
            return None
        product = f"(((uint64_t)((@ < 0) ? 0 : @) * UINT64_C({factor})) + UINT64_C({1 << (drop - 1)})) >> {drop}"
        body = [f"p = {self.prefix}_capped({product});"]
        return body, past + UNIT * (0.5 + most * 0.5 / 2.0**drop)

    def _softmax(self, lines: list[str], width: int) -> float | None:
        rate = _Rate.of(self.scale / math.log(2))
        if rate is None or width < 2:
            return None
        start = self.part.start
        power = rate.power(self.prefix, f"{self.prefix}_distance(scores[best], scores[{_from(start)}])")
        lines += [
            f"best = {start};",
            f"for (k = 1; k < {width}; k++) {{",
            f"    best = (scores[{_from(start)}] > scores[best]) ? ({_from(start)}) : best;",
            "}",
            "total = 0u;",
            f"for (k = 0; k < {width}; k++) {{",
            f"    total += {power};",
            "}",
            f"for (k = 0; k < {width}; k++) {{",
            f"    p = {power};",
            "    p = (uint32_t)((((uint64_t)p << 31) + (total >> 1)) / total);",
            f"    {self.store(_from(self.first), 'p')}",
            "}",
        ]
        return width * rate.error + UNIT / 2

    def values(self) -> ValuesInC | None:
        part = self.part
        match part.link.kind:
            case "identity":
                return self._linear()
            case "exp" | "exp2" | "isolation":
                return self._exponential()
            case "sigmoid" | "logistic" if not part.link.shift:
                lines: list[str] = []
                bound = self._each(lines, self._sigmoid())
                if bound is None:
                    return None
                c_type, step, rounding = _SHARES[self.kind]
                count = part.stop - part.start
                return ValuesInC(False, count, c_type, step, _upwards(bound + rounding), lines)
        return None

    def _linear(self) -> ValuesInC | None:
        shift, count = self.part.link.shift, self.part.stop - self.part.start
        most = max(1, *(abs(end) for reach in self.reaches for end in reach))
        reach = most * abs(self.scale) + abs(shift)
        if not 2.0**-MOST_EXPONENT < reach < 2.0**MOST_EXPONENT:
            return None
        if self.kind == "float":
            if not 2.0**-100 < reach < 2.0**100:
                return None
            text = f"(float)@ * {_float(self.scale)}" + (f" - {_float(shift)}" if shift else "")
            return ValuesInC(False, count, "float", 1.0, _upwards(5 * _FLOAT * reach), self._stored(text, count))
        c_type, text, step, drop = self._fixed("@", self.scale, reach)
        bound = step * (0.5 + (most + 1) * 0.5 / 2.0**drop)
        return ValuesInC(False, count, c_type, step, _upwards(bound), self._stored(text, count))

    def _fixed(self, value: str, slope: float, reach: float) -> tuple[str, str, float, int]:
        """Returns (C type, C expression, value of one step, bits dropped) of a linear link in fixed point."""
        bits = 15 if self.kind == "q15" else 31
        fraction, drop = _fraction(reach, bits), 61 - bits
        factor = round(math.ldexp(slope, fraction + drop))
        # C does not define right shifts of negative numbers, so an offset is added.
        start = (1 << 62) + (1 << (drop - 1)) - round(math.ldexp(self.part.link.shift, fraction + drop))
        total = f"{self.prefix}_shifted(((int64_t){value} * INT64_C({factor})) + INT64_C({start}), {drop}u)"
        c_type = f"int{bits + 1}_t"
        return c_type, f"({c_type})({total} - INT64_C({1 << (62 - drop)}))", 2.0**-fraction, drop

    def _stored(self, text: str, count: int) -> list[str]:
        """Returns C that stores all outputs. text: C for one output, with @ for its score."""
        if count == 1:
            return [f"out[0] = {text.replace('@', 'scores[0]')};"]
        return [f"for (k = 0; k < {count}; k++) {{", f"    out[k] = {text.replace('@', 'scores[k]')};", "}"]

    def _exponential(self) -> ValuesInC | None:
        """Returns the C for an exponential link; None if numbers are out of range."""
        link, count = self.part.link, self.part.stop - self.part.start
        c = {"exp": self.scale / math.log(2), "exp2": self.scale, "isolation": -self.scale}[link.kind]
        rate = _Rate.of(abs(c))
        low, high = min(r[0] for r in self.reaches), max(r[1] for r in self.reaches)
        top = high if c > 0 else low
        if rate is None or not abs(c * top) < MOST_EXPONENT:
            return None
        largest, shift = 2.0 ** (c * top), link.shift
        sign = -1 if link.kind == "isolation" else 1
        ends = (str(top), "@") if c > 0 else ("@", str(top))
        power = rate.power(self.prefix, f"{self.prefix}_distance({', '.join(ends)})")
        reach = largest + abs(shift)
        error = largest * (rate.error + 1e-14)
        if self.kind == "float":
            if not 2.0**-60 < reach < 2.0**100:
                return None
            text = f"(float){power} * {_float(sign * largest * UNIT)}" + (f" - {_float(shift)}" if shift else "")
            return ValuesInC(
                False, count, "float", 1.0, _upwards(error + 5 * _FLOAT * reach), self._stored(text, count)
            )
        c_type, text, step, drop = self._fixed(power, sign * largest * UNIT, reach)
        bound = error + step * (0.5 + 2.0 ** (31 - drop) * 0.5 + 2.0**-drop)
        return ValuesInC(False, count, c_type, step, _upwards(bound), self._stored(text, count))


def _fraction(reach: float, bits: int) -> int:
    """Returns the most fraction bits with which values up to `reach` fit."""
    fraction = bits - math.frexp(reach)[1]
    return fraction if math.ldexp(reach, fraction) < (1 << bits) - 2 else fraction - 1


def _from(start: int) -> str:
    return f"{start} + k" if start else "k"


def _float(value: float) -> str:
    return f"{float(value)!r}f"
