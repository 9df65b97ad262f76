"""Implements the pass share-thresholds: merges thresholds of a feature (Nakamura and Sakurada 2022, algorithm 2).

A threshold may move within an interval without changing any given row's path. Overlapping intervals can take the same
threshold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.thresholds.dyadic_points import narrow_points
from forestc.algorithms.thresholds.interval_stabbing import stab, stab_most, take
from forestc.algorithms.thresholds.node_bounds import NodeBounds
from forestc.errors import OptionError, opt
from forestc.forest.builder import changed, changed_tree
from forestc.forest.ir import Forest
from forestc.forest.numbers import FLOAT32, FloatArray, word_bits
from forestc.passes.base import PassResult, print_pass
from forestc.passes.observation import Observation, Observe, finite_nodes, freedom
from forestc.passes.options import DEFAULT_TOLERANCE, LOSS, Range, check_options, tried
from forestc.passes.promises import KeepsPaths, Promise, Within
from forestc.passes.scorer import Scorer
from forestc.passes.share_thresholds.path_change import widened
from forestc.passes.word_formats import choose, comparator_bits
from forestc.rows.batches import Rows, reduce_rows
from forestc.rows.ranges import have_rows
from forestc.system.compiled import in_threads

_COUNT_OR_SHARE = "a whole number, or a share below 1"


@dataclass(frozen=True)
class ShareThresholds:
    """Merges thresholds of one feature if no given row changes its path: fewer and narrower comparators.

    Promises: exact-on-data: no path of a given row changes. With path_change or exceptions approximate: scored on
    held-out rows, and refused beyond the tolerance.
    """

    exceptions: Annotated[
        int | float,
        Range(0, 1 << 62, _COUNT_OR_SHARE, below=True),
        tried(0, 0.02, 0.05, 0.1, 0.2, 0.4),
        "number of nodes of a feature (or share below 1) whose threshold may move outside the interval that "
        "keeps every path (c of problem 5 in the paper).",
    ] = 0
    path_change: Annotated[
        float,
        Range(0, 1, "a share from 0 to below 1", below=True),
        tried(0.0, 0.005, 0.01, 0.02, 0.05, when={"exceptions": (0,)}),
        "share of a node's rows that may change sides in either direction (sigma of problem 4 in the paper).",
    ] = 0.0
    tolerance: Annotated[
        float | None,
        LOSS,
        "with path_change or exceptions: accuracy (R squared of a regression) that may be lost against the model "
        "on held-out rows; 1.5 standard errors are added to the loss first; default 0.01.",
    ] = None
    prefer: Annotated[
        Literal["few-bits", "middle"],
        tried("few-bits", "middle", approximate=False),
        "which threshold to take: few-bits (a smallest set of thresholds with few binary digits) or middle "
        "(the middle of the common interval, as in the paper).",
    ] = "few-bits"
    name: ClassVar[str] = "share-thresholds"

    def __post_init__(self) -> None:
        check_options(self)
        if self.exceptions > 1 and self.exceptions != int(self.exceptions):
            raise OptionError(
                f"exceptions={self.exceptions}", where="pass share-thresholds", do=f"use {_COUNT_OR_SHARE}"
            )
        if self.tolerance is not None and self.lossless:
            raise OptionError(
                "a tolerance is for exceptions or path_change, and no path changes without them",
                where="pass share-thresholds",
                do="remove it",
            )

    @property
    def lossless(self) -> bool:
        """True if no path of a given row may change."""
        return not (self.path_change or self.exceptions)

    def refuse(self, source: Forest, rows: Rows | None, scorer: Scorer | None) -> None:
        if not have_rows(rows):
            raise OptionError(
                "needs rows: they say how far thresholds may move",
                where="pass share-thresholds",
                do=f"give {opt.rows}, or remove it from the passes",
            )
        if not self.lossless and scorer is None:
            raise OptionError(
                "is scored on held-out rows, and there are none",
                where=f"pass {print_pass(self)}",
                do=f"give rows that the model was not trained on ({opt.held_out:FILE}), or hold out a share of the "
                f"rows ({opt.held_out:0.2})",
            )

    def run(self, forest: Forest, rows: Rows | None, scorer: Scorer | None = None) -> PassResult:
        """Returns the result of the pass, with shared thresholds. Raises OptionError if thresholds are integers, or if
        rows are missing."""
        if forest.on_words:
            raise OptionError("works on floats", where="pass share-thresholds", do="put it before quantize-inputs")
        self.refuse(forest, rows, scorer)
        assert rows is not None
        task = Observe.of(forest)
        seen = reduce_rows(rows, task)
        result = self.shared(task, seen, rows)
        limit = DEFAULT_TOLERANCE if self.tolerance is None else float(self.tolerance)
        promise: Promise = KeepsPaths() if self.lossless else Within(limit)
        return PassResult(result, (promise,), _report(task, seen, result, rows))

    def shared(self, task: Observe, seen: Observation, rows: Rows) -> Forest:
        """Returns the forest with shared thresholds. seen: what the task read from the rows."""
        bounds = seen.nodes.bounds
        if self.path_change:
            bounds = widened(rows, task, bounds, float(self.path_change))
        return with_thresholds(task.forest, self.thresholds(task, bounds))

    def thresholds(self, task: Observe, bounds: NodeBounds) -> FloatArray:
        """Returns the thresholds (nodes,) after sharing. All but the exceptions are within their bounds."""
        thresholds = task.trees.threshold.copy()

        def share(index: int) -> None:
            here = finite_nodes(task, index)
            if len(here):
                narrow = task.forest.features[index].number == FLOAT32
                thresholds[here] = self._shared(bounds.low[here], bounds.high[here], thresholds[here], narrow)

        in_threads(share, range(len(task.forest.features)))
        return thresholds

    def _shared(self, low: FloatArray, high: FloatArray, present: FloatArray, narrow: bool) -> FloatArray:
        allowed = int(self.exceptions * len(present)) if self.exceptions < 1 else int(self.exceptions)
        few_bits = self.prefer == "few-bits"
        if not allowed:
            points, taken = fewest_thresholds(low, high, present, few_bits, narrow)
            return points[taken]
        hit = ~stab_most(low, high, allowed).missed
        points, _ = fewest_thresholds(low[hit], high[hit], present[hit], few_bits, narrow)
        return points[take(low, high, points).point]


def _report(task: Observe, seen: Observation, result: Forest, fit: Rows) -> dict[str, Any]:
    forest, exact = task.forest, seen.nodes.bounds
    new = np.concatenate([tree.threshold for tree in result.trees])
    plain = (task.trees.left >= 0) & (task.trees.set_start < 0)
    past = missed(task, exact, result)
    after, within = seen, exact
    if past.any():  # rows take other paths now, which changes the intervals
        after = reduce_rows(fit, Observe.of(result))
        within = after.nodes.bounds
    figures = np.zeros((3, len(forest.features), 2), dtype=np.int64)

    def measure(index: int) -> None:
        feature = forest.features[index]
        sides = ((seen, task.trees.threshold, exact), (after, new, within))
        for side, (observed, thresholds, bounds) in enumerate(sides):
            free = freedom(task, observed, index, thresholds, bounds)
            form = choose(feature.number, feature.raw, free.missing, free, "auto", None)
            bits = comparator_bits(form.number, form.words)
            figures[:, index, side] = len(free.thresholds), bits, word_bits(form.number)

    in_threads(measure, range(len(forest.features)))
    conditions, bits, inputs = figures.sum(axis=1).tolist()
    if any(tree.sets for tree in forest.trees):
        conditions = [len(forest.conditions.comparators), len(result.conditions.comparators)]
    names = [feature.name for feature in forest.features]
    return {
        "distinct_conditions": conditions,
        "comparator_bits": bits,
        "input_bits": inputs,
        "inputs": dict(zip(names, figures[2].tolist(), strict=True)),
        "exceptions": int(past.sum()),
        "thresholds": int(plain.sum()),
        "exceptions_by_feature": {
            name: int(past[here].sum()) for name, here in zip(names, task.plain, strict=True) if past[here].any()
        },
        "chosen_on_held_out": False,
    }


def missed(task: Observe, exact: NodeBounds, after: Forest) -> NDArray[np.bool_]:
    """Returns True for each node with a threshold outside of the interval that keeps all paths, (nodes,)."""
    new = np.concatenate([tree.threshold for tree in after.trees])
    plain = (task.trees.left >= 0) & (task.trees.set_start < 0)
    return np.asarray(plain & ~((exact.low < new) & (new <= exact.high)))


def with_thresholds(forest: Forest, thresholds: NDArray[np.float64]) -> Forest:
    """Returns the forest with new thresholds. thresholds: (nodes,), tree after tree."""
    ends = np.cumsum([tree.size for tree in forest.trees])
    return changed(
        forest,
        trees=tuple(
            changed_tree(tree, threshold=thresholds[end - tree.size : end])
            for tree, end in zip(forest.trees, ends.tolist(), strict=True)
        ),
    )


def fewest_thresholds(
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    present: NDArray[np.float64],
    few_bits: bool,
    narrow: bool,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Returns two arrays: the fewest thresholds, ascending, that hit every interval (low, high], and the index of each
    interval's threshold.
    narrow: True to round thresholds to float32."""
    narrow_set = narrow_points(low, high) if few_bits else None
    stabbed = None if narrow_set is None else take(low, high, narrow_set[0])
    if narrow_set is not None and stabbed is not None and not stabbed.missed.any():
        points = narrow_set[0]
    else:
        stabbed = stab(low, high)
        points = _middles(stabbed.low, stabbed.high, narrow)
    if narrow:
        with np.errstate(over="ignore"):
            points = points.astype(np.float32).astype(np.float64)
    outside = ~(
        (stabbed.low < points) & (points <= stabbed.high)
    )  # If rounding moved the point out, the right end is taken.
    points = np.where(outside, stabbed.high, points)
    anywhere = np.flatnonzero(np.isinf(stabbed.low) & np.isinf(stabbed.high))
    for point in anywhere.tolist():  # no row bounds this interval
        points[point] = present[stabbed.point == point][0]
    return points, stabbed.point


def _middles(low: NDArray[np.float64], high: NDArray[np.float64], narrow: bool) -> NDArray[np.float64]:
    """Returns floats just above the middles of finite intervals: the paper tests `x <= middle`, forestc `x < t`."""
    with np.errstate(invalid="ignore", over="ignore"):
        middle = low + (high - low) / 2
        if narrow:
            rounded = middle.astype(np.float32)
            above = np.where(rounded > middle, rounded, np.nextafter(rounded, np.float32(np.inf)))
            next_above = np.nextafter(low.astype(np.float32), np.float32(np.inf)).astype(np.float64)
        else:
            above, next_above = np.nextafter(middle, np.inf), np.nextafter(low, np.inf)
    return np.where(np.isinf(high), next_above, np.where(np.isinf(low), high, above))
