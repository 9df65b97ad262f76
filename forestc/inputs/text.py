"""The text form of an input model: printed and parsed back to the same model, bit for bit.

    forestc-inputs 1
    # Counts and ranges of the rows that it was learnt from; not the rows.
    {"model": "5c1f...", "rows": 400, "width": 30, "comparators": 812, "kept": 812, "columns": 30}
    {"name": "mean radius", "column": 0, "named": true, "raw": "float32", "cuts": [11.2, 13.7], ...}
    bayesian-network 1
    ...

The first line ends in the version of the form. A line of JSON follows for the whole and for each column, then the text
form of the network (`networks.text`).
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from forestc.algorithms.networks import text as bayesian_network_text
from forestc.errors import ModelError
from forestc.forest.numbers import FLOAT64, Category, parse_number_type
from forestc.inputs.columns import InputColumn
from forestc.inputs.model import InputModel
from forestc.options.records import DamagedError, parse_json

VERSION = 1  # of the text form
# Limits for text of unknown origin.
MOST_BYTES = 2**27
MOST_COLUMNS = 2**20
MOST_NAME = 2**16  # characters
MOST_COUNT = 2**53  # integers that float64 holds
HEADER = f"forestc-inputs {VERSION}"
NOTE = "# Counts and ranges of the rows that it was learnt from; not the rows."
REMEDY = "give a file that forestc model-inputs wrote, of this version"


def printed(model: InputModel) -> str:
    """The text form, ending in a newline."""
    whole = {
        "model": model.model_hash,
        "rows": model.rows_seen,
        "width": model.width,
        "comparators": model.comparators,
        "kept": model.kept,
        "columns": len(model.inputs),
    }
    lines = [HEADER, NOTE, json.dumps(whole), *(json.dumps(_field_values(column)) for column in model.inputs)]
    return "".join(f"{line}\n" for line in lines) + bayesian_network_text.printed(model.network)


def _field_values(column: InputColumn) -> dict[str, Any]:
    fields = {"name": column.name, "column": column.column, "named": column.named, "raw": str(column.raw)}
    if column.category:
        return fields | {
            "category": str(column.category),
            "missing": column.missing,
            "codes": list(column.codes),
            "groups": [list(codes) for codes in column.groups],
        }
    return fields | {
        "cuts": list(column.cuts),
        "anchors": list(column.anchors),
        "least": column.least,
        "largest": column.largest,
        "whole": column.whole,
        "missing": column.missing,
    }


def parsed(text: str) -> InputModel:
    """The input model of a text form. Raises ModelError, naming the line, for any other text.

    Safe to use on text of unknown origin: sizes are checked before memory is taken for them.
    """
    lines = text.split("\n", 3)
    if len(text) > MOST_BYTES or len(lines) < 4 or lines[:2] != [HEADER, NOTE]:
        raise ModelError("is not the text of an input model", where="line 1", do=REMEDY)
    whole = _Fields(lines[2], 3)
    columns = whole.count("columns", MOST_COLUMNS)
    width = whole.count("width", MOST_COLUMNS)
    rest = lines[3].split("\n", columns)
    if len(rest) <= columns or columns > width:
        raise ModelError(f"has no lines for {columns} columns", where="line 3", do=REMEDY)
    inputs = tuple(_column(_Fields(line, number), width) for number, line in enumerate(rest[:columns], start=4))
    if len({column.column for column in inputs}) < columns:
        raise ModelError("two lines are of one column", where="line 4", do=REMEDY)
    try:
        network = bayesian_network_text.parsed(rest[columns])
    except ModelError as error:
        where = f"the network from line {len(inputs) + 4}" + (f", its {error.where}" if error.where else "")
        raise ModelError(error.what, where=where, do=error.do or REMEDY) from None
    return InputModel(
        width,
        inputs,
        network,
        whole.count("rows", MOST_COUNT),
        whole.count("comparators", MOST_COUNT),
        whole.count("kept", MOST_COUNT),
        whole.text("model"),
    )


def read_inputs(path: str | Path) -> InputModel:
    """Reads an input model that `forestc model-inputs` wrote. Raises ModelError for a file that is none."""
    path = Path(path)
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ModelError("is too large for an input model", where=str(path), do=REMEDY)
        return parsed(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise ModelError(f"can't be read ({why})", where=str(path), do="check the path") from None
    except ModelError as error:
        raise ModelError(error.what, where=f"{path}{', ' * bool(error.where)}{error.where}", do=error.do) from None


def text_hash(model: InputModel) -> str:
    """The SHA-256 of the text form: that of its file."""
    return hashlib.sha256(printed(model).encode()).hexdigest()


class _Fields:
    """A line of JSON, each field of the kind that is asked for. Raises ModelError, naming the line."""

    def __init__(self, line: str, number: int) -> None:
        self.where = f"line {number}"
        try:
            fields = parse_json(line)
        except DamagedError as fault:
            raise ModelError(f"can't be read: {fault}", where=self.where, do=REMEDY) from None
        if not isinstance(fields, dict):
            raise ModelError(f"expected a JSON object, found {line[:60]!r}", where=self.where, do=REMEDY)
        self.fields: Mapping[str, Any] = fields

    def wrong(self, key: str) -> ModelError:
        return ModelError(f"{key} is {str(self.fields.get(key))[:60]!r}", where=self.where, do=REMEDY)

    def value(self, key: str, fits: Callable[[Any], bool]) -> Any:
        if not fits(value := self.fields.get(key)):
            raise self.wrong(key)
        return value

    def count(self, key: str, most: int) -> int:
        return int(self.value(key, lambda value: _whole(value, most)))

    def text(self, key: str) -> str:
        return str(self.value(key, lambda value: isinstance(value, str) and len(value) <= MOST_NAME))

    def flag(self, key: str) -> bool:
        return bool(self.value(key, lambda value: isinstance(value, bool)))

    def number(self, key: str) -> float:
        return float(self.value(key, _finite))

    def several(self, key: str, fits: Callable[[Any], bool]) -> list[Any]:
        return list(self.value(key, lambda value: isinstance(value, list) and all(map(fits, value))))


def _whole(value: object, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


def _finite(value: object) -> bool:
    return isinstance(value, float) and math.isfinite(value)


def _column(fields: _Fields, width: int) -> InputColumn:
    missing = None if fields.fields.get("missing") is None else fields.count("missing", MOST_COUNT)
    raw = parse_number_type(fields.text("raw"))
    name, column = fields.text("name"), fields.count("column", width - 1)
    named = fields.flag("named")
    if "category" in fields.fields:
        category = parse_number_type(fields.text("category"))
        codes = fields.several("codes", lambda value: _whole(value, MOST_COUNT))
        groups = fields.several("groups", lambda group: isinstance(group, list) and bool(group))
        if not isinstance(category, Category) or len(codes) != category.count + 1:
            raise fields.wrong("category")
        all_codes = [code for group in groups for code in group]
        if not all(_whole(code, category.count) for code in all_codes) or sorted(all_codes) != list(range(len(codes))):
            raise fields.wrong("groups")
        return InputColumn(
            name, column, named, raw, category, missing=missing, codes=tuple(codes), groups=tuple(map(tuple, groups))
        )
    cuts = fields.several("cuts", _finite)
    anchors = fields.several("anchors", lambda value: _whole(value, len(cuts) - 1))
    if any(b <= a for a, b in itertools.pairwise(cuts)):
        raise fields.wrong("cuts")
    if any(b <= a for a, b in itertools.pairwise(anchors)):
        raise fields.wrong("anchors")
    least, largest = fields.number("least"), fields.number("largest")
    if least > largest or raw not in (FLOAT64, parse_number_type("float32")):
        raise fields.wrong("least" if least > largest else "raw")
    return InputColumn(
        name, column, named, raw, None, tuple(cuts), tuple(anchors), least, largest, fields.flag("whole"), missing
    )
