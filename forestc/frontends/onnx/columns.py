"""The columns that reach an ONNX tree operator, and conditions taken back through what made them.

A column is one column of the model's inputs and the steps that changed it: monotone functions in the exact
arithmetic of onnxruntime (a cast, a scaler), and an imputer's replacements of one value. A condition on the
changed column becomes a condition on the raw one by bisection on the floats' own order: a monotone function
of floats may be flat in places, but `f(x) >= c` still holds from one float on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forestc.forest.conditions import NO_SET, Member
from forestc.forest.ir import Feature
from forestc.forest.numbers import FLOAT32, FLOAT64, key_value, order_key
from forestc.frontends.shared.exact import least_keys, next_above

Array: TypeAlias = NDArray[Any]
Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]
Ints: TypeAlias = NDArray[np.int64]
BLOCK = 1 << 14  # cuts that are sought together: they stay in the processor's cache


def bits_of(dtype: Any) -> int:
    """The floats a column of this type is told apart by: 32 for float32, else 64. Integers come as whole float64s."""
    return 32 if np.dtype(dtype) == np.float32 else 64


@dataclass(frozen=True)
class Monotone:
    """A step that never turns round: rising or falling, NaN to NaN.

    function: takes (n,) floats and `numbers`, one of each a column or (n,) of each, and gives (n,) floats. Columns
    changed by the same node share it, so that they can be folded together.
    """

    function: Callable[..., Array]
    bits: int
    rising: bool = True
    numbers: tuple[Any, ...] = ()


NARROW = Monotone(lambda x: x.astype(np.float32), 64)  # as a first step it is what `Feature.raw` does


@dataclass(frozen=True)
class Replace:
    """An imputer: `value` (NaN: a missing value) becomes `by`."""

    value: float
    by: float
    bits: int


Step: TypeAlias = Monotone | Replace


@dataclass(frozen=True)
class Column:
    """Column `index` of the rows, of the input's own type, and what was done to it since.

    whole: whether the input is of integers, which are never missing.
    """

    index: int
    bits: int
    whole: bool = False
    steps: tuple[Step, ...] = ()

    def then(self, step: Step) -> Column:
        return Column(self.index, self.bits, self.whole, (*self.steps, step))


@dataclass
class Conditions:
    """Conditions side by side: condition i holds for x where an odd number of its cuts is <= x, or where `even`
    says so, an even number. missing: whether it holds for NaN.

    cuts (m,): ascending for each condition; condition i has cuts[first[i]:first[i + 1]].
    """

    cuts: Floats
    first: Ints
    even: Bools
    missing: Bools

    def __len__(self) -> int:
        return len(self.even)

    @property
    def counts(self) -> Ints:
        return np.diff(self.first)

    def holds_at(self, values: Floats) -> Bools:
        """Whether each condition holds for its own value (n,), none of them NaN."""
        reached = np.concatenate([[0], np.cumsum(self.cuts <= np.repeat(values, self.counts))])
        return np.asarray(((reached[self.first[1:]] - reached[self.first[:-1]]) & 1 == 1) != self.even)

    def taken(self, chosen: Ints) -> Conditions:
        """Some of the conditions, in the order asked for."""
        counts = self.counts[chosen]
        first = np.concatenate([[0], np.cumsum(counts)])
        places = np.arange(first[-1]) + np.repeat(self.first[chosen] - first[:-1], counts)
        return Conditions(self.cuts[places], first, self.even[chosen], self.missing[chosen])


def joined(parts: list[Conditions]) -> Conditions:
    """Conditions one after the other."""
    counts = np.concatenate([part.counts for part in parts])
    return Conditions(
        np.concatenate([part.cuts for part in parts]),
        np.concatenate([[0], np.cumsum(counts)]),
        np.concatenate([part.even for part in parts]),
        np.concatenate([part.missing for part in parts]),
    )


def raw_features(columns: Mapping[int, Column], names: Mapping[int, str]) -> tuple[list[Feature], dict[int, Column]]:
    """Features of the raw columns read, ascending, and for each tree column what is left to be folded.

    columns: by number of the tree operator's own column. names: of raw columns that have one.
    Raw columns that every reader rounds to float32 first are features of float32.
    """
    used: dict[int, list[Column]] = {}
    for column in columns.values():
        used.setdefault(column.index, []).append(column)
    features, narrow = [], set()
    for index in sorted(used):
        readers = used[index]
        if all(column.bits == 64 and column.steps[:1] == (NARROW,) for column in readers):
            narrow.add(index)
        number = FLOAT32 if index in narrow or readers[0].bits == 32 else FLOAT64
        name, missing = names.get(index, f"x{index}"), not readers[0].whole
        features.append(Feature(name, number, index, missing, number, named=index in names))
    kept = {
        key: Column(column.index, 32, column.whole, column.steps[1:]) if column.index in narrow else column
        for key, column in columns.items()
    }
    return features, kept


def folded(conditions: Conditions, reads: Ints, columns: Mapping[int, Column]) -> Conditions:
    """The conditions on raw columns. reads: the tree operator's column that each condition reads.

    Columns that the same nodes changed are folded together: time O(cuts * steps * 64), whatever their number.
    """
    if not any(column.steps for column in columns.values()):
        return conditions
    kinds: dict[tuple[Any, ...], int] = {}
    numbers = sorted(columns)
    kind = np.array([kinds.setdefault(_kind(columns[number]), len(kinds)) for number in numbers])
    place = np.searchsorted(numbers, reads)
    parts, order = [], []
    for index in range(len(kinds)):
        chosen = np.flatnonzero(kind[place] == index)
        alike = np.flatnonzero(kind == index)
        steps = [columns[numbers[at]].steps for at in alike.tolist()]
        parts.append(_through(conditions.taken(chosen), steps, np.searchsorted(alike, place[chosen])))
        order.append(chosen)
    return joined(parts).taken(np.argsort(np.concatenate(order), kind="stable"))


def _kind(column: Column) -> tuple[Any, ...]:
    """What columns that are folded together have in common."""
    return tuple(
        (step.function, step.rising) if isinstance(step, Monotone) else (np.isnan(step.value), step.bits)
        for step in column.steps
    )


def _through(conditions: Conditions, steps: Sequence[tuple[Step, ...]], own: Ints) -> Conditions:
    """Conditions on what the steps make as conditions on what they take, from the last step to the first.

    steps: of each column, the same in kind. own: each condition's column among these.
    """
    place = len(steps[0])
    while place:
        last = [column[place - 1] for column in steps]
        if isinstance(last[0], Replace):
            conditions = _before_replacing(conditions, [step for step in last if isinstance(step, Replace)], own)
            place -= 1
            continue
        run = place
        while run and isinstance(steps[0][run - 1], Monotone):
            run -= 1
        group = [[step for step in column[run:place] if isinstance(step, Monotone)] for column in steps]
        conditions = _before_function(conditions, group, own)
        place = run
    return _tidy(conditions)


def _before_function(conditions: Conditions, group: Sequence[Sequence[Monotone]], own: Ints) -> Conditions:
    bits = group[0][0].bits
    rising = sum(not step.rising for step in group[0]) % 2 == 0
    at = np.repeat(own, conditions.counts)
    functions = []
    for place, first in enumerate(group[0]):
        given = [np.array([column[place].numbers[k] for column in group])[at] for k in range(len(first.numbers))]
        functions.append((first.function, given))

    def reached(keys: Ints, here: slice) -> Bools:
        x: Array = key_value(keys, bits)
        if bits == 32:
            x = x.astype(np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            for function, given in functions:
                x = function(x, *(numbers[here] for numbers in given))
        return np.asarray((x.astype(np.float64) >= conditions.cuts[here]) == rising)

    cuts = np.empty(len(conditions.cuts))
    for start in range(0, len(cuts), BLOCK):
        here = slice(start, min(start + BLOCK, len(cuts)))
        cuts[here] = _least_where(partial(reached, here=here), here.stop - start, bits)
    # A falling function reaches a cut up to a point, not from it on: with an odd number of cuts that turns the
    # condition round.
    odd = conditions.counts % 2 == 1
    even = conditions.even if rising else conditions.even != odd
    return _sorted(Conditions(cuts, conditions.first, even, conditions.missing))


def _least_where(holds: Callable[[Ints], Bools], count: int, bits: int) -> Floats:
    """For each of `count` rising predicates on order keys the least float that satisfies it: -infinity where all
    do, NaN where none does."""
    lowest, highest = order_key(np.array([-np.inf, np.inf]), bits).tolist()
    low, high = np.full(count, lowest, dtype=np.int64), np.full(count, highest, dtype=np.int64)
    always, never = holds(low), ~holds(high)
    return np.where(never, np.nan, np.where(always, -np.inf, key_value(least_keys(holds, low, high), bits)))


def _before_replacing(conditions: Conditions, steps: Sequence[Replace], own: Ints) -> Conditions:
    wanted = conditions.holds_at(np.array([step.by for step in steps])[own])
    values = np.array([step.value for step in steps])[own]
    if np.isnan(steps[0].value):
        return Conditions(conditions.cuts, conditions.first, conditions.even, wanted)
    changed = np.flatnonzero(conditions.holds_at(values) != wanted)
    above = next_above(values[changed], steps[0].bits)
    above[np.isposinf(values[changed])] = np.nan  # nothing lies above infinity
    counts = conditions.counts
    places = np.repeat(conditions.first[changed + 1], 2)
    counts[changed] += 2
    cuts = np.insert(conditions.cuts, places, np.stack([values[changed], above], axis=1).ravel())
    first = np.concatenate([[0], np.cumsum(counts)])
    return _sorted(Conditions(cuts, first, conditions.even, conditions.missing))


def _sorted(conditions: Conditions) -> Conditions:
    """Each condition's cuts ascending again; cuts that are never reached (NaN) are left out."""
    counts, cuts = conditions.counts, conditions.cuts
    owner = np.repeat(np.arange(len(conditions)), counts)
    if counts.max(initial=0) > 1:
        order = np.lexsort([cuts, owner])
        cuts, owner = cuts[order], owner[order]
    kept = ~np.isnan(cuts)
    first = np.concatenate([[0], np.cumsum(np.bincount(owner[kept], minlength=len(conditions)))])
    return Conditions(cuts[kept], first, conditions.even, conditions.missing)


def _tidy(conditions: Conditions) -> Conditions:
    """The same conditions with as few cuts as can be: pairs of equal cuts do nothing, nor does one at -infinity
    but turn the condition round."""
    owner = np.repeat(np.arange(len(conditions)), conditions.counts)
    cuts = conditions.cuts + 0.0  # both zeros are one cut
    new = np.ones(len(cuts), dtype=bool)
    new[1:] = (cuts[1:] != cuts[:-1]) | (owner[1:] != owner[:-1])
    run = np.diff(np.flatnonzero(np.concatenate([new, [True]])))
    kept = np.flatnonzero(new)[run % 2 == 1]
    cuts, owner = cuts[kept], owner[kept]
    lowest = np.isneginf(cuts)
    even = conditions.even.copy()
    even[owner[lowest]] ^= True
    first = np.concatenate([[0], np.cumsum(np.bincount(owner[~lowest], minlength=len(conditions)))])
    return Conditions(cuts[~lowest], first, even, conditions.missing)


def thresholds(conditions: Conditions) -> tuple[Floats, Bools, Ints]:
    """Conditions as `x < threshold` where that is all they are: thresholds (n,), whether the condition is the
    other one (so that its children change places), and the conditions that only a set of cuts can say.

    A condition that holds for all numbers or for none is x < -infinity, or the other one.
    """
    conditions = _tidy(conditions)
    counts = conditions.counts
    threshold = np.full(len(conditions), -np.inf)
    single = counts == 1
    threshold[single] = conditions.cuts[conditions.first[:-1][single]]
    # `x < t` holds where none of its one cuts is reached; never: where none of no cuts is reached, `even` is all
    turned = np.where(counts == 0, conditions.even, np.where(single, ~conditions.even, conditions.even))
    return threshold, turned, np.flatnonzero(counts > 1)


def cut_sets(conditions: Conditions, chosen: Ints) -> tuple[Ints, list[tuple[Member, ...]]]:
    """For every condition the index of its set of cuts, NO_SET but for the chosen, and the distinct sets."""
    conditions = _tidy(conditions)
    index = np.full(len(conditions), NO_SET, dtype=np.int64)
    known: dict[tuple[Member, ...], int] = {}
    bounds, cuts = conditions.first.tolist(), conditions.cuts.tolist()
    for node in chosen.tolist():
        index[node] = known.setdefault(tuple(cuts[bounds[node] : bounds[node + 1]]), len(known))
    return index, list(known)
