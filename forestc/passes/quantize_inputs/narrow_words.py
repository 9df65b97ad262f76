"""Narrows words for `quantize-inputs{cost}`: rounds thresholds as far as decisions or accuracy permit."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence

import numpy as np

from forestc.costs.prices import prices
from forestc.forest.ir import Forest
from forestc.forest.numbers import Fixed, Ordered
from forestc.passes.word_formats import Format

LEAST_BITS = 4  # bits of a word at least; fewer lose accuracy on new rows
BYTES = (8, 16)  # bits of words that processors compare cheaply: one or two bytes


def word_widths(cost: str) -> Sequence[int]:
    """Returns the widths to try: 8 and 16 bits for C, 4 to 31 for logic. Raises OptionError for an unknown cost."""
    return BYTES if prices(cost).firmware else range(LEAST_BITS, 32)


def narrowed(
    forest: Forest,
    formats: Sequence[Format],
    free: Sequence[int],
    widths: Sequence[int],
    of_width: Callable[[int, int], Format],
    allowed: Callable[[list[Format]], bool],
) -> list[Format]:
    """Narrows the words of one feature after the other. Returns a list of formats.
    free: indices of the features that may be narrowed.
    of_width: returns a feature's format of at most this many bits.
    allowed: returns True for acceptable formats."""
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

        # Bisection works, because words wider than an allowed width are mostly allowed, too.
        chosen[index] = tried[bisect_left(tried[:-1], True, key=fits)]
    return chosen


def _bits_read(forest: Forest, index: int, form: Format) -> int:
    if not isinstance(form.number, Fixed | Ordered) or not len(form.words):
        return 0
    own = forest.conditions.of(index)
    placed = zip(forest.trees, forest.conditions.node_conditions, strict=True)
    return form.number.bits * sum(int(np.isin(condition_of[tree.inner], own).sum()) for tree, condition_of in placed)
