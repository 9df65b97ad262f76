"""Builds new trees for the forests that passes make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.splits.mending_trees import MendingTree
from forestc.forest.builder import make_tree
from forestc.forest.conditions import NO_SET, Below, Condition, Member, members_of
from forestc.forest.ir import LEAF, Tree


def added_tree(tree: MendingTree, conditions: Sequence[Condition], index: int) -> Tree:
    """Turns a tree that corrects wrong decisions into a quantized Tree. conditions: the list into which the tree's
    nodes index."""
    arrays = node_arrays([conditions[number] if number >= 0 else None for number in tree.condition])
    values = [[value] for value, number in zip(tree.value, tree.condition, strict=True) if number < 0]
    return make_tree(
        where=f"tree {index}", left=tree.left, right=tree.right, values=values, outputs=[tree.output], quantized=True,
        **arrays,
    )  # fmt: skip


def node_arrays(conditions: Sequence[Condition | None]) -> dict[str, Any]:
    """Returns arguments of `make_tree`, by name, for nodes with these conditions; None stands for a leaf."""
    count = len(conditions)
    feature, set_index, missing_left = [LEAF] * count, [NO_SET] * count, [False] * count
    threshold, sets = list[Member]([0] * count), list[tuple[Member, ...]]()
    for node, condition in enumerate(conditions):
        if condition is None:
            continue
        feature[node], missing_left[node] = condition.feature, condition.missing_left
        if isinstance(condition.test, Below):
            threshold[node] = condition.test.threshold
        else:
            set_index[node] = len(sets)
            sets.append(members_of(condition.test))
    return {
        "feature": feature, "threshold": threshold, "missing_left": missing_left, "set_index": set_index, "sets": sets
    }  # fmt: skip


def tree_of_nodes(
    tree: Tree,
    root: int,
    children: Callable[[int], tuple[int, ...]],
    value: Callable[[int], NDArray[np.generic]],
    where: str,
    *,
    quantized: bool,
) -> Tree:
    """Builds a new tree from nodes of `tree`, from `root` down.
    children: returns the two children of a node; an empty tuple for a leaf.
    value: returns a leaf's values (outputs,)."""
    nodes: list[int] = []
    stack = [root]
    while stack:
        nodes.append(stack.pop())
        stack += reversed(children(nodes[-1]))
    index_of = {node: rank for rank, node in enumerate(nodes)}
    sides = [[index_of[child] for child in children(node)] or [LEAF, LEAF] for node in nodes]
    return make_tree(
        where=where,
        feature=tree.feature[nodes],
        threshold=tree.threshold[nodes],
        left=[left for left, _ in sides],
        right=[right for _, right in sides],
        values=np.array([value(node) for node in nodes if not children(node)]),
        outputs=tree.outputs,
        missing_left=tree.missing_left[nodes],
        set_index=tree.set_index[nodes],
        sets=tree.sets,
        cover=None if tree.cover is None else tree.cover[nodes],
        ids=tree.ids[nodes],
        drawn=tree.drawn,
        words=tree.threshold.dtype.kind == "i",
        quantized=quantized,
    )
