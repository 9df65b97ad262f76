"""share-thresholds: fewer distinct conditions.

Min_DBN (Nakamura and Sakurada, algorithm 2): the threshold of a node may move anywhere in the interval that leaves
each given row's path alone, so thresholds of one feature whose intervals have a common point become one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.interval_stabbing import Stabbing, stab_most
from forestc.algorithms.node_bounds import update_node_bounds
from forestc.errors import ModelError, OptionError
from forestc.forest.builder import changed, changed_tree
from forestc.forest.evaluate import encode
from forestc.forest.ir import NO_SET, Forest
from forestc.forest.numbers import FLOAT32, Category
from forestc.forest.rows import Rows
from forestc.passes.base import PassResult
from forestc.passes.formats import flat_trees


@dataclass(frozen=True)
class ShareThresholds:
    """Options.

    exceptions: how many intervals of a feature may be missed: a number, or a share below 1 of the feature's
    nodes. A missed node takes the nearest threshold, so rows' paths may change.
    prefer: few-bits (of the values a threshold may take, the one with the fewest fraction bits, so that
    comparators get narrower) or middle (the middle of the interval, as the paper has it).
    tolerance: as in quantize, of an approximate result.
    """

    exceptions: int | float = 0
    prefer: str = "few-bits"
    tolerance: float = 0.01
    name: ClassVar[str] = "share-thresholds"

    def __post_init__(self) -> None:
        if self.prefer not in ("few-bits", "middle"):
            raise OptionError(f"share-thresholds: prefer={self.prefer}", do="use few-bits or middle")
        number = isinstance(self.exceptions, int | float) and not isinstance(self.exceptions, bool)
        if not number or not self.exceptions >= 0 or (self.exceptions > 1 and self.exceptions != int(self.exceptions)):
            raise OptionError(f"share-thresholds: exceptions={self.exceptions}", do="use a number or a share below 1")
        if not isinstance(self.tolerance, int | float) or not 0 <= self.tolerance <= 1:
            raise OptionError(f"share-thresholds: tolerance={self.tolerance}", do="use a share from 0 to 1")

    def run(self, forest: Forest, rows: Rows | None) -> PassResult:
        """The forest with shared thresholds. Exact-on-data without exceptions: no row's path changes. Raises
        ModelError for a quantised forest, OptionError without rows. Time O(rows * trees * depth + nodes log nodes)."""
        if forest.quantised:
            raise ModelError("share-thresholds works on floats", do="put it before quantize")
        if rows is None:
            raise OptionError("share-thresholds needs rows")
        flat = flat_trees(forest)
        low, high = np.full(len(flat.feature), -np.inf), np.full(len(flat.feature), np.inf)
        for batch in rows.batches():
            update_node_bounds(encode(forest, batch.X), flat, low, high)
        thresholds, missed = flat.threshold.copy(), 0
        for index, feature in enumerate(forest.features):
            here = np.flatnonzero((flat.feature == index) & (flat.left >= 0) & (flat.set_start == NO_SET))
            if isinstance(feature.number, Category) or not len(here):
                continue
            allowed = int(self.exceptions * len(here)) if self.exceptions < 1 else int(self.exceptions)
            found = stab_most(low[here], high[here], allowed)
            missed += int(found.missed.sum())
            own = flat.threshold[here]
            values = self._values(found, own, narrow=feature.number == FLOAT32)
            thresholds[here] = values[found.point]
        ends = np.cumsum([tree.size for tree in forest.trees])
        trees = tuple(
            changed_tree(tree, threshold=thresholds[end - tree.size : end])
            for tree, end in zip(forest.trees, ends.tolist(), strict=True)
        )
        result = changed(forest, trees=trees)
        report = {
            "distinct_conditions": [forest.distinct_conditions(), result.distinct_conditions()],
            "missed_intervals": missed,
        }
        if missed:
            return PassResult(result, "approximate", report, tolerance=float(self.tolerance))
        return PassResult(result, "exact-on-data", report)

    def _values(self, found: Stabbing, own: NDArray[np.float64], narrow: bool) -> NDArray[np.float64]:
        """A threshold in each (low, high]: floats of the feature's own type."""
        values = np.empty(len(found.low))
        for k, (low, high) in enumerate(zip(found.low.tolist(), found.high.tolist(), strict=True)):
            if math.isinf(low) and math.isinf(high):  # no row asks: any of the thresholds will do
                values[k] = own[found.point == k][0]
            elif math.isinf(high):
                values[k] = _above(low, narrow)
            elif math.isinf(low):
                values[k] = high
            else:
                values[k] = _fewest_bits(low, high, narrow) if self.prefer == "few-bits" else _middle(low, high, narrow)
        return values


def _above(low: float, narrow: bool) -> float:
    """The next float above; where a whole number lies close, that one."""
    whole = math.floor(low) + 1.0
    if abs(low) < 2.0**22:
        return whole
    return float(np.nextafter(np.float32(low), np.float32(np.inf))) if narrow else math.nextafter(low, math.inf)


def _rounded(value: float, low: float, high: float, narrow: bool) -> float:
    """The value in the feature's type if it still lies in (low, high], else high, which is a row's own value."""
    value = float(np.float32(value)) if narrow else value
    return value if low < value <= high else high


def _middle(low: float, high: float, narrow: bool) -> float:
    return _rounded(low + (high - low) / 2, low, high, narrow)


def _fewest_bits(low: float, high: float, narrow: bool) -> float:
    """The multiple of the largest power of two in (low, high]; of several, that nearest the middle."""
    exponent = math.frexp(high - low)[1]
    for fraction in range(-exponent - 1, -exponent + 3):
        with np.errstate(over="ignore"):
            scaled_low, scaled_high = math.ldexp(low, fraction), math.ldexp(high, fraction)
        least, most = math.floor(scaled_low) + 1, math.floor(scaled_high)
        if least <= most:
            middle = min(max(round((scaled_low + scaled_high) / 2), least), most)
            return _rounded(math.ldexp(float(middle), -fraction), low, high, narrow)
    return _middle(low, high, narrow)
