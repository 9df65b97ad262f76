"""The input model: how rows are distributed over the cells between a model's thresholds, learnt once from rows.

It holds counts and ranges of these rows: it is no promise that nothing can be told about a single row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.algorithms.networks.bayesian_network import BayesianNetwork
from forestc.algorithms.networks.junction_tree import JunctionTree
from forestc.errors import ModelError, RowsError
from forestc.forest.ir import Feature, Forest
from forestc.forest.numbers import FloatArray
from forestc.inputs.columns import InputColumn
from forestc.rows.batches import ArrayRows
from forestc.rows.columns import find_columns

DRAWN = 10_000  # rows by default
BATCH = 16384


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
        states = tuple(size for each in self.inputs for size in each.states)
        if states != self.network.states:
            raise ModelError("the network is not one over the columns", do="learn the input model again")

    def __repr__(self) -> str:
        return f"<InputModel: {self.kept:,} comparators of {len(self.inputs):,} columns, {self.rows_seen:,} rows>"

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """For each input its first variable; at the end the number of variables."""
        return tuple(np.cumsum([0, *(len(each.states) for each in self.inputs)]).tolist())

    @cached_property
    def tree(self) -> JunctionTree:
        """For questions to the network."""
        return JunctionTree(self.network)

    @cached_property
    def by_column(self) -> Mapping[int, int]:
        """The place among `inputs` of each column of the rows."""
        return {each.column: place for place, each in enumerate(self.inputs)}

    def encoded(self, rows: FloatArray) -> NDArray[np.uint8]:
        """The states of raw rows (rows, width): (rows, variables)."""
        parts = [each.encoded(rows[:, each.column]) for each in self.inputs]
        return np.concatenate([np.zeros((len(rows), 0), dtype=np.uint8), *parts], axis=1)

    def decoded(self, states: NDArray[np.uint8], random: np.random.Generator) -> FloatArray:
        """Raw rows (rows, width) with these states; columns that the model does not read hold 0."""
        rows = np.zeros((len(states), self.width))
        for each, start, stop in zip(self.inputs, self.starts[:-1], self.starts[1:], strict=True):
            rows[:, each.column] = each.decoded(states[:, start:stop], random)
        return rows

    def rows(self, count: int = DRAWN, seed: int = 0) -> FloatArray:
        """Raw rows (count, width) float64 drawn from the model, NaN where a value is missing, categories by code.

        Between two cuts a value is uniform within the range seen; where all values seen were whole numbers, so are
        these. The same for the same seed.
        """
        random = np.random.default_rng(seed)
        parts = [np.zeros((0, self.width))]
        for start in range(0, count, BATCH):
            parts.append(self.decoded(self.tree.sample(min(BATCH, count - start), random), random))
        return np.concatenate(parts)

    def contradictions(self, count: int = DRAWN, seed: int = 0) -> tuple[float, float]:
        """Of the drawn states of `count` rows: the share of rows with a binary variable that contradicts the value
        read off, and the share of all binary variables that do. They are passed over when a row is drawn."""
        states = self.tree.sample(count, np.random.default_rng(seed))
        wrong = np.zeros(count, dtype=np.int64)
        for each, start, stop in zip(self.inputs, self.starts[:-1], self.starts[1:], strict=True):
            wrong += each.contradicted(states[:, start:stop])
        binary = sum(len(each.fine) for each in self.inputs if each.states)
        return float((wrong > 0).mean()), float(wrong.sum() / max(1, binary * count))

    def log_likelihood(self, rows: FloatArray) -> FloatArray:
        """The natural logarithm of the probability of each raw row's comparator bits, (rows,)."""
        return self.network.log_likelihood(self.encoded(rows))

    def with_least_count(self, least: int) -> InputModel:
        """Counts below `least` are replaced by 0, in the network's tables, of categories and of missing values. Ranges
        stay as they are. Raises OptionError for a negative number."""
        network = self.network.with_least_count(least)
        inputs = tuple(
            replace(
                each,
                codes=tuple(0 if count < least else count for count in each.codes),
                missing=0 if each.missing is not None and each.missing < least else each.missing,
            )
            for each in self.inputs
        )
        return replace(self, network=network, inputs=inputs)

    def drawn_for(self, model: Forest, count: int = DRAWN, seed: int = 0, others: Sequence[Forest] = ()) -> ArrayRows:
        """Rows drawn for a model, in the order of its columns. others: forests that take the rows as well; no value is
        missing where one of them takes none. Raises RowsError if the model reads columns that this one lacks."""
        return ArrayRows(self.placed_for(model, self.rows(count, seed), others))

    def placed_for(self, model: Forest, rows: FloatArray, others: Sequence[Forest] = ()) -> FloatArray:
        """Rows that `rows` drew, in the order of a model's columns: see `drawn_for`."""
        refusing = {f.column for forest in (model, *others) for f in forest.features if not f.missing}
        result = np.zeros((len(rows), model.columns))
        for feature, each in zip(model.features, self.of(model), strict=True):
            values = rows[:, each.column]
            if feature.column in refusing and np.isnan(values).any():
                values = np.where(np.isnan(values), _stand_in(each), values)
            result[:, feature.column] = values
        return result

    def of(self, forest: Forest) -> tuple[InputColumn, ...]:
        """For each feature of a model its input. Raises RowsError, naming a feature, for a model of other columns."""
        where = "the input model"
        if all(each.named for each in self.inputs) and all(feature.named for feature in forest.features):
            known = {each.name: each for each in self.inputs}
            if not all(feature.name in known for feature in forest.features):
                names = [each.name for each in self.inputs]
                find_columns(forest, names, where)  # raises the error of rows without that column
            found = [known[feature.name] for feature in forest.features]
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
            found = [self.inputs[self.by_column[feature.column]] for feature in forest.features]
        for feature, each in zip(forest.features, found, strict=True):
            _check_same(feature, each, where)
        return tuple(found)


def _check_same(feature: Feature, each: InputColumn, where: str) -> None:
    wanted: Any = getattr(feature.number, "count", None)
    have = None if each.category is None else each.category.count
    if wanted != have:
        kinds = ["a number" if count is None else f"a category of {count}" for count in (have, wanted)]
        raise RowsError(
            f"has {kinds[0]} where the model takes {kinds[1]}", where=f"{where}, {feature.name!r}", do="learn it anew"
        )


def _stand_in(each: InputColumn) -> float:
    """A value in the place of a missing one, for a model that takes none."""
    return float(np.argmax(each.codes)) if each.category else each.least
