"""Makes a pruned ensemble decide every row as required: leaves move, added trees correct the remaining rows, and
needless splits are removed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from forestc.algorithms.arrays import Ints
from forestc.algorithms.splits.kept_decisions import Decided, MovableLeaves, collapse, mend_leaves, slacks, visits_for
from forestc.algorithms.splits.leaf_fitting import Trees, integer_scores, sorted_by_leaf
from forestc.algorithms.splits.mending_trees import MendingTree, mend
from forestc.algorithms.splits.pruning import Pruned, Splits, cost_of, present_trees, spread
from forestc.algorithms.splits.reached_leaves import leaves_on
from forestc.algorithms.splits.state import Outcomes, Shape, State

HOPELESS = 4  # gives up if wrong rows exceed this number * (correctable rows + 1)
PASSES = 3  # passes over all splits to find needless ones


@dataclass(frozen=True)
class RequiredDecisions:
    """The class that a pruned ensemble must give each row, and the cost of trees added to correct wrong rows."""

    label: Ints  # (rows,) class that each row must get
    last: bool  # True if the last of equal scores wins
    largest: int  # largest leaf value; the smallest is 0
    mended: int  # number of rows that added trees may correct
    node: float  # cost of an added split
    tree: float  # cost of an added tree
    per_bit: bool = True  # multiplies both costs by the bits of a leaf

    def cost(self, added: MendingTree) -> float:
        """Returns the cost of an added tree without its conditions."""
        return (self.node * added.splits + self.tree) * (added.bits if self.per_bit else 1)


@dataclass(frozen=True)
class MendedEnsemble:
    """An ensemble that decides all rows as required."""

    pruned: Pruned
    added: tuple[MendingTree, ...]  # trees in addition to the pruned ones
    cost: float  # cost of all trees
    mended: int  # number of rows that the added trees correct


def keep_decisions(
    trees: Trees, shape: Shape, splits: Splits, outcomes: Outcomes, draft: Pruned, wanted: RequiredDecisions
) -> MendedEnsemble | None:
    """Returns a changed copy of the pruned ensemble `draft`, with added trees, that decides every row as required; None
    if that fails."""
    rows = len(wanted.label)
    before = draft.state
    alive, condition = before.alive.copy(), before.condition.copy()
    uses = np.bincount(condition[alive], minlength=len(splits.cost))
    leaf, flipped = leaves_on(shape, before, outcomes), before.flipped.copy()
    state = State(leaf, draft.value.copy(), before.group.copy(), alive, condition, flipped, uses)
    bias = draft.bias.copy()
    leaves = MovableLeaves(state.leaf, state.value, shape.start, shape.outputs, bias, wanted.largest)
    scores = integer_scores(state.leaf, shape.start, state.value, shape.outputs, bias)
    decided = Decided(wanted.label, scores, wanted.last)
    wrong = int((slacks(decided) < 0).sum())
    if wrong > HOPELESS * wanted.mended + HOPELESS:
        return None
    order = sorted_by_leaf(replace(trees, leaf=state.leaf, value=state.value))
    if wrong:
        wrong = mend_leaves(leaves, order, decided, visits_for(rows, len(trees.leaf)), 0)
        spread(shape, state, state.value)
    if wrong > wanted.mended:
        return None
    used = state.uses > 0
    added = mend(decided, outcomes, splits.cost, used) if wrong else ()
    if added is None:
        return None
    added_conditions = np.unique([at for tree in added for at in tree.condition if at >= 0]).astype(np.int64)
    for _ in range(PASSES):
        if not collapse(shape, state, leaves, order, decided, np.argsort(-shape.size, kind="stable")):
            break
        order = sorted_by_leaf(present_trees(trees, shape, state))
    read = np.bincount(state.condition[state.alive], minlength=len(splits.cost)) > 0
    unread = added_conditions[~read[added_conditions]]
    cost = cost_of(shape, state) + float(splits.cost[unread].sum()) + sum(map(wanted.cost, added))
    pruned = replace(
        draft, group=state.group, value=state.value, bias=bias, splits=int(state.alive.sum()), cost=cost, state=state
    )
    return MendedEnsemble(pruned, tuple(added), cost, wrong)
