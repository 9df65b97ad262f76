"""Narrower words for `quantize-inputs{cost}`: thresholds are rounded where few decisions, or little accuracy, depend on
it.

The freedom of paths (`word_formats`) keeps each row on its side of each threshold. Decisions need less: features give
up bits one after another, those first whose comparators read most, each as many as what is left of the allowance
permits.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence

import numpy as np

from forestc.costs.prices import prices
from forestc.forest.ir import Forest
from forestc.forest.numbers import Fixed, Ordered
from forestc.passes.word_formats import Format

LEAST_BITS = 4  # below it little is saved, and rows that were not given would pay for it
BYTES = (8, 16)  # bits of words that processors hold, and compare with fewer bytes than 32


def word_widths(cost: str) -> Sequence[int]:
    """The widths that are worth a try: for C those of bytes, for logic all. Raises OptionError for an unknown cost."""
    return BYTES if prices(cost).firmware else range(LEAST_BITS, 32)


def narrowed(
    forest: Forest,
    formats: Sequence[Format],
    free: Sequence[int],
    widths: Sequence[int],
    of_width: Callable[[int, int], Format],
    allowed: Callable[[list[Format]], bool],
) -> list[Format]:
    """Returns the formats with fewer bits where `allowed` says so; as they were if it refuses even these.

    free: the features whose words may change. of_width: a feature's format of a number of bits. Tries
    O(features log(widths)) lists of formats.
    """
    chosen = list(formats)
    if not allowed(chosen):
        return chosen
    for index in sorted(free, key=lambda feature: -_bits_read(forest, feature, formats[feature])):
        form = chosen[index]
        if not isinstance(form.number, Fixed | Ordered) or not len(form.words):
            continue
        narrower = [width for width in sorted(widths) if width < form.number.bits]
        tried = [*(of_width(index, width) for width in narrower), form]

        def fits(form: Format, index: int = index) -> bool:
            return allowed([*chosen[:index], form, *chosen[index + 1 :]])

        # mostly, if a width is allowed then so are the wider ones
        chosen[index] = tried[bisect_left(tried[:-1], True, key=fits)]
    return chosen


def _bits_read(forest: Forest, index: int, form: Format) -> int:
    """Bits that a feature's splits read."""
    if not isinstance(form.number, Fixed | Ordered) or not len(form.words):
        return 0
    own = forest.conditions.of(index)
    placed = zip(forest.trees, forest.conditions.places, strict=True)
    return form.number.bits * sum(int(np.isin(condition_of[tree.inner], own).sum()) for tree, condition_of in placed)
