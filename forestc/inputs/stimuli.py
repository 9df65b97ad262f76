"""Rows that follow an input model and reach every leaf of a quantized forest that any raw row reaches.

First rows are drawn from the model. For each leaf that none of them reached, rows are drawn given that the leaf is
reached, as far as the model's cuts tell; then a value that still lies outside the leaf's box is moved into it. So every
leaf with a box is reached, however little probability the model gives it, and every other is shown unreachable. After
2,000 leaves, for time, rows drawn before are moved into the boxes of the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.networks.junction_tree import Event
from forestc.errors import OptionError
from forestc.forest.evaluate import encode_numbers
from forestc.forest.ir import LEAF, Forest
from forestc.forest.numbers import FloatArray
from forestc.inputs.boxes import Box, Boxes, Span, Values
from forestc.inputs.columns import InputColumn
from forestc.inputs.coverage import Coverage
from forestc.inputs.model import DRAWN, InputModel
from forestc.passes.quick_evaluation import evaluate_quickly, walked_trees

BATCH = 256  # leaves between two looks at what was reached on the way
ROWS_A_LEAF = 2  # rows for each leaf that drawn rows miss
MOST_CONDITIONED = 2000  # leaves for which rows are drawn given that they are reached, which takes time


@dataclass
class Stimuli:
    """Rows (n, columns) of a model and its quantized forest.

    drawn: how many of them the model gave without evidence. conditioned: leaves for which others were drawn given that
    the leaf is reached; moved: how many of these rows had a value moved into the box. steered: leaves into which drawn
    rows were moved instead. coverage: of the drawn rows alone.
    """

    rows: FloatArray
    drawn: int
    conditioned: int
    steered: int
    moved: int
    coverage: Coverage = field(repr=False)


def stimuli(inputs: InputModel, model: Forest, forest: Forest, count: int = DRAWN, seed: int = 0) -> Stimuli:
    """Rows drawn from the input model, and rows for every leaf of the quantized forest that those miss.

    model: the forest that was quantized, whose columns the rows have. Raises RowsError for a model of other columns.
    """
    rows = inputs.drawn_for(model, count, seed, (forest,)).X
    drawing = _Drawing(inputs, model, forest, rows, np.random.default_rng([seed, 1]))
    coverage = Coverage.of(forest)
    walked = walked_trees(forest)
    for start in range(0, len(rows), 8192):
        coverage.add(evaluate_quickly(forest, encode_numbers(forest, rows[start : start + 8192]), walked).leaves)
    reached = Coverage(forest, [visits.copy() for visits in coverage.leaf_visits])
    parts = [rows]
    missed = _missed(drawing.boxes, reached)
    while batch := list(islice(missed, BATCH)):
        wanted = [box for index, node, box in batch if not reached.leaf_visits[index][node]]
        if not wanted:
            continue
        made = np.concatenate([drawing.rows_in(box) for box in wanted])
        reached.add(evaluate_quickly(forest, encode_numbers(forest, made), walked).leaves)
        parts.append(made)
    drawn = len(rows)
    return Stimuli(np.concatenate(parts), drawn, drawing.conditioned, drawing.steered, drawing.moved, coverage)


def _missed(boxes: Boxes, reached: Coverage) -> Iterator[tuple[int, int, Box]]:
    """Tree, node and box of each leaf with a box that no row has reached yet."""
    for index, tree in enumerate(boxes.forest.trees):
        if reached.leaf_visits[index][tree.left == LEAF].all():
            continue
        for node, box in boxes.leaves(index):
            if box is not None and not reached.leaf_visits[index][node]:
                yield index, node, box


class _Drawing:
    """Draws rows inside boxes, and counts them as `Stimuli` does. drawn: rows drawn before."""

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
        """Rows (ROWS_A_LEAF, columns) that lie in a box."""
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
        """What the variables of the input model say of a box."""
        evidence: dict[int, tuple[int, ...]] = {}
        for feature, span in chosen.items():
            column, start = self.own[feature], self.starts[feature]
            literals = (
                column.absent_literals() if span is None else column.literals(*self.domains[feature].raw_span(span))
            )
            evidence |= {start + variable: states for variable, states in literals.items()}
        return evidence

    def _move(self, rows: FloatArray, chosen: Mapping[int, Span | None]) -> int:
        """Moves values outside a box into it, in place. Returns how many rows had one."""
        words = encode_numbers(self.forest, rows)
        changed: NDArray[np.bool_] = np.zeros(len(rows), dtype=bool)
        for feature, span in chosen.items():
            column = self.forest.places[feature]
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
        """The span that rows are to lie in, None for a missing value: one that the rows seen had values in, if any;
        infinity alone only where a missing value does not do as well."""
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
        except OptionError:  # its probability underflows: the box is met by moving values alone
            return self.inputs.tree.sample(ROWS_A_LEAF, self.random)

    def _value(self, feature: int, span: Span) -> float:
        """A raw value whose word lies in a span."""
        column, low, high = self.own[feature], *self.domains[feature].raw_span(span)
        if column.category:
            return float(self.random.integers(span[0], span[1]))
        value = column.uniform(low, high, self.random)
        if low <= value < high:
            return value
        return np.inf if low > 0 else -np.inf  # uniform values are finite


def _was_seen(column: InputColumn, low: float, high: float) -> bool:
    """Whether the rows seen had, or may have had, a value low <= x < high."""
    if column.category:
        return any(column.codes[code] for code in range(max(0, int(low)), min(len(column.codes), int(high))))
    return low <= column.largest and high > column.least
