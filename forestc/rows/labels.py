"""Finds the label columns of rows, and turns labels into class indices or values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import NDArray

from forestc.errors import RowsError, opt
from forestc.forest.ir import Forest
from forestc.rows.columns import some_names
from forestc.rows.frames import frame_table, is_absent

# Holds the classes of each target; () for a regression target.
Targets: TypeAlias = tuple[tuple[Any, ...], ...]


def targets_of(forest: Forest) -> Targets:
    """Returns the classes of each of the forest's targets, in the order of the label columns."""
    if not forest.decides:
        return ((),) * forest.n_scores
    return tuple(part.classes for part in forest.targets)


def label_columns(label: object, rows: object) -> str | tuple[Any, ...] | None:
    """Returns the label columns of a file or data frame that `label` names; None if it names no columns."""
    if isinstance(rows, str | Path):
        if isinstance(label, str | int):
            return str(label)
        return tuple(map(str, label)) if _differ(label) else None
    table = frame_table(rows)
    if table is None:
        return None
    if isinstance(label, str | int):
        return (label,)
    return tuple(label) if _differ(label) and all(isinstance(n, str) and n in table.names for n in label) else None


def _differ(label: object) -> TypeGuard[list[object] | tuple[object, ...]]:
    return isinstance(label, list | tuple) and len(set(map(str, label))) == len(label)


def find_labels(label: str | Sequence[str], names: Sequence[str], headed: bool, where: str) -> tuple[str, ...]:
    """Returns the names of a file's label columns. Raises RowsError if a column does not exist or appears twice."""
    if isinstance(label, str):
        label = (label,) if label in names else tuple(part.strip() for part in label.split(","))
    columns = tuple(find_label(name, names, headed, where) for name in label)
    if len(set(columns)) < len(columns):
        raise RowsError(
            f"a column of labels is named twice: {', '.join(label)}", where=where, do="name each column once"
        )
    return columns


def find_label(label: str, names: Sequence[str], headed: bool, where: str) -> str:
    if label in names:
        return label
    if headed and not re.fullmatch(r"-?\d+", label):
        raise RowsError(f"there is no column {label!r}", where=where, do=f"it has: {some_names(names, label)}")
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


def columns_in(truth: object, rows: int, where: str) -> list[list[Any]]:
    """Returns a list of labels for each column of `truth`, (rows,) or (rows, columns). Raises RowsError for another
    shape."""
    try:
        table = np.asarray(truth)
    except ValueError as error:  # The lists have different lengths.
        raise RowsError(f"the labels are not a table ({error})", where=where, do="give one label per row") from None
    if table.ndim not in (1, 2) or 0 in table.shape[1:]:
        what = f"a table of shape {table.shape}" if table.ndim else "a single value"
        raise RowsError(f"the labels are not a list, but {what}", where=where, do="give one label per row")
    if len(table) != rows:
        raise RowsError(f"{len(table)} labels for {rows} rows", where=where, do="give one label for each row")
    return [column.tolist() for column in (table.T if table.ndim == 2 else [table])]


def refuse_features(labels: Sequence[str], forest: Forest, where: str) -> None:
    features = {feature.name for feature in forest.features if feature.named}
    for name in labels:
        if name in features:
            raise RowsError(
                f"the label {name!r} is a feature of the model", where=where, do="name the column of true labels"
            )


def refuse_number(columns: int, targets: Targets, where: str) -> None:
    if columns != len(targets) and not (len(targets) == 1 and columns == len(targets[0])):
        several = f"{len(targets)} targets" if len(targets) > 1 else f"one target of {len(targets[0]) or 'no'} classes"
        raise RowsError(
            f"{columns} columns of labels, and the model has {several}",
            where=where,
            do="name a column for each target, in the model's order"
            if len(targets) > 1
            else "name one column, or one of zeros and ones for each class",
        )


def truth_of(columns: Sequence[Sequence[Any]], targets: Targets, where: str, start: int = 0) -> NDArray[Any]:
    """Returns labels as class indices (-1 if unknown) or as values: (rows,), or (rows, targets).
    columns: labels by label column.
    start: number of the first row, for messages.

    Raises RowsError for bad labels.
    """
    if len(targets) > 1 and len({bool(classes) for classes in targets}) > 1:
        raise RowsError("some targets of the model are classes and others values", where=where, do="omit the labels")
    if len(columns) == len(targets):
        truths = [_one_target(labels, classes, where, start) for labels, classes in zip(columns, targets, strict=True)]
        return truths[0] if len(truths) == 1 else np.stack(truths, axis=1)
    refuse_number(len(columns), targets, where)
    return _one_hot(columns, where, start)


def _one_target(labels: Sequence[Any], classes: tuple[Any, ...], where: str, start: int) -> NDArray[Any]:
    if not classes:
        values = np.array(_numbers(labels, where, start))
        if not np.isfinite(values).all():
            row = start + int(np.flatnonzero(~np.isfinite(values))[0])
            raise RowsError("a label is missing or infinite", where=f"{where}, row {row}", do="remove that row")
        return values
    index_of = _finder(classes)
    # Each distinct label is looked up once, which is valid only if all labels have one type.
    kinds = set(map(type, labels))
    if len(kinds) == 1 and next(iter(kinds)).__hash__ is not None:
        index_by_label = {label: index_of(label) for label in set(labels)}
        indices = [index_by_label[label] for label in labels]
    else:
        indices = list(map(index_of, labels))
    foreign = np.flatnonzero(np.array(indices, dtype=np.int64) < 0).tolist()
    missing = next((row for row in foreign if _is_missing(labels[row])), None)
    if missing is not None:
        raise RowsError("a label is missing", where=f"{where}, row {start + missing}", do="remove the rows without one")
    if not start and labels and max(indices) < 0:
        refuse_other_labels([dict.fromkeys(map(str, labels), 1)], [classes], f"{where}, row 0")
    return np.array(indices, dtype=np.int64)


def _finder(classes: tuple[Any, ...]) -> Callable[[object], int]:
    """Returns a function that returns a label's class index, or -1 for an unknown label."""
    index_by_key: dict[Any, int] = {}
    for index, label in enumerate(classes):
        index_by_key.setdefault(str(label), index)
        number = _as_number(label)
        if number is not None:
            index_by_key.setdefault(number, index)
    return lambda label: index_by_key.get(str(label), index_by_key.get(_as_number(label), -1))


def refuse_other_labels(counts: Sequence[Mapping[Any, int]], targets: Sequence[tuple[Any, ...]], where: str) -> None:
    """Raises RowsError if the labels seem to be other names of the model's classes. counts: for each label column, how
    often each label occurs."""
    if len(counts) != len(targets):
        return  # There is a column of zeros and ones for each class.
    for column, classes in zip(counts, targets, strict=True):
        index_of = _finder(classes)
        given = {label: (index_of(label), count) for label, count in column.items() if not _is_missing(label)}
        foreign = [label for label, (index, _) in given.items() if index < 0]
        if not classes or not foreign:
            continue
        seen = {index for index, _ in given.values() if index >= 0}
        rows = sum(count for _, count in given.values())
        other = sum(given[label][1] for label in foreign)
        shift = _shift(given, classes)
        same_size = len(seen) < len(classes) <= len(given)
        if 2 * other <= rows and not same_size and not shift:
            continue
        shown = repr(str(foreign[0])[:40])
        what = f"no label is a class of the model: {shown}"
        if seen:
            what = f"{other:,} of {rows:,} labels are no class of the model, such as {shown}"
            what += f": the labels are the classes {'plus' if shift > 0 else 'minus'} 1" if shift else ""
        moved = ",".join(f"{_as_number(label) + shift:g}" for label in classes) if shift else ""  # type: ignore[operator]
        raise RowsError(
            what,
            where=where,
            do=f"the model's classes: {', '.join(str(c) for c in classes[:8])}"
            f"{' and more' * (len(classes) > 8)}; compile or explore with {opt.classes:{moved}} to "
            "rename them, in that order, as in the rows",
        )


def _shift(labels: Iterable[Any], classes: tuple[Any, ...]) -> int:
    """Returns 1 or -1 if the labels seem to be the classes plus this number; otherwise 0."""
    numbers, class_numbers = {_as_number(label) for label in labels}, {_as_number(label) for label in classes}
    if None in numbers | class_numbers or 2 * len(numbers) <= len(class_numbers) or len(numbers) < 2:
        return 0
    shifted = (step for step in (1, -1) if {number - step for number in numbers if number is not None} <= class_numbers)
    return next(shifted, 0)


def _one_hot(columns: Sequence[Sequence[Any]], where: str, start: int) -> NDArray[np.int64]:
    table = np.array([_numbers(column, where, start) for column in columns]).T
    wrong = np.flatnonzero(~(((table == 0) | (table == 1)).all(axis=1) & (table.sum(axis=1) == 1)))
    if len(wrong):
        raise RowsError(
            "the labels of a row are not a single 1 among zeros",
            where=f"{where}, row {start + int(wrong[0])}",
            do="write a column for each class, with 1 in the rows of that class and 0 in the others",
        )
    return np.asarray(np.argmax(table, axis=1), dtype=np.int64)


def _numbers(labels: Sequence[Any], where: str, start: int) -> list[float]:
    try:
        return [float(label) for label in labels]
    except (TypeError, ValueError):
        row, label = next((row, label) for row, label in enumerate(labels) if _as_number(label) is None)
    what, do = f"a label is not a number: {str(label)[:40]!r}", ""
    if _is_missing(label):
        what, do = "a label is missing", "remove the rows without one"
    raise RowsError(what, where=f"{where}, row {start + row}", do=do)


def _is_missing(label: object) -> bool:
    return is_absent(label) or label != label or (isinstance(label, str) and not label.strip())


def _as_number(label: object) -> float | None:
    try:
        return float(label)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def is_number(text: str) -> bool:
    return _as_number(text) is not None
