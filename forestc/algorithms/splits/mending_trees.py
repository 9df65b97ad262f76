"""Grows small trees that correct the wrong decisions of a pruned ensemble, over given conditions.

Splits are chosen by the fall of squared error (Breiman et al., 1984), divided by 1 + the condition's cost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forestc.algorithms.arrays import Bits, Floats, Ints
from forestc.algorithms.splits.kept_decisions import UNBOUNDED, Decided, slacks
from forestc.algorithms.splits.state import Outcomes

MOST_SPLITS = 4096  # limits the splits of one tree


@dataclass(frozen=True)
class MendingTree:
    """A tree that corrects decisions; node 0 is the root."""

    output: int  # index of the output that the tree adds to
    condition: tuple[int, ...]  # index of each node's condition, -1 at a leaf
    left: tuple[int, ...]  # left child of each node, -1 at a leaf
    right: tuple[int, ...]  # right child of each node, -1 at a leaf
    value: tuple[int, ...]  # value of each leaf, 0 at other nodes

    @property
    def splits(self) -> int:
        return len(self.condition) // 2

    @property
    def bits(self) -> int:
        """Number of bits of the largest `value` minus the smallest, at least 1."""
        return max(1, (max(self.value) - min(self.value)).bit_length())


def mend(decided: Decided, outcomes: Outcomes, cost: Floats, used: Bits) -> list[MendingTree] | None:
    """Returns trees that correct all wrong rows and updates `decided.scores`; None if a tree cannot be grown. used:
    (conditions,) True for conditions without further cost, updated in place."""
    trees: list[MendingTree] = []
    outputs = decided.scores.shape[1]
    while True:
        slack = slacks(decided)
        wrong = slack < 0
        if not wrong.any():
            return trees
        if outputs == 1:
            output = 0
            low = np.where(decided.label == 1, -decided.scores[:, 0], -UNBOUNDED)
            high = np.where(decided.label == 1, UNBOUNDED, -1 - decided.scores[:, 0])
        else:
            output = int(np.bincount(decided.label[wrong], minlength=outputs).argmax())
            of_class = decided.label == output
            low = np.where(of_class, -slack, -UNBOUNDED)
            high = np.where(of_class, UNBOUNDED, _rooms(decided, output))
            high = np.where(of_class, high, np.maximum(high, 0))  # other classes' violations do not become worse
        grown = _grown(low, high, outcomes, cost, used, output)
        if grown is None:
            return None
        tree, added = grown
        decided.scores[:, output] += added
        trees.append(tree)


def _rooms(decided: Decided, output: int) -> Ints:
    """Returns for each row how much the score `output` may grow before that class wins."""
    score = decided.scores[np.arange(len(decided.label)), decided.label]
    ties = decided.label > output if decided.last else decided.label < output
    return np.asarray(score - decided.scores[:, output] - np.where(ties, 0, 1))


def _grown(
    low: Ints, high: Ints, outcomes: Outcomes, cost: Floats,
    used: Bits, output: int,
) -> tuple[MendingTree, Ints] | None:  # fmt: skip
    """Returns a tree with a value between `low` and `high` for each row, and these values; None on failure."""
    top, bottom = max(0, int(low.max())), min(0, int(high.min()))
    active = np.flatnonzero((high < top) | (low > bottom))
    target = np.where(low[active] > 0, 1.0, np.where(high[active] < 0, -1.0, 0.0))
    holds = outcomes.code[active][:, outcomes.column] < outcomes.cut
    condition, left, right, value = [-1], [-1], [-1], [0]
    pending = [(0, np.arange(len(active)))]
    taken = [0]
    while pending:
        at, rows = pending.pop()
        least, largest = int(low[active[rows]].max(initial=-UNBOUNDED)), int(high[active[rows]].min(initial=UNBOUNDED))
        if least <= largest:
            near = min(max(0, least), largest)  # fewer different values take less logic
            value[at] = next((earlier for earlier in taken if least <= earlier <= largest), near)
            if value[at] not in taken:
                taken.append(value[at])
            continue
        chosen = _best_split(target[rows], holds[rows], cost, used)
        if chosen is None or len(condition) > 2 * MOST_SPLITS:
            return None
        used[chosen] = True
        side = holds[rows, chosen]
        condition[at], left[at], right[at] = chosen, len(condition), len(condition) + 1
        for side_rows in (rows[side], rows[~side]):
            pending.append((len(condition), side_rows))
            condition.append(-1)
            left.append(-1)
            right.append(-1)
            value.append(0)
    tree = MendingTree(output, tuple(condition), tuple(left), tuple(right), tuple(value))
    return tree, added_by(tree, outcomes)


def added_by(tree: MendingTree, outcomes: Outcomes) -> Ints:
    node = np.zeros(len(outcomes.code), dtype=np.int64)
    condition, left, right = (np.array(part) for part in (tree.condition, tree.left, tree.right))
    open_rows = np.flatnonzero(condition[node] >= 0)
    while len(open_rows):
        test = condition[node[open_rows]]
        goes_left = outcomes.code[open_rows, outcomes.column[test]] < outcomes.cut[test]
        node[open_rows] = np.where(goes_left, left[node[open_rows]], right[node[open_rows]])
        open_rows = open_rows[condition[node[open_rows]] >= 0]
    return np.array(tree.value)[node]


def _best_split(target: Floats, holds: Bits, cost: Floats, used: Bits) -> int | None:
    total, count = target.sum(), len(target)
    on_left = holds.sum(axis=0)
    sum_left = target @ holds
    apart = (on_left > 0) & (on_left < count)
    if not apart.any():
        return None
    on_left = np.clip(on_left, 1, count - 1)
    gain = sum_left**2 / on_left + (total - sum_left) ** 2 / (count - on_left) - total**2 / count
    gain = (gain + 1e-9) / (1 + np.where(used, 0.0, cost))
    return int(np.where(apart, gain, -1.0).argmax())
