"""Input formats for `quantize`: which integers each feature becomes, and where its thresholds land.

Rows say which values occur; for every distinct threshold t they leave an interval (low, high] it may
move in without changing any row's path (`algorithms.node_bounds`). The fewest fraction bits with a
multiple of 2^-k in every interval of a feature are enough.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.node_bounds import FlatTrees, update_node_bounds
from forestc.errors import OptionError
from forestc.forest.evaluate import encode
from forestc.forest.ir import LEAF, NO_SET, Forest
from forestc.forest.numbers import (
    Category,
    Fixed,
    Float,
    NumberType,
    Ordered,
    check_type,
    threshold_key,
    word_range,
)
from forestc.forest.rows import Rows

MOST_FIXED_BITS = 24  # a float32 holds no more; past it the order-preserving key is no wider and exact
MOST_INTEGER_BITS = 32


@dataclass
class Freedom:
    """What rows say of one feature: range, whether all values are whole, whether any is missing, and
    for each distinct threshold the interval (low, high] that it may move in."""

    thresholds: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    smallest: float = math.inf
    largest: float = -math.inf
    whole: bool = True
    missing: bool = False


@dataclass(frozen=True)
class Format:
    """The chosen words of one feature: type, the word of each distinct threshold, and what it keeps."""

    number: NumberType
    words: NDArray[np.int64]
    keeps: str


def observe(forest: Forest, rows: Rows | None) -> list[Freedom]:
    """One Freedom a feature. Without rows nothing may move. Time O(rows * trees * depth)."""
    freedoms = [Freedom(t, t.copy(), t.copy()) for t in map(forest.thresholds_of, range(len(forest.features)))]
    if rows is None:
        return freedoms
    trees = flat_trees(forest)
    low, high = np.full(len(trees.feature), -np.inf), np.full(len(trees.feature), np.inf)
    cuts = [_cuts_of(forest, index) for index in range(len(freedoms))]
    around = [(np.full(len(c), -np.inf), np.full(len(c), np.inf)) for c in cuts]
    for batch in rows.batches():
        x = encode(forest, batch.X)
        update_node_bounds(x, trees, low, high)
        for index, freedom in enumerate(freedoms):
            known = x[:, index][~np.isnan(x[:, index])]
            freedom.missing |= len(known) < len(x)
            if len(known):
                freedom.smallest = min(freedom.smallest, float(known.min()))
                freedom.largest = max(freedom.largest, float(known.max()))
                freedom.whole &= bool((known == np.floor(known)).all()) and bool(np.isfinite(known).all())
                if len(cuts[index]):  # a cut of a set moves between the values of all rows, not of its node's
                    ends = np.concatenate([[-np.inf], np.sort(known), [np.inf]])
                    place = np.searchsorted(ends, cuts[index], side="left")
                    np.maximum(around[index][0], ends[np.maximum(place - 1, 0)], out=around[index][0])
                    np.minimum(around[index][1], ends[place], out=around[index][1])
    for index, freedom in enumerate(freedoms):
        here = np.flatnonzero((trees.feature == index) & (trees.set_start == NO_SET))
        place = np.searchsorted(freedom.thresholds, trees.threshold[here])
        freedom.low = np.full(len(freedom.thresholds), -np.inf)
        freedom.high = np.full(len(freedom.thresholds), np.inf)
        np.maximum.at(freedom.low, place, low[here])
        np.minimum.at(freedom.high, place, high[here])
        if len(cuts[index]):
            place = np.searchsorted(freedom.thresholds, cuts[index])
            freedom.low[place] = np.maximum(freedom.low[place], around[index][0])
            freedom.high[place] = np.minimum(freedom.high[place], around[index][1])
    return freedoms


def _cuts_of(forest: Forest, index: int) -> NDArray[np.float64]:
    """The cuts of all sets on a feature that is no category, ascending."""
    if isinstance(forest.features[index].number, Category):
        return np.zeros(0)
    found = {
        float(cut)
        for tree in forest.trees
        for chosen in np.unique(tree.set_index[tree.feature == index]).tolist()
        if chosen != NO_SET
        for cut in tree.sets[chosen]
    }
    return np.array(sorted(found))


def flat_trees(forest: Forest) -> FlatTrees:
    """All trees of a float forest in one piece, for the compiled pass over rows."""
    sizes = [tree.size for tree in forest.trees]
    roots = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    offset = np.repeat(roots, sizes)
    members: list[float] = []
    spans = []
    for tree in forest.trees:
        ends = len(members) + np.cumsum([0, *map(len, tree.sets)])
        members += [float(member) for chosen in tree.sets for member in chosen]
        chosen = tree.set_index
        spans.append(np.where(chosen == NO_SET, NO_SET, [ends[chosen], ends[np.minimum(chosen + 1, len(tree.sets))]]))
    set_start, set_end = np.concatenate(spans, axis=1).astype(np.int64)

    def joined(name: str) -> NDArray[Any]:
        return np.concatenate([getattr(tree, name) for tree in forest.trees])

    left, right = joined("left"), joined("right")
    ordered = np.array([not isinstance(f.number, Category) for f in forest.features] + [False])
    return FlatTrees(
        roots=roots,
        feature=joined("feature"),
        threshold=joined("threshold"),
        left=np.where(left == LEAF, LEAF, left + offset),
        right=np.where(right == LEAF, LEAF, right + offset),
        missing_left=joined("missing_left"),
        set_start=set_start,
        set_end=set_end,
        members=np.array(members, dtype=np.float64),
        cuts=(set_start != NO_SET) & ordered[joined("feature")],
    )


def choose(
    number: NumberType,
    raw: NumberType,
    missing: bool,
    freedom: Freedom,
    way: str,
    input_bits: int | None,
) -> Format:
    """A feature's format: integers as they are, else as few fixed-point bits as its freedom allows, else
    the ordered key. way: auto, fixed or ordered. input_bits: at most so many bits, approximate if needed."""
    if isinstance(number, Category):
        return Format(number, np.zeros(0, dtype=np.int64), "exact")
    t = freedom.thresholds
    if not len(t):
        return Format(Fixed(1), np.zeros(0, dtype=np.int64), "not read")
    seen = freedom.smallest <= freedom.largest
    if way != "ordered" and seen and freedom.whole:
        wanted = integer_type(freedom, missing)
        if wanted is not None and (input_bits is None or wanted.bits <= input_bits):
            return Format(wanted, _clipped(np.ceil(t), wanted, missing), "exact for whole numbers")
    if way != "ordered" and seen:
        found = _fewest_bits(freedom, missing, input_bits or (MOST_INTEGER_BITS if way == "fixed" else MOST_FIXED_BITS))
        if found is not None:
            return found
        if input_bits is not None or way == "fixed":
            return _narrowed(freedom, missing, input_bits or MOST_INTEGER_BITS)
    bits = raw.bits if isinstance(raw, Float) else 64
    return Format(Ordered(bits), threshold_key(t, bits), "exact")


def given(number: NumberType, missing: bool, freedom: Freedom) -> Format:
    """The words of thresholds in a format somebody asked for."""
    check_type(number)
    if isinstance(number, Ordered):
        return Format(number, threshold_key(freedom.thresholds, number.bits), "exact")
    if not isinstance(number, Fixed):
        raise OptionError(f"{number} is no integer format", do="use uint8, fixed<12,4>, ordered32 and the like")
    scaled = _scaled(freedom.thresholds, number.fraction)
    low, high = _scaled(freedom.low, number.fraction), np.floor(_scaled(freedom.high, number.fraction))
    nearest = np.ceil(scaled)
    nearest = np.where((nearest > high) & (np.floor(scaled) > low), np.floor(scaled), nearest)
    words = _clipped(nearest, number, missing)
    kept = bool(((words > low) & (words <= high)).all())
    return Format(number, words, "exact on the rows" if kept else "approximate")


def integer_type(freedom: Freedom, missing: bool) -> Fixed | None:
    """The integer type that holds the values seen and tells all thresholds apart; None past 32 bits."""
    t = freedom.thresholds[np.isfinite(freedom.thresholds)]
    low = int(min([freedom.smallest, *(np.ceil(t[:1]) - 1)]))
    high = int(max([freedom.largest, *np.ceil(t[-1:])])) + missing
    return _type_for(low, high, 0, MOST_INTEGER_BITS)


def _type_for(low: int, high: int, fraction: int, most: int) -> Fixed | None:
    signed = low < 0
    bits = max((~low).bit_length() if signed else 0, max(high, 0).bit_length()) + signed
    bits = max(bits, 2 if signed else 1)
    return Fixed(bits, fraction, signed) if bits <= most else None


def _scaled(values: NDArray[np.float64], fraction: int) -> NDArray[np.float64]:
    with np.errstate(over="ignore"):
        return np.ldexp(values, fraction)


def _clipped(words: NDArray[np.float64], number: NumberType, missing: bool) -> NDArray[np.int64]:
    """Threshold words; one past either end of the range for conditions that always or never hold."""
    span = word_range(number, missing)
    inside = np.clip(words, -(2.0**62), 2.0**62).astype(np.int64)
    return np.clip(inside, span.low, span.high + 1)


def _fewest_bits(freedom: Freedom, missing: bool, most: int) -> Format | None:
    """Fixed-point with the fewest fraction bits that leave each row's path alone, in at most `most` bits."""
    t = freedom.thresholds
    finite = np.isfinite(t)
    if freedom.largest == math.inf and np.isposinf(t).any():  # `x < inf` must tell infinity from the rest
        return None
    reach = float(np.abs(t[finite]).max(initial=0.0))
    start = -max(0, math.frexp(reach)[1]) if reach else 0
    for fraction in range(start, start + most + 40):
        low, high = _scaled(freedom.low[finite], fraction), np.floor(_scaled(freedom.high[finite], fraction))
        if not (high > low).all():
            continue
        scaled = _scaled(t[finite], fraction)
        above = np.ceil(scaled)
        nearest = np.where(
            (above <= high) & ((above - scaled <= 0.5) | (np.floor(scaled) <= low)), above, np.floor(scaled)
        )
        # floor(scaled) may fall at or below low where above was too high: the interval's own multiple then
        nearest = np.where((nearest > low) & (nearest <= high), nearest, high)
        number = _type_for(int(nearest.min(initial=1)) - 1, int(nearest.max(initial=1)) + missing, fraction, most)
        if number is None:
            return None
        span = word_range(number, missing)
        words = np.where(t < 0, span.low, span.high + 1)  # where everything, or nothing, is below infinity
        words[finite] = nearest.astype(np.int64)
        return Format(number, words, "exact on the rows")
    return None


def _narrowed(freedom: Freedom, missing: bool, most: int) -> Format:
    """Fixed-point in at most `most` bits, as many of them fraction bits as fit; thresholds to the nearest."""
    finite = freedom.thresholds[np.isfinite(freedom.thresholds)]
    reach = float(np.abs(finite).max(initial=0.0)) or 1.0
    for fraction in range(most + 2 - math.frexp(reach)[1], -1100, -1):
        scaled = np.rint(_scaled(finite, fraction))
        low, high = (int(scaled.min()) - 1, int(scaled.max()) + missing) if len(scaled) else (0, 1)
        number = _type_for(low, high, fraction, most)
        if number is not None:
            words = _clipped(np.rint(_scaled(freedom.thresholds, fraction)), number, missing)
            return Format(number, words, "approximate")
    raise OptionError(f"{most} input bits are too few", do="give more input_bits")


def parse_formats(formats: Mapping[str, Any] | None, forest: Forest) -> dict[str, str]:
    """The formats option, checked against the feature names. Raises OptionError."""
    if formats is None:
        return {}
    if not isinstance(formats, Mapping):
        raise OptionError("formats is not a mapping of feature names to types", do='write {"age":"uint8"}')
    names = {feature.name for feature in forest.features}
    result = {}
    for name, text in formats.items():
        if name not in names:
            raise OptionError(f"formats names {name!r}, which no condition reads", do="check the name")
        result[name] = str(text)
    return result
