"""Estimates how often comparators hold, leaves are reached and labels are decided, under an input model or on given
rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from forestc.errors import RowsError, opt
from forestc.forest.conditions import Below
from forestc.forest.evaluate import encode_numbers
from forestc.forest.ir import Forest
from forestc.forest.numbers import FloatArray
from forestc.inputs.boxes import Box, Boxes
from forestc.inputs.coverage import Coverage
from forestc.inputs.model import DRAWN, InputModel
from forestc.passes.quick_evaluation import concatenated_trees, evaluate_quickly
from forestc.rows.batches import Rows

Event = dict[int, tuple[int, ...]]


@dataclass(frozen=True)
class ForestActivity:
    """Probabilities over rows: exact under an input model where possible, otherwise counted on `count` rows."""

    conditions: FloatArray  # (conditions,) probability that a row goes left
    exact_conditions: NDArray[np.bool_]  # (conditions,) True if the probability is exact
    toggles: FloatArray  # (conditions,) probability that the result changes between rows
    leaves: tuple[FloatArray, ...]  # for each tree (nodes,) probabilities of leaves; 0 at inner nodes
    exact_leaves: tuple[NDArray[np.bool_], ...]  # for each tree (nodes,), True if the probability is exact
    labels: FloatArray  # (classes,) counted probabilities; empty for a regression or several targets
    label_errors: FloatArray  # standard errors of `labels`
    count: int  # number of rows

    def comparisons(self, forest: Forest) -> FloatArray:
        """Returns for each tree the expected number of comparisons of a row: (trees,)."""
        depths = []
        for tree, shares in zip(forest.trees, self.leaves, strict=True):
            depth = np.zeros(tree.size)
            for level, nodes in enumerate(tree.levels):
                depth[nodes] = level
            depths.append(float(depth @ shares / shares.sum()))
        return np.array(depths)


def activity(inputs: InputModel, model: Forest, forest: Forest, count: int = DRAWN, seed: int = 0) -> ForestActivity:
    """Returns the probabilities of a quantized forest's conditions, leaves and labels on rows of an input model. model:
    the forest before quantization. Raises RowsError if the columns differ."""
    events_of = _Events(inputs, forest)
    counted = counted_activity(forest, inputs.drawn_for(model, count, seed, (forest,)))
    events = [events_of.condition(number) for number in range(len(forest.conditions))]
    conditions = events_of.answered(events, counted.conditions)
    leaves, exact = [], []
    for index, tree in enumerate(forest.trees):
        boxes = dict(events_of.boxes.leaves(index))
        nodes = np.array(list(boxes))
        leaf_events = [events_of.box(box) for box in boxes.values()]
        shares = np.zeros(tree.size)
        shares[nodes] = events_of.answered(leaf_events, counted.leaves[index][nodes])
        exact_nodes = np.zeros(tree.size, dtype=bool)
        exact_nodes[nodes] = [event is not None for event in leaf_events]
        leaves.append(shares)
        exact.append(exact_nodes)
    return replace(
        counted,
        conditions=conditions,
        exact_conditions=np.array([event is not None for event in events], dtype=bool),
        toggles=2 * conditions * (1 - conditions),
        leaves=tuple(leaves),
        exact_leaves=tuple(exact),
    )


def counted_activity(forest: Forest, rows: Rows) -> ForestActivity:
    """Returns the activity of a quantized forest counted on raw rows; toggles follow the order of the rows. Raises
    RowsError if there are no rows."""
    coverage, walked, table = Coverage.of(forest), concatenated_trees(forest), tuple(forest.conditions)
    ones, changes = np.zeros(len(table), dtype=np.int64), np.zeros(len(table), dtype=np.int64)
    chosen, count = np.zeros(len(forest.classes), dtype=np.int64), 0
    last: NDArray[np.bool_] | None = None  # (distinct conditions,): whether the last row of the batch before went left
    for batch in rows.batches():
        if not len(batch.X):
            continue
        words, absent = encode_numbers(forest, batch.X), np.isnan(batch.X)
        evaluation = evaluate_quickly(forest, words, walked)
        coverage.add(evaluation.leaves)
        if forest.classes and evaluation.index.ndim == 1:
            chosen += np.bincount(evaluation.index, minlength=len(chosen))
        ends = np.zeros(len(table), dtype=bool)
        for number, condition in enumerate(table):
            f = condition.feature
            left = condition.sends_left(words[:, f], absent[:, forest.row_columns[f]])
            ones[number] += left.sum()
            changes[number] += (left[1:] != left[:-1]).sum() + (
                last is not None and bool(last[number]) != bool(left[0])
            )
            ends[number] = left[-1]
        last, count = ends, count + len(batch.X)
    if not count:
        raise RowsError("there are no rows", where=opt.rows, do="give at least one row")
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


class _Events:
    """The events of conditions and leaves under an input model; an event maps variables to their allowed states."""

    def __init__(self, inputs: InputModel, forest: Forest) -> None:
        self.inputs, self.forest, self.boxes = inputs, forest, Boxes(forest)
        self.own = inputs.of(forest)
        self.starts = [inputs.starts[inputs.by_column[column.column]] for column in self.own]

    def answered(self, events: list[list[Event] | None], counted: FloatArray) -> FloatArray:
        """Returns an array with the total probability of each list of disjoint events. Where a list is None, the entry
        of `counted` is taken."""
        flat = [event for disjoint in events if disjoint is not None for event in disjoint]
        probabilities = iter(self.inputs.tree.probabilities_of(flat).tolist())
        shares = [
            share if disjoint is None else sum(next(probabilities) for _ in disjoint)
            for disjoint, share in zip(events, counted.tolist(), strict=True)
        ]
        return np.clip(np.array(shares, dtype=np.float64), 0, 1)  # Rounded sums may lie past the ends.

    def condition(self, index: int) -> list[Event] | None:
        """Returns a list of the disjoint events in which a condition holds; None for sets and for events that the model
        cannot express."""
        condition = self.forest.conditions[index]
        if not isinstance(condition.test, Below):
            return None
        values = self.boxes.domains[condition.feature].all_values
        (low, high), cut = values.spans[0], int(condition.test.threshold)
        below = self._number(condition.feature, low, min(cut, high)) if cut > low else None
        if below is None:
            return None
        absent = self._absent(condition.feature)
        return [below, *([absent] if condition.missing_left and absent is not None else [])]

    def box(self, box: Box | None) -> list[Event] | None:
        """Returns a list with the event that a row reaches a leaf with this box; [] for an impossible event, None for
        an event that the model cannot express."""
        if box is None:
            return []
        joint: Event = {}
        for feature, values in box.items():
            absent = self._absent(feature)
            missing = values.missing and absent is not None
            if len(values.spans) + missing > 1:
                return None
            if missing and absent is not None:
                event: Event | None = absent
            elif not values.spans:
                return []  # The feature must be missing here, but it never was in the rows.
            else:
                event = self._number(feature, *values.spans[0])
            if event is None:
                return None
            joint |= event
        return [joint]

    def _number(self, feature: int, low: int, high: int) -> Event | None:
        column, domain = self.own[feature], self.boxes.domains[feature]
        if column.category or not column.states:
            return None
        ends = domain.raw_span((low, high))
        if any(np.isfinite(end) and end not in column.cuts for end in ends):
            return None
        return {self.starts[feature] + variable: states for variable, states in column.literals(*ends).items()}

    def _absent(self, feature: int) -> Event | None:
        literals = self.own[feature].absent_literals()
        if not literals or not self.forest.features[feature].missing:
            return None
        return {self.starts[feature] + variable: states for variable, states in literals.items()}
