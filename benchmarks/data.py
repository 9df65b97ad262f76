"""Reads the data sets of the benchmarks: scikit-learn's, tables NAME.csv.gz (a header first, the label last), the rows
beside shared models, and figures of other tools."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets

BUNDLED: dict[str, Callable[..., Any]] = {
    "bc": datasets.load_breast_cancer, "breast_cancer": datasets.load_breast_cancer, "diabetes": datasets.load_diabetes,
    "digits": datasets.load_digits, "iris": datasets.load_iris, "wine": datasets.load_wine,
}  # fmt: skip
Rows = NDArray[np.float64]
Split = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]  # training rows, labels; test rows, labels


def read(name: str, data: Path | None, values: bool = False) -> tuple[Rows, NDArray[Any]]:
    """Reads a bundled set or a table. Returns its rows as numbers (text becomes codes, an empty field NaN), and its
    labels.

    values: the labels of a table are the numbers of a regression; otherwise they become classes 0, 1, ...
    """
    if name in BUNDLED:
        X, y = BUNDLED[name](return_X_y=True)
        return X, y
    text = table(name, data)
    X = np.stack([numbers(column) for column in text[:, :-1].T], axis=1)
    return X, text[:, -1].astype(np.float64) if values else np.unique(text[:, -1], return_inverse=True)[1]


def table(name: str, data: Path | None) -> NDArray[np.str_]:
    """Returns the fields of NAME.csv.gz as text, without the header: (rows, columns)."""
    if data is None:
        raise SystemExit(f"{name} needs --data")
    with gzip.open(data / f"{name}.csv.gz", "rt", newline="") as file:
        return np.array(list(csv.reader(file))[1:])


def numbers(column: NDArray[np.str_]) -> Rows:
    """Returns a column as numbers, NaN where a field is empty. A column with text becomes codes in
    alphabetical order."""
    filled = column != ""
    result = np.full(len(column), np.nan)
    try:
        result[filled] = column[filled].astype(np.float64)
    except ValueError:
        result[filled] = np.unique(column[filled], return_inverse=True)[1]
    return result


def shared(peers: Path, name: str) -> Split:
    """Reads NAME.npz, the rows beside a shared model: training rows and labels, test rows and labels."""
    with np.load(peers / f"{name}.npz") as file:
        return tuple(file[key] for key in ("X_train", "y_train", "X_test", "y_test"))  # type: ignore[return-value]


def others(column: str) -> list[tuple[dict[str, Any], str]]:
    """Returns the rows of other tools in peers.json that have a column, each with where it comes from."""
    peers = json.loads((Path(__file__).parent / "peers.json").read_text(encoding="utf-8"))
    return [
        (row, f"{peer['tool']}, {peer['from']}, {peer['date']}: benchmarks/peers.json")
        for peer in peers for row in peer["rows"] if column in row
    ]  # fmt: skip
