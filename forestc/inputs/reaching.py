"""Draws rows that follow an input model, and more that reach each leaf of a forest that some row can reach."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from forestc.checks.boxes import Box, Boxes, Span, Values
from forestc.checks.coverage import Coverage
from forestc.errors import OptionError
from forestc.forest.evaluate import encode_numbers
from forestc.forest.ir import LEAF, Forest
from forestc.forest.numbers import FloatArray
from forestc.inputs.columns import InputColumn
from forestc.inputs.model import InputModel
from forestc.papers.networks.junction_tree import Event
from forestc.passes.quick_evaluation import concatenated_trees, evaluate_quickly

BATCH = 256  # leaves between two updates of the reached leaves; fewer save rows
ROWS_A_LEAF = 2  # rows for each leaf that the drawn rows miss


@dataclass(frozen=True)
class ReachingRows:
    """Rows that follow an input model and reach all reachable leaves."""

    values: FloatArray  # (n, inputs) values of the input model's columns; the drawn rows come first
    leaves: int  # number of leaves of the forest
    unreachable: int  # number of leaves that no row can reach
    reached_by_drawn: int  # number of leaves that the rows reach which were drawn without a leaf in mind


def reaching_rows(inputs: InputModel, model: Forest, forest: Forest, count: int, seed: int = 0) -> ReachingRows:
    """Draws rows from the input model, and more rows for each reachable leaf that these miss. model: the forest before
    quantization. Raises RowsError if the columns differ."""
    sampler = _BoxSampler(inputs, (model, forest), np.random.default_rng([seed, 1]))
    values = sampler.complete(inputs.draw(count, seed))
    coverage, walked = Coverage.of(forest), concatenated_trees(forest)

    def reached() -> int:
        return sum(int((visits > 0).sum()) for visits in coverage.leaf_visits)

    for start in range(0, len(values), 8192):
        coverage.add(evaluate_quickly(forest, sampler.words(values[start : start + 8192]), walked).leaves)
    by_drawn, parts = reached(), [values]
    missed = _missed(sampler.boxes, coverage)
    while batch := list(islice(missed, BATCH)):
        boxes = [box for index, node, box in batch if not coverage.leaf_visits[index][node]]
        if boxes:
            parts.append(np.concatenate([sampler.values_in(box) for box in boxes]))
            coverage.add(evaluate_quickly(forest, sampler.words(parts[-1]), walked).leaves)
    leaves = sum(int((tree.left == LEAF).sum()) for tree in forest.trees)
    return ReachingRows(np.concatenate(parts), leaves, leaves - reached(), by_drawn)


def _missed(boxes: Boxes, reached: Coverage) -> Iterator[tuple[int, int, Box]]:
    for index, tree in enumerate(boxes.forest.trees):
        if reached.leaf_visits[index][tree.left == LEAF].all():
            continue
        for node, box in boxes.leaves(index):
            if box is not None and not reached.leaf_visits[index][node]:
                yield index, node, box


class _BoxSampler:
    """Draws values of an input model's columns inside boxes of the last of some forests, which read the same rows."""

    def __init__(self, inputs: InputModel, forests: Sequence[Forest], random: np.random.Generator) -> None:
        self.inputs, self.forest, self.random = inputs, forests[-1], random
        self.boxes = Boxes(self.forest)
        self.domains = self.boxes.domains
        self.own = inputs.of(self.forest)
        self.places = [inputs.by_column[column.column] for column in self.own]
        # Maps columns in which some forest takes no missing values to the value that replaces these.
        self.stand_ins = {
            inputs.by_column[column.column]: float(np.argmax(column.codes)) if column.category else column.least
            for forest in forests
            for feature, column in zip(forest.features, inputs.of(forest), strict=True)
            if not feature.missing
        }

    def complete(self, values: FloatArray) -> FloatArray:
        """Returns the values, without missing ones in columns where a forest takes none."""
        for place, value in self.stand_ins.items():
            values[np.isnan(values[:, place]), place] = value
        return values

    def words(self, values: FloatArray) -> NDArray[np.int64]:
        rows = np.zeros((len(values), self.forest.width))
        rows[:, list(self.forest.row_columns)] = values[:, self.places]
        return encode_numbers(self.forest, rows)

    def values_in(self, box: Box) -> FloatArray:
        """Draws rows (ROWS_A_LEAF, inputs) inside a box."""
        chosen = {feature: self._chosen(feature, values) for feature, values in box.items()}
        values = self.complete(self.inputs.values(self._sampled(self._evidence(chosen)), self.random))
        words = self.words(values)
        for feature, span in chosen.items():
            place = self.places[feature]
            absent = np.isnan(values[:, place])
            if span is None:
                values[~absent, place] = np.nan
                continue
            outside = absent | (words[:, feature] < span[0]) | (words[:, feature] >= span[1])
            values[outside, place] = [self._value(feature, span) for _ in range(int(outside.sum()))]
        return values

    def _evidence(self, chosen: Mapping[int, Span | None]) -> Event:
        """Returns {variable of the network: allowed states}. chosen: each feature's range of words (span); None for
        missing."""
        evidence: dict[int, tuple[int, ...]] = {}
        for feature, span in chosen.items():
            column, start = self.own[feature], self.inputs.starts[self.places[feature]]
            literals = (
                column.absent_literals() if span is None else column.literals(*self.domains[feature].raw_span(span))
            )
            evidence |= {start + variable: states for variable, states in literals.items()}
        return evidence

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
