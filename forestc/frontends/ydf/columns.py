"""Reads a YDF model's columns, and the conditions on them as tests of a Forest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from forestc.errors import ModelError
from forestc.forest.builder import MAX_OUTPUTS
from forestc.forest.ir import Feature, Label
from forestc.forest.numbers import FLOAT32, MAX_CATEGORIES, Category
from forestc.frontends.ydf.wire import Message

NUMERICAL, CATEGORICAL, BOOLEAN, DISCRETIZED = 1, 4, 7, 9  # types of columns that are read
_REFUSED = {2: "a set of numbers", 3: "a list of numbers", 5: "a set of categories", 6: "a list of categories"}
_REFUSED |= {8: "a text", 10: "a hash", 11: "a sequence of vectors"}
# The fields of a condition that say its kind.
_NA, _HIGHER, _TRUE, _CONTAINS, _BITMAP, _DISCRETIZED_HIGHER = 1, 2, 3, 4, 5, 6
_UNKNOWN = {7: "an oblique condition, a weighted sum of columns,", 8: "a condition on sequences of vectors"}
_KINDS = {
    NUMERICAL: {_NA, _HIGHER},
    CATEGORICAL: {_NA, _CONTAINS, _BITMAP},
    BOOLEAN: {_NA, _TRUE},
    DISCRETIZED: {_NA, _DISCRETIZED_HIGHER},
}


class Branch(NamedTuple):
    """A condition. A known value takes the positive branch if it is >= `threshold` or, if there are codes, one of
    these."""

    threshold: float
    codes: tuple[int, ...] | None
    missing_positive: bool
    imputes: bool  # True if a missing value takes the same branch as the column's mean or most frequent value
    detects: bool = False  # True if the condition is whether the value is missing


@dataclass(frozen=True)
class Column:
    """A column of the training data.

    A category's code is its index in YDF's dictionary, and index 0 stands for all unknown categories. If `shifted`,
    codes are smaller by 1, and 0 has the code `count` that a Forest gives unknown categories.
    """

    name: str
    kind: int
    mean: float = 0.0
    boundaries: tuple[float, ...] = ()  # a discretized number's: its index is the number of boundaries <= the number
    truths: bool = False  # True if at least half of a boolean's values are true
    indices: int = 0  # number of indices in the dictionary
    frequent: int = 0  # most frequent index
    shifted: bool = True
    texts: tuple[str, ...] = ()  # categories from index 1 on; empty if categories are integers

    def feature(self, position: int) -> Feature:
        categories = Category(max(self.indices - self.shifted, 1))
        return Feature(
            self.name, categories if self.kind == CATEGORICAL else FLOAT32, position, missing=True, labels=self.texts
        )

    def classes(self, where: str) -> tuple[Label, ...]:
        """Returns the class labels of a label column."""
        if self.kind != CATEGORICAL or not 1 < self.indices <= MAX_OUTPUTS:
            what = f"the label {self.name!r} has {self.indices - 1:,} classes"
            raise ModelError(what, where=where, do=f"train a regression, or on 2 to {MAX_OUTPUTS - 1:,} classes")
        return self.texts or tuple(range(1 - self.shifted, self.indices - self.shifted))

    def branch(self, node: Message) -> Branch:
        """Returns the condition of a node on this column. Raises ModelError for a kind that is not read."""
        missing, condition = node.flag(1), node.message(3)
        kinds = [number for number in range(1, 9) if condition.has(number)]
        refused = _UNKNOWN.get(kinds[0]) if len(kinds) == 1 else None
        if refused or self.kind in _REFUSED:
            what = refused or f"a condition on column {self.name!r}, {_REFUSED[self.kind]},"
            do = "train with axis-aligned splits on numbers, booleans and categories"
            raise node.fail(f"{what} is not read", do)
        if len(kinds) != 1 or kinds[0] not in _KINDS.get(self.kind, ()):
            raise node.fail(f"its condition has the fields {kinds}, which column {self.name!r} can't have")
        (kind,) = kinds
        if kind == _NA:
            return Branch(0.0, (), True, imputes=True, detects=True)
        if kind in (_CONTAINS, _BITMAP):
            indices = self._indices(condition.message(kind), kind == _BITMAP)
            codes = tuple((index or self.indices) - 1 if self.shifted else index for index in indices)
            return Branch(0.0, codes, missing, (self.frequent in indices) == missing)
        if kind == _TRUE:
            return Branch(0.5, None, missing, self.truths == missing)
        threshold = condition.message(kind).real(1) if kind == _HIGHER else self._boundary(condition.message(kind))
        mean = float(np.float32(self.mean)) if kind == _HIGHER else self.mean
        return Branch(threshold, None, missing, (mean >= threshold) == missing)

    def _indices(self, condition: Message, bitmap: bool) -> list[int]:
        if self.indices > MAX_CATEGORIES:
            do = f"train with at most {MAX_CATEGORIES:,}: max_vocab_count"
            raise condition.fail(f"column {self.name!r} has {self.indices:,} categories", do)
        if bitmap:
            bits = np.unpackbits(np.frombuffer(condition.data(1), np.uint8), bitorder="little")
            indices = np.flatnonzero(bits[: self.indices]).tolist()
        else:
            indices = sorted(set(condition.integers(1)))
        if indices and indices[-1] >= self.indices:
            raise condition.fail(f"category {indices[-1]} of the {self.indices} of column {self.name!r}")
        # Integers that are no index of the dictionary count as index 0.
        return [*indices, self.indices] if 0 in indices and not self.shifted else indices

    def _boundary(self, condition: Message) -> float:
        index = condition.integer(1)
        if not 1 <= index <= len(self.boundaries):
            raise condition.fail(f"boundary {index} of the {len(self.boundaries)} of column {self.name!r}")
        return self.boundaries[index - 1]


def read_column(doc: Message) -> Column:
    """Reads a column of the data specification."""
    name, kind = doc.text(2), doc.integer(1)
    mean = doc.message(5).real(1, 64)
    if kind == DISCRETIZED:
        return Column(name, kind, mean, boundaries=tuple(doc.message(8).reals(1).tolist()))
    if kind == BOOLEAN:
        counts = doc.message(9)
        return Column(name, kind, truths=counts.integer(1) >= counts.integer(2))
    if kind != CATEGORICAL:
        return Column(name, kind, mean)
    categories = doc.message(6)
    indices, integers = categories.integer(2), categories.flag(5)
    texts = {} if integers else {item.message(2).integer(1): item.text(1) for item in categories.messages(7)}
    texts.pop(0, None)
    if not integers and (len(texts) != max(indices - 1, 0) or sorted(texts) != list(range(1, len(texts) + 1))):
        raise categories.fail(f"column {name!r} has {len(texts):,} texts for {indices:,} indices, or skips one")
    shifted, frequent = not integers or categories.flag(8), categories.integer(1)
    in_order = tuple(texts[index] for index in sorted(texts))
    return Column(name, kind, indices=indices, frequent=frequent, shifted=shifted, texts=in_order)
