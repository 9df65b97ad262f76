"""Parses LightGBM's text form into arrays. In the file, each tree has one line per key, such as its thresholds. For
speed, the lines of one key are parsed together for all trees."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
from numpy.typing import NDArray

from forestc.errors import CUT, DAMAGED, ModelError
from forestc.forest.builder import MAX_OUTPUTS

VERSIONS = ("", "v2", "v3", "v4")  # lists "" for LightGBM 2.0, which writes no version
# Lists the keys of the header and of a tree. Any other key is refused.
HEADER = {
    *("version", "num_class", "num_tree_per_iteration", "label_index", "max_feature_idx", "objective"),
    *("average_output", "feature_names", "feature_infos", "monotone_constraints", "tree_sizes"),
}
TREE = {
    *("num_leaves", "num_cat", "split_feature", "split_gain", "threshold", "decision_type", "left_child"),
    *("right_child", "leaf_value", "leaf_weight", "leaf_count", "internal_value", "internal_weight"),
    *("internal_count", "cat_boundaries", "cat_threshold", "is_linear", "leaf_const", "num_features"),
    *("leaf_features", "leaf_coeff", "shrinkage"),
}
FLOATS = ("threshold", "leaf_value")
INTEGERS = ("split_feature", "decision_type", "left_child", "right_child", "internal_count", "leaf_count")
PER_LEAF = {"leaf_value", "leaf_count"}  # lists lines with a number per leaf; others have one per split
COUNTS = {"internal_count", "leaf_count"}  # lists the lines that predictions do not need

# Names the bits of decision_type. Without a MISSING bit NaN is read as 0.
CATEGORICAL, DEFAULT_LEFT, MISSING_ZERO, MISSING_NAN = 1, 2, 4, 8

MAX_TREES = 1 << 20  # limits the trees that a damaged file can claim
MAX_INT = 1 << 31  # exceeds every number of LightGBM's type int
_EMPTY_LINES = re.compile(rb"[\r\n]*")
_END = (b"end of trees", b"feature importances:")  # lists the beginnings of the line behind the last tree
_AFTER_HEADER = (b"Tree=", *_END)


@dataclass(frozen=True, eq=False)
class SavedModel:
    """A model as read from LightGBM's text or JSON. Arrays concatenate the splits, or the leaves, of all trees."""

    version: str
    objective: str
    classes: int
    outputs: int  # trees per iteration
    average: bool  # True if scores are divided by the iterations
    names: Sequence[str]
    categorical: Sequence[int]  # columns trained as categories
    ranges: Sequence[tuple[float, float] | None]  # training values' range; None for a constant column
    pandas: Any  # categories of a data frame's columns, or None
    leaves: NDArray[np.int64]  # number of leaves of each tree; splits are one fewer
    feature: NDArray[Any]
    threshold: NDArray[np.float64]  # threshold, or index into `categories` of the tree
    decision: NDArray[Any]  # decision_type of each split
    left: NDArray[Any]  # split c of the tree if c >= 0, otherwise leaf ~c
    right: NDArray[Any]  # right child, in the same form
    values: NDArray[np.float64]  # value of each leaf
    counts: tuple[NDArray[Any], NDArray[Any]] | None  # training rows by split and by leaf, or None
    categories: Sequence[Sequence[NDArray[np.int64]]]  # sets of codes of each tree

    def first(self, trees: int) -> SavedModel:
        if trees >= len(self.leaves):
            return self
        leaves = int(self.leaves[:trees].sum())
        splits = leaves - trees
        return replace(
            self,
            leaves=self.leaves[:trees],
            feature=self.feature[:splits],
            threshold=self.threshold[:splits],
            decision=self.decision[:splits],
            left=self.left[:splits],
            right=self.right[:splits],
            values=self.values[:leaves],
            counts=self.counts and (self.counts[0][:splits], self.counts[1][:leaves]),
            categories=self.categories[:trees],
        )


def parse_text(data: bytes, where: str) -> SavedModel:
    """Parses a text model. Raises ModelError if the file is no model, truncated or inconsistent."""
    if data[:5] not in (b"tree\n", b"tree\r"):
        raise ModelError("not a LightGBM text model", where=where, do="save it with Booster.save_model")
    first = data.index(b"\n", 0, 7) + 1 if b"\n" in data[:7] else len(data)
    header, position = _block(data, first, where, HEADER, _AFTER_HEADER)
    version = header.get("version", "")
    if version not in VERSIONS:
        raise ModelError(f"version {version[:40]!r} is not known", where=where, do="save it with LightGBM 2 to 4")
    columns = _integer(header, "max_feature_idx", -1, MAX_INT, where) + 1
    names, infos = (header.get(key, "").split(" ") for key in ("feature_names", "feature_infos"))
    for what, listed in (("feature_names", names), ("feature_infos", infos)):
        if len(listed) != columns:
            raise ModelError(f"has {len(listed)} {what} for {columns} columns", where=where, do=DAMAGED)
    outputs = _integer(header, "num_tree_per_iteration", 1, MAX_OUTPUTS, where)
    trees, position = _trees(data, position, header.get("tree_sizes"), where)
    leaves = np.array(
        [_integer(tree, "num_leaves", 1, MAX_INT, f"{where}, tree {k}") for k, tree in enumerate(trees)], dtype=np.int64
    )
    numbers = _numbers(trees, leaves, where)
    return SavedModel(
        version=version,
        objective=header.get("objective", ""),
        classes=_integer(header, "num_class", 1, MAX_OUTPUTS, where),
        outputs=outputs,
        average="average_output" in header,
        names=names,
        categorical=[column for column, info in enumerate(infos) if info != "none" and not info.startswith("[")],
        ranges=[_value_range(info, f"{where}, feature_infos") for info in infos],
        pandas=_pandas_categorical(data, position, where),
        leaves=leaves,
        feature=numbers["split_feature"],
        threshold=numbers["threshold"],
        decision=numbers["decision_type"],
        left=numbers["left_child"],
        right=numbers["right_child"],
        values=numbers["leaf_value"],
        counts=(numbers["internal_count"], numbers["leaf_count"]) if numbers.keys() >= COUNTS else None,
        categories=[_categories(tree, f"{where}, tree {k}") for k, tree in enumerate(trees)],
    )


def _value_range(info: str, where: str) -> tuple[float, float] | None:
    """Returns a column's (least, largest) training value, parsed from `[low:high]` or a list of codes `2:0:1`; None for
    `none`."""
    if info == "none":
        return None
    try:
        values = [float(value) for value in info.removeprefix("[").removesuffix("]").split(":")]
    except ValueError:
        raise ModelError(f"is not a number: {info[:40]!r}", where=where, do=DAMAGED) from None
    return min(values), max(values)


def _block(
    data: bytes, position: int, where: str, allowed: set[str], until: tuple[bytes, ...] = ()
) -> tuple[dict[str, str], int]:
    """Returns the `key=value` lines of a block as a dictionary, and the position after the block."""
    lines: dict[str, str] = {}
    while position < len(data):
        if until and data.startswith(until, position):
            return lines, position
        end = data.find(b"\n", position)
        line = data[position : end if end >= 0 else len(data)].strip()
        position = end + 1 if end >= 0 else len(data)
        if not line and until:
            continue
        if not line:
            return lines, position
        key, _, value = line.decode("utf-8", "replace").partition("=")
        if key not in allowed:
            raise ModelError(f"a line {key[:40]!r} is not known", where=where, do=CUT)
        lines[key] = value
    raise ModelError("the file ends early", where=where, do=CUT)


def _trees(data: bytes, position: int, sizes: str | None, where: str) -> tuple[list[dict[str, str]], int]:
    start, starts = position, []
    trees: list[dict[str, str]] = []
    while data.startswith(b"Tree=", position):
        tree_where = f"{where}, tree {len(trees)}"
        starts.append(position - start)
        if len(trees) == MAX_TREES:
            raise ModelError(
                f"more than {MAX_TREES} trees", where=where, do=f"at most {MAX_TREES} trees are read: train with fewer"
            )
        line = data.find(b"\n", position)
        tree, position = _block(data, line + 1 if line >= 0 else len(data), tree_where, TREE)
        trees.append(tree)
        position = _EMPTY_LINES.match(data, position).end()  # type: ignore[union-attr]  # it matches the empty string too
    if not data.startswith(_END, position):
        raise ModelError("the file ends early", where=f"{where}, tree {len(trees)}", do=CUT)
    if sizes is not None and starts != _starts(sizes, where):
        if b"\r\n" in data[:start]:
            do = "make them LF, as LightGBM wrote them: dos2unix FILE; in git, mark the file with -text"
            raise ModelError("its line ends are CRLF, and tree_sizes counts bytes", where=where, do=do)
        raise ModelError("the trees do not lie where tree_sizes says", where=where, do=DAMAGED)
    return trees, position


def _starts(sizes: str, where: str) -> list[int]:
    try:
        ends = np.cumsum(np.array([int(size) for size in sizes.split()], dtype=np.int64)).tolist()
    except (ValueError, OverflowError):
        raise ModelError("tree_sizes are not integers", where=where, do=DAMAGED) from None
    return [0, *ends[:-1]] if ends else []


def _integer(lines: dict[str, str], key: str, low: int, high: int, where: str) -> int:
    text = lines.get(key)
    if text is None:
        raise ModelError(f"has no {key}", where=where, do=CUT)
    try:
        value = int(text)
    except ValueError:
        raise ModelError(f"{key} is not an integer: {text[:40]!r}", where=where, do=DAMAGED) from None
    if not low <= value <= high:
        raise ModelError(f"{key} is {value}, outside {low} to {high}", where=where, do=DAMAGED)
    return value


def _numbers(trees: list[dict[str, str]], leaves: NDArray[np.int64], where: str) -> dict[str, Any]:
    for index, tree in enumerate(trees):
        if tree.get("is_linear", "0") != "0":
            tree_where = f"{where}, tree {index}"
            raise ModelError("has linear models for leaves", where=tree_where, do="train without linear_tree")
    grown = np.flatnonzero(leaves > 1).tolist()  # A tree of one leaf has no splits.
    with ThreadPoolExecutor(2) as pool, warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)  # NumPy before 2.3 warns of text that is not a number.
        jobs: dict[str, Future[Any]] = {}
        for key in (*FLOATS, *INTEGERS):
            chosen = range(len(trees)) if key in PER_LEAF else grown
            if absent := [k for k in chosen if key not in trees[k]]:
                if key in COUNTS:
                    continue
                raise ModelError(f"has no {key}", where=f"{where}, tree {absent[0]}", do=CUT)
            jobs[key] = pool.submit(_column, key, trees, chosen, leaves, where)
        return {key: job.result() for key, job in jobs.items()}


def _column(
    key: str, trees: list[dict[str, str]], chosen: Sequence[int], leaves: NDArray[np.int64], where: str
) -> NDArray[Any]:
    read = _floats if key in FLOATS else _integers
    # LightGBM before 4.6 leaves the count empty in a tree of one leaf.
    lines = [trees[k][key] or "0" * int(key == "leaf_count" and leaves[k] == 1) for k in chosen]
    try:
        counts, numbers = read(lines)
    except (ValueError, DeprecationWarning):
        for k, line in zip(chosen, lines, strict=True):
            try:
                read([line])
            except (ValueError, DeprecationWarning):
                raise ModelError(
                    f"{key} holds something that is not a number", where=f"{where}, tree {k}", do=DAMAGED
                ) from None
        raise
    expected = leaves[list(chosen)] - (key not in PER_LEAF)
    if (bad := np.flatnonzero(counts != expected)).size:
        k = int(bad[0])
        raise ModelError(
            f"has {int(counts[k])} numbers in {key} for num_leaves={int(leaves[chosen[k]])}",
            where=f"{where}, tree {chosen[k]}",
            do=DAMAGED,
        )
    return numbers


def _floats(lines: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Returns two arrays: the count of numbers in each line, and the numbers of all lines."""
    if not lines:
        return np.zeros(0, dtype=np.int64), np.zeros(0)
    split = pyarrow.compute.split_pattern(pa.array(lines, type=pa.large_string()), " ")
    return np.diff(split.offsets.to_numpy()), split.values.cast(pa.float64()).to_numpy()


def _integers(lines: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    parts = [np.fromstring(line, dtype=np.int64, sep=" ") for line in lines]
    return np.array([len(part) for part in parts], dtype=np.int64), np.concatenate([np.zeros(0, np.int64), *parts])


def _categories(tree: dict[str, str], where: str) -> list[NDArray[np.int64]]:
    """Returns a list of code arrays, one for each of the tree's sets. The file stores a set as bits of 32-bit words."""
    count = _integer(tree, "num_cat", 0, MAX_INT, where)
    if not count:
        return []
    if not {"cat_boundaries", "cat_threshold"} <= tree.keys():
        raise ModelError("has categorical splits and no cat_boundaries or cat_threshold", where=where, do=DAMAGED)
    try:
        _, bounds = _integers([tree["cat_boundaries"]])
        _, words = _integers([tree["cat_threshold"]])
    except (ValueError, DeprecationWarning):
        raise ModelError(
            "cat_boundaries or cat_threshold holds something that is not a number", where=where, do=DAMAGED
        ) from None
    if len(bounds) != count + 1 or bounds[0] or bounds[-1] != len(words) or (np.diff(bounds) < 0).any():
        raise ModelError(f"cat_boundaries do not divide {len(words)} words into {count} sets", where=where, do=DAMAGED)
    if (words < 0).any() or (words > 0xFFFFFFFF).any():
        raise ModelError("cat_threshold holds a number that is not a 32-bit word", where=where, do=DAMAGED)
    codes = np.flatnonzero(np.unpackbits(words.astype("<u4").view(np.uint8), bitorder="little"))
    edges = np.searchsorted(codes, 32 * bounds).tolist()
    return [codes[a:b] - 32 * start for (a, b), start in zip(pairwise(edges), bounds[:-1].tolist(), strict=True)]


def _pandas_categorical(data: bytes, position: int, where: str) -> Any:
    """Returns the categories that LightGBM's Python package appends to a file, or None."""
    tail = data[position:]
    marked = tail.startswith(b"end of trees")  # LightGBM writes this line from 2.2 on, and `end of parameters` too.
    if marked and b"\nparameters:" in tail and b"\nend of parameters" not in tail:
        raise ModelError("the file ends early, in its parameters", where=where, do=CUT)
    start = tail.rfind(b"\npandas_categorical:")
    if start < 0:
        return None
    try:
        return json.loads(tail[start:].split(b":", 1)[1])
    except (ValueError, RecursionError):
        raise ModelError("pandas_categorical is not readable JSON", where=where, do=CUT) from None
