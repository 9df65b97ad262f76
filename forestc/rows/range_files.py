"""Ranges in place of rows: what each feature may be, from a small CSV or JSON file or a mapping in Python.

    feature,smallest,largest,step,missing        {"age": [0, 120],
    age,0,120,1,no                                "temperature": {"smallest": -40, "largest": 125, "step": 0.5},
    temperature,-40,125,0.5,                      "pressure": {"smallest": 0, "missing": true}}
    pressure,0,,,yes

Every feature of the model has its line. An end that is left out (or infinite) is open. step: values are
smallest + n * step, so 1 from a whole number on means whole numbers (`whole`: yes says the same); left out: any number.
missing: yes or no; left out: as the model takes it. Categories have no ends and no step.
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

from forestc.errors import RowsError
from forestc.forest.ir import Feature, Forest
from forestc.forest.numbers import Category
from forestc.rows.columns import adopt_names, find_columns, some_names
from forestc.rows.ranges import Range, Ranges

KEYS = ("smallest", "largest", "step", "whole", "missing")
YES_OR_NO = {"yes": True, "no": False, "true": True, "false": False}
FORM = "write a CSV file with the columns feature, smallest, largest, and if need be step, whole and missing; or JSON"
PYTHON = "the ranges"
NOTHING_KNOWN = (
    "no rows and no ranges: number formats come from the model's own thresholds, for every value; ranges with steps "
    "make them smaller"
)


@dataclass(frozen=True)
class _Line:
    """What somebody wrote of one feature, and where."""

    name: str
    told: Mapping[str, Any]
    where: str


def ranges_from(given: Any, forest: Forest) -> tuple[Ranges, Forest, tuple[str, ...]]:
    """The ranges, the forest with the names that they give its columns where it has none of its own, and notes.

    given: a path, a mapping from names to (smallest, largest) or to a mapping of what the file's columns hold, or None:
    nothing is known. Raises RowsError naming feature and line.
    """
    if given is None:
        return Ranges(), forest, (NOTHING_KNOWN,)
    if isinstance(given, str | Path):
        where, lines = str(given), _read(Path(given))
    elif isinstance(given, Mapping):
        where, lines = (
            PYTHON,
            [_Line(str(name), _mapping(value, str(name), PYTHON), PYTHON) for name, value in given.items()],
        )
    else:
        raise RowsError(f"ranges are a path or a mapping, not {type(given).__name__}", do='give {"age": (0, 120)}')
    if not lines:
        raise RowsError("holds no ranges", where=where, do=FORM)
    names = [line.name for line in lines]
    for place, line in enumerate(lines):
        if line.name in names[:place]:
            raise RowsError(f"the feature {line.name!r} is there twice", where=line.where, do="remove one")
    if len(lines) != forest.columns and not all(feature.named for feature in forest.features):
        raise RowsError(
            f"holds {len(lines)} features, and the model takes {forest.columns}",
            where=where,
            do="it has no column names: give a range for each column, in their order",
        )
    _refuse_unknown(forest, lines)
    places = find_columns(forest, names, where)
    forest = adopt_names(forest, places.names)
    columns = {
        feature.column: _range_of(feature, lines[place])
        for feature, place in zip(forest.features, places.columns, strict=True)
    }
    notes = f"the model has no column names: the ranges are taken in their order, {some_names(places.names)}"
    return Ranges(columns), forest, (notes,) * bool(places.names)


def ranges_told(given: Any, ranges: Ranges, model: Forest) -> dict[str, Any]:
    """What identifies the ranges, as JSON, and lets a check read them again: by feature, and the SHA-256 of the file,
    or of them as JSON."""
    told = {
        feature.name: ranges.columns[feature.column].as_json()
        for feature in model.features
        if feature.column in ranges.columns
    }
    if isinstance(given, str | Path):
        return {
            "file": Path(given).name,
            "sha256": hashlib.sha256(Path(given).read_bytes()).hexdigest(),
            "ranges": told,
        }
    return {"sha256": hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest(), "ranges": told}


def ranges_again(told: Mapping[str, Any], model: Forest) -> Ranges | None:
    """The ranges that `ranges_told` told of; None of rows."""
    if "ranges" not in told:
        return None
    return Ranges(
        {f.column: Range.from_json(told["ranges"][f.name]) for f in model.features if f.name in told["ranges"]}
    )


def _refuse_unknown(forest: Forest, lines: Sequence[_Line]) -> None:
    """Refuses a name that is not the model's, where the model has names. It keeps none of columns that no condition
    reads: so many others may be there."""
    known = {feature.name for feature in forest.features}
    given = {line.name for line in lines}
    if not all(feature.named for feature in forest.features) or all(name.isdecimal() for name in given):
        return
    spelt = {name.replace(" ", "_"): name for name in known}
    others = [line for line in lines if line.name not in known and line.name.replace(" ", "_") not in spelt]
    left = sorted(known - {spelt.get(name.replace(" ", "_"), name) for name in given})
    if len(known) + len(others) > forest.columns:

        def likeness(line: _Line) -> float:  # to a name that is not there
            return max((SequenceMatcher(None, line.name, name).ratio() for name in left), default=0.0)

        likely = max(others, key=likeness)
        raise RowsError(
            f"the model reads no feature {likely.name!r}",
            where=likely.where,
            do=f"it has no range for: {some_names(left)}" if left else "remove it",
        )


def _read(path: Path) -> list[_Line]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "no UTF-8"
        raise RowsError(f"can't be read ({why})", where=str(path)) from None
    return _json_lines(text, str(path)) if path.suffix.lower() == ".json" else _csv_lines(text, str(path))


def _json_lines(text: str, where: str) -> list[_Line]:
    def pairs(found: list[tuple[str, Any]]) -> Any:
        names = [name for name, _ in found]
        for place, name in enumerate(names):
            if name in names[:place]:
                raise RowsError(f"{name!r} is there twice", where=where, do="remove one")
        return dict(found)

    try:
        whole = json.loads(text, object_pairs_hook=pairs)
    except (ValueError, RecursionError) as error:
        place = f", line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise RowsError("is no readable JSON", where=where + place, do='write {"age": [0, 120]}') from None
    if not isinstance(whole, dict):
        raise RowsError("is no JSON object", where=where, do='write {"age": [0, 120]}')
    return [_Line(name, _mapping(value, name, where), where) for name, value in whole.items()]


def _mapping(value: Any, name: str, where: str) -> Mapping[str, Any]:
    """A pair of ends, or what the file's columns hold, as the latter."""
    if isinstance(value, Mapping):
        _refuse_keys(map(str, value), f"{where}, feature {name!r}")
        return value
    ends = list(value) if isinstance(value, list | tuple | np.ndarray) else []
    if len(ends) != 2:
        raise RowsError(
            f"{name!r} has no smallest and largest value", where=where, do=f'write {{"{name}": [0, 120]}} and the like'
        )
    return {"smallest": ends[0], "largest": ends[1]}


def _csv_lines(text: str, where: str) -> list[_Line]:
    try:
        reader = csv.reader(text.splitlines(), strict=True)
        rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader if any(map(str.strip, row))]
    except csv.Error as error:
        raise RowsError(f"is no readable CSV file ({error})", where=where, do=FORM) from None
    if not rows:
        return []
    (first, head), body = rows[0], rows[1:]
    if "feature" not in head:
        raise RowsError("has no column 'feature'", where=f"{where}, line {first}", do=FORM)
    _refuse_keys((key for key in head if key != "feature"), f"{where}, line {first}")
    if len(set(head)) < len(head):
        raise RowsError("two columns have one name", where=f"{where}, line {first}", do="remove one")
    lines = []
    for number, row in body:
        at = f"{where}, line {number}"
        if len(row) != len(head):
            raise RowsError(f"has {len(row)} fields, and the head {len(head)}", where=at, do="write as many")
        told = dict(zip(head, row, strict=True))
        lines.append(_Line(told.pop("feature"), told, at))
    return lines


def _refuse_keys(keys: Iterable[str], where: str) -> None:
    for key in keys:
        if key not in KEYS:
            raise RowsError(f"unknown column or key {key!r}", where=where, do=f"known: {', '.join(KEYS)}")


def _range_of(feature: Feature, line: _Line) -> Range:
    """Raises RowsError for what is no range of this feature."""

    def refuse(what: str, do: str) -> RowsError:
        return RowsError(f"{line.name!r}: {what}", where=line.where, do=do)

    def number(key: str, left_out: float) -> float:
        value = line.told.get(key)
        if value is None or value == "":
            return left_out
        try:
            if isinstance(value, bool | np.bool_):
                raise TypeError
            found = float(value)
        except (TypeError, ValueError, OverflowError):
            raise refuse(f"{key} is no number ({str(value)[:40]!r})", "write a number, or leave it out") from None
        if math.isnan(found):
            raise refuse(f"{key} is NaN", "write a number, or leave it out; missing=yes tells of missing values")
        return found

    def yes(key: str) -> bool | None:
        value = line.told.get(key)
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
        raise refuse("missing=yes, and the model takes no missing values of it", "fill them in, and write no")
    if isinstance(feature.number, Category):
        if math.isfinite(smallest) or math.isfinite(largest) or step or whole:
            raise refuse("is a category, and all of its categories are known", "leave smallest, largest and step out")
        return Range(missing=missing)
    if smallest > largest:
        raise refuse(f"smallest {smallest:g} is above largest {largest:g}", "write the smaller one first")
    if smallest == math.inf or largest == -math.inf:
        raise refuse("holds no number", "leave an end out that is open")
    if step < 0 or not math.isfinite(step) or (step == 0.0 and line.told.get("step") not in (None, "")):
        raise refuse(f"step {step:g}", "write a number above 0, or leave it out")
    if whole:
        if step not in (0.0, 1.0):
            raise refuse(f"whole numbers with a step of {step:g}", "give one of them")
        step = 1.0
        if math.isfinite(smallest) and smallest != math.floor(smallest):
            raise refuse(f"whole numbers from {smallest:g} on", "start with a whole number")
    found = Range(smallest, largest, step, missing)
    if step and math.isfinite(smallest) and math.isfinite(largest) and (largest - smallest) / step > 2.0**53:
        raise refuse(f"more than 2^53 steps of {step:g}", "leave step out")
    return found
