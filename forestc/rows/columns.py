"""Decides which column of the rows each feature reads, for data frames, tables and files. Columns are matched by name
if the model and the rows both have names, otherwise by position."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import pairwise
from typing import Any

from forestc.errors import OptionError, RowsError, opt
from forestc.forest.ir import Forest

SPARE = 256  # columns that rows may have unread; with more, only read columns stay
MOST_COMPARED = 10_000  # limits the names to compare, because similarity search is slow
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


def unique_names(labels: Sequence[Any], where: str) -> tuple[str, ...]:
    """Returns the names as a tuple of texts. Raises RowsError if two are the same."""
    names = tuple(map(str, labels))
    if len(set(names)) < len(names):
        twice = next(name for index, name in enumerate(names) if name in names[:index])
        raise RowsError(f"two columns have one name: {twice!r}", where=where, do="leave one out, or rename it")
    return names


def carrying(forest: Forest) -> Forest:
    """Returns the forest with `carried` set, so rows hold only the columns it reads; unchanged if at most `SPARE`
    columns are unread."""
    if forest.carried or forest.columns - len(forest.features) <= SPARE:
        return forest
    return replace(forest, carried=tuple(sorted(feature.column for feature in forest.features)) or (0,))


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


def some_names(names: Sequence[str], wanted: str = "") -> str:
    """Returns up to eight names as one text for a message. If there are more, the name most similar to `wanted` comes
    first."""
    near = get_close_matches(wanted, names[:MOST_COMPARED], 1) if len(names) > 8 else []
    names = [*near, *(name for name in names if name not in near)]
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


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
