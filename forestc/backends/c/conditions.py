"""Writes the conditions of a forest in C. Floats are compared by their bits, as integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from forestc.backends.c.inputs import Inputs
from forestc.backends.c.types import FLOATS, FloatType, compared
from forestc.forest.conditions import Below, Condition, InSpans, OneOf
from forestc.forest.numbers import word_range


@dataclass
class ConditionsInC:
    """The conditions of a forest in C."""

    prefix: str
    inputs: Inputs
    texts: dict[int, str] = field(default_factory=dict)  # C by condition, filled on demand

    def float_of(self, index: int) -> FloatType | None:
        """Returns the float type of a feature's raw values; None for integers."""
        return FLOATS.get(self.inputs.kind(index))

    def of(self, index: int) -> str:
        """Returns the condition as C. It is true for a row that goes left."""
        if index not in self.texts:
            self.texts[index] = self._condition(self.inputs.forest.conditions[index])
        return self.texts[index]

    def _condition(self, condition: Condition) -> str:
        index, missing_left = condition.feature, condition.missing_left
        absent = self.absent(index)
        match condition.test:
            case Below(threshold):
                inside = self._below(index, int(threshold))
                if self.float_of(index) is None and not missing_left:
                    return inside  # the word for missing is the highest, so it is not below the threshold
            case OneOf(codes):
                inside = _joined("||", [self._equal(index, code) for code in codes])
                if absent is not None and not missing_left:
                    return inside
            case InSpans(cuts):
                spans = [
                    self._span(index, int(low), None if high is None else int(high))
                    for low, high in zip(cuts[::2], [*cuts[1::2], None], strict=False)
                ]
                inside = _joined("||", spans)
        if absent is None:
            return inside
        return _joined("||", [inside, absent]) if missing_left else _joined("&&", [inside, _negated(absent)])

    def _span(self, index: int, low: int, high: int | None) -> str:
        """Returns C for `low <= word < high`; None means no upper bound."""
        if high == low + 1:
            return self._equal(index, low)
        start = _negated(self._below(index, low))
        return start if high is None else _joined("&&", [start, self._below(index, high)])

    def _below(self, index: int, threshold: int) -> str:
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
        # Negative floats have bit patterns in descending order, so the comparison is reversed.
        return f"{self._bits(index, 'u')} > UINT{kind.bits}_C({(1 << (kind.bits - 1)) - 1 - threshold})"

    def _equal(self, index: int, word: int) -> str:
        kind = self.float_of(index)
        if kind is None:
            return f"{self.inputs.place(index)} == {compared(word, self.inputs.kind(index))}"
        pattern = word if word >= 0 else (word ^ ((1 << (kind.bits - 1)) - 1)) + (1 << kind.bits)
        return f"{self._bits(index, 'u')} == UINT{kind.bits}_C({pattern})"

    def absent(self, index: int) -> str | None:
        """Returns C that is true if the feature is missing; None if it never is."""
        feature, kind = self.inputs.forest.features[index], self.float_of(index)
        missing = word_range(feature.number, feature.missing).missing
        if missing is None:
            return None
        if kind is None:
            return self._equal(index, missing)
        sign = (1 << (kind.bits - 1)) - 1
        return f"({self._bits(index, 'u')} & UINT{kind.bits}_C({sign})) > UINT{kind.bits}_C({kind.infinity})"

    def _bits(self, index: int, sign: str = "") -> str:
        kind = self.float_of(index)
        assert kind is not None
        return f"{self.bits_of(kind, sign)}({self.inputs.place(index)})"

    def bits_of(self, kind: FloatType, sign: str = "") -> str:
        """Returns the name of the C function that gives a float's bits as an integer. sign: "u" for an unsigned
        integer."""
        return f"{self.prefix}_{sign}bits{kind.bits}"


def _joined(operator: str, parts: Sequence[str]) -> str:
    """Returns parts of a condition joined by && or ||, without those that change nothing."""
    neutral, decisive = "10" if operator == "&&" else "01"
    parts = [part for part in parts if part != neutral]
    if decisive in parts or not parts:
        return decisive if parts else neutral
    return parts[0] if len(parts) == 1 else f" {operator} ".join(f"({part})" for part in parts)


def _negated(part: str) -> str:
    return {"0": "1", "1": "0"}.get(part, f"!({part})")
