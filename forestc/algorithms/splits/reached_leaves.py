"""Finds the leaves that rows reach in pruned and rewired trees, from codes of the rows."""

from __future__ import annotations

import numpy as np

from forestc.algorithms.arrays import Int32s, Ints
from forestc.algorithms.splits.state import Outcomes, Shape, State, left_of, right_of
from forestc.system.compiled import compiled, share_out

FEW = 4096  # rows for which one core is enough


def leaves_on(shape: Shape, state: State, outcomes: Outcomes) -> Int32s:
    """Returns the leaf that each row reaches, (trees, rows); a merged leaf counts as the first of its group."""
    trees, rows = len(shape.outputs), len(outcomes.code)
    roots = np.full(trees, -1, dtype=np.int64)
    roots[shape.tree] = np.arange(len(shape.tree))  # children come before their parents
    leaf = np.empty((trees, rows), dtype=np.int32)
    share_out(rows, lambda first, last: _walk(shape, state, outcomes, roots, leaf, first, last), few=FEW)
    return leaf


@compiled(lambda shape, *rest: 3 * len(shape.outputs) * (rest[-1] - rest[-2]))
def _walk(shape: Shape, state: State, outcomes: Outcomes, roots: Ints, leaf: Int32s, begin: int, end: int) -> None:
    condition, flipped, group = state.condition, state.flipped, state.group
    for tree in range(len(roots)):
        for row in range(begin, end):
            split, slot = roots[tree], 0
            while split >= 0:
                test = condition[split]
                holds = outcomes.code[row, outcomes.column[test]] < outcomes.cut[test]
                if holds != flipped[split]:
                    slot, split = shape.first[split], left_of(shape, split)
                else:
                    slot, split = shape.middle[split], right_of(shape, split)
            leaf[tree, row] = group[shape.slots[tree] + slot]
