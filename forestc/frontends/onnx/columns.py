"""Describes the columns that an ONNX tree operator reads, and translates conditions on them to raw columns.

A column is an input column after steps: monotone functions, or an imputer's replacement of one value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from forestc.forest.conditions import NO_SET, Member
from forestc.forest.ir import Feature
from forestc.forest.numbers import FLOAT32, FLOAT64, key_value, order_key
from forestc.frontends.shared.exact import least_keys, next_above

Array: TypeAlias = NDArray[Any]
Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]
Ints: TypeAlias = NDArray[np.int64]
BLOCK = 1 << 14  # cuts bisected together; more do not fit the processor's cache


def bits_of(dtype: DTypeLike) -> int:
    """Returns the number of bits of the floats that hold a column of this type: 32 for float32, otherwise 64."""
    return 32 if np.dtype(dtype) == np.float32 else 64


@dataclass(frozen=True)
class Monotone:
    """A monotone step that maps NaN to NaN."""

    function: Callable[..., Array]  # maps (n,) floats and `numbers` to (n,) floats
    bits: int  # width of the floats that the step takes
    rising: bool = True  # False for a falling function
    numbers: tuple[Any, ...] = ()  # parameters of the function


# A step that rounds to float32. If every use of a column begins with this step, the feature becomes float32 instead.
NARROW = Monotone(lambda x: x.astype(np.float32), 64)


@dataclass(frozen=True)
class Replace:
    """An imputer's step: replaces `value` (NaN: a missing value) with `by`. bits: width of the column's floats."""

    value: float
    by: float
    bits: int


@dataclass(frozen=True)
class Hot:
    """An encoder's step: 1 for an integer, 0 for any other and for a missing value."""

    value: int


Step: TypeAlias = Monotone | Replace | Hot


@dataclass(frozen=True)
class RawColumn:
    """Column `index` of the rows, with steps applied to it."""

    index: int
    bits: int  # width of the column's floats
    integral: bool = False  # True if the input holds integers, which are never missing
    steps: tuple[Step, ...] = ()

    def then(self, step: Step) -> RawColumn:
        return RawColumn(self.index, self.bits, self.integral, (*self.steps, step))


@dataclass
class CutArrays:
    """Conditions on a number x, as arrays. Condition i holds if the number of its cuts up to x is odd; with even[i], if
    it is even."""

    cuts: Floats  # (m,) cuts, ascending within each condition
    first: Ints  # condition i has cuts[first[i]:first[i + 1]]
    even: Bools
    missing: Bools  # True if the condition holds for NaN

    def __len__(self) -> int:
        return len(self.even)

    @property
    def counts(self) -> Ints:
        return np.diff(self.first)

    def holds_at(self, values: Floats) -> Bools:
        """Returns (n,): entry i is True if condition i holds for values[i]. values: (n,), without NaN."""
        reached = np.concatenate([[0], np.cumsum(self.cuts <= np.repeat(values, self.counts))])
        return np.asarray(((reached[self.first[1:]] - reached[self.first[:-1]]) & 1 == 1) != self.even)

    def taken(self, chosen: Ints) -> CutArrays:
        """Returns arrays of the conditions with these indices, in this order."""
        counts = self.counts[chosen]
        first = np.concatenate([[0], np.cumsum(counts)])
        indices = np.arange(first[-1]) + np.repeat(self.first[chosen] - first[:-1], counts)
        return CutArrays(self.cuts[indices], first, self.even[chosen], self.missing[chosen])


def joined(parts: list[CutArrays]) -> CutArrays:
    counts = np.concatenate([part.counts for part in parts])
    return CutArrays(
        np.concatenate([part.cuts for part in parts]),
        np.concatenate([[0], np.cumsum(counts)]),
        np.concatenate([part.even for part in parts]),
        np.concatenate([part.missing for part in parts]),
    )


def raw_features(
    columns: Mapping[int, RawColumn], names: Mapping[int, str]
) -> tuple[list[Feature], dict[int, RawColumn]]:
    """Returns a list of features for the raw columns that are read, and {operator's column: raw column with its
    remaining steps}.
    columns: operator's column -> raw column.
    names: raw column -> name."""
    used: dict[int, list[RawColumn]] = {}
    for column in columns.values():
        used.setdefault(column.index, []).append(column)
    features, narrow = [], set()
    for index in sorted(used):
        readers = used[index]
        if all(column.bits == 64 and column.steps[:1] == (NARROW,) for column in readers):
            narrow.add(index)
        number = FLOAT32 if index in narrow or readers[0].bits == 32 else FLOAT64
        name, missing = names.get(index, f"x{index}"), not readers[0].integral
        features.append(Feature(name, number, index, missing, number, named=index in names))
    remaining = {
        key: RawColumn(column.index, 32, column.integral, column.steps[1:]) if column.index in narrow else column
        for key, column in columns.items()
    }
    return features, remaining


def folded(conditions: CutArrays, reads: Ints, columns: Mapping[int, RawColumn]) -> CutArrays:
    """Returns the conditions translated from the tree operator's columns to raw columns, in the same order. reads: for
    each condition, the tree operator's column that it reads."""
    if not any(column.steps for column in columns.values()):
        return conditions
    kinds: dict[tuple[Any, ...], int] = {}
    numbers = sorted(columns)
    kind = np.array([kinds.setdefault(_kind(columns[number]), len(kinds)) for number in numbers])
    position = np.searchsorted(numbers, reads)
    parts, order = [], []
    for index in range(len(kinds)):
        chosen = np.flatnonzero(kind[position] == index)
        group = np.flatnonzero(kind == index)
        steps = [columns[numbers[at]].steps for at in group.tolist()]
        parts.append(_through(conditions.taken(chosen), steps, np.searchsorted(group, position[chosen])))
        order.append(chosen)
    return joined(parts).taken(np.argsort(np.concatenate(order), kind="stable"))


def _kind(column: RawColumn) -> tuple[Any, ...]:
    """Returns a key for the functions of a column's steps. Columns with equal keys are translated together."""
    return tuple(
        (step.function, step.rising)
        if isinstance(step, Monotone)
        else (np.isnan(step.value), step.bits)
        if isinstance(step, Replace)
        else ()
        for step in column.steps
    )


def _through(conditions: CutArrays, steps: Sequence[tuple[Step, ...]], column_of: Ints) -> CutArrays:
    """Returns the conditions translated from values after the steps to values before them. steps: each column's steps.
    column_of: each condition's index in `steps`."""
    end = len(steps[0])
    while end:
        last = [column[end - 1] for column in steps]
        if isinstance(last[0], Replace):
            conditions = _before_replacing(conditions, [step for step in last if isinstance(step, Replace)], column_of)
            end -= 1
            continue
        if isinstance(last[0], Hot):
            conditions = _before_encoding(conditions, [step for step in last if isinstance(step, Hot)], column_of)
            end -= 1
            continue
        run = end
        while run and isinstance(steps[0][run - 1], Monotone):
            run -= 1
        group = [[step for step in column[run:end] if isinstance(step, Monotone)] for column in steps]
        conditions = _before_function(conditions, group, column_of)
        end = run
    return _tidy(conditions)


def _before_function(conditions: CutArrays, group: Sequence[Sequence[Monotone]], column_of: Ints) -> CutArrays:
    bits = group[0][0].bits
    rising = sum(not step.rising for step in group[0]) % 2 == 0
    at = np.repeat(column_of, conditions.counts)
    functions = []
    for index, first in enumerate(group[0]):
        numbers = [np.array([column[index].numbers[k] for column in group])[at] for k in range(len(first.numbers))]
        functions.append((first.function, numbers))

    def reached(keys: Ints, here: slice) -> Bools:
        x: Array = key_value(keys, bits)
        if bits == 32:
            x = x.astype(np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            for function, numbers in functions:
                x = function(x, *(number[here] for number in numbers))
        return np.asarray((x.astype(np.float64) >= conditions.cuts[here]) == rising)

    cuts = np.empty(len(conditions.cuts))
    for start in range(0, len(cuts), BLOCK):
        here = slice(start, min(start + BLOCK, len(cuts)))
        cuts[here] = _least_where(partial(reached, here=here), here.stop - start, bits)
    # A falling function reverses each comparison, so an odd number of cuts inverts the condition.
    odd = conditions.counts % 2 == 1
    even = conditions.even if rising else conditions.even != odd
    return _sorted(CutArrays(cuts, conditions.first, even, conditions.missing))


def _least_where(holds: Callable[[Ints], Bools], count: int, bits: int) -> Floats:
    """Returns an array with the least float that satisfies each monotone predicate; NaN if no float does."""
    lowest, highest = order_key(np.array([-np.inf, np.inf]), bits).tolist()
    low, high = np.full(count, lowest, dtype=np.int64), np.full(count, highest, dtype=np.int64)
    always, never = holds(low), ~holds(high)
    return np.where(never, np.nan, np.where(always, -np.inf, key_value(least_keys(holds, low, high), bits)))


def _before_replacing(conditions: CutArrays, steps: Sequence[Replace], column_of: Ints) -> CutArrays:
    expected = conditions.holds_at(np.array([step.by for step in steps])[column_of])
    values = np.array([step.value for step in steps])[column_of]
    if np.isnan(steps[0].value):
        return CutArrays(conditions.cuts, conditions.first, conditions.even, expected)
    changed = np.flatnonzero(conditions.holds_at(values) != expected)
    above = next_above(values[changed], steps[0].bits)
    above[np.isposinf(values[changed])] = np.nan  # Nothing lies above infinity.
    counts = conditions.counts
    positions = np.repeat(conditions.first[changed + 1], 2)
    counts[changed] += 2
    cuts = np.insert(conditions.cuts, positions, np.stack([values[changed], above], axis=1).ravel())
    first = np.concatenate([[0], np.cumsum(counts)])
    return _sorted(CutArrays(cuts, first, conditions.even, conditions.missing))


def _before_encoding(conditions: CutArrays, steps: Sequence[Hot], column_of: Ints) -> CutArrays:
    zeros = conditions.holds_at(np.zeros(len(conditions)))
    changed = np.flatnonzero(conditions.holds_at(np.ones(len(conditions))) != zeros)
    values = np.array([float(step.value) for step in steps])[column_of[changed]]
    first = np.concatenate([[0], np.cumsum(2 * np.bincount(changed, minlength=len(conditions)))])
    return CutArrays(np.stack([values, values + 1], axis=1).ravel(), first, zeros, zeros)


def _sorted(conditions: CutArrays) -> CutArrays:
    """Returns the conditions with sorted cuts. NaN, a cut that no number reaches, is removed."""
    counts, cuts = conditions.counts, conditions.cuts
    owner = np.repeat(np.arange(len(conditions)), counts)
    if counts.max(initial=0) > 1:
        order = np.lexsort([cuts, owner])
        cuts, owner = cuts[order], owner[order]
    real = ~np.isnan(cuts)
    first = np.concatenate([[0], np.cumsum(np.bincount(owner[real], minlength=len(conditions)))])
    return CutArrays(cuts[real], first, conditions.even, conditions.missing)


def _tidy(conditions: CutArrays) -> CutArrays:
    owner = np.repeat(np.arange(len(conditions)), conditions.counts)
    cuts = conditions.cuts + 0.0  # Adding 0 turns -0.0 into 0.0: the two are one cut.
    new = np.ones(len(cuts), dtype=bool)
    new[1:] = (cuts[1:] != cuts[:-1]) | (owner[1:] != owner[:-1])
    run = np.diff(np.flatnonzero(np.concatenate([new, [True]])))
    odd = np.flatnonzero(new)[run % 2 == 1]
    cuts, owner = cuts[odd], owner[odd]
    lowest = np.isneginf(cuts)
    even = conditions.even.copy()
    even[owner[lowest]] ^= True
    first = np.concatenate([[0], np.cumsum(np.bincount(owner[~lowest], minlength=len(conditions)))])
    return CutArrays(cuts[~lowest], first, even, conditions.missing)


def tests_of(conditions: CutArrays, skipped: Ints) -> tuple[Floats, Bools, Ints, list[tuple[Member, ...]]]:
    """Returns three arrays by condition, and the list of sets. The arrays: threshold t of the test `x < t`; True if the
    node's children must be swapped; index of the set, or NO_SET for a test by threshold.
    skipped: indices of conditions that get no set."""
    conditions = _tidy(conditions)
    counts = conditions.counts
    threshold = np.full(len(conditions), -np.inf)
    single = counts == 1
    threshold[single] = conditions.cuts[conditions.first[:-1][single]]
    # An even condition with one cut is `x < t`; without cuts it always holds.
    turned = np.where(counts == 0, conditions.even, np.where(single, ~conditions.even, conditions.even))
    set_index = np.full(len(conditions), NO_SET, dtype=np.int64)
    sets: dict[tuple[Member, ...], int] = {}
    bounds, cuts = conditions.first.tolist(), conditions.cuts.tolist()
    for node in np.setdiff1d(np.flatnonzero(counts > 1), skipped).tolist():
        set_index[node] = sets.setdefault(tuple(cuts[bounds[node] : bounds[node + 1]]), len(sets))
    return threshold, turned, set_index, list(sets)
