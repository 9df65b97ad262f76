"""The C layout `mixed`: small trees are nested ifs, for speed, and the others are tables, for size."""

from __future__ import annotations

from dataclasses import dataclass

from forestc.backends.c.branches import BranchesInC
from forestc.backends.c.nodes import NodesInC, nodes
from forestc.backends.c.trees import TreeContext, TreeText
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
