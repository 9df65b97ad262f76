"""Data sets: scikit-learn's, tables NAME.csv.gz of a folder (a header, the label last), shared models' rows, MNIST,
UNSW-NB15."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets

BUNDLED: dict[str, Callable[..., Any]] = {
    "bc": datasets.load_breast_cancer,
    "breast_cancer": datasets.load_breast_cancer,
    "diabetes": datasets.load_diabetes,
    "digits": datasets.load_digits,
    "iris": datasets.load_iris,
    "wine": datasets.load_wine,
}
Rows = NDArray[np.float64]
Split = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]  # training rows, labels; test rows, labels


def read(name: str, data: Path | None, values: bool = False, blank: bool = False) -> tuple[Rows, NDArray[Any]]:
    """A bundled set or a table: numbers, and classes 0, 1, ... or, of a regression, values. Names become codes; empty
    fields NaN or, where they are among names and `blank`, a code of their own."""
    if name in BUNDLED:
        X, y = BUNDLED[name](return_X_y=True)
        return X, y
    text = table(name, data)
    X = np.stack([numbers(column, blank) for column in text[:, :-1].T], axis=1)
    return X, text[:, -1].astype(np.float64) if values else np.unique(text[:, -1], return_inverse=True)[1]


def shuffled(
    name: str, data: Path | None, most: int | None = None, blank: bool = False
) -> tuple[Rows, NDArray[np.int64]]:
    """At most `most` rows in random order, and their classes 0, 1, ..."""
    X, y = read(name, data, blank=blank)
    order = np.random.default_rng(0).permutation(len(X))[:most]
    return X[order], np.unique(y[order], return_inverse=True)[1]  # a rare class may be left out


def table(name: str, data: Path | None) -> NDArray[np.str_]:
    """(rows, columns) the fields of NAME.csv.gz as they are written."""
    if data is None:
        raise SystemExit(f"{name} needs --data")
    with gzip.open(data / f"{name}.csv.gz", "rt", newline="") as file:
        return np.array(list(csv.reader(file))[1:])


def numbers(column: NDArray[np.str_], blank: bool = False) -> Rows:
    """A column of numbers, NaN where it is empty, or of names as their codes in alphabetical order; see `read`."""
    known = column != ""
    result = np.full(len(column), np.nan)
    try:
        result[known] = column[known].astype(np.float64)
    except ValueError:
        known |= blank
        result[known] = np.unique(column[known], return_inverse=True)[1]
    return result


def shared(peers: Path, name: str) -> Split:
    """The rows beside a shared model, NAME.npz."""
    with np.load(peers / f"{name}.npz") as file:
        return tuple(file[key] for key in ("X_train", "y_train", "X_test", "y_test"))  # type: ignore[return-value]


def whole_numbers(X: NDArray[Any], X_test: NDArray[Any], bits: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Features scaled linearly to integers from 0 to 2^bits - 1, by the extremes of the training rows."""
    low, high = X.min(axis=0), X.max(axis=0)
    factor = ((1 << bits) - 1) / np.where(high > low, high - low, 1)
    return tuple(np.clip(np.rint((rows - low) * factor), 0, (1 << bits) - 1) for rows in (X, X_test))  # type: ignore


def mnist(data: Path) -> Split:
    """MNIST with pixels of 4 bits: 0 to 15."""
    X, y, Xt, yt = pixels(data)
    return np.rint(X / 17).astype(np.float32), y, np.rint(Xt / 17).astype(np.float32), yt


def pixels(data: Path) -> Split:
    """MNIST with its own pixels, 0 to 255."""

    def read(name: str, skip: int) -> NDArray[np.uint8]:
        return np.frombuffer(gzip.decompress((data / "mnist" / name).read_bytes()), np.uint8, offset=skip)

    parts: list[NDArray[Any]] = []
    for name in ("train", "t10k"):
        images = read(f"{name}-images-idx3-ubyte.gz", 16).reshape(-1, 784)
        parts += [images, read(f"{name}-labels-idx1-ubyte.gz", 8).astype(np.int64)]
    return parts[0], parts[1], parts[2], parts[3]


def unsw(data: Path) -> Split:
    """UNSW-NB15 with features of 4 bits: numbers by their 16-quantile in the training rows, categories by their
    frequency rank."""
    text = table("unsw_nb15_82k", data)
    y = text[:, -1].astype(np.int64)
    order = np.random.default_rng(0).permutation(len(y))
    test, train = np.split(order, [len(y) // 5])
    X = np.stack([_sixteenths(column, train) for column in text[:, :-1].T], axis=1).astype(np.float32)
    return X[train], y[train], X[test], y[test]


def _sixteenths(column: NDArray[Any], train: NDArray[np.int64]) -> NDArray[Any]:
    try:
        value = column.astype(np.float64)
    except ValueError:
        names, counts = np.unique(column[train], return_counts=True)
        rank = {name: min(place, 15) for place, name in enumerate(names[np.argsort(-counts, kind="stable")].tolist())}
        return np.array([rank.get(name, 15) for name in column.tolist()])
    edges = np.unique(np.quantile(value[train], np.arange(1, 16) / 16, method="lower"))
    return np.searchsorted(edges, value, side="left")
