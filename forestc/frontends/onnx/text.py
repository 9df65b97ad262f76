"""Columns of text that reach an ONNX tree operator as numbers, and conditions taken back to the texts.

A graph names some texts (an encoder's categories, an imputer's fill) and treats all others alike, so what it makes of a
column is a short table. The raw column becomes a category whose labels are these names, and a condition the set of
codes for which it holds.
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
from forestc.frontends.onnx.columns import Bools, Conditions, Ints, Replace, Step

Image: TypeAlias = str | float
# A missing value has no spelling of its own in a tensor of texts. onnxruntime writes out what it is given in Python:
# NaN, None or pandas' NA; converters write the one that a model was trained on among the categories.
SPELLINGS = ("nan", "None", "<NA>")


@dataclass(frozen=True)
class Text:
    """What a graph makes of the column of text `index` of the rows.

    names: the texts it knows, in the order of its lists. images: what becomes of some texts, all of them among the
    names; numbers are exact in float64. other: what becomes of every other text; None: it stays what it is.
    """

    index: int
    names: tuple[str, ...] = ()
    images: Mapping[str, Image] = field(default_factory=dict)
    other: Image | None = None

    def image(self, text: str) -> Image:
        """What becomes of one text."""
        found = self.images.get(text, self.other)
        return text if found is None else found

    def looked_up(self, table: Mapping[Any, Image], default: Image, names: tuple[str, ...] = ()) -> Text:
        """The column after its values are looked up; default: what others become. names: those of the whole list
        where the table holds some only, or where the column is text no more."""
        images = {text: table.get(value, default) for text, value in self.images.items()}
        if self.other is not None:
            return Text(self.index, self.names, images, table.get(self.other, default))
        images = {text: image for text, image in table.items() if text not in images} | images
        known = names or tuple(table)
        return Text(self.index, tuple(dict.fromkeys([*self.names, *known])) if self.names else known, images, default)

    def changed(self, function: Callable[[NDArray[np.float64]], NDArray[Any]]) -> Text:
        """The column, whose images are numbers, after a function of (n,) float64."""
        values = np.array([*self.images.values(), self.other], dtype=np.float64)
        with np.errstate(all="ignore"):
            *images, other = np.asarray(function(values)).astype(np.float64).tolist()
        return replace(self, images=dict(zip(self.images, images, strict=True)), other=other)

    def then(self, step: Step) -> Text:
        """The column after a step as numbers take it."""

        def replaced(values: NDArray[np.float64], how: Replace) -> NDArray[np.float64]:
            return np.where(np.isnan(values) if np.isnan(how.value) else values == how.value, how.by, values)

        if isinstance(step, Replace):
            return self.changed(lambda values: replaced(values, step))
        dtype = np.float32 if step.bits == 32 else np.float64
        return self.changed(lambda values: step.function(values.astype(dtype), *step.numbers))


def together(parts: Sequence[Text | Image], function: Callable[..., Image | None]) -> Text:
    """A function of several columns made of one column of text, and of constants: text by text.

    function: takes an image of each part, None for a text that stays what it is; of the same.
    """
    texts = [part for part in parts if isinstance(part, Text)]

    def value(part: Text | Image, text: str | None) -> Image | None:
        if not isinstance(part, Text):
            return part
        return part.other if text is None else part.image(text)

    names = all_names(texts)
    images = {name: function(*(value(part, name) for part in parts)) for name in names}
    other = function(*(value(part, None) for part in parts))
    return Text(texts[0].index, names, {k: image for k, image in images.items() if image is not None}, other)


def summed(parts: Sequence[Text]) -> Text:
    """The sum of columns of whole numbers made of one column of text."""
    other = sum(_number(part.other) for part in parts)
    images: dict[str, Image] = {}
    for part in parts:
        for name, image in part.images.items():
            images[name] = _number(images.get(name, other)) + _number(image) - _number(part.other)
    return Text(parts[0].index, all_names(parts), images, other)


def _number(image: Image | None) -> float:
    return float(0.0 if image is None else image)


def all_names(texts: Sequence[Text]) -> tuple[str, ...]:
    """The names that any of them knows. The columns of an encoder share one list, which is looked at once."""
    lists = {id(text.names): text.names for text in texts}
    return tuple(dict.fromkeys(name for names in lists.values() for name in names))


@dataclass(frozen=True)
class Vocabulary:
    """The names that the trees' columns know of one raw column, by code, and how a missing value is spelled there."""

    codes: Mapping[str, int]
    spelling: str | None

    @classmethod
    def of(cls, readers: Sequence[Text]) -> Vocabulary:
        codes = {name: code for code, name in enumerate(all_names(readers))}
        known = [spelling for spelling in SPELLINGS if spelling in codes]
        return cls(codes, (known or SPELLINGS)[0] if len(known) < 2 else None)


def text_features(
    columns: Mapping[int, Text], names: Mapping[int, str], where: str
) -> tuple[list[Feature], Mapping[int, Vocabulary]]:
    """Features of the raw columns of text that are read, and their vocabularies by raw column.

    columns: by number of the tree operator's own column. names: of raw columns that have one. A missing value is
    refused where the graph knows two spellings of it. Raises ModelError for a column with too many names.
    """
    readers: dict[int, list[Text]] = {}
    for _, column in sorted(columns.items()):
        readers.setdefault(column.index, []).append(column)
    known = {index: Vocabulary.of(texts) for index, texts in readers.items()}
    for index, words in known.items():
        if len(words.codes) > MAX_CATEGORIES:
            what = f"the graph knows {len(words.codes)} texts of column {names.get(index, index)}"
            raise ModelError(what, where=where, do=f"at most {MAX_CATEGORIES} are read")
    features = [
        Feature(
            names.get(index, f"x{index}"),
            Category(len(words.codes)),
            index,
            words.spelling is not None,
            FLOAT64,
            tuple(words.codes),
            named=index in names,
        )
        for index, words in known.items()
    ]
    return features, known


@dataclass(frozen=True)
class CodeSet:
    """A condition on a raw column of text: whether it is the other one (so that its children change places), the codes
    of the set, and whether a missing value is in it."""

    turned: bool
    members: tuple[Member, ...]
    missing: bool


def code_sets(
    conditions: Conditions, reads: Ints, texts: Mapping[int, Text], known: Mapping[int, Vocabulary]
) -> dict[int, CodeSet]:
    """The conditions that read text, by number, as sets that unknown texts are never in.

    reads: the tree operator's column that each condition reads.
    """
    result: dict[int, CodeSet] = {}
    made: dict[tuple[int, bytes, bool, bool], CodeSet] = {}
    chosen = np.flatnonzero(np.isin(reads, list(texts)))
    order = chosen[np.argsort(reads[chosen], kind="stable")]
    column, codes, values, missing = -1, np.zeros(0, dtype=np.int64), np.zeros(0), None
    for node in order.tolist():
        if reads[node] != column:
            column = int(reads[node])
            text, words = texts[column], known[texts[column].index]
            codes = np.array([words.codes[name] for name in text.images], dtype=np.int64)
            missing = None if words.spelling is None else text.image(words.spelling)
            values = np.array([*text.images.values(), missing or 0.0, text.other], dtype=np.float64)
        cuts = conditions.cuts[conditions.first[node] : conditions.first[node + 1]]
        even, absent = bool(conditions.even[node]), bool(conditions.missing[node])
        key = (column, cuts.tobytes(), even, absent)
        if key not in made:
            holds = _holds(cuts, even, absent, values)
            inside = holds[:-1] != holds[-1]
            members = tuple(np.sort(codes[inside[:-1]]).tolist())
            made[key] = CodeSet(bool(holds[-1]), members, missing is not None and bool(inside[-1]))
        result[node] = made[key]
    return result


def _holds(cuts: NDArray[np.float64], even: bool, missing: bool, values: NDArray[np.float64]) -> Bools:
    reached = np.searchsorted(cuts, values, side="right") & 1 == 1
    return np.where(np.isnan(values), missing, reached != even)
