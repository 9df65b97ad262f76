"""Which trees of a mix become branches; the others become tables.

Branches cost flash by the split, and save time by the tree: a split is some 7 bytes larger than in tables, and a tree
takes some 20 instructions less, beside 7 for each split on the way. So the smallest trees become branches.
"""

from __future__ import annotations

from forestc.forest.ir import Forest

SHARE = 0.5  # of all splits are branches


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
