"""Conditions as values: the tests of nodes, the algebra of cuts, and the table of a forest's distinct conditions.

If a node's condition holds for a row, the row goes left. A condition has one of three tests:

| test    | holds for x where                                                             |
|---------|-------------------------------------------------------------------------------|
| Below   | x < threshold                                                                 |
| InSpans | an odd number of the cuts is <= x: x in [c0, c1) or [c2, c3) ...              |
| OneOf   | the category's code is one of the codes (`count` stands for all unseen codes) |

Below is short for the cuts (-inf, threshold). A missing value is not tested: it goes where `missing_left` says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from forestc.forest.tree import Tree

Member: TypeAlias = int | float
Span: TypeAlias = tuple[Member, Member]
NO_SET = -1  # in place of a set's number, where a threshold decides
INFINITY = float("inf")


def toggled(cuts: Iterable[Member]) -> tuple[Member, ...]:
    """The fewest cuts with the same meaning, ascending: two equal cuts cancel.

    The cuts of two conditions, put together, hold exactly where one of the two does."""
    odd: dict[Member, None] = {}
    for cut in cuts:
        if cut in odd:
            del odd[cut]
        else:
            odd[cut] = None
    return tuple(sorted(odd))


def complement(cuts: Iterable[Member]) -> tuple[Member, ...]:
    """Cuts that hold exactly where these do not."""
    return toggled((*cuts, -INFINITY))


def within(x: NDArray[Any], cuts: Sequence[Member]) -> NDArray[np.bool_]:
    """For each x whether an odd number of the ascending cuts is <= x."""
    return np.asarray(np.searchsorted(np.array(cuts, dtype=x.dtype), x, side="right") & 1 == 1)


@dataclass(frozen=True)
class Below:
    """x < threshold."""

    threshold: Member

    @property
    def cuts(self) -> tuple[Member, ...]:
        """The test as cuts."""
        return (-INFINITY, self.threshold)

    def holds(self, x: NDArray[Any]) -> NDArray[np.bool_]:
        """For each x, none of them missing."""
        return np.asarray(x < self.threshold)


@dataclass(frozen=True)
class InSpans:
    """An odd number of the cuts, which ascend, is <= x; after an odd number of cuts the last span is open."""

    cuts: tuple[Member, ...]

    @property
    def spans(self) -> tuple[Span, ...]:
        """The half-open spans [low, high) in which it holds, ascending."""
        return tuple(zip(self.cuts[::2], (*self.cuts[1::2], INFINITY), strict=False))

    def holds(self, x: NDArray[Any]) -> NDArray[np.bool_]:
        """For each x, none of them missing."""
        return within(x, self.cuts)


@dataclass(frozen=True)
class OneOf:
    """The category's code is one of these, which ascend."""

    codes: tuple[int, ...]

    def holds(self, x: NDArray[Any]) -> NDArray[np.bool_]:
        """For each code, none of them missing."""
        return np.isin(x, self.codes)


Test: TypeAlias = Below | InSpans | OneOf


def members_of(test: InSpans | OneOf) -> tuple[Member, ...]:
    """The cuts or codes of a set, as `Tree.sets` has them."""
    return test.cuts if isinstance(test, InSpans) else test.codes


def shortest_test(cuts: Iterable[Member]) -> Below | InSpans:
    """The shortest test that holds where an odd number of the cuts, in any order, is <= x."""
    fewest = toggled(cuts)
    return Below(fewest[1]) if len(fewest) == 2 and fewest[0] == -INFINITY else InSpans(fewest)


@dataclass(frozen=True)
class Condition:
    """The condition of a node. feature: index into Forest.features. missing_left: where a missing value goes."""

    feature: int
    test: Test
    missing_left: bool = False

    def sends_left(self, x: NDArray[Any], absent: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """For each x of the feature, whether it goes left. absent: whether each x is missing."""
        return np.where(absent, self.missing_left, self.test.holds(x))


@dataclass(frozen=True, eq=False)
class ConditionTable:
    """The distinct conditions of a forest, ordered by feature, thresholds before sets, both ascending.

    The arrays have one entry a condition: threshold is 0 where a set decides; set_number is NO_SET where the threshold
    does, else an index into sets. places: for each tree (nodes,) each node's condition, -1 at a leaf.
    """

    feature: NDArray[np.int32]
    threshold: NDArray[Any]
    set_number: NDArray[np.int32]
    sets: tuple[tuple[Member, ...], ...]
    missing_left: NDArray[np.bool_]
    categorical: NDArray[np.bool_]
    places: tuple[NDArray[np.int32], ...]

    def __repr__(self) -> str:
        return f"<ConditionTable: {len(self):,} conditions>"

    def __len__(self) -> int:
        return len(self.feature)

    def __iter__(self) -> Iterator[Condition]:
        return map(self.__getitem__, range(len(self)))

    def __getitem__(self, place: int) -> Condition:
        return Condition(int(self.feature[place]), self.test(place), bool(self.missing_left[place]))

    def test(self, place: int) -> Test:
        """The condition's test, for values that are not missing."""
        if self.set_number[place] == NO_SET:
            return Below(self.threshold[place].item())
        members = self.sets[self.set_number[place]]
        return OneOf(tuple(map(int, members))) if self.categorical[place] else InSpans(members)

    @cached_property
    def comparators(self) -> NDArray[np.int64]:
        """One condition for each distinct pair of feature and test, whatever the direction of missing values."""
        new = np.ones(len(self), dtype=bool)
        columns = (self.feature, self.threshold, self.set_number)
        new[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
        return np.flatnonzero(new)

    def of(self, feature: int) -> NDArray[np.int64]:
        """The conditions on one feature."""
        return np.arange(*np.searchsorted(self.feature, [feature, feature + 1]))

    def thresholds(self, feature: int) -> NDArray[Any]:
        """Distinct thresholds and cuts on a feature, ascending; none on a category."""
        places = self.of(feature)
        if not len(places) or self.categorical[places[0]]:
            return np.zeros(0, dtype=self.threshold.dtype)
        chosen = self.set_number[places]
        cuts = [np.array(self.sets[number], dtype=self.threshold.dtype) for number in set(chosen.tolist()) - {NO_SET}]
        return np.unique(np.concatenate([self.threshold[places[chosen == NO_SET]], *cuts]))


def table_of(trees: Sequence[Tree], categories: Sequence[bool], on_words: bool) -> ConditionTable:
    """The distinct conditions of trees. categories: whether each feature is one. on_words: whether thresholds are
    integers. Time O(nodes * log(nodes)), in whole arrays but for sets."""
    inner = [tree.inner for tree in trees]
    dtype = np.int64 if on_words else np.float64

    def joined(name: str, kind: DTypeLike) -> NDArray[Any]:
        arrays = [getattr(tree, name)[nodes] for tree, nodes in zip(trees, inner, strict=True)]
        return np.concatenate([np.zeros(0, dtype=kind), *arrays]).astype(kind, copy=False)

    feature, threshold = joined("feature", np.int32), joined("threshold", dtype)
    missing_left = joined("missing_left", np.bool_)
    sets, set_number = _distinct_sets(trees, inner)
    threshold = np.where(set_number == NO_SET, threshold, 0) + dtype(0)  # -0.0 and 0.0 are one threshold
    keys = [missing_left, threshold, set_number, feature]  # lexsort: the last key is the primary one
    order = np.lexsort([key for key in keys if len(key) and (key != key[0]).any()] or [feature])
    new = np.ones(len(order), dtype=bool)
    new[1:] = np.logical_or.reduce([key[order[1:]] != key[order[:-1]] for key in keys]) if len(order) > 1 else True
    place = np.empty(len(order), dtype=np.int32)
    place[order] = np.cumsum(new) - 1
    chosen = order[new]
    ends = np.cumsum([0, *map(len, inner)])
    places = []
    for tree, nodes, start, stop in zip(trees, inner, ends[:-1], ends[1:], strict=True):
        here = np.full(tree.size, -1, dtype=np.int32)
        here[nodes] = place[start:stop]
        places.append(here)
    return ConditionTable(
        feature[chosen],
        threshold[chosen],
        set_number[chosen],
        sets,
        missing_left[chosen],
        np.array([*categories, False])[feature[chosen]],
        tuple(places),
    )


def _distinct_sets(
    trees: Sequence[Tree], inner: Sequence[NDArray[np.int64]]
) -> tuple[tuple[tuple[Member, ...], ...], NDArray[np.int32]]:
    """The distinct sets that nodes use, ascending, and for all inner nodes the set's number."""
    used = {
        tree.sets[chosen]
        for tree, nodes in zip(trees, inner, strict=True)
        if tree.sets
        for chosen in set(tree.set_index[nodes].tolist()) - {NO_SET}
    }
    sets = tuple(sorted(used))
    number = {members: place for place, members in enumerate(sets)}
    chosen = [np.zeros(0, dtype=np.int32)]
    for tree, nodes in zip(trees, inner, strict=True):
        # a set that no node uses has no number; NO_SET is the last entry
        renamed = np.array([*(number.get(members, NO_SET) for members in tree.sets), NO_SET], dtype=np.int32)
        chosen.append(renamed[tree.set_index[nodes]])
    return sets, np.concatenate(chosen)


def tree_arrays(
    places: NDArray[np.int32], threshold: NDArray[Any], sets: Mapping[int, tuple[Member, ...]]
) -> dict[str, Any]:
    """The arrays `threshold`, `set_index` and `sets` of a tree with these conditions.

    places: (nodes,) each node's condition, -1 at a leaf. threshold: (conditions,) of every condition. sets: condition
    to set, for those with a set."""
    used = sorted(set(places.tolist()) & sets.keys()) if sets else []
    set_index = np.full(len(places), NO_SET, dtype=np.int32)
    by_set = np.isin(places, used)
    if used:
        set_index[by_set] = np.searchsorted(used, places[by_set])
    threshold = np.where(by_set, 0, np.append(threshold, 0)[places])
    return {"threshold": threshold, "set_index": set_index, "sets": tuple(sets[place] for place in used)}
