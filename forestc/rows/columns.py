"""Decides which columns of the rows are labels, and which column each feature reads, for data frames, tables and files.
Features are matched by name if the model and the rows both have names, otherwise by position."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import pairwise
from typing import Any, TypeGuard

from forestc.errors import OptionError, RowsError, opt
from forestc.forest.builder import changed
from forestc.forest.ir import Forest
from forestc.forest.numbers import Category
from forestc.rows.table import Table

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


def label_columns(label: object, names: Sequence[Any] | None) -> str | tuple[Any, ...] | None:
    """Returns the label columns that `label` names; None if it names no columns. names: the names of a table's columns,
    as `names_of` returns them."""
    if names is None:
        if isinstance(label, str | int):
            return str(label)
        return tuple(map(str, label)) if _differ(label) else None
    if not names:
        return None
    if isinstance(label, str | int):
        return (label,)
    return tuple(label) if _differ(label) and all(isinstance(n, str) and n in names for n in label) else None


def _differ(label: object) -> TypeGuard[list[object] | tuple[object, ...]]:
    return isinstance(label, list | tuple) and len(set(map(str, label))) == len(label)


def find_labels(label: str | Sequence[Any] | None, table: Table) -> tuple[Any, ...]:
    """Returns the names of a table's label columns. Raises RowsError if one does not exist or appears twice, or if two
    columns have one name."""
    unique_names(table.names, table.where)
    if label is None:
        return ()
    if isinstance(label, str):
        label = (label,) if label in table.names else tuple(part.strip() for part in label.split(","))
    columns = tuple(find_label(name, table.names, table.where, table.headed, table.by_position) for name in label)
    if len(set(columns)) < len(columns):
        raise RowsError(
            f"a column of labels is named twice: {', '.join(label)}", where=table.where, do="name each column once"
        )
    return columns


def find_label(label: Any, names: Sequence[Any], where: str, headed: bool = True, by_position: bool = True) -> Any:
    if label in names:
        return label
    if headed and not (by_position and re.fullmatch(r"-?\d+", label)):
        known = some_names([str(name) for name in names], str(label))
        raise RowsError(f"there is no column {label!r}", where=where, do=f"it has: {known}")
    return names[label_position(label, len(names), where)]


def label_position(label: str, columns: int, where: str) -> int:
    """Returns the index of a column. label: an index as text; -1 is the last column. Raises RowsError if there is no
    such column."""
    try:
        position = int(label)
    except ValueError:
        raise RowsError(
            f"there is no column {label!r}", where=where, do="the columns have no names: give a position, such as -1"
        ) from None
    if not -columns <= position < columns:
        raise RowsError(
            f"there is no column {position} of {columns}", where=where, do="give the number of a column, from 0 on"
        )
    return position % columns


def refuse_features(labels: Sequence[str], forest: Forest, where: str) -> None:
    features = {feature.name for feature in forest.features if feature.named}
    for name in labels:
        if name in features:
            raise RowsError(
                f"the label {name!r} is a feature of the model", where=where, do="name the column of true labels"
            )


def with_categories(forest: Forest, names: list[str], texts: Mapping[str, tuple[list[str], bool]]) -> Forest:
    """Assigns the forest's lists of category names to features, as the rows suggest, because LightGBM models may store
    the lists without column names. Returns the forest, unchanged if no assignment is clear.
    names: the rows' columns without labels.
    texts: the texts in columns, as `Table.texts` returns them."""
    texts = {name: texts[name] for name in names if name in texts}
    by_order = _all_in_order(forest, names) and len(texts) == len(forest.categories)
    chosen = (_in_order if by_order else _by_content)(forest, names, texts)
    if not chosen:
        return forest
    features = []
    for index, feature in enumerate(forest.features):
        listed = chosen.get(index)
        if isinstance(feature.number, Category):
            count = max(feature.number.count, len(listed or ()))
            feature = replace(feature, labels=listed or (), number=replace(feature.number, count=count))
        features.append(feature)
    return changed(forest, features=tuple(features), categories=())


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


def _all_in_order(forest: Forest, names: list[str]) -> bool:
    if len(names) != forest.columns:
        return False
    pairs = [(names[feature.column], feature.name) for feature in forest.features if feature.named]
    return all(re.sub(r"\s", "_", name) == re.sub(r"\s", "_", other) for name, other in pairs)


def _in_order(
    forest: Forest, names: list[str], texts: Mapping[str, tuple[list[str], bool]]
) -> dict[int, tuple[str, ...]]:
    """Returns {feature index: categories}, assigned in the order of columns; empty if the rows' texts contradict it."""
    pairs = dict(zip(texts, forest.categories, strict=True))  # Both are in the order of the columns.
    if not all(not values or set(values) & set(pairs[name]) for name, (values, _) in texts.items()):
        return {}
    return {
        index: pairs[names[feature.column]]
        for index, feature in enumerate(forest.features)
        if names[feature.column] in pairs and isinstance(feature.number, Category)
    }


def _by_content(
    forest: Forest, names: list[str], texts: Mapping[str, tuple[list[str], bool]]
) -> dict[int, tuple[str, ...]]:
    """Returns {feature index: categories}, assigned by texts in the columns; empty unless each categorical column
    matches one list."""
    chosen: dict[int, tuple[str, ...]] = {}
    for index, feature in enumerate(forest.features):
        if not isinstance(feature.number, Category):
            continue
        name = feature.name if feature.named or len(names) != forest.columns else names[feature.column]
        values, complete = texts.get(name, ([], False))
        alike = {names for names in forest.categories if complete and set(names) == set(values)}
        if len(alike) != 1:
            return {}
        chosen[index] = alike.pop()
    return chosen
