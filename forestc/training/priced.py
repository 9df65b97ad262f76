"""Trains by boosting in which trees pay for their hardware."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.boosting.boost import integer_bias
from forestc.algorithms.boosting.cuts import cuts_at, cuts_of, grid_cuts, quantile_cuts
from forestc.algorithms.boosting.trees import Growth
from forestc.errors import OptionError
from forestc.fields.parameters import Choice, Parameter, Real, Whole
from forestc.forest.builder import read_features
from forestc.forest.conditions import Below, Condition
from forestc.forest.ir import Feature, Forest, Provenance
from forestc.forest.numbers import FLOAT64
from forestc.passes.grown_trees import Grower, constant_tree, leaf_unit, sum_of_trees
from forestc.rows.noise import with_noise
from forestc.system.version import __version__
from forestc.training.base import Task

FEW_COLUMNS = 32  # limits the columns that every tree may read without a choice
FEW_ROWS = 5_000  # rows; small ensembles overfit fewer rows, and noise helps
MOST_CELLS = 1 << 24  # rows, copies included, times columns at most


class PricedTrainer:
    """The trainer of `--train priced`: trees share conditions, and their leaves may have few bits."""

    name = "priced"

    def space(self, task: Task) -> tuple[Parameter, ...]:
        """Returns the parameters that a search may try. With `leaf_bits` of 0 leaves are floats."""
        wide = len(task.names) > FEW_COLUMNS
        return (
            Whole("trees", 2, 200, log=True),
            Choice("shape", ("symmetric", "free")),
            Whole("depth", 1, 6),
            Whole("leaves", 3, 32, log=True, when={"shape": ("free",)}),
            Choice("leaf_bits", (1, 2, 3, 4, 0)),
            Real("unit", 0.03, 2.0, log=True, when={"leaf_bits": (1, 2, 3, 4)}),
            Real("rate", 0.05, 1.0, log=True, when={"leaf_bits": (0,)}),
            Real("price", 1e-6, 1e-2, log=True),
            Choice("sweeps", (0, 1, 2)),
            Choice("thresholds", ("quantiles", "grid")),
            Whole("cuts", 3, 200, log=True, when={"thresholds": ("quantiles",)}),
            Whole("input_bits", 2, 7, when={"thresholds": ("grid",)}),
            Real("l2", 0.1, 10.0, log=True),
            Choice("noise", (0.0, 0.05, 0.1)),
            Choice("copies", (2, 4, 8), when={"noise": (0.05, 0.1)}),
            *((Real("columns", 0.05, 1.0, log=True),) if wide else ()),
        )

    def starts(self, task: Task) -> tuple[Mapping[str, Any], ...]:
        """Returns settings for more and more trees; for processors, trees are not symmetric."""
        firmware = task.prices.firmware
        common = {
            **({"shape": "free", "leaves": 16} if firmware else {"shape": "symmetric"}),
            "depth": 5,
            "leaf_bits": 3 if firmware else 1,
            "sweeps": 2,
            "thresholds": "quantiles",
            "cuts": 60,
            "l2": 1.0,
            **({"noise": 0.05, "copies": 4} if len(task.X) <= FEW_ROWS else {"noise": 0.0}),
        }
        ladder = ((2, 1.0, 1e-3), (3, 1.0, 5e-4), (5, 1.0, 3e-4), (8, 0.7, 2e-4), (14, 0.5, 1e-4), (25, 0.35, 5e-5))
        wide = 0.35 if firmware else 1.0
        return tuple(common | {"trees": trees, "unit": wide * unit, "price": price} for trees, unit, price in ladder)

    def fit(self, task: Task, options: Mapping[str, Any]) -> Forest:
        """Returns the forest over float64 features. Raises OptionError if all labels are equal."""
        if task.n_classes == 1 or len(np.unique(task.y)) < 2:
            where, do = "training rows", "give rows of two classes or more"
            raise OptionError("all rows have the same label", where=where, do=do)
        growth, grower = _growth(task, options), _grower(task, options)
        grown = grower.grown(growth)
        lowest = ((1 << growth.leaf_bits) - 1) / 2 * growth.unit if growth.leaf_bits else 0.0
        trees = [
            grower.tree(tree, tree.value + lowest, f"tree {index}", quantized=False)
            for index, tree in enumerate(grown.trees)
        ]

        def feature(column: int) -> Feature:
            missing = bool(grower.cuts.has_missing[column])
            return Feature(task.names[column], FLOAT64, column, missing, FLOAT64, named=True)

        features, trees = read_features(trees or [constant_tree(quantized=False)], len(task.names), feature, "training")
        return sum_of_trees(
            integer_bias(grown, growth) * growth.unit if growth.leaf_bits else grown.bias,
            name="priced",
            features=features,
            columns=len(task.names),
            trees=trees,
            classes=tuple(range(task.n_classes)),
            provenance=Provenance("forestc", __version__),
        )


def _growth(task: Task, options: Mapping[str, Any]) -> Growth:
    unit = float(options.get("unit") or 0.25)
    return Growth(
        rounds=int(options.get("trees", 50)),
        depth=int(options.get("depth", 4)),
        leaves=int(options.get("leaves") or 16),
        symmetric=options.get("shape", "symmetric") == "symmetric",
        rate=float(options.get("rate") or 0.3),
        leaf_bits=int(options.get("leaf_bits", 0)),
        unit=unit if task.n_classes else leaf_unit(unit, task.y),  # values of a regression may be of any size
        l2=float(options.get("l2", 1.0)),
        price=float(options.get("price", 0.0)),
        sampled=float(options.get("columns") or 1.0),
        sweeps=int(options.get("sweeps", 0)),
        seed=task.seed,
    )


def _grower(task: Task, options: Mapping[str, Any]) -> Grower:
    if options.get("thresholds", "quantiles") == "grid":
        find = partial(grid_cuts, bits=int(options.get("input_bits") or 5))
    else:
        find = partial(quantile_cuts, count=int(options.get("cuts") or 63))
    X, y = _rows(task, float(options.get("noise") or 0.0), int(options.get("copies") or 0))
    cuts = cuts_of(task.X, find)
    if len(X) > len(task.X):
        cuts = cuts_at(X, cuts.thresholds)
    return Grower(
        conditions=tuple(
            tuple(Condition(column, Below(threshold)) for threshold in thresholds.tolist())
            for column, thresholds in enumerate(cuts.thresholds)
        ),
        cuts=cuts,
        compared=tuple(np.array([task.prices.comparison(int(width)) for width in bits]) for bits in cuts.bits),
        label=y.astype(np.float64),
        n_classes=task.n_classes,
        prices=task.prices,
    )


def _rows(task: Task, noise: float, copies: int) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Returns rows and labels, with up to `copies` noisy copies of them if `noise` is above 0."""
    copies = min(copies, MOST_CELLS // max(1, task.X.size) - 1) if noise else 0
    if copies <= 0:
        return task.X, task.y
    random = np.random.default_rng(task.seed)
    moved = [with_noise(task.X, task.X, noise, random).astype(np.float64) for _ in range(copies)]
    return np.concatenate([task.X, *moved]), np.tile(task.y, copies + 1)
