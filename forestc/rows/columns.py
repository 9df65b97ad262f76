"""Which of the rows' columns each feature reads: the one rule for data frames, tables and files.

By name, where the model and the rows both have names; else by position. A name that forestc or a library made up for a
model trained on an array (`Feature.named`) matches nothing. Rows with names for a model without are taken in their
order, unless their names say another one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import pairwise
from typing import Any

from forestc.errors import OptionError, RowsError
from forestc.forest.ir import Forest

SPARE = 256  # unread columns that rows hold nevertheless, as whole rows are the simpler form; of more they hold none
MOST_COMPARED = 10_000  # names, as the nearest one is sought with a slow comparison
_PREFIX_AND_NUMBER = re.compile(r"(.*?)(\d{1,18})", re.DOTALL)


@dataclass(frozen=True)
class Places:
    """Where the features are found in the rows.

    columns: for each feature the rows' column it reads, counted from 0 without the label. names: of all columns, in
    the model's order, where the rows have names and the model has none; else empty.
    """

    columns: tuple[int, ...]
    names: tuple[str, ...] = ()


def find_columns(forest: Forest, labels: Sequence[Any] | int, where: str) -> Places:
    """Places of the features among the rows' columns, the label left out.

    labels: what the columns are called, or how many there are where they are called nothing. Numbers that count the
    columns from 0 or 1, as a data frame without names has them, are names only to a model that has such names.

    Raises RowsError for a name that is missing or there twice, for names that say another order than the columns are
    in, and for a wrong number of columns.
    """
    if isinstance(labels, int):
        return _by_position(forest, labels, where)
    names = unique_names(labels, where)
    wanted = [feature.name for feature in forest.features]
    if all(feature.named for feature in forest.features):
        places_of_names = _found_names(wanted, names)
        if not _counts(names) or any(place is not None for place in places_of_names):
            return _by_name(wanted, places_of_names, names, where)
        return _by_position(forest, len(names), where)
    places = _by_position(forest, len(names), where)
    if _counts(names):
        return places
    _refuse_other_order(forest, names, where)
    return replace(places, names=names)


def unique_names(labels: Sequence[Any], where: str) -> tuple[str, ...]:
    """The columns' labels as text. Raises RowsError where two are the same."""
    names = tuple(map(str, labels))
    if len(set(names)) < len(names):
        twice = next(name for index, name in enumerate(names) if name in names[:index])
        raise RowsError(f"two columns have one name: {twice!r}", where=where, do="leave one out, or rename it")
    return names


def carrying(forest: Forest) -> Forest:
    """The forest; if very many of the source's columns are unread, one whose rows hold the read columns alone."""
    if forest.carried or forest.columns - len(forest.features) <= SPARE:
        return forest
    return replace(forest, carried=tuple(sorted(feature.column for feature in forest.features)) or (0,))


def adopt_names(forest: Forest, names: Sequence[str]) -> Forest:
    """The forest with the names of its columns, if there are any: from then on they are the model's own."""
    if not names:
        return forest
    return replace(forest, features=tuple(replace(f, name=names[f.column], named=True) for f in forest.features))


def accept_missing(forest: Forest, missing: str) -> Forest:
    """The forest; with missing=always one whose designs accept every missing value that it takes. Raises OptionError
    if it takes none."""
    if missing == "auto":
        return forest
    if missing != "always":
        raise OptionError(f"missing={missing}", do="use auto or always")
    if not any(feature.missing for feature in forest.features):
        raise OptionError("the model takes no missing values", do="leave missing=always out")
    return replace(forest, always_missing=True)


def name_classes(forest: Forest, names: Sequence[str]) -> Forest:
    """The forest with other names of its classes, in their order; none leave it as it is. Raises OptionError."""
    if not names:
        return forest
    if len(forest.targets) > 1 or not forest.classes:
        what = f"{len(forest.targets)} targets" if forest.decides else "no classes"
        raise OptionError(f"classes are named, and the model has {what}", do="leave the names out")
    known = ", ".join(map(str, forest.classes[:8]))
    if len(names) != len(forest.classes):
        raise OptionError(
            f"{len(names)} names for {len(forest.classes)} classes", do=f"give one for each, in this order: {known}"
        )
    if len(set(names)) < len(names) or not all(names):
        raise OptionError(f"two classes have one name, or one has none: {', '.join(names)}", do="give each its own")
    return replace(forest, classes=tuple(map(str, names)))


def some_names(names: Sequence[str], wanted: str = "") -> str:
    """The first few, for a message; before them that which is nearest to a name that is not there."""
    near = get_close_matches(wanted, names[:MOST_COMPARED], 1) if len(names) > 8 else []
    names = [*near, *(name for name in names if name not in near)]
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def _by_position(forest: Forest, count: int, where: str) -> Places:
    if count != forest.columns:
        raise RowsError(
            f"has {count} columns beside the label",
            where=where,
            do=f"the model takes {forest.columns}; name the label column, if there is one",
        )
    return Places(tuple(feature.column for feature in forest.features))


def _by_name(wanted: Sequence[str], places: Sequence[int | None], names: Sequence[str], where: str) -> Places:
    missing = [name for name, place in zip(wanted, places, strict=True) if place is None]
    if missing:
        raise RowsError(
            f"column {missing[0]!r} is missing" + (f" and {len(missing) - 1} more" if missing[1:] else ""),
            where=where,
            do=f"it has: {some_names(names)}",
        )
    if len(set(wanted)) < len(wanted):
        twice = next(name for index, name in enumerate(wanted) if name in wanted[:index])
        raise RowsError(f"two of the model's columns are called {twice!r}", where=where, do="give rows without names")
    return Places(tuple(place for place in places if place is not None))


def _found_names(wanted: Sequence[str], names: Sequence[str]) -> list[int | None]:
    """For each wanted name its place: of the name itself, or of the only other one that differs from it by spaces and
    underscores (LightGBM saves names that way); else None."""
    exact = {name: place for place, name in enumerate(names)}
    loose: dict[str, list[int]] = {}
    for name in exact.keys() - set(wanted):
        loose.setdefault(re.sub(r"\s", "_", name), []).append(exact[name])

    def place(name: str) -> int | None:
        alike = loose.get(re.sub(r"\s", "_", name), [])
        return exact.get(name, alike[0] if len(alike) == 1 else None)

    return [place(name) for name in wanted]


def _counts(names: Sequence[str]) -> bool:
    """Whether names are ascending numbers that may be positions: from 0 or 1 on, but for a label left out."""
    if not all(re.fullmatch(r"0|[1-9]\d{0,8}", name) for name in names):
        return False
    numbers = [int(name) for name in names]
    return numbers == sorted(numbers) and (not numbers or numbers[-1] <= len(numbers))


def _refuse_other_order(forest: Forest, names: Sequence[str], where: str) -> None:
    """For a model without names: numbered names must ascend, and names the model does have be in their place."""
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
