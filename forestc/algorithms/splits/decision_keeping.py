"""Makes a pruned ensemble decide every row as given: leaves move, small trees are added, needless splits go.

Three steps, each on what the one before left (`kept_decisions`, `mending_trees`): leaves move until as few rows as
possible are violated; trees are added that put the others right; then every split goes whose removal violates no row.
"""

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

HOPELESS = 4  # times the rows that may be mended by trees: with more violated rows, leaves are not even tried
PASSES = 3  # over all splits, to find those that are needless


@dataclass(frozen=True)
class Wanted:
    """label: (rows,) the class to be decided of each of the first samples. last: whether the last of equal scores wins.
    largest: leaves hold 0 .. largest. mended: most rows that added trees may put right. node, tree: costs of an added
    split and tree, for each bit of its leaves if per_bit."""

    label: Ints
    last: bool
    largest: int
    mended: int
    node: float
    tree: float
    per_bit: bool = True

    def cost(self, added: MendingTree) -> float:
        """The cost of an added tree without its conditions."""
        return (self.node * added.splits + self.tree) * (added.bits if self.per_bit else 1)


@dataclass(frozen=True)
class KeptEnsemble:
    """An ensemble that decides all rows as wanted. added: the trees beside the pruned ones. cost: of both. mended: rows
    that the added trees put right."""

    pruned: Pruned
    added: tuple[MendingTree, ...]
    cost: float
    mended: int


def keep_decisions(
    trees: Trees, shape: Shape, splits: Splits, outcomes: Outcomes, draft: Pruned, wanted: Wanted
) -> KeptEnsemble | None:
    """What `prune` found, changed until it decides every row as wanted; None if that can't be done. draft stays as it
    is. outcomes: of all conditions on these rows.

    Time O(rows * trees * VISITS), at most MOST_VISITS rows looked at, for the leaves; O(depth * rows * trees) for the
    splits; O(violated rows * conditions) for each level of the added trees.
    """
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
    return KeptEnsemble(pruned, tuple(added), cost, wrong)
