"""Finds the parameters with which XGBoost trained a model, from the sums in the model's file.

Equations 5 and 7 of Chen and Guestrin, "XGBoost", 2016, give eta, lambda and alpha; short trainings find other
parameters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.forest.evaluate import add_tree, start_scores
from forestc.forest.ir import LEAF, Forest
from forestc.frontends.xgboost.sums import TreeSums
from forestc.passes.quick_evaluation import nodes_reached
from forestc.rows.encode import encode

Floats = NDArray[np.float64]
EXACT = 0.01  # share of a gain; a larger residual means that the equations fail
CLOSE = 1e-3  # share by which numbers may differ and still count as equal
ROUNDED = 1e-4  # share by which the file rounds sums at most
PARTLY = 0.02  # share by which sums may be off without some training rows
TIED = 3  # weights with the same largest size, from which `max_delta_step` is assumed
PROGRESS = 0.8  # keeps a setting that shrinks the distance to this share
PARTS = (0.5, 0.8, 0.7, 0.9, 0.6, 0.4, 0.3)  # tries these shares of columns
BINS = (16, 32, 64, 128)  # tries these numbers of bins
TREES = 8  # trees of a short training; at least one round is trained
SUMMED = 30  # rounds at most in which hessians of all rows are summed
GRID = (0.0, *(2.0 ** (power / 2) for power in range(-28, 28)))  # tries these values of lambda first
HESSIANS = {"reg:squarederror": "square", **dict.fromkeys(("binary:logistic", "reg:logistic"), "logistic"),
            **dict.fromkeys(("multi:softprob", "multi:softmax"), "softmax")}  # fmt: skip

# A function of settings, number of rounds and n; it trains on every n-th row.
Train = Callable[[Mapping[str, Any], int, int], tuple[Forest, TreeSums]]


def parameters_of(
    source: Forest, sums: TreeSums, X: Floats, y: NDArray[Any], share: float, train: Train
) -> dict[str, Any]:
    """Returns settings of `xgboost.train` that fit the model.
    X, y: the training rows, or some of them.
    share: number of rows in X, as a share of all training rows.
    train: runs a short training."""
    nodes = TrainedNodes.of(source, sums)
    settings = dict(sums.settings) | _fitted(nodes) | _least(nodes, share)
    if "eta" in settings:  # the trees of a round share the learning rate
        settings["eta"] *= int(sums.settings["num_parallel_tree"])
    settings["subsample"] = _subsample(source, sums, nodes, X, y, share)
    per_round = source.n_outputs * int(sums.settings["num_parallel_tree"])
    rounds = max(1, min(-(-TREES // per_round), len(nodes.trees) // per_round))
    model = nodes.first(rounds * per_round).figures(1 / share)

    def figures(more: Mapping[str, Any], seed: int, step: int = 1) -> Floats:
        return TrainedNodes.of(*train({**settings, **more, "seed": seed}, rounds, step)).figures(1 / step)

    def distance(more: Mapping[str, Any]) -> tuple[float, float]:
        """Returns the distance of trainings from the model, and between two seeds; the latter is 0 if the first
        training is close."""
        first = figures(more, 0)
        if _apart(model, first) < CLOSE:
            return _apart(model, first), 0.0
        second = figures(more, 1)
        return _apart(model, np.sqrt(first * second)), _apart(first, second)

    best, noise = distance({})
    if share < 1:  # Half of the rows show how much missing rows change the result.
        noise = max(noise, _apart(figures({}, 0), figures(_least(nodes, share / 2), 0, 2)))
    for choices in _choices(nodes, source.width, settings):
        if best <= max(CLOSE, noise):
            break
        tried: list[tuple[float, float]] = []
        for choice in choices:
            tried.append(distance(choice))
            if tried[-1][0] < CLOSE:
                break
        if tried and min(tried)[0] < PROGRESS * best - noise / 2:
            settings |= choices[tried.index(min(tried))]
            best, noise = min(tried)[0], max(noise, min(tried)[1])
    for usual in ({"gamma": 0.0}, {"min_child_weight": 1.0}):
        if distance(usual)[0] <= max(CLOSE, best, noise):
            settings |= usual
    return settings


def _apart(first: Floats, second: Floats) -> float:
    return float(np.abs(np.log(first / second)).sum())


@dataclass(frozen=True)
class TrainedNodes:
    """The nodes of all trees as arrays, with the numbers in the file."""

    tree: NDArray[np.int64]  # tree of each node
    depth: NDArray[np.int64]
    left: NDArray[np.int64]  # children are indices of these arrays; LEAF at a leaf
    right: NDArray[np.int64]
    weight: Floats
    gain: Floats
    value: Floats
    hessian: Floats
    column: NDArray[np.int64]
    threshold: Floats

    @staticmethod
    def of(forest: Forest, sums: TreeSums) -> TrainedNodes:
        parts: list[tuple[NDArray[Any], ...]] = []
        start = 0
        columns = np.array([feature.column for feature in forest.features] or [0])
        for index, (tree, arrays) in enumerate(zip(forest.trees, sums.trees, strict=False)):
            depth = np.zeros(tree.size, dtype=np.int64)
            for level, level_nodes in enumerate(tree.levels):
                depth[level_nodes] = level
            children = (np.where(side == LEAF, LEAF, side + start) for side in (tree.left, tree.right))
            own = tuple(array[np.clip(tree.ids, 0, len(array) - 1)] for array in arrays)
            parts.append((np.full(tree.size, index), depth, *children, *own, columns[tree.feature], tree.threshold))
            start += tree.size
        return TrainedNodes(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    @property
    def trees(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.depth == 0)

    @property
    def leaf(self) -> NDArray[np.bool_]:
        return np.asarray(self.left == LEAF)

    def first(self, trees: int) -> TrainedNodes:
        chosen = self.tree < trees
        return TrainedNodes(*(getattr(self, name)[chosen] for name in self.__dataclass_fields__))

    def figures(self, rows: float) -> Floats:
        """Returns (6,) figures per tree, such as leaves and depth, that compare trainings. rows: number by which gains
        are divided."""
        trees, inner, leaf = max(1, len(self.trees)), ~self.leaf, self.leaf
        columns = len(np.unique(np.stack([self.tree[inner], self.column[inner]]), axis=1).T)
        cuts = len(np.unique(np.stack([self.column[inner], self.threshold[inner]]), axis=1).T)
        sums = (
            leaf.sum(),
            self.depth[leaf].sum() / max(1, leaf.sum()),
            columns,
            cuts,
            self.gain[self.trees].sum() / rows,
        )
        return np.maximum(np.array([*sums, np.abs(self.value[leaf]).sum()]) / trees, 1e-9)


def _fitted(nodes: TrainedNodes) -> dict[str, Any]:
    """Returns settings read from all nodes: max_depth and, if found, eta, lambda, alpha and `tree_method`."""
    settings: dict[str, Any] = {"max_depth": max(1, int(nodes.depth.max()))}
    inner = np.flatnonzero(~nodes.leaf)
    tops = np.where(nodes.leaf, _top(nodes.value[nodes.leaf]), _top(nodes.weight[~nodes.leaf])) * (1 - ROUNDED)
    free = (tops == 0) | (np.abs(np.where(nodes.leaf, nodes.value, nodes.weight)) < tops)
    inner = inner[free[inner] & free[nodes.left[inner]] & free[nodes.right[inner]]]
    if not len(inner):
        return settings
    # Equation 5: w = -T(G) / (H + lambda) at a node; eta * w is a leaf's value.
    # Equation 7: a gain is w^2 (H + lambda) of the children minus the node's.
    hessian, square = nodes.hessian, nodes.weight**2
    of_leaves, leaves, side, rest = (np.zeros(len(inner)) for _ in range(4))
    side, rest = square[inner], nodes.gain[inner] + square[inner] * hessian[inner]
    for child in (nodes.left[inner], nodes.right[inner]):
        leaf, value = nodes.leaf[child], nodes.value[child] ** 2
        of_leaves, leaves = of_leaves + leaf * value * hessian[child], leaves + leaf * value
        side, rest = side - ~leaf * square[child], rest - ~leaf * square[child] * hessian[child]
    scale = 1 / np.maximum(np.abs(nodes.gain[inner]), 1e-9)

    def at(penalty: float) -> tuple[float, float]:
        """Returns for one value of lambda the residual of a least-squares fit, and the fitted 1 / eta^2."""
        left, right = (of_leaves + penalty * leaves) * scale, (rest + penalty * side) * scale
        factor = float(left @ right / max(float(left @ left), 1e-300))
        return float(np.sqrt(np.mean((factor * left - right) ** 2))), factor

    start = min(GRID, key=lambda penalty: at(penalty)[0])
    low, high = (0.0, GRID[1]) if start == 0 else (start / 1.5, start * 1.5)
    for _ in range(80):
        first, second = low + 0.382 * (high - low), low + 0.618 * (high - low)
        low, high = (low, second) if at(first)[0] < at(second)[0] else (first, high)
    penalty = (low + high) / 2
    residual, factor = at(penalty)
    if not (residual < EXACT and 0 < factor < np.inf):
        return settings
    eta, penalty = _plain(factor**-0.5), _plain(penalty)
    settings |= {"eta": eta, "lambda": penalty, "alpha": _alpha(nodes, inner, eta, penalty)}
    leaf = nodes.leaf & (np.abs(nodes.value) > 0)
    if eta < 1 - CLOSE and np.median(np.abs(nodes.value[leaf] - eta * nodes.weight[leaf])) < CLOSE * eta:
        settings["tree_method"] = "exact"  # Other methods store the value of a leaf as its weight.
    return settings


def _alpha(nodes: TrainedNodes, inner: NDArray[np.int64], eta: float, penalty: float) -> float:
    # T(G) is the sum G of gradients, shrunk by alpha.
    weight = np.where(nodes.leaf, nodes.value / eta, nodes.weight)
    sums, sign = weight * (nodes.hessian + penalty), np.sign(weight)
    left, right = nodes.left[inner], nodes.right[inner]
    nonzero = (sign[inner] * sign[left] * sign[right]) != 0  # G is unknown if a weight is 0
    more = (sign[left] + sign[right] - sign[inner])[nonzero]
    less = (sums[inner] - sums[left] - sums[right])[nonzero]
    alpha = float(more @ less / max(float(more @ more), 1e-300))
    return _plain(alpha) if alpha > 0.0 else 0.0


def _plain(value: float) -> float:
    return 0.0 if value < CLOSE else float(f"{value:.4g}")


def _subsample(source: Forest, sums: TreeSums, nodes: TrainedNodes, X: Floats, y: NDArray[Any], share: float) -> float:
    """Estimates `subsample` from the hessians at the roots; 1 if that is impossible."""
    kind = HESSIANS.get(str(sums.settings["objective"]))
    if kind is None or sums.settings.get("booster") == "dart" or not len(X):
        return 1.0
    if kind == "square":
        all_rows = np.full(len(nodes.trees), float(len(X)))
    else:
        all_rows = np.array(list(_hessians(source, sums, X, y, kind)))
    taken = float(nodes.hessian[nodes.trees][: len(all_rows)].sum() / max(float(all_rows.sum()), 1e-300)) * share
    if taken > 1 - (CLOSE if share == 1 else PARTLY):
        return 1.0
    rows = len(all_rows) * len(X) / source.n_outputs
    usual = max(0.05, round(20 * taken) / 20)
    chance = 3 * math.sqrt((1 - usual) / (usual * rows))  # three standard deviations of drawing rows for the trees
    return usual if usual < 1 and abs(taken - usual) < chance * usual else max(0.01, round(taken, 3))


def _hessians(source: Forest, sums: TreeSums, X: Floats, y: NDArray[Any], kind: str) -> Iterator[float]:
    """Yields for each early tree the sum, over all rows, of the hessians before this tree was trained."""
    at_once = source.n_outputs * int(sums.settings["num_parallel_tree"])
    source = replace(source, trees=source.trees[: SUMMED * at_once])
    words = encode(source, X)
    reached, total = nodes_reached(source, words), start_scores(source, len(X))
    weight = np.where(y == 1, float(sums.settings.get("scale_pos_weight", 1.0)), 1.0) if kind == "logistic" else 1.0
    hessians: Floats = np.zeros(1)
    for index, tree in enumerate(source.trees):
        if index % at_once == 0:
            if kind == "logistic":
                p = 1 / (1 + np.exp(-total.astype(np.float64)))
                hessians = (weight * (p * (1 - p))[:, 0]).sum(keepdims=True)
            else:
                p = np.exp(total.astype(np.float64) - total.max(axis=1, keepdims=True))
                p /= p.sum(axis=1, keepdims=True)
                hessians = (2 * p * (1 - p)).sum(axis=0)
        yield float(hessians[tree.outputs[0]])
        add_tree(source, total, tree, reached[:, index])


def _least(nodes: TrainedNodes, share: float) -> dict[str, Any]:
    """Returns the largest `min_child_weight` and `gamma` that fit all nodes."""
    hessian, gain = nodes.hessian[nodes.leaf].min(), nodes.gain[~nodes.leaf].min(initial=np.inf)
    least = {"min_child_weight": hessian, "gamma": gain if np.isfinite(gain) else 0.0}
    return {name: max(0.0, float(f"{value * share * (1 - ROUNDED):.5g}")) for name, value in least.items()}


def _choices(nodes: TrainedNodes, columns: int, settings: Mapping[str, Any]) -> Iterator[list[dict[str, Any]]]:
    leaf, inner = nodes.leaf, np.flatnonzero(~nodes.leaf)
    counts = np.bincount(nodes.tree[leaf])
    most = int(counts.max())
    if np.mean(counts == most) > 0.5 and most < 1 << int(nodes.depth.max()):
        yield [{"grow_policy": "lossguide", "max_leaves": most, "max_depth": 0}]
    step = max(_top(nodes.weight[inner]), _top(nodes.value[leaf]) / float(settings.get("eta", 0.3)))
    if step > 0:
        yield [{"max_delta_step": _plain(step)}]
    cuts = np.unique(np.stack([nodes.column[inner], nodes.threshold[inner]]), axis=1)
    bins = int(np.bincount(cuts[0].astype(np.int64)).max(initial=0)) + 1
    yield [{"max_bin": count} for count in (bins, *BINS) if 2 <= bins <= count < 256]
    read = np.unique(np.stack([nodes.tree[inner], nodes.column[inner]]), axis=1)
    seen = int(np.bincount(read[0]).max(initial=0)) / columns
    if seen < 1:
        yield [{"colsample_bytree": part} for part in (seen, *(part for part in PARTS if seen <= part < 1))]
    yield [{f"colsample_by{what}": part} for part in PARTS for what in ("node", "level")]


def _top(values: Floats) -> float:
    """Returns the largest absolute value if at least TIED values nearly equal it; otherwise 0."""
    top = float(np.abs(values).max(initial=0.0))
    return top if np.count_nonzero(np.abs(values) > top * (1 - ROUNDED)) >= TIED else 0.0
