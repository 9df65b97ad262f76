"""MNIST and UNSW-NB15 with few-bit features, and TreeLUT's published figures for them."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

# test accuracy, LUTs, MHz
PUBLISHED = {
    "mnist": {"TreeLUT (II)": (96.0, 3499, 874), "TreeLUT (I)": (97.0, 4478, 791)},
    "unsw": {"TreeLUT (II)": (92.0, 89, None)},
}
TOOLS = """The published figures are second-hand transcriptions of Vivado's results after place and route on an xcvu9p.
Ours are from synthesis by yosys for the same kind of LUTs and, where MHz are given, place and route by nextpnr on an
ECP5: LUT counts can be compared, with care; clock rates can't. Scaling raw features to few bits is not part of the
designs, there and here."""
NOTES = {
    "mnist": "60,000 rows, of which 10,000 are held out; pixels of 4 bits; the official 10,000 test rows",
    "unsw": "the 82,332-row partition, raw features of 4 bits (sixteenths of the training rows, rank of a category), a "
    "random fifth for testing. TreeLUT's rows are LogicNets' binarised ones, so accuracies do not compare; only "
    "TreeLUT (II) was found",
}
Split = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]  # training rows, labels; test rows, labels


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
    with gzip.open(data / "unsw_nb15_82k.csv.gz", "rt", newline="") as file:
        _, *rows = csv.reader(file)
    table = np.array(rows)
    y = table[:, -1].astype(np.int64)
    order = np.random.default_rng(0).permutation(len(y))
    test, train = np.split(order, [len(y) // 5])
    columns = [_sixteenths(column, train) for column in table[:, :-1].T]
    X = np.stack(columns, axis=1).astype(np.float32)
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
