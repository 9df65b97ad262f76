"""The C layout `mixed`: small trees are nested ifs, for speed, and the others are tables, for size."""

from __future__ import annotations

from dataclasses import dataclass, replace

from forestc.backends.c.branches import BranchesInC, branches_demand
from forestc.backends.c.demands import Demand
from forestc.backends.c.inputs import Inputs
from forestc.backends.c.nodes import NodesInC, nodes, nodes_demand
from forestc.backends.c.trees import TreeContext, TreeText
from forestc.errors import OptionError, opt
from forestc.forest.ir import Forest

SHARE = 0.5  # share of all splits that become branches, at most


@dataclass(frozen=True)
class MixedInC:
    """The C code of large trees as tables, which also set the initial scores, and of small trees as branches."""

    tables: NodesInC
    branches: BranchesInC

    def declarations(self) -> list[str]:
        return self.tables.declarations()

    def functions(self) -> list[TreeText]:
        return self.branches.functions()

    def sums(self, into: str) -> list[str]:
        return [*self.tables.sums(into), *self.branches.sums(into)]


def mixed(context: TreeContext) -> MixedInC | NodesInC | None:
    """Returns the trees as C in the layout `mixed`, or in `nodes` if no tree is small enough; None if the tables have
    no splits."""
    first = unrolled(context.forest)
    if not first:
        return nodes(context)
    tables = nodes(context.only([index for index in range(len(context.forest.trees)) if index not in set(first)]))
    return None if tables is None else MixedInC(tables, BranchesInC(context, first, []))


def unrolled(forest: Forest, share: float = SHARE) -> list[int]:
    """Returns the indices of the trees that become branches: the smallest ones, with at most `share` of all splits."""
    splits = {index: len(tree.inner) for index, tree in enumerate(forest.trees) if len(tree.inner)}
    left, chosen = share * sum(splits.values()), list[int]()
    for index in sorted(splits, key=lambda index: (splits[index], index)):
        if splits[index] > left:
            break
        left -= splits[index]
        chosen.append(index)
    return sorted(chosen)


def mixed_demand(inputs: Inputs) -> Demand:
    """Returns the counts of operations from which this layout's costs are estimated. Raises OptionError if all trees
    become branches, or none."""
    forest = inputs.forest
    top = set(unrolled(forest))
    parts = [
        [index for index, tree in enumerate(forest.trees) if len(tree.inner) and (index in top) is unroll]
        for unroll in (True, False)
    ]
    if not all(parts):
        raise OptionError(
            "mixed is for trees of which some become branches", where=opt.c_layout, do=f"use {opt.c_layout:branches}"
        )
    above, below = (
        layout(replace(inputs, forest=replace(forest, trees=tuple(forest.trees[index] for index in some))))
        for layout, some in zip((branches_demand, nodes_demand), parts, strict=True)
    )
    trees = {
        some[position]: amounts
        for part, some in zip((above, below), parts, strict=True)
        for position, amounts in part.trees.items()
    }
    apart = {"tops": above.row["tree"]}  # counts calls of branches; `loop` counts the tables' loop
    tables = {"long_number" if name == "long" else name: amount for name, amount in below.flash.items()}
    return Demand(above.flash | tables | apart, above.stack | below.stack, above.row | below.row | apart, trees)
