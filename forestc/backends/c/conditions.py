"""The conditions of a forest in C: on its words or raw integers, and on raw floats by their bits as integers."""

from __future__ import annotations

from dataclasses import dataclass, field

from forestc.backends.c.inputs import Inputs
from forestc.backends.c.types import FLOATS, FloatType, compared
from forestc.forest.conditions import Below, Condition, InSpans, OneOf
from forestc.forest.numbers import word_range


@dataclass
class ConditionsInC:
    """prefix: of the header's names. inputs: what its functions take, and the forest on these values."""

    prefix: str
    inputs: Inputs
    known: dict[int, str] = field(default_factory=dict)

    def float_of(self, index: int) -> FloatType | None:
        """The type of a feature's raw floats; None where its values are integers."""
        return FLOATS.get(self.inputs.kind(index))

    def of(self, place: int) -> str:
        """The C of one of the forest's conditions: true where it sends a row left."""
        if place not in self.known:
            self.known[place] = self._condition(self.inputs.forest.conditions[place])
        return self.known[place]

    def _condition(self, condition: Condition) -> str:
        index, missing_left = condition.feature, condition.missing_left
        absent = self.absent(index)
        match condition.test:
            case Below(threshold):
                inside = self._below(index, int(threshold))
                if self.float_of(index) is None and not missing_left:
                    return inside  # the missing word is the highest
            case OneOf(codes):
                inside = " || ".join(self._equal(index, code) for code in codes) or "0"
                if absent is not None and not missing_left:
                    return inside
            case InSpans(cuts):
                spans = [
                    self._span(index, int(low), None if high is None else int(high))
                    for low, high in zip(cuts[::2], [*cuts[1::2], None], strict=False)
                ]
                inside = f"({' || '.join(spans)})" if spans else "0"
        if absent is None:
            return inside
        return f"{inside} || {absent}" if missing_left else f"{inside} && !({absent})"

    def _span(self, index: int, low: int, high: int | None) -> str:
        """The C condition `low <= word < high`."""
        if high == low + 1:
            return self._equal(index, low)
        start = f"!({self._below(index, low)})"
        return start if high is None else f"({start} && ({self._below(index, high)}))"

    def _below(self, index: int, threshold: int) -> str:
        """The C condition that a value is below a threshold word."""
        feature, kind = self.inputs.forest.features[index], self.float_of(index)
        span = word_range(feature.number, feature.missing)
        if threshold <= span.low:
            return "0"
        if threshold > (span.top if kind is None else kind.infinity):
            return "1"
        if kind is None:
            return f"{self.inputs.place(index)} < {compared(threshold, self.inputs.kind(index))}"
        if threshold > 0:
            return f"{self._bits(index)} < INT{kind.bits}_C({threshold})"
        # the patterns of negative floats are in descending order: key < K is pattern > 2^(bits-1) - 1 - K
        return f"{self._bits(index, 'u')} > UINT{kind.bits}_C({(1 << (kind.bits - 1)) - 1 - threshold})"

    def _equal(self, index: int, word: int) -> str:
        """The C condition that a value is this word."""
        kind = self.float_of(index)
        if kind is None:
            return f"{self.inputs.place(index)} == {compared(word, self.inputs.kind(index))}"
        pattern = word if word >= 0 else (word ^ ((1 << (kind.bits - 1)) - 1)) + (1 << kind.bits)
        return f"{self._bits(index, 'u')} == UINT{kind.bits}_C({pattern})"

    def absent(self, index: int) -> str | None:
        """The C condition that a feature's value means missing; None if none does."""
        feature, kind = self.inputs.forest.features[index], self.float_of(index)
        missing = word_range(feature.number, feature.missing).missing
        if missing is None:
            return None
        if kind is None:
            return self._equal(index, missing)
        sign = (1 << (kind.bits - 1)) - 1
        return f"({self._bits(index, 'u')} & UINT{kind.bits}_C({sign})) > UINT{kind.bits}_C({kind.infinity})"

    def _bits(self, index: int, sign: str = "") -> str:
        """The C expression of a float's bits."""
        kind = self.float_of(index)
        assert kind is not None
        return f"{self.bits_of(kind, sign)}({self.inputs.place(index)})"

    def bits_of(self, kind: FloatType, sign: str = "") -> str:
        """The name of the function that gives the bits of a float as an integer, signed or (u) unsigned."""
        return f"{self.prefix}_{sign}bits{kind.bits}"
