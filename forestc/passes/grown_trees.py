"""Grows ensembles by boosting with prices for hardware, for the pass regrow-trees and the trainer `priced`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.boosting.boost import Boosted, Charges, Loss, boost
from forestc.algorithms.boosting.cuts import Cuts
from forestc.algorithms.boosting.trees import GrownTree, Growth
from forestc.costs.prices import Prices
from forestc.forest.builder import make_forest, make_tree
from forestc.forest.conditions import Condition
from forestc.forest.ir import LEAF, Aggregate, Decision, Forest, Link, Tree
from forestc.passes.added_trees import node_arrays
from forestc.passes.tree_costs import ASSUMED_LEAF_BITS


@dataclass(frozen=True)
class Grower:
    """The rows and candidate conditions from which trees are grown."""

    conditions: tuple[tuple[Condition, ...], ...]  # for each column of `cuts` the condition of each threshold
    cuts: Cuts
    compared: tuple[NDArray[np.float64], ...]  # for each column the prices of the comparators
    label: NDArray[np.float64]  # (samples,) class numbers; values if n_classes is 0
    n_classes: int
    prices: Prices

    @property
    def outputs(self) -> int:
        return self.n_classes if self.n_classes > 2 else 1

    def grown(self, growth: Growth) -> Boosted:
        loss: Loss = "softmax" if self.outputs > 1 else "logistic" if self.n_classes else "squared"
        return boost(self.cuts, self.label, loss, self.outputs, self._charges(growth), growth)

    def _charges(self, growth: Growth) -> Charges:
        """Returns the prices of hardware that boosting charges for comparators, splits and trees."""
        bits = (growth.leaf_bits or ASSUMED_LEAF_BITS) if self.prices.per_bit else 1
        tables = [bits * self.prices.table(conditions) for conditions in range(growth.depth + 1)]
        levels = tuple(more - less for less, more in pairwise(tables))
        splits = levels if growth.symmetric else (bits * self.prices.split,)
        return Charges(self.compared, np.zeros(len(self.compared)), splits, bits * self.prices.tree)

    def tree(self, grown: GrownTree, values: NDArray[Any], where: str, *, quantized: bool) -> Tree:
        """Turns a grown tree into a tree of a Forest. values: (nodes,) new values; only those of leaves are used."""
        inner = grown.left != LEAF
        arrays = node_arrays(
            [
                self.conditions[column][cut] if split else None
                for column, cut, split in zip(grown.column.tolist(), grown.cut.tolist(), inner.tolist(), strict=True)
            ]
        )
        return make_tree(
            where=where, left=grown.left, right=grown.right, values=values[~inner][:, None], outputs=(grown.output,),
            cover=grown.cover, quantized=quantized,
            **arrays | {"missing_left": np.array(arrays["missing_left"]) | grown.missing_left},
        )  # fmt: skip


def leaf_unit(unit: float, values: NDArray[np.float64]) -> float:
    """Returns the step between neighboring leaf values: `unit` standard deviations of `values`, rounded to a power of
    two."""
    return math.ldexp(1.0, round(math.log2(unit * (float(np.std(values)) or 1.0))))


def constant_tree(*, quantized: bool) -> Tree:
    return make_tree(
        where="tree 0", feature=[LEAF], threshold=[0], left=[LEAF], right=[LEAF], values=[[0]], outputs=(0,),
        quantized=quantized,
    )  # fmt: skip


def sum_of_trees(bias: NDArray[Any], **fields: Any) -> Forest:
    """Builds a forest with scores that are sums of its trees and a bias (outputs,). fields: further arguments of
    `make_forest`."""
    outputs, decides = len(bias), bool(fields["classes"])
    return make_forest(
        n_outputs=outputs,
        bias=bias,
        aggregate=Aggregate(),
        link=Link("softmax" if outputs > 1 else "sigmoid" if decides else "identity"),
        decision=Decision("argmax" if outputs > 1 else "threshold" if decides else "none"),
        **fields,
    )
