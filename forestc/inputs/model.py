"""The input model: how rows are distributed over the cells between a model's thresholds, learnt once from rows.

It holds counts and ranges of these rows: it does not promise to hide every single row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.networks.bayesian_network import BayesianNetwork
from forestc.algorithms.networks.junction_tree import JunctionTree
from forestc.errors import ModelError, RowsError
from forestc.forest.ir import Feature, Forest
from forestc.forest.numbers import Category, FloatArray
from forestc.inputs.columns import InputColumn
from forestc.rows.batches import ArrayRows
from forestc.rows.columns import find_columns

DRAWN = 10_000  # rows by default
BATCH = 16384  # rows drawn at once


@dataclass(frozen=True)
class InputModel:
    """A distribution of rows for one model.

    width: columns of the raw rows. inputs: those that the model reads. network: over the variables of all inputs, one
    input after the other. rows_seen: number of rows that it was learnt from. comparators: distinct ones of the model;
    kept: those that the network tells apart. model_hash: of the model that it was learnt for. Raises ModelError if the
    network does not fit the columns.
    """

    width: int
    inputs: tuple[InputColumn, ...]
    network: BayesianNetwork
    rows_seen: int
    comparators: int
    kept: int
    model_hash: str = ""

    def __post_init__(self) -> None:
        states = tuple(size for column in self.inputs for size in column.states)
        if states != self.network.states:
            raise ModelError("the network is not one over the columns", do="learn the input model again")

    def __repr__(self) -> str:
        return f"<InputModel: {self.kept:,} comparators of {len(self.inputs):,} columns, {self.rows_seen:,} rows>"

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """For each input its first variable; at the end the number of variables."""
        return tuple(np.cumsum([0, *(len(column.states) for column in self.inputs)]).tolist())

    @cached_property
    def tree(self) -> JunctionTree:
        """For questions to the network."""
        return JunctionTree(self.network)

    @cached_property
    def by_column(self) -> Mapping[int, int]:
        """The place among `inputs` of each column of the rows."""
        return {column.column: place for place, column in enumerate(self.inputs)}

    def encoded(self, rows: FloatArray) -> NDArray[np.uint8]:
        """The states of raw rows (rows, width), or of their values (rows, inputs): (rows, variables)."""
        values = self.values_of(rows)
        parts = [column.encoded(values[:, place]) for place, column in enumerate(self.inputs)]
        return np.concatenate([np.zeros((len(rows), 0), dtype=np.uint8), *parts], axis=1)

    def decoded(self, states: NDArray[np.uint8], random: np.random.Generator) -> FloatArray:
        """Raw rows (rows, width) with these states; columns that the model does not read hold 0."""
        return self._whole(self.values(states, random))

    def values(self, states: NDArray[np.uint8], random: np.random.Generator) -> FloatArray:
        """The values (rows, inputs) of raw rows with these states."""
        spans = zip(self.inputs, self.starts[:-1], self.starts[1:], strict=True)
        parts = [column.decoded(states[:, start:stop], random) for column, start, stop in spans]
        return np.stack(parts, axis=1) if parts else np.zeros((len(states), 0))

    def values_of(self, rows: FloatArray) -> FloatArray:
        """The values (rows, inputs) of raw rows (rows, width); values stay as they are."""
        return rows if rows.shape[1] != self.width else rows[:, [column.column for column in self.inputs]]

    def _whole(self, values: FloatArray) -> FloatArray:
        rows = np.zeros((len(values), self.width))
        rows[:, [column.column for column in self.inputs]] = values
        return rows

    def rows(self, count: int = DRAWN, seed: int = 0) -> FloatArray:
        """Raw rows (count, width) float64 drawn from the model, NaN where a value is missing, categories by code.

        Between two cuts a value is uniform within the range seen; where all values seen were whole numbers, so are
        these. The same for the same seed.
        """
        return self._whole(self._drawn(count, seed))

    def _drawn(self, count: int, seed: int) -> FloatArray:
        random = np.random.default_rng(seed)
        parts = [np.zeros((0, len(self.inputs)))]
        for start in range(0, count, BATCH):
            parts.append(self.values(self.tree.sample(min(BATCH, count - start), random), random))
        return np.concatenate(parts)

    def contradictions(self) -> tuple[float, float]:
        """For the drawn states of `DRAWN` rows: the share of rows with a binary variable that contradicts the value
        read off, and the share of all binary variables that do. They are passed over when a row is drawn."""
        states = self.tree.sample(DRAWN, np.random.default_rng(0))
        wrong = np.zeros(DRAWN, dtype=np.int64)
        for column, start, stop in zip(self.inputs, self.starts[:-1], self.starts[1:], strict=True):
            wrong += column.contradicted(states[:, start:stop])
        binary = sum(len(column.fine) for column in self.inputs if column.states)
        return float((wrong > 0).mean()), float(wrong.sum() / max(1, binary * DRAWN))

    def log_likelihood(self, rows: FloatArray) -> FloatArray:
        """The natural logarithm of the probability of each raw row's comparator bits, (rows,)."""
        return self.network.log_likelihood(self.encoded(rows))

    def with_least_count(self, least: int) -> InputModel:
        """Counts below `least` are replaced by 0, in the network's tables, of categories and of missing values. Ranges
        stay as they are. Raises OptionError for a negative number."""
        network = self.network.with_least_count(least)
        inputs = tuple(
            replace(
                column,
                codes=tuple(0 if count < least else count for count in column.codes),
                missing=0 if column.missing is not None and column.missing < least else column.missing,
            )
            for column in self.inputs
        )
        return replace(self, network=network, inputs=inputs)

    def drawn_for(self, model: Forest, count: int = DRAWN, seed: int = 0, others: Sequence[Forest] = ()) -> ArrayRows:
        """Rows drawn for a model, in the order of its columns. others: forests that take the rows as well; no value is
        missing where one of them takes none. Raises RowsError if the model reads columns that this one lacks."""
        self.of(model)  # refused before memory is taken for the rows
        return ArrayRows(self.placed_for(model, self._drawn(count, seed), others))

    def placed_for(self, model: Forest, drawn: FloatArray, others: Sequence[Forest] = ()) -> FloatArray:
        """Values (rows, inputs) that were drawn, as rows in the order of a model's columns: see `drawn_for`."""
        refusing = {f.column for forest in (model, *others) for f in forest.features if not f.missing}
        result = np.zeros((len(drawn), model.width))
        for feature, place, column in zip(model.features, model.places, self.of(model), strict=True):
            values = drawn[:, self.by_column[column.column]]
            if feature.column in refusing and np.isnan(values).any():
                values = np.where(np.isnan(values), _stand_in(column), values)
            result[:, place] = values
        return result

    def of(self, forest: Forest) -> tuple[InputColumn, ...]:
        """For each feature of a model its input. Raises RowsError, naming a feature, for a model of other columns."""
        where = "the input model"
        if all(column.named for column in self.inputs) and all(feature.named for feature in forest.features):
            known = {column.name: column for column in self.inputs}
            if not all(feature.name in known for feature in forest.features):
                names = [column.name for column in self.inputs]
                find_columns(forest, names, where)  # raises the error of rows without that column
            columns = [known[feature.name] for feature in forest.features]
        else:
            if forest.columns != self.width:
                raise RowsError(
                    f"is one of {self.width} columns, and the model takes {forest.columns}",
                    where=where,
                    do="learn it for this model",
                )
            for feature in forest.features:
                if feature.column not in self.by_column:
                    raise RowsError(f"does not know column {feature.name!r}", where=where, do="learn it for this model")
            columns = [self.inputs[self.by_column[feature.column]] for feature in forest.features]
        for feature, column in zip(forest.features, columns, strict=True):
            _check_same(feature, column, where)
        return tuple(columns)


def _check_same(feature: Feature, column: InputColumn, where: str) -> None:
    wanted = feature.number.count if isinstance(feature.number, Category) else None
    have = None if column.category is None else column.category.count
    if wanted != have:
        kinds = ["a number" if count is None else f"a category of {count}" for count in (have, wanted)]
        raise RowsError(
            f"has {kinds[0]} where the model takes {kinds[1]}", where=f"{where}, {feature.name!r}", do="learn it anew"
        )


def _stand_in(column: InputColumn) -> float:
    """A value in the place of a missing one, for a model that takes none."""
    return float(np.argmax(column.codes)) if column.category else column.least
