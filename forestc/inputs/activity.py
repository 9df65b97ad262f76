"""How often comparators, leaves and labels are 1: under an input model, exact where its cuts tell, else counted on rows
drawn; or counted on given rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from forestc.errors import RowsError
from forestc.forest.conditions import Below
from forestc.forest.evaluate import encode_numbers
from forestc.forest.ir import Forest
from forestc.forest.numbers import FloatArray
from forestc.inputs.boxes import Box, Boxes
from forestc.inputs.coverage import Coverage
from forestc.inputs.model import DRAWN, InputModel
from forestc.passes.quick_evaluation import evaluate_quickly, walked_trees
from forestc.rows.batches import Rows

Event = dict[int, tuple[int, ...]]


@dataclass(frozen=True)
class ForestActivity:
    """Probabilities, each with whether it is exact under an input model or counted on `count` rows.

    conditions: (distinct conditions,) that a row goes left; exact_conditions: (distinct conditions,). toggles:
    (distinct conditions,) changes from one row to the next. leaves: for each tree (nodes,) that a row ends there, 0 at
    inner nodes; exact_leaves: the same shapes. labels: (classes,) counted, with their standard errors for rows that are
    independent; empty for a regression or several targets.
    """

    conditions: FloatArray
    exact_conditions: NDArray[np.bool_]
    toggles: FloatArray
    leaves: tuple[FloatArray, ...]
    exact_leaves: tuple[NDArray[np.bool_], ...]
    labels: FloatArray
    label_errors: FloatArray
    count: int

    def comparisons(self, forest: Forest) -> FloatArray:
        """(trees,) inner nodes that a row is expected to visit: the mean depth of leaves, by their probabilities.

        These are scaled to add up to 1: those counted need not, beside exact ones.
        """
        depths = []
        for tree, shares in zip(forest.trees, self.leaves, strict=True):
            depth = np.zeros(tree.size)
            for level, nodes in enumerate(tree.levels):
                depth[nodes] = level
            depths.append(float(depth @ shares / shares.sum()))
        return np.array(depths)


def activity(inputs: InputModel, model: Forest, forest: Forest, count: int = DRAWN, seed: int = 0) -> ForestActivity:
    """Activity of a quantized forest on independent rows of an input model. model: the forest that was quantized.

    A condition or leaf is exact where all of its thresholds are cuts of the input model; one on categories is counted.
    Each condition toggles at 2 p (1 - p). Raises RowsError for an input model of other columns.
    """
    asking = _Asking(inputs, forest)
    counted = counted_activity(forest, inputs.drawn_for(model, count, seed, (forest,)))
    events = [asking.condition(place) for place in range(len(forest.conditions))]
    conditions = asking.answered(events, counted.conditions)
    leaves, exact = [], []
    for index, tree in enumerate(forest.trees):
        boxes = dict(asking.boxes.leaves(index))
        nodes = np.array(list(boxes))
        leaf_events = [asking.box(box) for box in boxes.values()]
        shares = np.zeros(tree.size)
        shares[nodes] = asking.answered(leaf_events, counted.leaves[index][nodes])
        known = np.zeros(tree.size, dtype=bool)
        known[nodes] = [event is not None for event in leaf_events]
        leaves.append(shares)
        exact.append(known)
    return replace(
        counted,
        conditions=conditions,
        exact_conditions=np.array([event is not None for event in events], dtype=bool),
        toggles=2 * conditions * (1 - conditions),
        leaves=tuple(leaves),
        exact_leaves=tuple(exact),
    )


def counted_activity(forest: Forest, rows: Rows) -> ForestActivity:
    """Activity of a quantized forest counted on raw rows, toggles in their order. Raises RowsError without any row."""
    coverage, walked, table = Coverage.of(forest), walked_trees(forest), tuple(forest.conditions)
    ones, changes = np.zeros(len(table), dtype=np.int64), np.zeros(len(table), dtype=np.int64)
    chosen, count = np.zeros(len(forest.classes), dtype=np.int64), 0
    last: NDArray[np.bool_] | None = None  # how the row before the batch was sent, (distinct conditions,)
    for batch in rows.batches():
        if not len(batch.X):
            continue
        words, absent = encode_numbers(forest, batch.X), np.isnan(batch.X)
        evaluation = evaluate_quickly(forest, words, walked)
        coverage.add(evaluation.leaves)
        if forest.classes and evaluation.index.ndim == 1:
            chosen += np.bincount(evaluation.index, minlength=len(chosen))
        ends = np.zeros(len(table), dtype=bool)
        for place, condition in enumerate(table):
            f = condition.feature
            left = condition.sends_left(words[:, f], absent[:, forest.places[f]])
            ones[place] += left.sum()
            changes[place] += (left[1:] != left[:-1]).sum() + (last is not None and bool(last[place]) != bool(left[0]))
            ends[place] = left[-1]
        last, count = ends, count + len(batch.X)
    if not count:
        raise RowsError("there are no rows", do="give at least one row")
    labels = chosen / count if chosen.any() else np.zeros(0)
    return ForestActivity(
        conditions=ones / count,
        exact_conditions=np.zeros(len(table), dtype=bool),
        toggles=changes / max(1, count - 1),
        leaves=tuple(visits / count for visits in coverage.leaf_visits),
        exact_leaves=tuple(np.zeros(tree.size, dtype=bool) for tree in forest.trees),
        labels=labels,
        label_errors=np.sqrt(labels * (1 - labels) / count),
        count=count,
    )


class _Asking:
    """Conditions and boxes as events over the variables of an input model; None for what its cuts do not tell."""

    def __init__(self, inputs: InputModel, forest: Forest) -> None:
        self.inputs, self.forest, self.boxes = inputs, forest, Boxes(forest)
        self.own = inputs.of(forest)
        self.starts = [inputs.starts[inputs.by_column[column.column]] for column in self.own]

    def answered(self, events: list[list[Event] | None], counted: FloatArray) -> FloatArray:
        """The probability of each list of disjoint events; where that is None, the counted one."""
        flat = [event for disjoint in events if disjoint is not None for event in disjoint]
        probabilities = iter(self.inputs.tree.probabilities_of(flat).tolist())
        shares = [
            share if disjoint is None else sum(next(probabilities) for _ in disjoint)
            for disjoint, share in zip(events, counted.tolist(), strict=True)
        ]
        return np.clip(np.array(shares, dtype=np.float64), 0, 1)  # sums may round past the ends

    def condition(self, place: int) -> list[Event] | None:
        """A condition on a threshold: below it, or missing if missing values go left."""
        condition = self.forest.conditions[place]
        if not isinstance(condition.test, Below):
            return None
        values = self.boxes.domains[condition.feature].whole
        (low, high), cut = values.spans[0], int(condition.test.threshold)
        below = self._number(condition.feature, low, min(cut, high)) if cut > low else None
        if below is None:
            return None
        absent = self._absent(condition.feature)
        return [below, *([absent] if condition.missing_left and absent is not None else [])]

    def box(self, box: Box | None) -> list[Event] | None:
        """A leaf whose features each take one span of numbers, and are never missing, or always."""
        if box is None:
            return []
        whole: Event = {}
        for feature, values in box.items():
            absent = self._absent(feature)
            missing = values.missing and absent is not None
            if len(values.spans) + missing > 1:
                return None
            if missing and absent is not None:
                event: Event | None = absent
            elif not values.spans:
                return []  # missing, which no row was
            else:
                event = self._number(feature, *values.spans[0])
            if event is None:
                return None
            whole |= event
        return [whole]

    def _number(self, feature: int, low: int, high: int) -> Event | None:
        """A number in a span of words, if the ends of the span are cuts or open."""
        column, domain = self.own[feature], self.boxes.domains[feature]
        if column.category or not column.states:
            return None
        ends = domain.raw_span((low, high))
        if any(np.isfinite(end) and end not in column.cuts for end in ends):
            return None
        return {self.starts[feature] + variable: states for variable, states in column.literals(*ends).items()}

    def _absent(self, feature: int) -> Event | None:
        """A missing value, None where none was seen or the forest takes none."""
        literals = self.own[feature].absent_literals()
        if not literals or not self.forest.features[feature].missing:
            return None
        return {self.starts[feature] + variable: states for variable, states in literals.items()}
