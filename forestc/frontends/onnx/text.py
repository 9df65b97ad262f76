"""Describes text columns that are encoded before an ONNX tree operator, and translates conditions on encoded values to
sets of texts.

The texts that the graph names become the labels of a category; all other texts are treated alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forestc.errors import ModelError
from forestc.forest.conditions import Member
from forestc.forest.ir import Feature
from forestc.forest.numbers import FLOAT64, MAX_CATEGORIES, Category
from forestc.frontends.onnx.columns import Bools, CutArrays, Hot, Ints, Replace, Step

Image: TypeAlias = str | float
# Lists how onnxruntime writes missing values (NaN, None, pandas' NA) in a tensor of texts.
SPELLINGS = ("nan", "None", "<NA>")


@dataclass(frozen=True)
class TextColumn:
    """The encoding of a raw column of text."""

    index: int  # column of the rows
    names: tuple[str, ...] = ()  # texts that the graph names
    images: Mapping[str, Image] = field(default_factory=dict)  # text -> encoded value, for some of the names
    other: Image | None = None  # encoded value of all other texts; None if unchanged

    def image(self, text: str) -> Image:
        image = self.images.get(text, self.other)
        return text if image is None else image

    def looked_up(self, table: Mapping[Any, Image], default: Image, names: tuple[str, ...] = ()) -> TextColumn:
        """Returns the column after a lookup of its values in `table`. default: the result for other values. names: all
        keys, if `table` holds only some of them."""
        images = {text: table.get(value, default) for text, value in self.images.items()}
        if self.other is not None:
            return TextColumn(self.index, self.names, images, table.get(self.other, default))
        images = {text: image for text, image in table.items() if text not in images} | images
        listed = names or tuple(table)
        return TextColumn(
            self.index, tuple(dict.fromkeys([*self.names, *listed])) if self.names else listed, images, default
        )

    def changed(self, function: Callable[[NDArray[np.float64]], NDArray[Any]]) -> TextColumn:
        """Returns the column after a further step. function: maps encoded values (n,), which must be numbers, to new
        values (n,)."""
        values = np.array([*self.images.values(), self.other], dtype=np.float64)
        with np.errstate(all="ignore"):
            *images, other = np.asarray(function(values)).astype(np.float64).tolist()
        return replace(self, images=dict(zip(self.images, images, strict=True)), other=other)

    def then(self, step: Step) -> TextColumn:

        def replaced(values: NDArray[np.float64], how: Replace) -> NDArray[np.float64]:
            return np.where(np.isnan(values) if np.isnan(how.value) else values == how.value, how.by, values)

        if isinstance(step, Hot):
            return self.changed(lambda values: values == step.value)
        if isinstance(step, Replace):
            return self.changed(lambda values: replaced(values, step))
        dtype = np.float32 if step.bits == 32 else np.float64
        return self.changed(lambda values: step.function(values.astype(dtype), *step.numbers))


def together(parts: Sequence[TextColumn | Image], function: Callable[..., Image | None]) -> TextColumn:
    """Combines constants and columns encoded from one column of text. function: maps the values of all parts for one
    text to the new value; None means the text itself."""
    texts = [part for part in parts if isinstance(part, TextColumn)]

    def value(part: TextColumn | Image, text: str | None) -> Image | None:
        if not isinstance(part, TextColumn):
            return part
        return part.other if text is None else part.image(text)

    names = all_names(texts)
    images = {name: function(*(value(part, name) for part in parts)) for name in names}
    other = function(*(value(part, None) for part in parts))
    return TextColumn(texts[0].index, names, {k: image for k, image in images.items() if image is not None}, other)


def summed(parts: Sequence[TextColumn]) -> TextColumn:
    """Returns the sum of columns of integers encoded from one column of text."""
    other = sum(_number(part.other) for part in parts)
    images: dict[str, Image] = {}
    for part in parts:
        for name, image in part.images.items():
            images[name] = _number(images.get(name, other)) + _number(image) - _number(part.other)
    return TextColumn(parts[0].index, all_names(parts), images, other)


def _number(image: Image | None) -> float:
    return float(0.0 if image is None else image)


def all_names(texts: Sequence[TextColumn]) -> tuple[str, ...]:
    """Returns the texts that the columns name, each once. Columns of one encoder share a tuple of names, which is read
    once."""
    lists = {id(text.names): text.names for text in texts}
    return tuple(dict.fromkeys(name for names in lists.values() for name in names))


@dataclass(frozen=True)
class Vocabulary:
    """The codes of the texts of a raw column. spelling: the text for missing values; None if the graph names several
    such texts."""

    codes: Mapping[str, int]
    spelling: str | None

    @classmethod
    def of(cls, readers: Sequence[TextColumn]) -> Vocabulary:
        codes = {name: code for code, name in enumerate(all_names(readers))}
        spellings = [spelling for spelling in SPELLINGS if spelling in codes]
        return cls(codes, (spellings or SPELLINGS)[0] if len(spellings) < 2 else None)


def text_features(
    columns: Mapping[int, TextColumn], names: Mapping[int, str], where: str
) -> tuple[list[Feature], Mapping[int, Vocabulary]]:
    """Returns the features of the raw text columns in `columns`, and {raw column: vocabulary}. Raises ModelError if the
    graph names too many texts of one column.
    columns: {column of the tree operator: its encoding}."""
    readers: dict[int, list[TextColumn]] = {}
    for _, column in sorted(columns.items()):
        readers.setdefault(column.index, []).append(column)
    vocabularies = {index: Vocabulary.of(texts) for index, texts in readers.items()}
    for index, vocabulary in vocabularies.items():
        if len(vocabulary.codes) > MAX_CATEGORIES:
            what = f"the graph knows {len(vocabulary.codes)} texts of column {names.get(index, index)}"
            raise ModelError(what, where=where, do=f"at most {MAX_CATEGORIES} are read: group rare texts before")
    features = [
        Feature(
            names.get(index, f"x{index}"),
            Category(len(vocabulary.codes)),
            index,
            vocabulary.spelling is not None,
            FLOAT64,
            tuple(vocabulary.codes),
            named=index in names,
        )
        for index, vocabulary in vocabularies.items()
    ]
    return features, vocabularies


@dataclass(frozen=True)
class CodeSet:
    """A condition on a raw column of text, as a set of codes."""

    turned: bool  # True if the condition is the set's complement
    members: tuple[Member, ...]  # codes in the set
    missing: bool  # True if the set holds missing values


def code_sets(
    conditions: CutArrays, reads: Ints, texts: Mapping[int, TextColumn], vocabularies: Mapping[int, Vocabulary]
) -> dict[int, CodeSet]:
    """Returns {index of a condition on text: its set of codes}. Unknown texts are in no set. reads: for each condition,
    the tree operator's column that it reads."""
    result: dict[int, CodeSet] = {}
    distinct: dict[tuple[int, bytes, bool, bool], CodeSet] = {}
    chosen = np.flatnonzero(np.isin(reads, list(texts)))
    order = chosen[np.argsort(reads[chosen], kind="stable")]
    column, codes, values, missing = -1, np.zeros(0, dtype=np.int64), np.zeros(0), None
    for node in order.tolist():
        if reads[node] != column:
            column = int(reads[node])
            text, vocabulary = texts[column], vocabularies[texts[column].index]
            codes = np.array([vocabulary.codes[name] for name in text.images], dtype=np.int64)
            missing = None if vocabulary.spelling is None else text.image(vocabulary.spelling)
            values = np.array([*text.images.values(), missing or 0.0, text.other], dtype=np.float64)
        cuts = conditions.cuts[conditions.first[node] : conditions.first[node + 1]]
        even, absent = bool(conditions.even[node]), bool(conditions.missing[node])
        key = (column, cuts.tobytes(), even, absent)
        if key not in distinct:
            holds = _holds(cuts, even, absent, values)
            inside = holds[:-1] != holds[-1]
            members = tuple(np.sort(codes[inside[:-1]]).tolist())
            distinct[key] = CodeSet(bool(holds[-1]), members, missing is not None and bool(inside[-1]))
        result[node] = distinct[key]
    return result


def _holds(cuts: NDArray[np.float64], even: bool, missing: bool, values: NDArray[np.float64]) -> Bools:
    reached = np.searchsorted(cuts, values, side="right") & 1 == 1
    return np.where(np.isnan(values), missing, reached != even)
