"""Computes the box of each leaf: for each feature on its path, the values with which a row reaches the leaf.

A leaf is unreachable exactly if a feature on its path has no value left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from forestc.forest.conditions import Condition, InSpans, OneOf, complement, toggled
from forestc.forest.ir import LEAF, Feature, Forest
from forestc.forest.numbers import Category, Fixed, Float, Ordered, order_key, to_words, word_range, word_value
from forestc.rows.ranges import at_least, next_below

Span = tuple[int, int]
Spans = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Values:
    """A set of values of one feature: ranges (spans) of words, and perhaps the missing value."""

    spans: tuple[Span, ...]  # spans of words [low, high), ascending
    missing: bool  # True if the set holds the missing value

    def __bool__(self) -> bool:
        return bool(self.spans) or self.missing

    def within(self, spans: Sequence[tuple[float, float]], missing: bool) -> Values:
        """Returns the intersection with other values. spans: ascending."""
        overlaps = [
            (int(max(low, a)), int(min(high, b)))
            for low, high in self.spans
            for a, b in spans
            if max(low, a) < min(high, b)
        ]
        return Values(tuple(overlaps), self.missing and missing)


Box = Mapping[int, Values]


@dataclass(frozen=True)
class Domain:
    """The words that a feature of a quantized forest can take, and the raw numbers behind them."""

    feature: Feature

    @cached_property
    def all_values(self) -> Values:
        """All words of the number type; for an Ordered type without those of NaNs."""
        number = self.feature.number
        limits = word_range(number, self.feature.missing)
        low, high = limits.low, limits.high
        if isinstance(number, Ordered):  # Keys beyond those of the infinities are NaNs.
            low, high = order_key(np.array([-np.inf, np.inf]), number.bits).tolist()
            low, high = max(low, limits.low), min(high, limits.high)
        return Values(((low, high + 1),), limits.missing is not None)

    def raw_span(self, span: Span) -> tuple[float, float]:
        """Returns (low, high) such that exactly the raw numbers low <= x < high have words in the span. At the ends of
        a numeric domain they are infinite."""
        (first, last), number = self.all_values.spans[0], self.feature.number
        if isinstance(number, Category):
            return float(span[0]), float(span[1])
        low = -np.inf if span[0] <= first else word_value(span[0], number)
        return low, np.inf if span[1] >= last else word_value(span[1], number)

    def inhabited(self, span: Span) -> bool:
        """Returns True if some raw value has a word in the span."""
        first, last = self.all_values.spans[0]
        if span[1] <= first or last <= span[0]:
            return False
        if self._dense:
            return True
        low, high = self.raw_span(span)
        for value in (at_least(np.array([low]), self.feature.raw), next_below(np.array([high]), self.feature.raw)):
            word = int(to_words(value, self.feature.number, self.feature.missing)[0])
            if span[0] <= word < span[1] and not np.isnan(value[0]):
                return True
        return False

    @cached_property
    def _dense(self) -> bool:
        """True if every word of the number type is known to have a raw value; False if unknown."""
        digits = 24 if self.feature.raw == Float(32) else 53
        match self.feature.number:
            case Category():
                return True
            case Ordered(bits):
                return self.feature.raw == Float(bits)
            case Fixed(bits, fraction):
                return bits <= digits and abs(fraction) <= 64
            case _:
                return False

    def reached(self, values: Values) -> Values:
        """Returns the values, but keeps only ranges of words (spans) with a word that some raw value has."""
        return Values(tuple(span for span in values.spans if self.inhabited(span)), values.missing)


class Boxes:
    def __init__(self, forest: Forest) -> None:
        self.forest = forest
        self.domains = tuple(map(Domain, forest.features))
        self._sides = [_sides(condition) for condition in forest.conditions]

    def leaves(self, index: int) -> Iterator[tuple[int, Box | None]]:
        """Yields each leaf (node index) of a tree with its box; None in place of the box if no raw row reaches the
        leaf."""
        tree, node_conditions = self.forest.trees[index], self.forest.conditions.node_conditions[index].tolist()
        features = self.forest.conditions.feature.tolist()
        stack: list[tuple[int, dict[int, Values] | None]] = [(0, {})]
        while stack:
            node, box = stack.pop()
            if tree.left[node] == LEAF:
                yield node, box
                continue
            condition_index = node_conditions[node]
            feature = features[condition_index]
            for child, (spans, missing) in zip(
                (tree.left[node], tree.right[node]), self._sides[condition_index], strict=True
            ):
                inner = None
                if box is not None:
                    values = box.get(feature, self.domains[feature].all_values).within(spans, missing)
                    reachable = self.domains[feature].reached(values)
                    inner = {**box, feature: reachable} if reachable else None
                stack.append((int(child), inner))


def _sides(condition: Condition) -> tuple[tuple[Spans, bool], tuple[Spans, bool]]:
    """Returns (ranges of words, True if missing values belong to the side) for the left and for the right side of a
    condition."""
    test = condition.test
    cuts: tuple[float, ...]
    if isinstance(test, OneOf):
        cuts = toggled(end for code in test.codes for end in (code, code + 1))
    else:
        cuts = test.cuts
    left, right = InSpans(cuts).spans, InSpans(complement(cuts)).spans
    return (left, condition.missing_left), (right, not condition.missing_left)
