"""Turns the node lists of ONNX tree operators into arrays of nodes, with leaves as nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from forestc.errors import ModelError
from forestc.forest.builder import MAX_DEPTH
from forestc.forest.ir import LEAF
from forestc.frontends.onnx.attributes import Attributes
from forestc.frontends.onnx.columns import Bools, CutArrays, Floats, Ints, bits_of
from forestc.frontends.shared.exact import next_above

Array: TypeAlias = NDArray[Any]

LEQ, LT, GTE, GT, EQ, NEQ, MEMBER, IS_LEAF = range(8)  # numbers node modes; the first seven as TreeEnsemble does
MODES = {
    b"BRANCH_LEQ": LEQ,
    b"BRANCH_LT": LT,
    b"BRANCH_GTE": GTE,
    b"BRANCH_GT": GT,
    b"BRANCH_EQ": EQ,
    b"BRANCH_NEQ": NEQ,
    b"LEAF": IS_LEAF,
}
MAX_NUMBER = 1 << 31  # exceeds every number of an int32
MAX_TREES = 1 << 17  # limits the trees that a damaged file can claim


@dataclass
class NodeArrays:
    """The nodes of all trees as arrays (n,), and the weights of leaves as arrays (w,)."""

    start: Ints  # (trees + 1,) start of each tree's nodes, root first
    tree: Ints  # number of each tree in the file
    ids: Ints  # node numbers, for messages
    feature: Ints
    true: Ints  # child if the condition holds; LEAF at a leaf
    false: Ints  # child if the condition fails; LEAF at a leaf
    conditions: CutArrays  # conditions of the inner nodes, in order
    value: Floats  # value of a leaf without a weight
    weight_leaf: Ints  # leaf of each weight; LEAF for a weight that onnxruntime ignores
    weight_target: Ints
    weight: Floats

    @property
    def inner(self) -> Ints:
        return np.flatnonzero(self.true != LEAF)

    def location(self, node: int) -> str:
        tree = self.tree[np.searchsorted(self.start, node, side="right") - 1]
        return f"tree {tree}, node {self.ids[node]}"


_INVALID = "onnxruntime defines no such tree: convert the model again, with a newer converter"


def _bad(attributes: Attributes, tree: object, node: object, what: str, do: str = _INVALID) -> ModelError:
    return ModelError(what, where=f"{attributes.where}, tree {tree}, node {node}", do=do)


def _refuse(attributes: Attributes, bad: Bools, trees: Ints, ids: Ints, what: str, do: str = _INVALID) -> None:
    if bad.any():
        first = int(np.argmax(bad))
        raise _bad(attributes, trees[first], ids[first], what, do)


def _same_length(attributes: Attributes, lists: Mapping[str, Array], count: int, counted: str) -> None:
    for name, array in lists.items():
        if len(array) != count:
            raise attributes.fail(f"has {len(array)} {name} for {count} {counted}")


def _missing_true(attributes: Attributes, count: int) -> Bools:
    missing = attributes.ints("nodes_missing_value_tracks_true")
    if len(missing) not in (0, count):
        raise attributes.fail(f"has {len(missing)} nodes_missing_value_tracks_true for {count} nodes")
    return missing == 1 if len(missing) else np.zeros(count, dtype=bool)


def classic_nodes(attributes: Attributes, votes: str, dtype: DTypeLike) -> NodeArrays:
    """Reads the nodes of a TreeEnsembleClassifier or -Regressor. Raises ModelError.

    votes: prefix of the weights' attributes, "class" or "target".
    dtype: type of thresholds and weights.
    """
    trees, ids = attributes.ints("nodes_treeids"), attributes.ints("nodes_nodeids")
    n = len(trees)
    if not n:
        raise attributes.fail("has no nodes")
    names = ("nodes_truenodeids", "nodes_falsenodeids", "nodes_featureids")
    true, false, feature = map(attributes.ints, names)
    value = numbers(attributes, "nodes_values", dtype)
    mode = _modes(attributes)
    lists = {"nodes_nodeids": ids, **dict(zip(names, (true, false, feature), strict=True))}
    _same_length(attributes, {**lists, "nodes_values": value, "nodes_modes": mode}, n, "nodes_treeids")
    nan_true = _missing_true(attributes, n)
    begins = np.flatnonzero(np.diff(trees, prepend=trees[0] ^ 1))
    if len(begins) > MAX_TREES:
        raise attributes.fail(f"has {len(begins)} trees", f"at most {MAX_TREES} are read: train fewer trees")
    positions = _NodePositions(attributes, trees, ids, begins)
    at = np.flatnonzero(mode != IS_LEAF)
    to_true, to_false = np.full(n, LEAF, dtype=np.int64), np.full(n, LEAF, dtype=np.int64)
    to_true[at] = positions.children(at, true[at], "true")
    to_false[at] = positions.children(at, false[at], "false")
    weight_leaf, target, weight = _votes(attributes, votes, positions, dtype)
    reached = _without_orphans(to_true, to_false, begins)
    if mode[0] == IS_LEAF and not reached[weight_leaf].all():
        do = "remove nodes that no path reaches, with their weights"
        raise attributes.fail("nodes that no path reaches have weights, which onnxruntime adds to its first leaf", do)
    place = np.append(np.where(reached, np.cumsum(reached) - 1, LEAF), LEAF)  # LEAF indexes the last entry.
    trees, ids, feature = trees[reached], ids[reached], feature[reached]
    value, mode, nan_true = value[reached], mode[reached], nan_true[reached]
    to_true, to_false = place[to_true[reached]], place[to_false[reached]]
    begins, weight_leaf = place[begins], place[weight_leaf]
    n, inner = len(trees), mode != IS_LEAF
    _refuse(attributes, inner & np.isnan(value), trees, ids, "the threshold is not a number (NaN)", "give it a number")
    owner, retained = np.arange(n), np.ones(n, dtype=bool)
    if (mode == EQ).any():
        owner, retained = _chains(mode, feature, to_true, to_false)
        _refuse(attributes, ~retained[owner], trees, ids, "lies on a cycle")
        np.logical_or.at(nan_true, owner, nan_true.copy())
    stays = np.flatnonzero(inner & retained)
    is_child = np.zeros(n, dtype=bool)
    is_child[to_true[stays]] = is_child[to_false[stays]] = True
    what = "is listed first but is another node's child"
    _refuse(attributes, is_child[begins] | ~retained[begins], trees[begins], ids[begins], what, _ROOT_FIRST)
    _refuse_merged(
        attributes, (mode == EQ) & retained & inner, feature, value, to_true, to_false, (weight_leaf, target, weight)
    )
    equal = np.flatnonzero((mode == EQ) | (mode == NEQ))
    intervals = np.searchsorted(stays, owner[equal]), *_exactly(value[equal], dtype)
    conditions = _conditions(mode[stays], value[stays].astype(np.float64), nan_true[stays], intervals, dtype)
    new_index = np.append(np.cumsum(retained) - 1, LEAF)  # LEAF indexes the last entry, so it stays LEAF.
    return NodeArrays(
        start=np.append(new_index[begins], int(retained.sum())),
        tree=trees[begins],
        ids=ids[retained],
        feature=feature[retained],
        true=new_index[to_true][retained],
        false=new_index[to_false][retained],
        conditions=conditions,
        value=value[retained],
        weight_leaf=np.where(inner[weight_leaf], LEAF, new_index[weight_leaf]),
        weight_target=target,
        weight=weight,
    )


def _without_orphans(true: Ints, false: Ints, roots: Ints) -> Bools:
    """Returns (nodes,): False for a node that no path reaches, unless it lies on a cycle or below one."""
    inner = true != LEAF
    parents = np.bincount(np.concatenate([true[inner], false[inner], roots]), minlength=len(true))
    waiting = np.flatnonzero(parents == 0).tolist()
    reached = np.ones(len(true), dtype=bool)
    while waiting:
        node = waiting.pop()
        reached[node] = False
        for child in (int(true[node]), int(false[node])) if inner[node] else ():
            parents[child] -= 1
            if not parents[child]:
                waiting.append(child)
    return reached


_ROOT_FIRST = "list each tree's root before its other nodes: onnxruntime starts at the first one"


def numbers(attributes: Attributes, name: str, dtype: DTypeLike) -> Array:
    """Returns the numbers of the attribute `name`, or of the tensor attribute with the suffix _as_tensor that replaces
    it."""
    plain, tensor = attributes.floats(name), attributes.vector(f"{name}_as_tensor", dtype)
    if len(plain) and len(tensor):
        raise attributes.fail(f"has both {name} and {name}_as_tensor")
    return tensor if len(tensor) else plain.astype(dtype, copy=False)


def _modes(attributes: Attributes) -> NDArray[np.int8]:
    modes = attributes.strings("nodes_modes")
    try:
        return np.fromiter(map(MODES.__getitem__, modes), np.int8, len(modes))
    except KeyError as error:
        known = ", ".join(name.decode() for name in MODES)
        raise attributes.fail(f"node mode {error.args[0][:40]!r} is not known", f"known: {known}") from None


class _NodePositions:
    """The positions of nodes in the file's lists, by tree and node number."""

    def __init__(self, attributes: Attributes, trees: Ints, ids: Ints, begins: Ints) -> None:
        self.attributes, self.trees, self.ids, self.begins = attributes, trees, ids, begins
        names = trees[begins]
        self.by_name = np.argsort(names, kind="stable")
        if (twice := np.flatnonzero(np.diff(names[self.by_name]) == 0)).size:
            name = names[self.by_name[twice[0]]]
            raise attributes.fail(
                f"the nodes of tree {name} are not listed together",
                "list the nodes tree by tree: onnxruntime starts a new tree at each change of nodes_treeids",
            )
        if (bad := np.flatnonzero((names < -MAX_NUMBER) | (names >= MAX_NUMBER) | (names == -1))).size:
            raise attributes.fail(f"a tree has the number {names[bad[0]]}", "number the trees from 0 on")
        _refuse(attributes, (ids < 0) | (ids >= MAX_NUMBER), trees, ids, "a node's number is outside 0 to 2147483647")
        self.run = np.repeat(np.arange(len(begins)), np.diff(begins, append=len(trees)))
        keys = (self.run << 31) | ids
        self.order = np.argsort(keys, kind="stable")
        self.keys = keys[self.order]
        if (twice := np.flatnonzero(np.diff(self.keys) == 0)).size:
            node = self.order[twice[0]]
            raise _bad(attributes, trees[node], ids[node], "appears twice")

    def find(self, run: Ints, ids: Ints) -> Ints:
        """Returns the positions of nodes in the file's lists; LEAF for nodes that do not exist. run: index of each
        node's tree. ids: each node's number in this tree."""
        inside = (ids >= 0) & (ids < MAX_NUMBER)
        keys = (run << 31) | np.where(inside, ids, 0)
        position = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(inside & (self.keys[position] == keys), self.order[position], LEAF)

    def children(self, nodes: Ints, ids: Ints, side: str) -> Ints:
        """Returns the positions of the nodes' children. ids: the children's numbers. Raises ModelError for a missing
        child."""
        positions = self.find(self.run[nodes], ids)
        if (bad := np.flatnonzero(positions == LEAF)).size:
            node = nodes[bad[0]]
            what = f"its {side} child {ids[bad[0]]} is not a node of the tree"
            raise _bad(self.attributes, self.trees[node], self.ids[node], what)
        return positions

    def votes(self, trees: Ints, ids: Ints) -> Ints:
        """Returns the positions of nodes that have weights, given by tree and node number. Raises ModelError if a node
        does not exist."""
        names = self.trees[self.begins][self.by_name]
        position = np.minimum(np.searchsorted(names, trees), len(names) - 1)
        positions = np.where(names[position] == trees, self.find(self.by_name[position], ids), LEAF)
        _refuse(self.attributes, positions == LEAF, trees, ids, "has a weight but is not in the lists of nodes")
        return positions


def _votes(attributes: Attributes, votes: str, positions: _NodePositions, dtype: DTypeLike) -> tuple[Ints, Ints, Array]:
    trees, ids = attributes.ints(f"{votes}_treeids"), attributes.ints(f"{votes}_nodeids")
    target, weight = attributes.ints(f"{votes}_ids"), numbers(attributes, f"{votes}_weights", dtype)
    lists = {f"{votes}_nodeids": ids, f"{votes}_ids": target, f"{votes}_weights": weight}
    _same_length(attributes, lists, len(trees), f"{votes}_treeids")
    return positions.votes(trees, ids), target, weight


def _chains(mode: NDArray[np.int8], feature: Ints, true: Ints, false: Ints) -> tuple[Ints, Bools]:
    """Merges each chain of EQ nodes into its first node, by changing `false`. Returns two arrays by node: the first
    node of its chain; True if the node remains."""
    n = len(mode)
    inner = true != LEAF
    parents = np.bincount(np.concatenate([true[inner], false[inner]]), minlength=n)
    equal = np.flatnonzero(mode == EQ)
    after = false[equal]
    linked = (mode[after] == EQ) & (feature[after] == feature[equal]) & (true[after] == true[equal])
    linked &= parents[after] == 1
    head = np.arange(n)
    head[after[linked]] = equal[linked]
    for _ in range(n.bit_length()):  # Pointer jumping: each round doubles the distance.
        before, head = head, head[head]
        if np.array_equal(before, head):
            break
    retained = np.ones(n, dtype=bool)
    retained[after[linked]] = False
    last = equal[~linked]
    false[head[last]] = false[last]
    return head, retained


def _refuse_merged(
    attributes: Attributes,
    equal: Bools,
    feature: Ints,
    value: Array,
    true: Ints,
    false: Ints,
    votes: tuple[Ints, Ints, Array],
) -> None:
    """Raises ModelError for neighboring EQ nodes that onnxruntime merges though their leaves differ."""
    nodes = np.flatnonzero(equal)
    after = false[nodes]
    nodes = nodes[equal[after] & (feature[after] == feature[nodes]) & (true[after] != true[nodes]) & (value[nodes] > 0)]
    if not len(nodes):
        return
    leaf, target, weight = votes
    order = np.argsort(leaf, kind="stable")
    begin, end = (np.searchsorted(leaf[order], np.arange(len(equal)), side=side) for side in ("left", "right"))
    for node in nodes.tolist():
        mine, other = (order[begin[child] : end[child]] for child in (true[node], true[false[node]]))
        merged = not len(mine) or not len(other) or weight[mine[0]] == weight[other[0]]
        same = np.array_equal(target[mine], target[other]) and np.array_equal(weight[mine], weight[other])
        is_inner = equal[true[node]] or true[true[node]] != LEAF or true[true[false[node]]] != LEAF
        if merged and not same and not is_inner:
            raise attributes.fail(
                "has consecutive BRANCH_EQ nodes whose leaves have the same first weight and differ in others, which"
                " onnxruntime merges into one"
            )


Intervals: TypeAlias = tuple[Ints, Floats, Floats]


def _exactly(value: Array, dtype: DTypeLike) -> tuple[Floats, Floats]:
    """Returns arrays (low, high): intervals [low, high) that hold one number each. For infinity, high is NaN."""
    low = value.astype(np.float64) + 0.0  # Adding 0 turns -0.0 into 0.0, as the two are equal.
    return low, np.where(np.isposinf(low), np.nan, next_above(low, bits_of(dtype)))


def _conditions(mode: Array, value: Floats, nan_true: Bools, equal: Intervals, dtype: DTypeLike) -> CutArrays:
    """Returns the conditions of inner nodes. equal: arrays (node, low, high) of the numbers that nodes test for
    equality."""
    even = (mode == LEQ) | (mode == LT) | (mode == NEQ)
    missing = nan_true | (mode == NEQ)  # NaN differs from every number.
    above = (mode == LEQ) | (mode == GT)
    cuts = np.where(above, next_above(value, bits_of(dtype)), value)
    plain = (mode <= GT) & ~(above & np.isposinf(value))  # Nothing lies above infinity.
    if plain.all():
        return CutArrays(cuts, np.arange(len(mode) + 1), even, missing)
    owner, low, high = equal
    order = np.lexsort([low, owner])
    owner, low, high = owner[order], low[order], high[order]
    distinct = np.ones(len(owner), dtype=bool)
    distinct[1:] = (owner[1:] != owner[:-1]) | (low[1:] != low[:-1])
    ends = distinct & ~np.isnan(high)
    owners = np.concatenate([np.flatnonzero(plain), owner[distinct], owner[ends]])
    all_cuts = np.concatenate([cuts[plain], low[distinct], high[ends]])
    order = np.lexsort([all_cuts, owners])
    first = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=len(mode)))])
    return CutArrays(all_cuts[order], first, even, missing)


def modern_nodes(attributes: Attributes, dtype: DTypeLike) -> NodeArrays:
    """Reads the nodes of a TreeEnsemble. Leaf k gets the id (number of inner nodes) + k. dtype: as in `classic_nodes`.
    Raises ModelError."""
    mode = attributes.vector("nodes_modes", np.uint8)
    split = attributes.vector("nodes_splits", dtype)
    names = [f"nodes_{name}" for name in ("featureids", "truenodeids", "falsenodeids", "trueleafs", "falseleafs")]
    lists = {name: attributes.ints(name) for name in names}
    feature, *links = lists.values()
    n = len(mode)
    _same_length(attributes, {"nodes_splits": split, **lists}, n, "nodes_modes")
    nan_true = _missing_true(attributes, n)
    target, weight = attributes.ints("leaf_targetids"), attributes.vector("leaf_weights", dtype)
    _same_length(attributes, {"leaf_targetids": target}, len(weight), "leaf_weights")
    roots = attributes.ints("tree_roots")
    if not 1 <= len(roots) <= MAX_TREES:
        raise attributes.fail(f"has {len(roots) or 'no'} trees", f"1 to {MAX_TREES} are read")
    child = np.stack(links[:2], axis=1)
    leaf = np.stack(links[2:], axis=1) != 0
    for tree in np.flatnonzero((roots < 0) | (roots >= n))[:1]:
        raise attributes.fail(f"tree {tree} starts at node {roots[tree]} of {n}")
    outside = (child < 0) | (child >= np.where(leaf, len(weight), n))
    for node, side in np.argwhere(outside)[:1].tolist():
        kind = f"leaf {child[node, side]} of {len(weight)}" if leaf[node, side] else f"node {child[node, side]} of {n}"
        raise _bad(attributes, "?", node, f"its {('true', 'false')[side]} child is {kind}")
    for node in np.flatnonzero(mode > MEMBER)[:1]:
        raise _bad(attributes, "?", node, f"mode {mode[node]} is not known", "known: 0 to 6")
    one_leaf = leaf[roots].all(axis=1) & (child[roots, 0] == child[roots, 1])
    tree_of, visited = _reached(attributes, roots, child, leaf, one_leaf)
    no_number = (mode != MEMBER) & np.isnan(split) & np.isin(np.arange(n), visited)
    _refuse(attributes, no_number, tree_of, np.arange(n), "the threshold is not a number (NaN)", "give it a number")
    # Lists visited inner nodes, then references to leaves, and sorts both by tree.
    parent, side = np.nonzero(leaf[visited])
    trees = np.concatenate([tree_of[visited], tree_of[visited[parent]], np.flatnonzero(one_leaf)])
    ids = np.concatenate([visited, n + child[visited[parent], side], n + child[roots[one_leaf], 0]])
    order = np.argsort(trees, kind="stable")
    position = np.argsort(order, kind="stable")
    children = np.full((len(trees), 2), LEAF, dtype=np.int64)
    where = np.empty(n, dtype=np.int64)
    where[visited] = position[: len(visited)]
    to = where[np.where(leaf[visited], 0, child[visited])] if n else np.zeros((0, 2), dtype=np.int64)
    to[parent, side] = position[len(visited) : len(visited) + len(parent)]
    children[position[: len(visited)]] = to
    nodes = visited[order[order < len(visited)]]
    index_of = np.full(n, -1, dtype=np.int64)
    index_of[nodes] = np.arange(len(nodes))
    owner, low, high = _members(attributes, mode, dtype)
    used = index_of[owner] >= 0  # A root with the same leaf on both sides has no condition.
    single = np.flatnonzero((mode[nodes] == EQ) | (mode[nodes] == NEQ))
    single_low, single_high = _exactly(split[nodes[single]], dtype)
    equal = (
        np.concatenate([single, index_of[owner[used]]]),
        np.concatenate([single_low, low[used]]),
        np.concatenate([single_high, high[used]]),
    )
    conditions = _conditions(mode[nodes], split[nodes].astype(np.float64), nan_true[nodes], equal, dtype)
    features = np.zeros(len(trees), dtype=np.int64)
    features[position[: len(visited)]] = feature[visited]
    at = np.flatnonzero(children[:, 0] == LEAF)
    leaves = ids[order][at] - n
    return NodeArrays(
        start=np.searchsorted(trees[order], np.arange(len(roots) + 1)),
        tree=np.arange(len(roots)),
        ids=ids[order],
        feature=features,
        true=children[:, 0],
        false=children[:, 1],
        conditions=conditions,
        value=np.zeros(len(trees)),
        weight_leaf=at,
        weight_target=target[leaves],
        weight=weight[leaves],
    )


def _reached(attributes: Attributes, roots: Ints, child: Ints, leaf: Bools, one_leaf: Bools) -> tuple[Ints, Ints]:
    """Returns two arrays: each inner node's tree, and the inner nodes ordered by depth."""
    tree_of = np.full(len(child), -1, dtype=np.int64)
    level, trees = roots[~one_leaf], np.flatnonzero(~one_leaf)
    visited = [level[:0]]
    while len(level):
        if len(visited) > MAX_DEPTH:
            raise attributes.fail(f"a tree is deeper than {MAX_DEPTH} conditions")
        met = np.sort(level)
        again = np.concatenate([level[tree_of[level] >= 0], met[1:][np.diff(met) == 0]])
        if len(again):
            raise _bad(attributes, trees[level == again[0]][0], again[0], "is reached twice", _OWN_NODES)
        tree_of[level] = trees
        visited.append(level)
        inner, side = np.nonzero(~leaf[level])
        level, trees = child[level[inner], side], trees[inner]
    if (again := roots[one_leaf & (tree_of[roots] >= 0)]).size:
        raise _bad(attributes, tree_of[again[0]], again[0], "is reached twice", _OWN_NODES)
    tree_of[roots[one_leaf]] = np.flatnonzero(one_leaf)
    return tree_of, np.concatenate(visited)


_OWN_NODES = "give every tree nodes of its own"


def _members(attributes: Attributes, mode: Array, dtype: DTypeLike) -> Intervals:
    """Returns arrays (node, low, high): the interval [low, high) of each member of a node's set. onnxruntime truncates
    values before it tests some sets."""
    values = attributes.vector("membership_values", dtype)
    nodes = np.flatnonzero(mode == MEMBER)
    is_end = np.isnan(values)
    group = (np.cumsum(is_end) - is_end)[~is_end]  # the index of the list that each value is in
    filled = np.unique(group)
    if is_end.sum() > len(nodes) or not np.array_equal(filled, np.arange(len(nodes))):
        raise attributes.fail(
            f"membership_values hold {len(filled)} lists for {len(nodes)} nodes of mode BRANCH_MEMBER",
            "give one non-empty list per node, each ended by NaN",
        )
    number = values[~is_end].astype(np.float64) + 0.0
    long = np.bincount(group, minlength=len(nodes)) >= 31
    long[group[(number < 0) | (number > 30)]] = True
    integral = long[group]
    low, high = _exactly(number, dtype)
    if not integral.any():
        return nodes[group], low, high
    least = -float(MAX_NUMBER)
    bad = integral & ~((number > least) & (number < MAX_NUMBER) & (number == np.trunc(number)))
    if bad.any():
        raise _bad(
            attributes, "?", nodes[group[bad]][0], f"its set has {number[bad][0]} among more than numbers of 0 to 30",
            "onnxruntime takes only 32-bit integers in such sets",
        )  # fmt: skip
    bits = bits_of(dtype)
    # Positive k stands for [k, k + 1), negative k for (k - 1, k].
    after = np.maximum(np.where(number >= 0, number + 1, number), low)
    low = np.where(integral, np.where(number > 0, low, np.minimum(next_above(number - 1, bits), low)), low)
    return nodes[group], low, np.where(integral, np.where(number >= 0, np.maximum(after, high), high), high)
