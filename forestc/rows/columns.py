"""Matches a table with a model: finds the column that each feature reads, and reads the rows and their labels in
batches. Features are matched by name if the model and the rows both have names, otherwise by position."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from forestc.errors import OptionError, RowsError, opt
from forestc.forest.builder import changed
from forestc.forest.ir import Feature, Forest
from forestc.forest.numbers import Category, Float
from forestc.rows.batches import ArrayRows, Batch, Rows, WeightedRows
from forestc.rows.hashed import array_codes, as_given, category_columns, fill_codes, hashes_of
from forestc.rows.labels import LabelReader, counted
from forestc.rows.table import (
    ROWS,
    ArrayTable,
    FrameTable,
    Table,
    in_memory,
    is_absent,
    is_sparse,
    some_names,
    unique_names,
    whole_text,
)

if TYPE_CHECKING:
    from scipy.sparse import spmatrix

BATCH_ROWS = 16384  # rows of a batch at most
BATCH_VALUES = 1 << 24  # limits the values of a batch: 128 MB as float64
_PREFIX_AND_NUMBER = re.compile(r"(.*?)(\d{1,18})", re.DOTALL)


@dataclass(frozen=True)
class ColumnMatch:
    """The columns of the rows that a model's features read."""

    columns: tuple[int, ...]  # one index per feature, counted without the label
    names: tuple[str, ...] = ()  # all names of the rows if the model has none


def find_columns(forest: Forest, labels: Sequence[Any] | int, where: str) -> ColumnMatch:
    """Returns the columns of the rows that a model's features read.
    labels: the columns' names, or their number, without the label column.

    Raises RowsError if the columns do not match the model.
    """
    if isinstance(labels, int):
        return _by_position(forest, labels, where)
    names = unique_names(labels, where)
    wanted = [feature.name for feature in forest.features]
    if all(feature.named for feature in forest.features):
        positions = _found_names(wanted, names)
        if not _counts(names) or any(position is not None for position in positions):
            return _by_name(wanted, positions, names, where)
        return _by_position(forest, len(names), where)
    match = _by_position(forest, len(names), where)
    if _counts(names):
        return match
    _refuse_other_order(forest, names, where)
    return replace(match, names=names)


def adopt_names(forest: Forest, names: Sequence[str]) -> Forest:
    if not names:
        return forest
    return replace(forest, features=tuple(replace(f, name=names[f.column], named=True) for f in forest.features))


def accept_missing(forest: Forest, missing: str) -> Forest:
    """Returns the forest with `always_missing` set if `missing` is "always"; unchanged for "auto". Raises OptionError
    for another word, or if the model accepts no missing values."""
    if missing == "auto":
        return forest
    if missing != "always":
        raise OptionError(f"{missing!r} is unknown", where=opt.missing, do="use auto or always")
    if not any(feature.missing for feature in forest.features):
        raise OptionError("the model takes no missing values", where=opt.missing, do="leave missing=always out")
    return replace(forest, always_missing=True)


def name_classes(forest: Forest, names: Sequence[str]) -> Forest:
    """Returns the forest with its classes renamed in their order; unchanged without names. Raises OptionError if the
    names do not fit."""
    if not names:
        return forest
    if len(forest.targets) > 1 or not forest.classes:
        what = f"{len(forest.targets)} targets" if forest.decides else "no classes"
        raise OptionError(f"classes are named, and the model has {what}", where=opt.classes, do="leave the names out")
    known = ", ".join(map(str, forest.classes[:8]))
    if len(names) != len(forest.classes):
        raise OptionError(
            f"{len(names)} names for {len(forest.classes)} classes",
            where=opt.classes,
            do=f"give one for each, in this order: {known}",
        )
    if len(set(names)) < len(names) or not all(names):
        raise OptionError(
            f"two classes have one name, or one has none: {', '.join(names)}", where=opt.classes, do="give each its own"
        )
    return replace(forest, classes=tuple(map(str, names)))


def with_categories(forest: Forest, names: list[str], texts: Mapping[str, tuple[list[str], bool]]) -> Forest:
    """Assigns the forest's lists of category names to features, as the rows suggest, because LightGBM models may store
    the lists without column names. Returns the forest, unchanged if no assignment is clear.
    names: the rows' columns without labels.
    texts: the texts in columns, as `Table.texts` returns them."""
    texts = {name: texts[name] for name in names if name in texts}
    by_order = _all_in_order(forest, names) and len(texts) == len(forest.categories)
    chosen = (_in_order if by_order else _by_content)(forest, names, texts)
    if not chosen:
        return forest
    features = []
    for index, feature in enumerate(forest.features):
        listed = chosen.get(index)
        if isinstance(feature.number, Category):
            count = max(feature.number.count, len(listed or ()))
            feature = replace(feature, labels=listed or (), number=replace(feature.number, count=count))
        features.append(feature)
    return changed(forest, features=tuple(features), categories=())


def _by_position(forest: Forest, count: int, where: str) -> ColumnMatch:
    if count != forest.columns:
        raise RowsError(
            f"has {count} columns beside the label",
            where=where,
            do=f"the model takes {forest.columns}; name the label column, if there is one",
        )
    return ColumnMatch(tuple(feature.column for feature in forest.features))


def _by_name(wanted: Sequence[str], positions: Sequence[int | None], names: Sequence[str], where: str) -> ColumnMatch:
    missing = [name for name, position in zip(wanted, positions, strict=True) if position is None]
    if missing:
        raise RowsError(
            f"column {missing[0]!r} is missing" + (f" and {len(missing) - 1} more" if missing[1:] else ""),
            where=where,
            do=f"it has: {some_names(names)}",
        )
    if len(set(wanted)) < len(wanted):
        twice = next(name for index, name in enumerate(wanted) if name in wanted[:index])
        raise RowsError(f"two of the model's columns are called {twice!r}", where=where, do="give rows without names")
    return ColumnMatch(tuple(position for position in positions if position is not None))


def _found_names(wanted: Sequence[str], names: Sequence[str]) -> list[int | None]:
    """Returns a list of each wanted name's index in `names`, or None. An underscore also matches a space."""
    exact = {name: position for position, name in enumerate(names)}
    loose: dict[str, list[int]] = {}
    for name in exact.keys() - set(wanted):
        loose.setdefault(re.sub(r"\s", "_", name), []).append(exact[name])

    def position(name: str) -> int | None:
        alike = loose.get(re.sub(r"\s", "_", name), [])
        return exact.get(name, alike[0] if len(alike) == 1 else None)

    return [position(name) for name in wanted]


def _counts(names: Sequence[str]) -> bool:
    if not all(re.fullmatch(r"0|[1-9]\d{0,8}", name) for name in names):
        return False
    numbers = [int(name) for name in names]
    return numbers == sorted(numbers) and (not numbers or numbers[-1] <= len(numbers))


def _refuse_other_order(forest: Forest, names: Sequence[str], where: str) -> None:
    """Raises RowsError if the names of the rows' columns show another order than the model's columns."""
    for feature in forest.features:
        if feature.named and feature.name in names and names[feature.column] != feature.name:
            raise _other_order(names, where)
    parts = [_PREFIX_AND_NUMBER.fullmatch(name) for name in names]
    if len({part[1] for part in parts if part}) == 1 and all(parts):
        numbers = [int(part[2]) for part in parts if part]
        if any(b <= a for a, b in pairwise(numbers)):
            raise _other_order(names, where)


def _other_order(names: Sequence[str], where: str) -> RowsError:
    return RowsError(
        f"the model has no column names, and the names of the rows say another order: {some_names(names)}",
        where=where,
        do="put the columns into the order the model was trained on, or give them without names",
    )


def _all_in_order(forest: Forest, names: list[str]) -> bool:
    if len(names) != forest.columns:
        return False
    pairs = [(names[feature.column], feature.name) for feature in forest.features if feature.named]
    return all(re.sub(r"\s", "_", name) == re.sub(r"\s", "_", other) for name, other in pairs)


def _in_order(
    forest: Forest, names: list[str], texts: Mapping[str, tuple[list[str], bool]]
) -> dict[int, tuple[str, ...]]:
    """Returns {feature index: categories}, assigned in the order of columns; empty if the rows' texts contradict it."""
    pairs = dict(zip(texts, forest.categories, strict=True))  # Both are in the order of the columns.
    if not all(not values or set(values) & set(pairs[name]) for name, (values, _) in texts.items()):
        return {}
    return {
        index: pairs[names[feature.column]]
        for index, feature in enumerate(forest.features)
        if names[feature.column] in pairs and isinstance(feature.number, Category)
    }


def _by_content(
    forest: Forest, names: list[str], texts: Mapping[str, tuple[list[str], bool]]
) -> dict[int, tuple[str, ...]]:
    """Returns {feature index: categories}, assigned by texts in the columns; empty unless each categorical column
    matches one list."""
    chosen: dict[int, tuple[str, ...]] = {}
    for index, feature in enumerate(forest.features):
        if not isinstance(feature.number, Category):
            continue
        name = feature.name if feature.named or len(names) != forest.columns else names[feature.column]
        values, complete = texts.get(name, ([], False))
        alike = {names for names in forest.categories if complete and set(names) == set(values)}
        if len(alike) != 1:
            return {}
        chosen[index] = alike.pop()
    return chosen


@dataclass(frozen=True)
class TableRows:
    """Rows of a table for one model."""

    table: Table
    read_columns: tuple[Any, ...]  # names by column; None if no condition reads it
    reader: LabelReader
    features: Mapping[int, Feature]  # features that accept texts, by column of the rows
    names: tuple[str, ...] = ()  # names of the columns; empty if the model has names
    hashing: Forest | None = None  # the forest if it makes codes of hashes, and the table holds categories

    def batches(self) -> Iterator[Batch]:
        """Yields the rows in batches. Raises RowsError for a value that its column does not take, or if there are no
        rows."""
        count = 0
        for batch in self.read():
            count += len(batch.X)
            yield batch
        if not count:
            raise no_rows(self.table.where)

    def read(self) -> Iterator[Batch]:
        """Yields the rows in batches, if there are any."""
        truth = self.reader.columns
        columns = dict.fromkeys([*(name for name in self.read_columns if name is not None), *truth])
        categories = {} if self.hashing is None else {self.hashing.place(c): c for c in category_columns(self.hashing)}
        texts = {*truth, *(self.read_columns[column] for column in {*self.features, *categories})}
        most, start = max(1, min(BATCH_ROWS, BATCH_VALUES // max(1, len(self.read_columns)))), 0
        for batch in self.table.batches(list(columns), texts, most):
            X = np.zeros((batch.num_rows, len(self.read_columns)))
            text: dict[bool, str] = {}
            hashes = {}
            for column, name in enumerate(self.read_columns):
                if name is not None and column in categories:
                    hashes[categories[column]] = hashes_of(batch.column(name), str(name), self.table.where)
                elif name is not None:
                    feature = self.features.get(column)
                    labels, unknown = ((), None) if feature is None else (feature.labels, feature.other_text)
                    values = batch.column(name)
                    if isinstance(self.table, FrameTable) and labels:
                        values = self.table.named(values, name, labels)
                    X[:, column], holds = self.table.numbers(values, str(name), labels, unknown)
                    text |= dict.fromkeys(holds, str(name)) if labels else {}
            if len(text) > 1:
                raise RowsError(
                    f"column {text[True]!r} holds names of categories and {text[False]!r} numbers",
                    where=self.table.where,
                    do="give names in both, or codes in both",
                )
            if self.hashing is not None:
                fill_codes(self.hashing, X, hashes)
            labels_of_batch = [batch.column(name).tolist() for name in truth]
            yield Batch(X, self.reader.read(labels_of_batch, start) if truth else None)
            start += batch.num_rows

    def check_labels(self) -> None:
        truth = self.reader.columns
        if not any(self.reader.targets) or len(truth) != len(self.reader.targets):
            return
        counts = [counted(()) for _ in truth]
        for batch in self.table.batches(truth, truth, BATCH_ROWS):
            for name, count in zip(truth, counts, strict=True):
                count.update(counted(batch.column(name)))
        self.reader.refuse_others(counts)


def without_labels(rows: Rows) -> Rows:
    """Returns the rows without labels and weights."""
    rows = rows.rows if isinstance(rows, WeightedRows) else rows
    if isinstance(rows, TableRows):
        return replace(rows, reader=replace(rows.reader, columns=()))
    return replace(rows, truth=None, weights=None) if isinstance(rows, ArrayRows) else rows


def matched(
    table: Table | ArrayTable, forest: Forest, columns: tuple[Any, ...], labels: object, aside: tuple[Any, ...] = ()
) -> Rows:
    """Returns a table's rows for a model; those of arrays and data frames are read at once.
    columns: names of label columns.
    labels: the labels themselves; None if columns hold them, or there are none.
    aside: names of columns that are neither.

    Raises RowsError if the table or the labels do not match the model.
    """
    reader = LabelReader.of(forest, table.where, columns)
    if isinstance(table, ArrayTable):
        rows = _array_rows(table, forest)
    else:
        table_rows = _match(table, forest, reader, aside)
        table_rows.check_labels()
        if not isinstance(table, FrameTable):
            return table_rows
        [batch] = table_rows.batches()
        rows = ArrayRows(batch.X, batch.truth, names=table_rows.names)
    return rows if labels is None else replace(rows, truth=reader.read_values(labels, len(rows.X)))


def _match(table: Table, forest: Forest, reader: LabelReader, aside: tuple[Any, ...] = ()) -> TableRows:
    others = [name for name in table.names if name not in (*reader.columns, *aside)]
    made = {feature.name for feature in forest.features if feature.column >= forest.own_columns}
    codes = getattr(table, "sampled", False) or (
        made and (made <= set(others) if table.headed else len(others) == forest.columns)
    )
    hashing = forest if forest.hashed and not codes else None
    categories = set() if hashing is None else category_columns(forest)
    given = forest if hashing is None else as_given(forest)
    match = find_columns(given, others if table.headed else len(others), table.where)
    read_columns: list[Any] = [None] * forest.width
    texts = {}
    for feature, column in zip(given.features, match.columns, strict=True):
        index = forest.place(feature.column)
        read_columns[index] = others[column]
        if feature.column in categories:
            continue
        _refuse_unclear_categories(forest, feature, table, others[column])
        if feature.other_text is not None:
            texts[index] = feature
    return TableRows(table, tuple(read_columns), reader, texts, match.names, hashing)


def _array_rows(table: ArrayTable, forest: Forest) -> ArrayRows:
    rows, own = table.rows, table.where == ROWS  # own: not from a file
    if own and forest.carried and (shape := np.shape(rows))[1:] not in ((forest.columns,), (forest.own_columns,)):
        raise _other_width(shape, forest, table.where)
    if not own and rows.ndim == 2:
        chosen = np.setdiff1d(np.arange(rows.shape[1]), table.labels)
        if forest.carried and len(chosen) == forest.columns:
            chosen = chosen[list(forest.carried)]
        rows = rows if len(chosen) == rows.shape[1] else rows[:, chosen]
    X = _array_numbers(forest, rows)
    if X.ndim != 2 or X.shape[1] != forest.width:
        raise _other_width(X.shape, forest, table.where)
    if not len(X):
        raise no_rows(table.where)
    keeps_all = own and isinstance(rows, np.ndarray) and forest.carried
    return ArrayRows(X, all_columns=rows if keeps_all else None)


def numeric(forest: Forest, rows: object) -> NDArray[np.float64]:
    """Returns rows as float64, (rows, columns), with codes for category names. Raises RowsError if a data frame lacks a
    column, or if a column without category names holds text."""
    table = in_memory(rows)
    if isinstance(table, FrameTable):
        return next(_match(table, forest, LabelReader.of(forest, table.where)).read()).X
    return _array_numbers(forest, rows)


def _array_numbers(forest: Forest, rows: Any) -> NDArray[np.float64]:
    if forest.hashed and not is_sparse(rows) and (coded := array_codes(forest, rows, "the rows")) is not None:
        return coded
    texts = any(feature.other_text is not None for feature in forest.features)
    if is_sparse(rows):
        return _dense(forest, rows)
    if forest.carried and isinstance(rows, np.ndarray) and rows.ndim == 2 and rows.shape[1] == forest.columns:
        rows = rows[:, list(forest.carried)]
    dtype = rows.dtype if isinstance(rows, np.ndarray) else None
    if not texts or (dtype is not None and dtype.kind in "biuf"):
        with suppress(TypeError, ValueError):  # Columns that no condition reads may hold text.
            return np.asarray(rows, dtype=np.float64)
    try:
        values = np.asarray(rows, dtype=object)  # Text that looks like a number may be a name.
    except ValueError as error:  # The lists have different lengths.
        raise RowsError(f"the rows are no table ({error})", where="the rows", do="give rows of one length") from None
    if values.ndim != 2 or values.shape[1] not in (forest.width, forest.columns):
        return np.zeros(values.shape)  # The caller will refuse this shape.
    only_read_columns = values.shape[1] == forest.width
    result = np.zeros((len(values), forest.width))
    for feature, index in zip(forest.features, forest.row_columns, strict=True):
        codes, unknown = {label: float(code) for code, label in enumerate(feature.labels)}, feature.other_text
        try:
            result[:, index] = [
                np.nan
                if is_absent(value)
                else codes.get(value, unknown)
                if unknown is not None and isinstance(value, str)
                else value
                for value in values[:, index if only_read_columns else feature.column]
            ]
        except (TypeError, ValueError) as error:
            raise RowsError(
                f"the rows are not numbers ({error})", where=f"feature {feature.name!r}", do="encode text columns first"
            ) from None
    return result


def _dense(forest: Forest, rows: spmatrix) -> NDArray[np.float64]:
    """Returns a sparse matrix as a dense array. Values that are not stored become 0; for an XGBoost model they become
    NaN."""
    if rows.ndim != 2 or rows.shape[1] != forest.columns:
        return np.zeros((0, *rows.shape))  # The caller will refuse this shape.
    chosen = rows.tocsc()[:, list(forest.carried)] if forest.carried else rows.tocsc()
    result = np.asarray(chosen.toarray(), dtype=np.float64)
    if forest.provenance.source == "xgboost":
        stored = chosen.copy()
        stored.data = np.ones(len(stored.data), dtype=bool)
        result[~stored.toarray()] = np.nan
    return result


def _refuse_unclear_categories(forest: Forest, feature: Feature, table: Table, name: Any) -> None:
    categories = table.categories(name) if isinstance(table, FrameTable) else []
    if any(isinstance(category, str) or whole_text(category) in feature.labels for category in categories):
        return  # Texts are names of categories, and so are whole numbers of which texts were made.
    codes = categories == list(range(len(categories)))
    by_value = isinstance(feature.number, Float) and forest.provenance.source == "scikit-learn"
    if categories and (feature.labels or not (codes or by_value)):
        shown = ", ".join(map(str, categories[:5]))
        accepted = ", ".join(feature.labels[:5]) if feature.labels else "their own codes from 0 up"
        raise RowsError(
            f"column {str(name)!r} holds the categories {shown}, which are not {accepted}",
            where=table.where,
            do="give the model's own categories, or the codes it was trained on as plain numbers",
        )


def no_rows(where: str) -> RowsError:
    return RowsError("there are no rows", where=where, do="give at least one")


def _other_width(shape: tuple[int, ...], forest: Forest, where: str) -> RowsError:
    return RowsError(
        f"the array has shape {shape}", where=where, do=f"the model takes rows of {forest.columns} columns"
    )
