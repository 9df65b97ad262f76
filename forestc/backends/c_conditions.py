"""The conditions of a forest in C: on its words, or on raw floats by their bit patterns as integers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from forestc.backends.c_types import compared
from forestc.forest.conditions import Below, Condition, OneOf, Within
from forestc.forest.ir import Feature, Forest
from forestc.forest.numbers import Ordered, threshold_key, word_range, word_value

INFINITY_BITS = {32: 0x7F800000, 64: 0x7FF0000000000000}


@dataclass
class Conditions:
    """prefix: of the header's names. place, kind: the C expression of a feature's value or word, and its type. bits: of
    the raw floats; None where places are words."""

    forest: Forest
    prefix: str
    place: Callable[[int], str]
    kind: Callable[[int], str]
    bits: int | None
    known: dict[int, str] = field(default_factory=dict)

    def of(self, place: int) -> str:
        """The C of one of the forest's conditions: true where it sends a row left."""
        if place not in self.known:
            self.known[place] = self._condition(self.forest.conditions[place])
        return self.known[place]

    def _condition(self, condition: Condition) -> str:
        index, missing_left = condition.feature, condition.missing_left
        below = self._word_below if self.bits is None else self._raw_below
        absent = self.absent(index)
        match condition.test:
            case Below(threshold):
                inside = below(index, int(threshold))
                if self.bits is None and not missing_left:
                    return inside  # the missing word is the highest
            case OneOf(codes):
                inside = " || ".join(f"{self.place(index)} == {self._compared(index, code)}" for code in codes) or "0"
                if absent is not None and not missing_left:
                    return inside
            case Within(cuts):
                ends = [below(index, int(cut)) for cut in cuts]
                spans = [
                    f"(!({low}) && ({high}))" if high else f"!({low})"
                    for low, high in zip(ends[::2], [*ends[1::2], ""], strict=False)
                ]
                inside = f"({' || '.join(spans)})" if spans else "0"
        if absent is None:
            return inside
        return f"{inside} || {absent}" if missing_left else f"{inside} && !({absent})"

    def _word_below(self, index: int, threshold: int) -> str:
        """The C condition `word < threshold`."""
        span = word_range(self.forest.features[index].number, self.forest.features[index].missing)
        if threshold <= span.low:
            return "0"
        return "1" if threshold > span.top else f"{self.place(index)} < {self._compared(index, threshold)}"

    def _word_absent(self, index: int, feature: Feature) -> str | None:
        """The C condition that a word means missing; None if none does."""
        missing = word_range(feature.number, feature.missing).missing
        return None if missing is None else f"{self.place(index)} == {self._compared(index, missing)}"

    def _compared(self, index: int, value: int) -> str:
        return compared(value, self.kind(index))

    def _raw_below(self, index: int, threshold: int) -> str:
        """The C condition that a raw float's word is below a threshold word."""
        feature = self.forest.features[index]
        assert self.bits is not None
        x, bits = self.place(index), self.bits
        span = word_range(feature.number, feature.missing)
        if threshold <= span.low or threshold > span.high:
            return str(int(threshold > span.high))
        key = self.key(index, threshold)
        if key > 0:
            return f"{self.prefix}_bits({x}) < INT{bits}_C({key})"
        # the patterns of negative floats are in descending order: key < K is pattern > 2^(bits-1) - 1 - K
        pattern = (1 << (bits - 1)) - 1 - key
        return f"{self.prefix}_ubits({x}) > UINT{bits}_C({pattern})"

    def key(self, index: int, threshold: int) -> int:
        """A raw float's word is below a threshold word where its bits, ordered as integers, are below this."""
        feature = self.forest.features[index]
        assert self.bits is not None
        if threshold > word_range(feature.number, feature.missing).high:
            return (1 << (self.bits - 1)) - 1
        if isinstance(feature.number, Ordered):
            return threshold
        return int(threshold_key(_ceiling(word_value(threshold, feature.number), self.bits), self.bits)[0])

    def absent(self, index: int) -> str | None:
        """The C condition that a feature's value or word means missing; None if none does."""
        feature, bits = self.forest.features[index], self.bits
        if bits is None:
            return self._word_absent(index, feature)
        if not feature.missing:
            return None
        sign = (1 << (bits - 1)) - 1
        return (
            f"({self.prefix}_ubits({self.place(index)}) & UINT{bits}_C({sign})) > UINT{bits}_C({INFINITY_BITS[bits]})"
        )

    def helpers(self, name: str) -> list[str]:
        """Functions that the conditions use. name: of the float type."""
        bits = self.bits
        if bits is None:
            return []
        return [
            "/* A float's bits order like integers: upwards if it is positive, downwards if negative. */",
            f"static inline int{bits}_t {self.prefix}_bits({name} value)",
            "{",
            f"    union {{ {name} f; int{bits}_t i; }} u;",
            "    u.f = value;",
            "    return u.i;",
            "}",
            "",
            f"static inline uint{bits}_t {self.prefix}_ubits({name} value)",
            "{",
            f"    union {{ {name} f; uint{bits}_t u; }} u;",
            "    u.f = value;",
            "    return u.u;",
            "}",
            "",
        ]


def _ceiling(value: float, bits: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The smallest float of `bits` bits that is not below the value."""
    if bits == 64:
        return np.array([value])
    near = np.float32(value)
    if float(near) < value:
        near = np.nextafter(near, np.float32(math.inf))
    return np.array([float(near)])
