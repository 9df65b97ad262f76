"""The layout `mixed` in C: the smallest trees as branches, the others as nodes. Between the two.

Branches cost flash by the split, and save time by the tree: a split is some 7 bytes larger than in tables, and a tree
takes some 20 instructions less, beside 7 for each split on the way. So the smallest trees become branches.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from forestc.backends.c.branches import BranchesInC, branches_demand
from forestc.backends.c.demands import Demand
from forestc.backends.c.inputs import Inputs
from forestc.backends.c.nodes import NodesInC, nodes, nodes_demand
from forestc.backends.c.trees import TreeContext, TreeText
from forestc.errors import OptionError
from forestc.forest.ir import Forest

SHARE = 0.5  # of all splits are branches


@dataclass(frozen=True)
class MixedInC:
    """Tables, which begin the scores, and branches."""

    tables: NodesInC
    branches: BranchesInC

    def declarations(self) -> list[str]:
        """Those of the tables."""
        return self.tables.declarations()

    def functions(self) -> list[TreeText]:
        """Those of the branches."""
        return self.branches.functions()

    def sums(self, into: str) -> list[str]:
        """The loop over the tables, then the branches."""
        return [*self.tables.sums(into), *self.branches.sums(into)]


def mixed(context: TreeContext) -> MixedInC | NodesInC | None:
    """The layout `mixed`; tables alone if no tree is small enough, None if no other tree has a split that decides."""
    first = unrolled(context.forest)
    if not first:
        return nodes(context)
    tables = nodes(context.only([index for index in range(len(context.forest.trees)) if index not in set(first)]))
    return None if tables is None else MixedInC(tables, BranchesInC(context, first, []))


def unrolled(forest: Forest, share: float = SHARE) -> list[int]:
    """The indices of trees that become branches: the smallest, as many as have no more than a share of all splits."""
    splits = {index: len(tree.inner) for index, tree in enumerate(forest.trees) if len(tree.inner)}
    left, chosen = share * sum(splits.values()), list[int]()
    for index in sorted(splits, key=lambda index: (splits[index], index)):
        if splits[index] > left:
            break
        left -= splits[index]
        chosen.append(index)
    return sorted(chosen)


def mixed_demand(inputs: Inputs) -> Demand:
    """The demand of the layout `mixed`. Raises OptionError for a forest that it does not hold, or of which all trees
    are alike."""
    forest = inputs.forest
    top = set(unrolled(forest))
    parts = [
        [index for index, tree in enumerate(forest.trees) if len(tree.inner) and (index in top) is unroll]
        for unroll in (True, False)
    ]
    if not all(parts):
        raise OptionError("--c-layout mixed is for trees of which some become branches", do="use --c-layout branches")
    above, below = (
        layout(replace(inputs, forest=replace(forest, trees=tuple(forest.trees[index] for index in some))))
        for layout, some in zip((branches_demand, nodes_demand), parts, strict=True)
    )
    trees = {
        some[place]: amounts
        for part, some in zip((above, below), parts, strict=True)
        for place, amounts in part.trees.items()
    }
    apart = {"tops": above.row["tree"]}  # calls of branches; the loop over tables has its own price
    tables = {"long_number" if name == "long" else name: amount for name, amount in below.flash.items()}
    return Demand(above.flash | tables | apart, above.stack | below.stack, above.row | below.row | apart, trees)
