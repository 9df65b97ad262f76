"""Defines the input model: a distribution of rows over the cells between a model's thresholds.

It holds counts and ranges of the rows. It does not promise to hide every single row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from forestc.errors import ModelError, RowsError
from forestc.forest.ir import Feature, Forest
from forestc.forest.numbers import Category, FloatArray
from forestc.inputs.columns import InputColumn
from forestc.papers.networks.bayesian_network import BayesianNetwork
from forestc.papers.networks.junction_tree import JunctionTree
from forestc.rows.columns import find_columns

DRAWN = 10_000  # rows drawn by default
BATCH = 16384  # rows drawn at once; more take more memory


@dataclass(frozen=True)
class InputModel:
    """Distribution of rows for one model, learnt by `model_inputs`.

    It is a Bayesian network over the cells between the model's thresholds.

    Attributes
    ----------
    width : int
        Number of columns of raw rows.
    inputs : tuple of InputColumn
        The columns that the model reads.
    network : BayesianNetwork
        The network over the variables of all inputs, one input after the other.
    rows_seen : int
        Number of rows that it was learnt from.
    comparators : int
        Number of distinct comparators of the model.
    kept : int
        Number of comparators that the network tells apart.
    model_hash : str
        Hash of the model.

    Raises
    ------
    ModelError
        If the network does not fit the columns.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> import forestc
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    >>> inputs, _ = forestc.model_inputs(model, X, samples=1)
    >>> inputs.rows(5).shape
    (5, 4)
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
            raise ModelError(
                "the network is not one over the columns", where="the input model", do="learn the input model again"
            )

    def __repr__(self) -> str:
        return f"<InputModel: {self.kept:,} comparators of {len(self.inputs):,} columns, {self.rows_seen:,} rows>"

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The index of the first variable of each input; at the end the number of variables."""
        return tuple(np.cumsum([0, *(len(column.states) for column in self.inputs)]).tolist())

    @cached_property
    def tree(self) -> JunctionTree:
        """The junction tree of the network, for its probabilities and samples."""
        return JunctionTree(self.network)

    @cached_property
    def by_column(self) -> Mapping[int, int]:
        """Maps the column of each input to the input's index in `inputs`."""
        return {column.column: index for index, column in enumerate(self.inputs)}

    def encoded(self, rows: FloatArray) -> NDArray[np.uint8]:
        """Returns the states of rows.

        Parameters
        ----------
        rows : float64 array of shape (rows, width) or (rows, inputs)
            Raw rows, or values of the inputs alone.

        Returns
        -------
        uint8 array of shape (rows, variables)
            The state of each variable of the network.
        """
        values = self.values_of(rows)
        parts = [column.encoded(values[:, index]) for index, column in enumerate(self.inputs)]
        return np.concatenate([np.zeros((len(rows), 0), dtype=np.uint8), *parts], axis=1)

    def values(self, states: NDArray[np.uint8], random: np.random.Generator) -> FloatArray:
        """Draws values of the inputs with given states.

        Parameters
        ----------
        states : uint8 array of shape (rows, variables)
            States of the variables.
        random : numpy.random.Generator
            Generator for values within a state.

        Returns
        -------
        float64 array of shape (rows, inputs)
            Values of the inputs.
        """
        spans = zip(self.inputs, self.starts[:-1], self.starts[1:], strict=True)
        parts = [column.decoded(states[:, start:stop], random) for column, start, stop in spans]
        return np.stack(parts, axis=1) if parts else np.zeros((len(states), 0))

    def values_of(self, rows: FloatArray) -> FloatArray:
        """Returns the values of the inputs from raw rows.

        Parameters
        ----------
        rows : float64 array of shape (rows, width)
            Raw rows. Arrays of another width are returned as they are.

        Returns
        -------
        float64 array of shape (rows, inputs)
            Values of the inputs.
        """
        return rows if rows.shape[1] != self.width else rows[:, [column.column for column in self.inputs]]

    def raw_rows(self, values: FloatArray) -> FloatArray:
        """Returns values of the inputs as raw rows.

        Parameters
        ----------
        values : float64 array of shape (rows, inputs)
            Values of the inputs.

        Returns
        -------
        float64 array of shape (rows, width)
            Raw rows. Columns that the model does not read hold 0.
        """
        rows = np.zeros((len(values), self.width))
        rows[:, [column.column for column in self.inputs]] = values
        return rows

    def rows(self, count: int = DRAWN, seed: int = 0) -> FloatArray:
        """Draws raw rows from the model.

        A value is uniform between two cuts, within the range of the learning rows. It is whole if all finite
        values of its column in these rows were whole and the interval holds a whole number.

        Parameters
        ----------
        count : int, default=10000
            Number of rows.
        seed : int, default=0
            Seed of the generator. The same seed gives the same rows.

        Returns
        -------
        float64 array of shape (count, width)
            Raw rows: NaN for a missing value, the code for a category.
        """
        return self.raw_rows(self.draw(count, seed))

    def draw(self, count: int, seed: int) -> FloatArray:
        """Draws values of the inputs alone.

        Parameters
        ----------
        count, seed : int
            As in `rows`.

        Returns
        -------
        float64 array of shape (count, inputs)
            Values of the inputs.
        """
        random = np.random.default_rng(seed)
        parts = [np.zeros((0, len(self.inputs)))]
        for start in range(0, count, BATCH):
            parts.append(self.values(self.tree.sample(min(BATCH, count - start), random), random))
        return np.concatenate(parts)

    def contradictions(self) -> tuple[float, float]:
        """Measures how often binary variables contradict the values of drawn rows.

        10,000 rows are drawn. Drawing a row ignores such variables.

        Returns
        -------
        rows : float
            Share of rows with a contradiction.
        variables : float
            Share of contradicting variables among all binary ones.
        """
        states = self.tree.sample(DRAWN, np.random.default_rng(0))
        wrong = np.zeros(DRAWN, dtype=np.int64)
        for column, start, stop in zip(self.inputs, self.starts[:-1], self.starts[1:], strict=True):
            wrong += column.contradicted(states[:, start:stop])
        binary = sum(len(column.fine) for column in self.inputs if column.states)
        return float((wrong > 0).mean()), float(wrong.sum() / max(1, binary * DRAWN))

    def log_likelihood(self, rows: FloatArray) -> FloatArray:
        """Returns the logarithm of the probability of each row's comparator bits.

        Parameters
        ----------
        rows : float64 array of shape (rows, width) or (rows, inputs)
            Raw rows, or values of the inputs alone.

        Returns
        -------
        float64 array of shape (rows,)
            Natural logarithms.
        """
        return self.network.log_likelihood(self.encoded(rows))

    def with_least_count(self, least: int) -> InputModel:
        """Returns the input model with small counts replaced by 0.

        Three kinds of counts are replaced: entries of the network's tables, rows of each category, missing values of
        each column. Ranges stay as they are.

        Parameters
        ----------
        least : int
            The smallest count that stays.

        Returns
        -------
        InputModel
            A new input model.

        Raises
        ------
        OptionError
            If `least` is negative.
        """
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

    def of(self, forest: Forest) -> tuple[InputColumn, ...]:
        """Returns the input of each feature of a forest.

        Parameters
        ----------
        forest : Forest
            A forest over the same columns, by name if all columns have names, otherwise by index.

        Returns
        -------
        tuple of InputColumn
            An input for each feature.

        Raises
        ------
        RowsError
            If the forest has other columns.
        """
        where = "the input model"
        if all(column.named for column in self.inputs) and all(feature.named for feature in forest.features):
            by_name = {column.name: column for column in self.inputs}
            if not all(feature.name in by_name for feature in forest.features):
                names = [column.name for column in self.inputs]
                find_columns(forest, names, where)  # Raises the error of rows without that column.
            columns = [by_name[feature.name] for feature in forest.features]
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
    expected = feature.number.count if isinstance(feature.number, Category) else None
    actual = None if column.category is None else column.category.count
    if expected != actual:
        kinds = ["a number" if count is None else f"a category of {count}" for count in (actual, expected)]
        raise RowsError(
            f"has {kinds[0]} where the model takes {kinds[1]}", where=f"{where}, {feature.name!r}", do="learn it anew"
        )
