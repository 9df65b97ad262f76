"""Generates rows that follow an input model and reach every reachable leaf of a quantized forest.

For leaves that drawn rows miss, it draws rows given the leaf (for at most 2,000 leaves), and moves values into the
leaf's box.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from forestc.errors import OptionError
from forestc.forest.evaluate import encode_numbers
from forestc.forest.ir import LEAF, Forest
from forestc.forest.numbers import FloatArray
from forestc.inputs.boxes import Box, Boxes, Span, Values
from forestc.inputs.columns import InputColumn
from forestc.inputs.coverage import Coverage
from forestc.inputs.model import DRAWN, InputModel
from forestc.papers.networks.junction_tree import Event
from forestc.passes.quick_evaluation import concatenated_trees, evaluate_quickly

BATCH = 256  # leaves between two updates of the reached leaves; fewer save rows
ROWS_A_LEAF = 2  # rows for each leaf that the drawn rows miss
MOST_CONDITIONED = 2000  # leaves for which rows are drawn given the leaf


@dataclass
class Stimuli:
    """Rows (n, columns) that follow an input model and reach all reachable leaves."""

    rows: FloatArray
    drawn: int  # number of rows drawn without a condition; these come first
    conditioned: int  # number of leaves for which rows were drawn given the leaf
    steered: int  # number of other leaves, for which drawn rows were moved into the box
    moved: int  # number of rows, drawn given a leaf, with a moved value
    coverage: Coverage = field(repr=False)  # counts of the rows drawn without a condition


def stimuli(inputs: InputModel, model: Forest, forest: Forest, count: int = DRAWN, seed: int = 0) -> Stimuli:
    """Draws rows from the input model, and more rows for each reachable leaf that these miss. model: the forest before
    quantization. Raises RowsError if the columns differ."""
    rows = inputs.drawn_for(model, count, seed, (forest,)).X
    sampler = _BoxSampler(inputs, model, forest, rows, np.random.default_rng([seed, 1]))
    coverage = Coverage.of(forest)
    walked = concatenated_trees(forest)
    for start in range(0, len(rows), 8192):
        coverage.add(evaluate_quickly(forest, encode_numbers(forest, rows[start : start + 8192]), walked).leaves)
    reached = Coverage(forest, [visits.copy() for visits in coverage.leaf_visits])
    parts = [rows]
    missed = _missed(sampler.boxes, reached)
    while batch := list(islice(missed, BATCH)):
        missed_boxes = [box for index, node, box in batch if not reached.leaf_visits[index][node]]
        if not missed_boxes:
            continue
        added = np.concatenate([sampler.rows_in(box) for box in missed_boxes])
        reached.add(evaluate_quickly(forest, encode_numbers(forest, added), walked).leaves)
        parts.append(added)
    drawn = len(rows)
    return Stimuli(np.concatenate(parts), drawn, sampler.conditioned, sampler.steered, sampler.moved, coverage)


def _missed(boxes: Boxes, reached: Coverage) -> Iterator[tuple[int, int, Box]]:
    for index, tree in enumerate(boxes.forest.trees):
        if reached.leaf_visits[index][tree.left == LEAF].all():
            continue
        for node, box in boxes.leaves(index):
            if box is not None and not reached.leaf_visits[index][node]:
                yield index, node, box


class _BoxSampler:
    """Draws rows inside boxes, and counts how each row was found, for `Stimuli`."""

    def __init__(
        self, inputs: InputModel, model: Forest, forest: Forest, drawn: FloatArray, random: np.random.Generator
    ) -> None:
        self.inputs, self.model, self.forest, self.drawn, self.random = inputs, model, forest, drawn, random
        self.conditioned = self.steered = self.moved = 0
        self.boxes = Boxes(forest)
        self.domains = self.boxes.domains
        self.own = inputs.of(forest)
        self.starts = [inputs.starts[inputs.by_column[column.column]] for column in self.own]

    def rows_in(self, box: Box) -> FloatArray:
        """Draws rows (ROWS_A_LEAF, columns) inside a box."""
        chosen = {feature: self._chosen(feature, values) for feature, values in box.items()}
        if self.conditioned < MOST_CONDITIONED:
            self.conditioned += 1
            states = self._sampled(self._evidence(chosen))
            rows = self.inputs.placed_for(self.model, self.inputs.values(states, self.random), (self.forest,))
            self.moved += self._move(rows, chosen)
        else:
            self.steered += 1
            rows = self.drawn[self.random.integers(0, len(self.drawn), ROWS_A_LEAF)]
            self._move(rows, chosen)
        return rows

    def _evidence(self, chosen: Mapping[int, Span | None]) -> dict[int, tuple[int, ...]]:
        """Returns {variable of the network: allowed states}. chosen: each feature's range of words (span); None for
        missing."""
        evidence: dict[int, tuple[int, ...]] = {}
        for feature, span in chosen.items():
            column, start = self.own[feature], self.starts[feature]
            literals = (
                column.absent_literals() if span is None else column.literals(*self.domains[feature].raw_span(span))
            )
            evidence |= {start + variable: states for variable, states in literals.items()}
        return evidence

    def _move(self, rows: FloatArray, chosen: Mapping[int, Span | None]) -> int:
        """Replaces, in place, values outside the span chosen for their feature by values inside. Returns the number of
        rows changed."""
        words = encode_numbers(self.forest, rows)
        changed: NDArray[np.bool_] = np.zeros(len(rows), dtype=bool)
        for feature, span in chosen.items():
            column = self.forest.row_columns[feature]
            absent = np.isnan(rows[:, column])
            if span is None:
                wrong = ~absent
            else:
                wrong = absent | (words[:, feature] < span[0]) | (words[:, feature] >= span[1])
            for row in np.flatnonzero(wrong).tolist():
                rows[row, column] = np.nan if span is None else self._value(feature, span)
            changed |= wrong
        return int(changed.sum())

    def _chosen(self, feature: int, values: Values) -> Span | None:
        """Returns a random one of the ranges of words (spans) in `values`, if possible one that training rows reached;
        None for the missing value."""
        column, domain = self.own[feature], self.domains[feature]
        finite = [span for span in values.spans if domain.raw_span(span)[0] < np.inf]
        if not finite and values.missing:
            return None
        seen = [span for span in finite if _was_seen(column, *domain.raw_span(span))]
        spans: Sequence[Span] = seen or finite or values.spans
        return spans[int(self.random.integers(len(spans)))]

    def _sampled(self, evidence: Event) -> NDArray[np.uint8]:
        try:
            return self.inputs.tree.sample(ROWS_A_LEAF, self.random, evidence)
        except OptionError:  # The probability of the evidence underflows. Moving values alone meets the box.
            return self.inputs.tree.sample(ROWS_A_LEAF, self.random)

    def _value(self, feature: int, span: Span) -> float:
        column, low, high = self.own[feature], *self.domains[feature].raw_span(span)
        if column.category:
            return float(self.random.integers(span[0], span[1]))
        value = column.uniform(low, high, self.random)
        if low <= value < high:
            return value
        return np.inf if low > 0 else -np.inf  # Values from `uniform` are finite.


def _was_seen(column: InputColumn, low: float, high: float) -> bool:
    """Returns True if training rows may have had a value low <= x < high."""
    if column.category:
        return any(column.codes[code] for code in range(max(0, int(low)), min(len(column.codes), int(high))))
    return low <= column.largest and high > column.least
