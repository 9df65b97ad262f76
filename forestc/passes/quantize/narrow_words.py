"""Narrower words for `quantize{cost}`: thresholds are rounded where few decisions, or little accuracy, depend on it.

The freedom of paths (`formats`) keeps each row on its side of each threshold. Decisions need less: features give up
bits one after another, those first whose comparators read most, each as many as what is left of the allowance permits.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np

from forestc.costs.prices import prices
from forestc.forest.ir import Forest
from forestc.forest.numbers import Fixed, Ordered
from forestc.passes.quantize.formats import Format, choose
from forestc.passes.quantize.rounding import candidates, with_leaves, with_words
from forestc.passes.share_thresholds.observation import Freedom

LEAST_BITS = 4  # below it little is saved, and rows that were not given would pay for it
BYTES = (8, 16)  # bits of words that processors hold, and compare with fewer bytes than 32


def word_widths(cost: str) -> Sequence[int]:
    """The widths that are worth a try: for C those of bytes, for logic all. Raises OptionError for an unknown cost."""
    return BYTES if prices(cost).firmware else range(LEAST_BITS, 32)


@dataclass(frozen=True)
class Narrowing:
    """forest: before quantizing, as one sum. freedoms, missing: by feature. leaf_bits: of the leaves with which words
    are tried. allowed: whether a quantized forest is near enough to the model."""

    forest: Forest
    freedoms: Sequence[Freedom]
    missing: list[bool]
    leaf_bits: int
    allowed: Callable[[Forest], bool]

    def run(self, formats: Sequence[Format], widths: Sequence[int], free: Sequence[int]) -> list[Format]:
        """The formats with fewer bits, of `widths`, where that is allowed; as they were if even they are not. free: the
        features whose words may change. Tries O(features log(widths)) forests."""
        chosen = list(formats)
        if not self.allowed(self._shaped(chosen)):
            return chosen
        for index in sorted(free, key=lambda feature: -self._bits_read(feature, formats[feature])):

            def allowed(form: Format, index: int = index) -> bool:
                return self.allowed(self._shaped([*chosen[:index], form, *chosen[index + 1 :]]))

            narrower = self._narrower(index, chosen[index], widths)
            # mostly, if a width is allowed then so are the wider ones
            chosen[index] = [*narrower, chosen[index]][bisect_left(narrower, True, key=allowed)]
        return chosen

    def _narrower(self, index: int, form: Format, widths: Sequence[int]) -> list[Format]:
        """By increasing width."""
        if not isinstance(form.number, Fixed | Ordered) or not len(form.words):
            return []
        feature, bits = self.forest.features[index], form.number.bits
        among = takewhile(lambda width: width < bits, sorted(widths))
        return [
            choose(feature.number, feature.raw, self.missing[index], self.freedoms[index], "fixed", width)
            for width in among
        ]

    def _bits_read(self, index: int, form: Format) -> int:
        """Bits that a feature's splits read."""
        if not isinstance(form.number, Fixed | Ordered) or not len(form.words):
            return 0
        own = self.forest.conditions.of(index)
        placed = zip(self.forest.trees, self.forest.conditions.places, strict=True)
        uses = sum(int(np.isin(places[tree.inner], own).sum()) for tree, places in placed)
        return form.number.bits * uses

    def _shaped(self, formats: list[Format]) -> Forest:
        return with_leaves(with_words(self.forest, formats, self.missing), candidates(self.forest, self.leaf_bits)[0])
