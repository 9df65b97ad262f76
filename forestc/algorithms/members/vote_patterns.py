"""Objectives and limits of choosing members (models) of an ensemble."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.arrays import Bits, Bytes, Floats, Int32s, Ints
from forestc.system.compiled import compiled, share_out

SHARED_WORK = 1 << 20  # rows x members x classes above which cores share the moves


class Objective(Protocol):
    """An objective that scores choices of ensemble members."""

    @property
    def members(self) -> int: ...

    def sums(self, times: Ints) -> NDArray[Any]:
        """Returns the state of a choice: sums over its members, such as the votes on each row."""

    def moved(self, sums: NDArray[Any], member: int, step: int) -> NDArray[Any]:
        """Returns the state after a member counts `step` times more."""

    def value(self, sums: NDArray[Any]) -> tuple[float, int]:
        """Returns the objective for given sums at its best threshold, and that threshold (0 if it uses none)."""

    def values_after(self, sums: NDArray[Any], steps: Ints, smooth: float) -> Floats:
        """Returns the value after one member counts steps[member] times more, for each member, (members,); -inf for a
        step of 0. smooth: weight of rows exactly at the threshold."""


@dataclass(frozen=True)
class Patterns:
    """An objective for members that vote with integers: the summed gains of all rows with votes above a threshold."""

    votes: Int32s  # (members, patterns) integers of at least 0
    gain: Floats  # (patterns,) worth of deciding a pattern's rows positive, not negative
    most: int = 1  # times that a member may count

    @property
    def members(self) -> int:
        return len(self.votes)

    @property
    def size(self) -> int:
        """Upper bound on the sum of votes, plus one."""
        return 1 + self.most * int(self.votes.max(axis=1, initial=0).sum(dtype=np.int64))

    def sums(self, times: Ints) -> Ints:
        return np.asarray(times @ self.votes.astype(np.int64), dtype=np.int64)

    def moved(self, sums: NDArray[Any], member: int, step: int) -> NDArray[Any]:
        return np.asarray(sums + step * self.votes[member])

    def value(self, sums: NDArray[Any]) -> tuple[float, int]:
        at = np.bincount(sums, self.gain, minlength=int(sums.max(initial=0)) + 1)
        above = np.concatenate([np.cumsum(at[::-1])[::-1][1:], [0.0]])  # value of thresholds 0, 1, ...
        best = int(np.argmax(above))
        return float(above[best]), best

    def values_after(self, sums: NDArray[Any], steps: Ints, smooth: float) -> Floats:
        values = np.full(self.members, -np.inf)
        size = self.size + 1

        def some(first: int, past: int) -> None:
            _threshold_values((self.votes, self.gain), sums, steps, smooth, np.zeros(size), values, first, past)

        share_out(self.members, some, few=self.members if self.votes.size <= SHARED_WORK else 1)
        return values


class Classes(NamedTuple):
    """An objective of trees that score several classes: the weight of correctly decided rows."""

    leaf: Int32s  # (members, rows) leaf that each row reaches
    begin: Ints  # (members + 1,) start of each member's entries in `score`
    score: Floats  # score of each leaf and class
    fed: Ints  # (members, 2) first class that the member feeds; last plus one
    start: Floats  # (classes,) bias of each class
    label: Ints
    weight: Floats
    last: bool = False  # True if the last of equal classes wins

    @property
    def members(self) -> int:
        return len(self.leaf)

    def sums(self, times: Ints) -> Floats:
        total = np.tile(self.start, (self.leaf.shape[1], 1))
        for member in np.flatnonzero(times):
            total = self.moved(total, int(member), int(times[member]))
        return total

    def moved(self, sums: NDArray[Any], member: int, step: int) -> NDArray[Any]:
        first, past = self.fed[member]
        scores = self.score[self.begin[member] : self.begin[member + 1]].reshape(-1, past - first)
        after = sums.copy()
        after[:, first:past] += step * scores[self.leaf[member]]
        return after

    def value(self, sums: NDArray[Any]) -> tuple[float, int]:
        return float(self.weight[self._decided(sums) == self.label].sum()), 0

    def _decided(self, sums: Floats) -> Ints:
        if self.last:
            return np.asarray(sums.shape[1] - 1 - np.argmax(sums[:, ::-1], axis=1))
        return np.asarray(np.argmax(sums, axis=1))

    def _two_best(self, sums: Floats) -> tuple[Ints, Ints]:
        best, without_best = self._decided(sums), sums.copy()
        without_best[np.arange(len(without_best)), best] = -np.inf
        return best, self._decided(without_best)

    def values_after(self, sums: NDArray[Any], steps: Ints, smooth: float) -> Floats:
        values = np.full(self.members, -np.inf)
        rivals = self._two_best(sums)

        def some(first: int, past: int) -> None:
            _class_values(self, sums, rivals, steps, values, first, past)

        share_out(self.members, some, few=self.members if self.leaf.size * sums.shape[1] <= SHARED_WORK else 1)
        return values


@compiled()
def _threshold_values(
    patterns: tuple[Int32s, Floats],
    sums: Ints,
    steps: Ints,
    smooth: float,
    at: Floats,
    values: Floats,
    first: int,
    past: int,
) -> None:
    """Writes `Patterns.values_after` of members first .. past - 1 to `values`. patterns: its votes and gain."""
    votes, gain = patterns
    for member in range(first, past):
        step = steps[member]
        if step == 0:
            continue
        at[:] = 0.0
        for row in range(len(sums)):
            at[sums[row] + step * votes[member, row]] += gain[row]
        above, best = 0.0, -np.inf
        for threshold in range(len(at) - 1, -1, -1):
            best = max(best, above + smooth * at[threshold])
            above += at[threshold]
        values[member] = best


@compiled()
def _wins(score: float, kind: int, other: float, other_kind: int, last: bool) -> bool:
    return score > other or (score == other and (kind > other_kind) == last)


@compiled()
def _class_values(
    trees: Classes, sums: Floats, rivals: tuple[Ints, Ints], steps: Ints, values: Floats, first: int, past: int
) -> None:
    """Writes `Classes.values_after` for the members first .. past - 1 to `values`."""
    leaf, begin, score, fed, _, label, weight, last = trees
    best, second = rivals
    for member in range(first, past):
        step = steps[member]
        if step == 0:
            continue
        low, high = fed[member]
        right = 0.0
        for row in range(len(sums)):
            true_class = label[row]
            at = begin[member] + leaf[member, row] * (high - low) - low
            if high == low + 1:  # only one class moves: compare it with the best other one
                rival = best[row] if best[row] != low else second[row]
                moved = sums[row, low] + step * score[at + low]
                if true_class == low:
                    wins = _wins(moved, true_class, sums[row, rival], rival, last)
                else:
                    wins = rival == true_class and _wins(sums[row, true_class], true_class, moved, low, last)
            else:
                wins = True
                mine = sums[row, true_class] + (step * score[at + true_class] if low <= true_class < high else 0.0)
                for other in range(sums.shape[1]):
                    if other == true_class:
                        continue
                    theirs = sums[row, other] + (step * score[at + other] if low <= other < high else 0.0)
                    if not _wins(mine, true_class, theirs, other, last):
                        wins = False
                        break
            if wins:
                right += weight[row]
        values[member] = right


def merged_patterns(votes: Bytes, gain: Floats) -> Patterns:
    """Returns patterns of 0/1 votes, (rows, members); rows with equal votes share a pattern. gain: (rows,)."""
    _, first, inverse = np.unique(np.packbits(votes, axis=1), axis=0, return_index=True, return_inverse=True)
    total = np.asarray(np.bincount(inverse.ravel(), gain, minlength=len(first)), dtype=np.float64)
    return Patterns(np.ascontiguousarray(votes[first].T, dtype=np.int32), total)


@dataclass(frozen=True)
class Diversity:
    """Limits on the diversity of a choice, which then needs at least two members."""

    credits: Floats  # (members, members) failure credits
    tau: float  # least diversity of a chosen member, constraint (18)
    gamma: float  # least mean diversity, constraint (20)


@dataclass(frozen=True)
class Bill:
    """A hardware cost of a choice: of its members, and of parts that members share."""

    name: str  # unit of the cost
    own: Floats  # (members,) cost of each member
    uses: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 0), np.float32))  # (members, parts)
    part: Floats = field(default_factory=lambda: np.zeros(0))  # (parts,) cost of each part
    most: float = np.inf  # largest cost allowed

    def of(self, chosen: Bits) -> float:
        """Returns the cost of a choice. chosen: (members,) bits."""
        shared = float(self.part[self.uses[chosen].any(axis=0)].sum()) if self.part.size else 0.0
        return float(self.own[chosen].sum()) + shared

    def after(self, chosen: Bits) -> Floats:
        """Returns the cost of the choice after one member is added or removed, for each member, (members,)."""
        own = np.where(chosen, -self.own, self.own)
        if not self.part.size:
            return np.asarray(self.of(chosen) + own)
        users = self.uses[chosen].sum(axis=0)
        free = self.uses @ np.where(users == 0, self.part, 0).astype(np.float32)
        alone = self.uses @ np.where(users == 1, self.part, 0).astype(np.float32)
        return np.asarray(self.of(chosen) + own + np.where(chosen, -alone, free))


@dataclass(frozen=True)
class Limits:
    most: int  # largest number of members
    diversity: Diversity | None = None
    bills: tuple[Bill, ...] = ()
    price: float = 0.0  # price of one unit of the first bill's cost, in units of value
    most_times: int = 1  # times that a member may count

    def violation(self, chosen: Bits) -> float:
        """Returns how far a choice breaks the limits; 0 if it keeps them."""
        count = int(chosen.sum())
        total = float(max(0, count - self.most)) + (count == 0)
        for bill in self.bills:
            total += max(0.0, bill.of(chosen) / max(bill.most, 1e-12) - 1 - 1e-12)
        if self.diversity is not None:
            credits = self.diversity.credits[np.ix_(chosen, chosen)]
            pairs = max(1, count * (count - 1))
            mean_credit = credits.sum(axis=1) / max(1, count - 1)
            total += float(np.maximum(0, self.diversity.tau - 1e-12 - mean_credit).sum()) + 2.0 * (count < 2)
            total += max(0.0, self.diversity.gamma - 1e-12 - float(credits.sum()) / pairs)
        return total

    def violation_after(self, chosen: Bits) -> Floats:
        """Returns the violation after one member is added or removed, for each member, (members,)."""
        count = chosen.sum() + np.where(chosen, -1, 1)
        total = np.maximum(0.0, count - self.most) + (count == 0)
        for bill in self.bills:
            total += np.maximum(0.0, bill.after(chosen) / max(bill.most, 1e-12) - 1 - 1e-12)
        if self.diversity is not None:
            credits, sign = self.diversity.credits, np.where(chosen, -1.0, 1.0)
            inside = credits @ chosen  # credits of each member with the chosen ones
            partners = np.maximum(1, count - 1)
            # Each row of the arrays below is a move, each column a member.
            mean_credit = (inside[None, :] + sign[:, None] * credits) / partners[:, None]
            chosen_after = np.broadcast_to(chosen, mean_credit.shape) ^ np.eye(len(chosen), dtype=bool)
            short = np.maximum(0.0, self.diversity.tau - 1e-12 - mean_credit)
            total += np.where(chosen_after, short, 0.0).sum(axis=1) + 2.0 * (count < 2)
            mean = (inside[chosen].sum() + 2 * sign * inside) / np.maximum(1, count * (count - 1))
            total += np.maximum(0.0, self.diversity.gamma - 1e-12 - mean)
        return np.asarray(total)
