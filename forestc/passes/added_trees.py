"""Trees that pruning adds, as trees of a forest."""

from __future__ import annotations

from collections.abc import Sequence

from forestc.algorithms.splits.mending_trees import MendingTree
from forestc.forest.builder import make_tree
from forestc.forest.conditions import NO_SET, Below, Condition, Member, members_of
from forestc.forest.ir import LEAF, Tree


def added_tree(tree: MendingTree, conditions: Sequence[Condition], place: int) -> Tree:
    """conditions: those that the tree's nodes index. place: number of the tree in the forest, for errors."""
    count = len(tree.condition)
    feature, threshold, set_index = [LEAF] * count, [0] * count, [NO_SET] * count
    missing_left, sets = [False] * count, list[tuple[Member, ...]]()
    for node, number in enumerate(tree.condition):
        if number < 0:
            continue
        condition = conditions[number]
        feature[node], missing_left[node] = condition.feature, condition.missing_left
        if isinstance(condition.test, Below):
            threshold[node] = int(condition.test.threshold)
        else:
            set_index[node] = len(sets)
            sets.append(members_of(condition.test))
    values = [[value] for value, number in zip(tree.value, tree.condition, strict=True) if number < 0]
    return make_tree(
        where=f"tree {place}", feature=feature, threshold=threshold, left=tree.left, right=tree.right, values=values,
        outputs=[tree.output], missing_left=missing_left, set_index=set_index, sets=sets, quantised=True,
    )  # fmt: skip
