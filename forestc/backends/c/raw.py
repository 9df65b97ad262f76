"""Raw inputs of C headers: trees compare columns in their own C types, without quantizing at run time. Each threshold
becomes the least raw value that reaches it after quantizing, found by bisection."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache

import numpy as np
from numpy.typing import NDArray

from forestc.errors import OptionError, opt
from forestc.forest.conditions import NO_SET, Member, complement, toggled
from forestc.forest.ir import Feature, Forest, Tree
from forestc.forest.numbers import (
    FLOAT32,
    FLOAT64,
    Category,
    Fixed,
    Ordered,
    WordArray,
    key_value,
    order_key,
    round_to,
    to_words,
    word_range,
)


@dataclass(frozen=True)
class RawType:
    """A C type of raw values."""

    c: str  # name in C
    number: Fixed | Ordered  # format of the raw values as words

    @property
    def whole(self) -> bool:
        """True for an integer type, which has no value for missing."""
        return isinstance(self.number, Fixed)

    @property
    def ends(self) -> tuple[int, int]:
        """The least and greatest value of the type (of floats, the infinities), as integers in the values' order."""
        if isinstance(self.number, Fixed):
            span = word_range(self.number, False)
            return span.low, span.high
        low, high = order_key(np.array([-np.inf, np.inf]), self.number.bits).tolist()
        return low, high

    def values(self, words: WordArray) -> NDArray[np.float64]:
        """Returns the raw values of words, without rounding."""
        if isinstance(self.number, Ordered):
            return key_value(words, self.number.bits)
        return words.astype(np.float64)


TYPES: Mapping[str, RawType] = {
    **{f"int{bits}": RawType(f"int{bits}_t", Fixed(bits, 0, True)) for bits in (8, 16, 32)},
    **{f"uint{bits}": RawType(f"uint{bits}_t", Fixed(bits)) for bits in (8, 16, 32)},
    "float": RawType("float", Ordered(32)),
    "double": RawType("double", Ordered(64)),
}
ALIASES = {"float32": "float", "float64": "double"}
REST = "*"


def parsed(text: str) -> dict[str, str]:
    """Reads an option such as `adc=int16,*=float` as {feature, position or REST: type}. Raises OptionError if it can't
    be read."""
    types: dict[str, str] = {}
    for part in text.split(",") if text else ():
        name, equals, kind = (piece.strip() for piece in part.rpartition("="))
        kind = ALIASES.get(kind, kind)
        if not name or not equals or kind not in TYPES:
            raise OptionError(
                f"{part!r} is no type of a column",
                where=opt.c_types,
                do=f"use FEATURE=TYPE, of the types {', '.join(TYPES)}",
            )
        if name in types:
            raise OptionError(f"{name!r} has two types", where=opt.c_types, do="leave one out")
        types[name] = kind
    return types


def by_position(forest: Forest, text: str) -> str:
    """Returns the option with each column's name replaced by its position, from 1, which stays valid if passes remove
    features. Raises OptionError for an unknown column, or one with two types."""
    names = {feature.name: feature.column for feature in forest.features}
    kinds: dict[int, str] = {}
    given = parsed(text)
    for name, kind in given.items():
        if name == REST:
            continue
        position = names.get(name, int(name) - 1 if name.isdecimal() else -1)
        if not 0 <= position < forest.columns:
            near = get_close_matches(name, list(names), 1) or list(names)[:8]
            do = f"use a position from 1 to {forest.columns}, or a name such as {', '.join(map(repr, near))}"
            raise OptionError(f"{name!r} is no column that the model reads", where=opt.c_types, do=do)
        if kinds.setdefault(position, kind) != kind:
            raise OptionError(f"column {position + 1} has two types", where=opt.c_types, do="leave one out")
    rest = {REST: given[REST]} if REST in given else {}
    return ",".join(f"{key}={kind}" for key, kind in ({str(p + 1): kinds[p] for p in sorted(kinds)} | rest).items())


def column_types(forest: Forest, text: str) -> tuple[RawType, ...]:
    """Returns the type of each column of the forest's rows: (`Forest.width`,). A column without a type in the option is
    float or double. Raises OptionError as `by_position` does."""
    given = parsed(by_position(forest, text))
    for feature in forest.features:
        if isinstance(feature.raw, Fixed) and feature.raw.overflow == "AP_WRAP":
            what = f"values of {feature.name!r} wrap ({feature.raw}), so that thresholds do not order them"
            raise OptionError(what, where=opt.c_inputs, do=f"use {opt.c_inputs:words}")
    read = {f.column: "float" if f.raw == FLOAT32 else "double" for f in forest.features}
    rest = given.get(REST)
    unread = max(set(read.values()), key=list(read.values()).count, default="float")
    return tuple(
        TYPES[given.get(str(column + 1), rest or read.get(column, unread))]
        for column in forest.carried or range(forest.columns)
    )


def retyped(forest: Forest, types: Sequence[RawType]) -> Forest:
    """Returns the quantized forest with thresholds and sets for raw values; its answers stay the same.
    types: the C types of the rows' columns."""
    maps = [_RawWords(forest, index, types[column]) for index, column in enumerate(forest.row_columns)]
    features = tuple(map(_RawWords.retyped, maps))
    trees = tuple(_tree(tree, maps) for tree in forest.trees)
    return replace(forest, features=features, trees=trees)


def _tree(tree: Tree, maps: Sequence[_RawWords]) -> Tree:
    threshold, sets, members = tree.threshold.copy(), list(tree.sets), dict[tuple[int, int], int]()
    set_index = tree.set_index.copy()
    inner = tree.inner
    plain = inner[tree.set_index[inner] == NO_SET]
    for feature in np.unique(tree.feature[plain]).tolist():
        nodes = plain[tree.feature[plain] == feature]
        threshold[nodes] = maps[feature].thresholds(tree.threshold[nodes])
    new: list[tuple[Member, ...]] = []
    for node in inner[tree.set_index[inner] != NO_SET].tolist():
        key = int(tree.feature[node]), int(tree.set_index[node])
        if key not in members:
            members[key] = len(new)
            new.append(maps[key[0]].cuts(tuple(map(int, sets[key[1]]))))
        set_index[node] = members[key]
    missing = np.array([words.retyped().missing for words in maps] + [False])
    missing_left = tree.missing_left & missing[tree.feature]
    return replace(tree, threshold=threshold, set_index=set_index, sets=tuple(new), missing_left=missing_left)


class _RawWords:
    """Converter of one feature's thresholds and sets from words to raw values."""

    def __init__(self, forest: Forest, index: int, kind: RawType) -> None:
        self.feature, self.kind = forest.features[index], kind
        number, raw, missing = self.feature.number, self.feature.raw, self.feature.missing
        self.source_words = forest.conditions.thresholds(index)
        self.span = word_range(kind.number, self.retyped().missing)
        least = self._first(lambda values: to_words(round_to(values, raw), number, missing) >= self.source_words)
        self.moved = np.where(least <= kind.ends[0], self.span.low, least)
        self.code_span = cache(self._code_span)

    def retyped(self) -> Feature:
        raw = FLOAT32 if self.kind.number == Ordered(32) else FLOAT64
        missing = self.feature.missing and not self.kind.whole
        return replace(self.feature, number=self.kind.number, raw=raw, missing=missing, labels=())

    def thresholds(self, words: WordArray) -> WordArray:
        """Returns the threshold on raw values for each threshold on words."""
        return self.moved[np.searchsorted(self.source_words, words)]

    def cuts(self, members: tuple[int, ...]) -> tuple[Member, ...]:
        """Returns the cuts of a set on raw values. members: the set's codes, or its cuts on words."""
        if isinstance(self.feature.number, Category):
            count = self.feature.number.count
            others = count in members  # the member `count` stands for all values without a code
            codes = set(range(count)) - set(members) if others else set(members)
            cuts = toggled(cut for code in codes for cut in self.code_span(code))
            cuts = complement(cuts) if others else cuts
        else:
            cuts = toggled(self.thresholds(np.array(members, dtype=np.int64)).tolist())
        least, greatest = self.kind.ends
        return toggled(int(cut) if cut > least else self.span.low for cut in cuts if cut <= greatest)

    def _code_span(self, code: int) -> tuple[int, int]:
        """Returns (first, past the last) of the raw words that have a category's code."""
        number = self.feature.number
        assert isinstance(number, Category)
        rounds, zero = number.rounding != "none", number.rounding == "trunc" and code == 0

        def ends(values: NDArray[np.float64]) -> NDArray[np.bool_]:
            rounded = round_to(values, self.feature.raw)
            begun = rounded[0] > -1.0 if zero else rounded[0] >= code
            return np.array([begun, rounded[1] >= code + 1.0 if rounds else rounded[1] > code])

        first, past = self._first(ends, 2).tolist()
        return first, past

    def _first(
        self, reaches: Callable[[NDArray[np.float64]], NDArray[np.bool_]], count: int | None = None
    ) -> WordArray:
        """Returns an array (count,): the least raw word for which `reaches` is True, for each entry of the result of
        `reaches`."""
        least, greatest = self.kind.ends
        low = np.full(len(self.source_words) if count is None else count, least, dtype=np.int64)
        high = np.full(len(low), greatest + 1, dtype=np.int64)
        while (low < high).any():
            middle = (low >> 1) + (high >> 1) + (low & high & 1)
            held, open_ = reaches(self.kind.values(np.minimum(middle, greatest))), low < high
            low, high = np.where(open_ & ~held, middle + 1, low), np.where(open_ & held, middle, high)
        return low
