"""Draws models with and without column names, and rows with columns named and ordered in many ways. It also states the
rule of `forestc.rows.columns` a second time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import xgboost
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier

import forestc
from forestc.errors import RowsError
from forestc.forest.ir import Forest
from forestc.rows.columns import adopt_names
from forestc.rows.given import rows_from

LIBRARIES = ("sklearn", "xgboost", "lightgbm")
FORMS = ("frame", "table", "csv", "parquet", "arrow", "array")
STYLES = ("words", "x0", "x1", "f0", "f1", "Column_0", "Column_1", "column 0", "0", "1", "7")
WORDS = ("age", "mean size", "mean_weight", "x", "f", "Column_", "speed 2", "2 speed")
SIZES = (3, 4, 5)


def names_of(style: str, count: int) -> list[str]:
    """Returns names in order: words, or a prefix and numbers from the style's first number on."""
    if style == "words":
        return list(WORDS[:count])
    prefix, first = re.fullmatch(r"(.*?)(\d)", style).groups()
    return [f"{prefix}{int(first) + k}" for k in range(count)]


@dataclass(frozen=True)
class Trained:
    """A fitted model, the names that it was trained with (None: an array), and the columns that it reads."""

    model: Any
    forest: Forest
    names: tuple[str, ...] | None
    columns: int

    @property
    def read(self) -> list[int]:
        return [feature.column for feature in self.forest.features]

    def predict(self, X: NDArray[np.float64]) -> NDArray[Any]:
        return self.model.predict(X if self.names is None else pd.DataFrame(X, columns=list(self.names)))


@cache
def trained(library: str, names: tuple[str, ...] | None, columns: int, unread: int) -> Trained:
    """Trains a small model that does not read the columns from `columns - unread` on; a negative `unread` counts from
    the front."""
    random = np.random.default_rng([columns, unread + 1])
    X = random.normal(size=(120, columns)).astype(np.float32).astype(np.float64)
    y = (X @ np.arange(1, columns + 1) > 0).astype(int)
    X[:, columns - unread :] = 1.0
    if unread < 0:
        X[:, :-unread] = 1.0
    make = {
        "sklearn": lambda: RandomForestClassifier(8, max_depth=4, random_state=0),
        "xgboost": lambda: xgboost.XGBClassifier(n_estimators=8, max_depth=4, n_jobs=1),
        "lightgbm": lambda: lightgbm.LGBMClassifier(
            n_estimators=8, num_leaves=6, min_child_samples=2, verbose=-1, n_jobs=1
        ),
    }[library]
    model = make().fit(X if names is None else pd.DataFrame(X, columns=list(names)), y)
    return Trained(model, forestc.load(model), names, columns)


@dataclass(frozen=True)
class Case:
    """Rows for a model: the values, the names of their columns (None: no names), and the form in which they are given.
    label: the index of a column of labels among the others, or None."""

    made: Trained
    values: NDArray[np.float64]
    header: list[Any] | None
    form: str
    label: int | None


def random_case(seed: int) -> Case:
    """Draws any model, any header in any order, at times with a column too many or too few."""
    random = np.random.default_rng(seed)

    def one_of(some: Sequence[Any]) -> Any:
        return some[int(random.integers(len(some)))]

    columns, unread = one_of(SIZES), int(random.integers(-1, 2))
    names = None
    if random.random() < 0.6:
        names = names_of(one_of(STYLES), columns)
        if random.random() < 0.3:
            names = random.permutation(names).tolist()
    made = trained(one_of(LIBRARIES), None if names is None else tuple(names), columns, unread)
    form = one_of(FORMS)
    width = columns + int(random.choice([0, 0, 0, 0, 1, -1]))
    header: list[Any] | None = names_of(one_of(STYLES), width)
    if names is not None and random.random() < 0.6:
        header = [*names, "more"][:width]
    way = random.random()
    if way < 0.3:
        header = random.permutation(header).tolist()
    elif way < 0.4:
        header = header[::-1]
    if form == "array" or (form == "csv" and random.random() < 0.2):
        header = None
    elif form == "frame" and random.random() < 0.2:
        header = random.permutation(width).tolist() if random.random() < 0.3 else list(range(width))
    label = int(random.integers(0, width + 1)) if random.random() < 0.4 else None
    if header is not None and form == "csv" and all(str(name).isdigit() for name in header):
        label = width  # A first line of numbers alone may be a row.
    return Case(made, random.normal(size=(30, width)).astype(np.float32).astype(np.float64), header, form, label)


def expected_columns(case: Case) -> list[int] | None:
    """Returns the rows' column for each column that the model reads, or None if the rows must be refused."""
    made, width = case.made, case.values.shape[1]
    in_place = made.read if width == made.columns else None
    if case.header is None:
        return in_place
    header = [str(name) for name in case.header]
    plain = all(re.fullmatch("0|[1-9][0-9]*", name) for name in header)
    numbers = [int(name) for name in header] if plain else []
    counting = plain and numbers == sorted(numbers) and numbers[-1] <= width
    saved = made.names
    if saved is not None and made.forest.provenance.source == "lightgbm":
        saved = tuple(name.replace(" ", "_") for name in saved)
        if saved == tuple(f"Column_{k}" for k in range(made.columns)):
            saved = None
    if saved is None:
        rest = {name.rstrip("0123456789") for name in header}
        ends = [name[len(name.rstrip("0123456789")) :] for name in header]
        if len(rest) == 1 and all(ends) and [int(end) for end in ends] != sorted({int(end) for end in ends}):
            return None
        return in_place
    found = []
    for column in made.read:
        loose = [k for k, name in enumerate(header) if name.replace(" ", "_") == saved[column].replace(" ", "_")]
        found.append(header.index(saved[column]) if saved[column] in header else loose[0] if loose else None)
    if counting and all(place is None for place in found):
        return in_place
    return None if None in found else found


def check_case(case: Case, folder: Path) -> str:
    """Raises AssertionError if evaluate, rows_from and the library do not agree; returns the outcome in words."""
    columns, forest = expected_columns(case), case.made.forest
    rows, label, truth = _handed_over(case, folder)
    askers = [lambda forest: _through_rows(forest, rows, label, truth)]
    if case.form in ("frame", "table", "array") and case.label is None:
        askers.append(lambda forest: forestc.evaluate(forest, rows).decision)
    if columns is None:
        for ask in askers:
            try:
                ask(forest)
            except RowsError as error:
                assert "\n" not in str(error)
                continue
            raise AssertionError(f"not refused: {case}")
        return "refused"
    X = np.zeros((len(case.values), case.made.columns))
    X[:, case.made.read] = case.values[:, columns]
    expected = case.made.predict(X)
    for ask in askers:
        assert np.array_equal(ask(forest), expected), case
    names = getattr(rows_from(rows, forest, label if label is not None else truth), "names", ())
    if not names:
        return "taken"
    named = adopt_names(forest, names)  # From here on the columns may come in any order, but need these names.
    frame = pd.DataFrame(case.values, columns=case.header)
    assert np.array_equal(forestc.evaluate(named, frame[frame.columns[::-1]]).decision, expected), case
    try:
        forestc.evaluate(named, frame.rename(columns=lambda name: f"another {name}"))
    except RowsError:
        return "adopted"
    raise AssertionError(f"rows without the adopted names are taken: {case}")


def _handed_over(case: Case, folder: Path) -> tuple[Any, Any, Any]:
    """Returns rows in a form that forestc takes, and their label: the column's name or index, or the labels
    themselves."""
    truth = np.arange(len(case.values)) % 2
    if case.form == "array":
        return case.values, None, None if case.label is None else truth
    frame = pd.DataFrame(case.values, columns=case.header)
    label: Any = None
    if case.label is not None:
        label = "truth" if case.header is not None else -1
        frame.insert(case.label, label, truth)
        label = label if case.header is not None else str(case.label)
    if case.form == "frame":
        return frame, label, None
    frame.columns = [str(name) for name in frame.columns]
    table = pa.Table.from_pandas(frame, preserve_index=False)
    if case.form == "table":
        return table, label, None
    path = folder / f"rows.{case.form}"
    match case.form:
        case "csv":
            frame.to_csv(path, index=False, header=case.header is not None)
        case "parquet":
            pa.parquet.write_table(table, path)
        case "arrow":
            pa.feather.write_feather(table, path, compression="lz4")
    return path, label, None


def _through_rows(forest: Forest, rows: Any, label: Any, truth: Any) -> NDArray[Any]:
    batches = list(rows_from(rows, forest, label if label is not None else truth).batches())
    if label is not None or truth is not None:
        found = np.concatenate([batch.truth for batch in batches])
        assert np.array_equal(found, np.arange(len(found)) % 2)
    return forestc.evaluate(forest, np.concatenate([batch.X for batch in batches])).decision
