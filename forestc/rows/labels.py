"""Turns labels into class indices or values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forestc.errors import RowsError, opt
from forestc.forest.ir import Forest
from forestc.rows.table import as_number, is_absent

# Holds the classes of each target; () for a regression target.
Targets: TypeAlias = tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class LabelReader:
    """Reads labels as the class indices, or the values, of a model's targets."""

    targets: Targets
    where: str  # names the labels in messages
    columns: tuple[Any, ...] = ()  # names of the columns that hold the labels

    @classmethod
    def of(cls, forest: Forest, where: str, columns: tuple[Any, ...] = ()) -> LabelReader:
        """Raises RowsError if that many columns do not fit the model, or one of them is a feature."""
        targets = tuple(part.classes for part in forest.targets) if forest.decides else ((),) * forest.n_scores
        if not columns:
            return cls(targets, where)
        cls(targets, where).refuse_number(len(columns))
        features = {feature.name for feature in forest.features if feature.named}
        for name in columns:
            if name in features:
                raise RowsError(
                    f"the label {name!r} is a feature of the model", where=where, do="name the column of true labels"
                )
        return cls(targets, f"{where}, column{'s' * (len(columns) > 1)} {', '.join(map(repr, columns))}", columns)

    def read(self, columns: Sequence[Sequence[Any]], start: int = 0) -> NDArray[Any]:
        """Returns labels as class indices (-1 if unknown) or as values: (rows,), or (rows, targets).
        columns: labels by label column.
        start: number of the first row, for messages.

        Raises RowsError for bad labels.
        """
        if len(self.targets) > 1 and len({bool(classes) for classes in self.targets}) > 1:
            raise RowsError(
                "some targets of the model are classes and others values", where=self.where, do="omit the labels"
            )
        if len(columns) == len(self.targets):
            truths = [
                self._of_target(labels, classes, start) for labels, classes in zip(columns, self.targets, strict=True)
            ]
            return truths[0] if len(truths) == 1 else np.stack(truths, axis=1)
        self.refuse_number(len(columns))
        return self._one_hot(columns, start)

    def read_values(self, truth: object, rows: int) -> NDArray[Any]:
        """Returns labels that the user gave, (rows,) or (rows, columns), as `read` does. Raises RowsError for another
        shape or for bad labels."""
        columns = label_lists(truth, rows, self.where)
        labels = self.read(columns)
        self.refuse_others([counted(column) for column in columns])
        return labels

    def refuse_number(self, columns: int) -> None:
        """Raises RowsError if that many label columns do not fit the targets."""
        count, classes = len(self.targets), len(self.targets[0])
        if columns != count and not (count == 1 and columns == classes):
            several = f"{count} targets" if count > 1 else f"one target of {classes or 'no'} classes"
            raise RowsError(
                f"{columns} columns of labels, and the model has {several}",
                where=self.where,
                do="name a column for each target, in the model's order"
                if count > 1
                else "name one column, or one of zeros and ones for each class",
            )

    def refuse_others(self, counts: Sequence[Mapping[Any, int]]) -> None:
        """Raises RowsError if the labels seem to be other names of the model's classes. counts: for each label
        column, how often each label occurs."""
        if len(counts) != len(self.targets):
            return  # There is a column of zeros and ones for each class.
        for column, classes in zip(counts, self.targets, strict=True):
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
            moved = ",".join(f"{as_number(label) + shift:g}" for label in classes) if shift else ""  # type: ignore[operator]
            raise RowsError(
                what,
                where=self.where,
                do=f"the model's classes: {', '.join(str(c) for c in classes[:8])}"
                f"{' and more' * (len(classes) > 8)}; compile or explore with {opt.classes:{moved}} to "
                "rename them, in that order, as in the rows",
            )

    def _of_target(self, labels: Sequence[Any], classes: tuple[Any, ...], start: int) -> NDArray[Any]:
        if not classes:
            values = np.array(self._numbers(labels, start))
            if not np.isfinite(values).all():
                row = start + int(np.flatnonzero(~np.isfinite(values))[0])
                raise RowsError(
                    "a label is missing or infinite", where=f"{self.where}, row {row}", do="remove that row"
                )
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
            raise RowsError(
                "a label is missing", where=f"{self.where}, row {start + missing}", do="remove the rows without one"
            )
        if not start and labels and max(indices) < 0:
            LabelReader((classes,), f"{self.where}, row 0").refuse_others([dict.fromkeys(map(str, labels), 1)])
        return np.array(indices, dtype=np.int64)

    def _one_hot(self, columns: Sequence[Sequence[Any]], start: int) -> NDArray[np.int64]:
        table = np.array([self._numbers(column, start) for column in columns]).T
        wrong = np.flatnonzero(~(((table == 0) | (table == 1)).all(axis=1) & (table.sum(axis=1) == 1)))
        if len(wrong):
            raise RowsError(
                "the labels of a row are not a single 1 among zeros",
                where=f"{self.where}, row {start + int(wrong[0])}",
                do="write a column for each class, with 1 in the rows of that class and 0 in the others",
            )
        return np.asarray(np.argmax(table, axis=1), dtype=np.int64)

    def _numbers(self, labels: Sequence[Any], start: int) -> list[float]:
        try:
            return [float(label) for label in labels]
        except (TypeError, ValueError):
            row, label = next((row, label) for row, label in enumerate(labels) if as_number(label) is None)
        what, do = f"a label is not a number: {str(label)[:40]!r}", "give a number for each row"
        if _is_missing(label):
            what, do = "a label is missing", "remove the rows without one"
        raise RowsError(what, where=f"{self.where}, row {start + row}", do=do)


def label_lists(truth: object, rows: int, where: str) -> list[list[Any]]:
    """Returns labels that the user gave, (rows,) or (rows, columns), as a list for each column. Raises RowsError for
    another shape."""
    try:
        table = np.asarray(truth)
    except ValueError:
        what = "the labels are not a table: the lists of some rows are longer than others"
        raise RowsError(what, where=where, do="give one label per row") from None
    if table.ndim not in (1, 2) or 0 in table.shape[1:]:
        what = f"a table of shape {table.shape}" if table.ndim else "a single value"
        raise RowsError(f"the labels are not a list, but {what}", where=where, do="give one label per row")
    if len(table) != rows:
        raise RowsError(f"{len(table)} labels for {rows} rows", where=where, do="give one label for each row")
    return [column.tolist() for column in (table.T if table.ndim == 2 else [table])]


def counted(labels: Iterable[Any]) -> Counter[Any]:
    """Returns how often each label occurs. labels: a list or a column of a table."""
    if hasattr(labels, "value_counts"):  # an Arrow array
        return Counter({entry["values"]: entry["counts"] for entry in labels.value_counts().to_pylist()})
    labels = list(labels)
    try:
        return Counter(labels)
    except TypeError:  # The labels' type has no hash.
        return Counter(map(str, labels))


def _finder(classes: tuple[Any, ...]) -> Callable[[object], int]:
    """Returns a function that returns a label's class index, or -1 for an unknown label."""
    index_by_key: dict[Any, int] = {}
    for index, label in enumerate(classes):
        index_by_key.setdefault(str(label), index)
        number = as_number(label)
        if number is not None:
            index_by_key.setdefault(number, index)
    return lambda label: index_by_key.get(str(label), index_by_key.get(as_number(label), -1))


def _shift(labels: Iterable[Any], classes: tuple[Any, ...]) -> int:
    """Returns 1 or -1 if the labels seem to be the classes plus this number; otherwise 0."""
    numbers, class_numbers = {as_number(label) for label in labels}, {as_number(label) for label in classes}
    if None in numbers | class_numbers or 2 * len(numbers) <= len(class_numbers) or len(numbers) < 2:
        return 0
    shifted = (step for step in (1, -1) if {number - step for number in numbers if number is not None} <= class_numbers)
    return next(shifted, 0)


def _is_missing(label: object) -> bool:
    return is_absent(label) or label != label or (isinstance(label, str) and not label.strip())
