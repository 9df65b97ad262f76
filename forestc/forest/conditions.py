"""Represents the conditions of nodes: tests, operations on their cuts, and a table of all conditions of a forest.

A row goes left if its node's test holds. A missing value is not tested: it goes where `missing_left` says.

| test    | holds for x where                                                             |
|---------|-------------------------------------------------------------------------------|
| Below   | x < threshold                                                                 |
| InSpans | an odd number of the cuts is <= x: x in [c0, c1) or [c2, c3) ...              |
| OneOf   | the category's code is one of the codes (`count` stands for all unseen codes) |
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
NO_SET = -1  # stands for a set's number at a node with a threshold
INFINITY = float("inf")


def toggled(cuts: Iterable[Member]) -> tuple[Member, ...]:
    """Returns the cuts in ascending order, without pairs of equal cuts, as these cancel. Applied to the cuts of two
    tests, it gives their exclusive or."""
    odd: dict[Member, None] = {}
    for cut in cuts:
        if cut in odd:
            del odd[cut]
        else:
            odd[cut] = None
    return tuple(sorted(odd))


def complement(cuts: Iterable[Member]) -> tuple[Member, ...]:
    """Returns the cuts of the opposite test, which holds exactly where the test with the given cuts does not."""
    return toggled((*cuts, -INFINITY))


def within(x: NDArray[Any], cuts: Sequence[Member]) -> NDArray[np.bool_]:
    """Returns an array: True where an odd number of the ascending cuts is <= x."""
    return np.asarray(np.searchsorted(np.array(cuts, dtype=x.dtype), x, side="right") & 1 == 1)


@dataclass(frozen=True)
class Below:
    """The test x < threshold."""

    threshold: Member

    @property
    def cuts(self) -> tuple[Member, ...]:
        return (-INFINITY, self.threshold)

    def holds(self, x: NDArray[Any]) -> NDArray[np.bool_]:
        """Returns an array: True where x < threshold. No x may be missing."""
        return np.asarray(x < self.threshold)


@dataclass(frozen=True)
class InSpans:
    """The test that an odd number of the ascending cuts is <= x."""

    cuts: tuple[Member, ...]

    @property
    def spans(self) -> tuple[Span, ...]:
        """The half-open spans [low, high) in which the test holds, ascending."""
        return tuple(zip(self.cuts[::2], (*self.cuts[1::2], INFINITY), strict=False))

    def holds(self, x: NDArray[Any]) -> NDArray[np.bool_]:
        return within(x, self.cuts)


@dataclass(frozen=True)
class OneOf:
    """The test that a category's code is one of the ascending `codes`."""

    codes: tuple[int, ...]

    def holds(self, x: NDArray[Any]) -> NDArray[np.bool_]:
        return np.isin(x, self.codes)


Test: TypeAlias = Below | InSpans | OneOf


def members_of(test: InSpans | OneOf) -> tuple[Member, ...]:
    """Returns a test's cuts or codes, in the form of `Tree.sets`."""
    return test.cuts if isinstance(test, InSpans) else test.codes


def shortest_test(cuts: Iterable[Member]) -> Below | InSpans:
    """Returns the shortest test that holds if an odd number of the cuts is <= x. The cuts may be in any order."""
    fewest = toggled(cuts)
    return Below(fewest[1]) if len(fewest) == 2 and fewest[0] == -INFINITY else InSpans(fewest)


@dataclass(frozen=True)
class Condition:
    """The condition of a node. feature: index into `Forest.features`. missing_left: True if missing values go left."""

    feature: int
    test: Test
    missing_left: bool = False

    def sends_left(self, x: NDArray[Any], absent: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Returns an array: True where a value of the feature goes left. absent: True where a value is missing."""
        return np.where(absent, self.missing_left, self.test.holds(x))


@dataclass(frozen=True, eq=False)
class ConditionTable:
    """The distinct conditions of a forest as arrays, sorted by feature, then thresholds before sets, both ascending."""

    feature: NDArray[np.int32]
    threshold: NDArray[Any]  # 0 if a set decides
    set_number: NDArray[np.int32]  # index into `sets`; NO_SET if the threshold decides
    sets: tuple[tuple[Member, ...], ...]
    missing_left: NDArray[np.bool_]
    categorical: NDArray[np.bool_]
    node_conditions: tuple[NDArray[np.int32], ...]  # for each tree (nodes,) indices of conditions; -1 at a leaf

    def __repr__(self) -> str:
        return f"<ConditionTable: {len(self):,} conditions>"

    def __len__(self) -> int:
        return len(self.feature)

    def __iter__(self) -> Iterator[Condition]:
        return map(self.__getitem__, range(len(self)))

    def __getitem__(self, index: int) -> Condition:
        return Condition(int(self.feature[index]), self.test(index), bool(self.missing_left[index]))

    def test(self, index: int) -> Test:
        if self.set_number[index] == NO_SET:
            return Below(self.threshold[index].item())
        members = self.sets[self.set_number[index]]
        return OneOf(tuple(map(int, members))) if self.categorical[index] else InSpans(members)

    @cached_property
    def comparators(self) -> NDArray[np.int64]:
        """Ascending indices of conditions, one for each distinct pair of feature and test: the first of conditions that
        differ only in `missing_left`."""
        new = np.ones(len(self), dtype=bool)
        columns = (self.feature, self.threshold, self.set_number)
        new[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
        return np.flatnonzero(new)

    def of(self, feature: int) -> NDArray[np.int64]:
        """Returns an array with the indices of all conditions on a feature."""
        return np.arange(*np.searchsorted(self.feature, [feature, feature + 1]))

    def thresholds(self, feature: int) -> NDArray[Any]:
        """Returns the distinct thresholds and cuts on a feature, ascending; an empty array for a category."""
        indices = self.of(feature)
        if not len(indices) or self.categorical[indices[0]]:
            return np.zeros(0, dtype=self.threshold.dtype)
        chosen = self.set_number[indices]
        cuts = [np.array(self.sets[number], dtype=self.threshold.dtype) for number in set(chosen.tolist()) - {NO_SET}]
        return np.unique(np.concatenate([self.threshold[indices[chosen == NO_SET]], *cuts]))


def table_of(trees: Sequence[Tree], categories: Sequence[bool], on_words: bool) -> ConditionTable:
    """Returns the table of the trees' distinct conditions. categories: True for each feature that is a category.
    on_words: True if thresholds are integers."""
    inner = [tree.inner for tree in trees]
    dtype = np.int64 if on_words else np.float64

    def joined(name: str, kind: DTypeLike) -> NDArray[Any]:
        arrays = [getattr(tree, name)[nodes] for tree, nodes in zip(trees, inner, strict=True)]
        return np.concatenate([np.zeros(0, dtype=kind), *arrays]).astype(kind, copy=False)

    feature, threshold = joined("feature", np.int32), joined("threshold", dtype)
    missing_left = joined("missing_left", np.bool_)
    sets, set_number = _distinct_sets(trees, inner)
    threshold = np.where(set_number == NO_SET, threshold, 0) + dtype(0)  # -0.0 and 0.0 are one threshold.
    keys = [missing_left, threshold, set_number, feature]  # np.lexsort takes the last key as the primary one.
    order = np.lexsort([key for key in keys if len(key) and (key != key[0]).any()] or [feature])
    new = np.ones(len(order), dtype=bool)
    new[1:] = np.logical_or.reduce([key[order[1:]] != key[order[:-1]] for key in keys]) if len(order) > 1 else True
    condition = np.empty(len(order), dtype=np.int32)
    condition[order] = np.cumsum(new) - 1
    chosen = order[new]
    ends = np.cumsum([0, *map(len, inner)])
    node_conditions = []
    for tree, nodes, start, stop in zip(trees, inner, ends[:-1], ends[1:], strict=True):
        here = np.full(tree.size, -1, dtype=np.int32)
        here[nodes] = condition[start:stop]
        node_conditions.append(here)
    return ConditionTable(
        feature[chosen],
        threshold[chosen],
        set_number[chosen],
        sets,
        missing_left[chosen],
        np.array([*categories, False])[feature[chosen]],
        tuple(node_conditions),
    )


def _distinct_sets(
    trees: Sequence[Tree], inner: Sequence[NDArray[np.int64]]
) -> tuple[tuple[tuple[Member, ...], ...], NDArray[np.int32]]:
    """Returns a sorted tuple of the distinct sets, and an array: the index of each inner node's set, or NO_SET."""
    used = {
        tree.sets[chosen]
        for tree, nodes in zip(trees, inner, strict=True)
        if tree.sets
        for chosen in set(tree.set_index[nodes].tolist()) - {NO_SET}
    }
    sets = tuple(sorted(used))
    number = {members: index for index, members in enumerate(sets)}
    chosen = [np.zeros(0, dtype=np.int32)]
    for tree, nodes in zip(trees, inner, strict=True):
        # NO_SET is -1, so as an index it reads the last entry, which is NO_SET again.
        renamed = np.array([*(number.get(members, NO_SET) for members in tree.sets), NO_SET], dtype=np.int32)
        chosen.append(renamed[tree.set_index[nodes]])
    return sets, np.concatenate(chosen)


def tree_arrays(
    node_conditions: NDArray[np.int32], threshold: NDArray[Any], sets: Mapping[int, tuple[Member, ...]]
) -> dict[str, Any]:
    """Returns the fields `threshold`, `set_index` and `sets` of a tree, by name.
    node_conditions: (nodes,) index of each node's condition; -1 at a leaf.
    threshold: (conditions,) thresholds.
    sets: the sets of conditions, by the condition's index."""
    used = sorted(set(node_conditions.tolist()) & sets.keys()) if sets else []
    set_index = np.full(len(node_conditions), NO_SET, dtype=np.int32)
    by_set = np.isin(node_conditions, used)
    if used:
        set_index[by_set] = np.searchsorted(used, node_conditions[by_set])
    threshold = np.where(by_set, 0, np.append(threshold, 0)[node_conditions])
    return {"threshold": threshold, "set_index": set_index, "sets": tuple(sets[condition] for condition in used)}
