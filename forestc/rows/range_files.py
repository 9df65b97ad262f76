"""Reads ranges, the values that each feature may take, from a CSV or JSON file or a Python mapping.

feature,smallest,largest,step,missing        {"age": [0, 120],
age,0,120,1,no                                "pressure": {"smallest": 0, "missing": true}}
pressure,0,,,yes
"""

from __future__ import annotations

import csv
import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import numpy as np

from forestc.errors import RowsError, known_names, opt
from forestc.forest.ir import Feature, Forest
from forestc.forest.numbers import Category
from forestc.rows.columns import adopt_names, find_columns
from forestc.rows.ranges import MOST_STEPS, Ranges, ValueRange
from forestc.rows.table import some_names
from forestc.system.reading import file_text

MOST_BYTES = 1 << 28  # bytes of a file at most
KEYS = ("smallest", "largest", "step", "whole", "missing")
YES_OR_NO = {"yes": True, "no": False, "true": True, "false": False}
FORM = "write a CSV file with the columns feature, smallest, largest and optionally step, whole and missing; or JSON"
PYTHON = "the ranges"
NOTHING_KNOWN = (
    "no rows and no ranges: number formats come from the model's own thresholds, for every value; ranges with steps "
    "make them smaller"
)


@dataclass(frozen=True)
class _Line:
    """The range of one feature, as read from a file or a mapping."""

    name: str
    fields: Mapping[str, Any]
    where: str  # file and line, for messages


def ranges_from(given: object, forest: Forest) -> tuple[Ranges, Forest, tuple[str, ...]]:
    """Returns the ranges, the forest with column names, and notes. given: a path, a mapping from names to ranges, or
    None. Raises RowsError."""
    if given is None:
        return Ranges(), forest, (NOTHING_KNOWN,)
    if isinstance(given, str | Path):
        where, lines = str(given), _read(Path(given))
    elif isinstance(given, Mapping):
        where = PYTHON
        lines = [_Line(str(name), _mapping(value, str(name), where), where) for name, value in given.items()]
    else:
        raise RowsError(
            f"ranges are a path or a mapping, not {type(given).__name__}", where=opt.ranges, do='give {"age": (0, 120)}'
        )
    if not lines:
        raise RowsError("holds no ranges", where=where, do=FORM)
    names = [line.name for line in lines]
    for index, line in enumerate(lines):
        if line.name in names[:index]:
            raise RowsError(f"the feature {line.name!r} appears twice", where=line.where, do="remove one")
    if len(lines) != forest.columns and not all(feature.named for feature in forest.features):
        raise RowsError(
            f"holds {len(lines)} features, and the model takes {forest.columns}",
            where=where,
            do="the model has no column names: give a range for each column, in order",
        )
    _refuse_unknown(forest, lines)
    match = find_columns(forest, names, where)
    forest = adopt_names(forest, match.names)
    columns = {
        feature.column: _range_of(feature, lines[row_of_feature])
        for feature, row_of_feature in zip(forest.features, match.columns, strict=True)
    }
    note = f"the model has no column names: the ranges are taken in their order, {some_names(match.names)}"
    return Ranges(columns), forest, (note,) * bool(match.names)


def ranges_record(given: object, ranges: Ranges, model: Forest) -> dict[str, Any]:
    """Returns a dictionary for JSON: the ranges by feature, and the SHA-256 of their file or of their JSON text."""
    by_feature = {
        feature.name: ranges.columns[feature.column].as_json()
        for feature in model.features
        if feature.column in ranges.columns
    }
    named: dict[str, Any] = {}
    content = json.dumps(by_feature, sort_keys=True).encode()
    if ranges.observed is None and isinstance(given, str | Path):
        named, content = {"file": Path(given).name}, Path(given).read_bytes()
    return {**named, "sha256": hashlib.sha256(content).hexdigest(), "ranges": by_feature}


def ranges_again(record: Mapping[str, Any], model: Forest) -> Ranges | None:
    """Returns the ranges that `ranges_record` recorded; None for a record of rows."""
    if "ranges" not in record:
        return None
    ranges = record["ranges"]
    return Ranges({f.column: ValueRange.from_json(ranges[f.name]) for f in model.features if f.name in ranges})


def _refuse_unknown(forest: Forest, lines: Sequence[_Line]) -> None:
    """Raises RowsError if there are more unknown names than columns that the model does not read."""
    model_names = {feature.name for feature in forest.features}
    names = {line.name for line in lines}
    if not all(feature.named for feature in forest.features) or all(name.isdecimal() for name in names):
        return
    spelt = {name.replace(" ", "_"): name for name in model_names}
    others = [line for line in lines if line.name not in model_names and line.name.replace(" ", "_") not in spelt]
    left = sorted(model_names - {spelt.get(name.replace(" ", "_"), name) for name in names})
    if len(model_names) + len(others) > forest.columns:

        def likeness(line: _Line) -> float:  # returns the similarity to the nearest name without a range
            return max((SequenceMatcher(None, line.name, name).ratio() for name in left), default=0.0)

        likely = max(others, key=likeness)
        raise RowsError(
            f"the model reads no feature {likely.name!r}",
            where=likely.where,
            do=f"it has no range for: {some_names(left)}" if left else "remove it",
        )


def _read(path: Path) -> list[_Line]:
    text = file_text(path, RowsError, MOST_BYTES)
    return _json_lines(text, str(path)) if path.suffix.lower() == ".json" else _csv_lines(text, str(path))


def _json_lines(text: str, where: str) -> list[_Line]:
    def pairs(items: list[tuple[str, Any]]) -> Any:
        names = [name for name, _ in items]
        for index, name in enumerate(names):
            if name in names[:index]:
                raise RowsError(f"{name!r} appears twice", where=where, do="remove one")
        return dict(items)

    try:
        record = json.loads(text, object_pairs_hook=pairs)
    except RowsError:
        raise
    except (ValueError, RecursionError) as error:
        line = f", line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise RowsError("is not readable JSON", where=where + line, do='write {"age": [0, 120]}') from None
    if not isinstance(record, dict):
        raise RowsError("is not a JSON object", where=where, do='write {"age": [0, 120]}')
    return [_Line(name, _mapping(value, name, where), where) for name, value in record.items()]


def _mapping(value: object, name: str, where: str) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        _refuse_keys(map(str, value), f"{where}, feature {name!r}")
        return value
    ends = list(value) if isinstance(value, list | tuple | np.ndarray) else []
    if len(ends) != 2:
        raise RowsError(
            f"{name!r} has no smallest and largest value", where=where, do=f'write for example {{"{name}": [0, 120]}}'
        )
    return {"smallest": ends[0], "largest": ends[1]}


def _csv_lines(text: str, where: str) -> list[_Line]:
    try:
        reader = csv.reader(text.splitlines(), strict=True)
        rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader if any(map(str.strip, row))]
    except csv.Error as error:
        raise RowsError(f"is not a readable CSV file ({error})", where=where, do=FORM) from None
    if not rows:
        return []
    (first, head), body = rows[0], rows[1:]
    if "feature" not in head:
        raise RowsError("has no column 'feature'", where=f"{where}, line {first}", do=FORM)
    _refuse_keys((key for key in head if key != "feature"), f"{where}, line {first}")
    if len(set(head)) < len(head):
        raise RowsError("two columns have the same name", where=f"{where}, line {first}", do="remove one")
    lines = []
    for number, row in body:
        at = f"{where}, line {number}"
        if len(row) != len(head):
            raise RowsError(f"has {len(row)} fields, and the header {len(head)}", where=at, do="write as many")
        fields = dict(zip(head, row, strict=True))
        lines.append(_Line(fields.pop("feature"), fields, at))
    return lines


def _refuse_keys(keys: Iterable[str], where: str) -> None:
    for key in keys:
        if key not in KEYS:
            raise RowsError(f"unknown column or key {key!r}", where=where, do=known_names(key, KEYS))


def _range_of(feature: Feature, line: _Line) -> ValueRange:

    def refuse(what: str, do: str) -> RowsError:
        return RowsError(f"{line.name!r}: {what}", where=line.where, do=do)

    def number(key: str, default: float) -> float:
        value = line.fields.get(key)
        if value is None or value == "":
            return default
        try:
            if isinstance(value, bool | np.bool_):
                raise TypeError
            result = float(value)
        except (TypeError, ValueError, OverflowError):
            raise refuse(f"{key} is not a number ({str(value)[:40]!r})", "write a number, or omit it") from None
        if math.isnan(result):
            raise refuse(f"{key} is NaN", "write a number, or omit it; missing=yes allows missing values")
        return result

    def yes(key: str) -> bool | None:
        value = line.fields.get(key)
        if value is None or value == "":
            return None
        if isinstance(value, bool | np.bool_):
            return bool(value)
        if str(value).lower() not in YES_OR_NO:
            raise refuse(f"{key} is {str(value)[:40]!r}", "write yes or no")
        return YES_OR_NO[str(value).lower()]

    smallest, largest = number("smallest", -math.inf), number("largest", math.inf)
    step, whole, missing = number("step", 0.0), yes("whole"), yes("missing")
    if missing and not feature.missing:
        raise refuse("missing=yes, but the model takes no missing values here", "impute them, and write missing=no")
    if isinstance(feature.number, Category):
        if math.isfinite(smallest) or math.isfinite(largest) or step or whole:
            raise refuse("is a category, and all of its categories are known", "omit smallest, largest and step")
        return ValueRange(missing=missing)
    if smallest > largest:
        raise refuse(f"smallest {smallest:g} is above largest {largest:g}", "write the smaller one first")
    if smallest == math.inf or largest == -math.inf:
        raise refuse("the range holds no number", "omit an end that is open")
    if step < 0 or not math.isfinite(step) or (step == 0.0 and line.fields.get("step") not in (None, "")):
        raise refuse(f"step {step:g}", "write a number above 0, or omit it")
    if whole:
        if step not in (0.0, 1.0):
            raise refuse(f"whole numbers with a step of {step:g}", "give one of them")
        step = 1.0
        if math.isfinite(smallest) and smallest != math.floor(smallest):
            raise refuse(f"whole numbers from {smallest:g} on", "start with a whole number")
    result = ValueRange(smallest, largest, step, missing)
    if step and math.isfinite(smallest) and math.isfinite(largest) and (largest - smallest) / step > MOST_STEPS:
        raise refuse(f"more than 2^53 steps of {step:g}", "omit step")
    return result
