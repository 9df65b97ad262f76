"""Prints and parses the text form of an input model; the parsed model equals the printed one, bit for bit.

The lines are the version, a note, the model, each column, and the network.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from forestc.errors import ModelError
from forestc.forest.numbers import FLOAT32, FLOAT64, Category, parse_number_type
from forestc.inputs.columns import InputColumn
from forestc.inputs.model import InputModel
from forestc.papers.networks import text as bayesian_network_text
from forestc.system.reading import file_text
from forestc.system.records import DamagedError, Schema, hold, parse_json, shown

VERSION = 1  # rises with each change of the text form
# Limits the size of a text of unknown origin.
MOST_BYTES = 2**27
MOST_COLUMNS = 2**20
MOST_COUNT = 2**53  # bounds the integers that float64 holds exactly
HEADER = f"forestc-inputs {VERSION}"
NOTE = "# Counts and ranges of the rows that it was learnt from; not the rows."
REMEDY = "give a file that forestc model-inputs wrote, of this version"


def _count(most: int) -> Schema:
    return {"type": "integer", "minimum": 0, "maximum": most}


def _line(**fields: Schema) -> Schema:
    return {
        "type": "object",
        "properties": fields,
        "required": [name for name in fields if name not in ("missing", "labels")],
    }


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


ROWS: Schema = _count(MOST_COUNT)
NAME: Schema = {"type": "string", "pattern": r"^[\s\S]{0,65536}$", "means": "a name"}
NUMBER, FLAG = {"type": "number"}, {"type": "boolean"}
HEAD_LINE = _line(
    model=NAME, rows=ROWS, width=_count(MOST_COLUMNS), comparators=ROWS, kept=ROWS, columns=_count(MOST_COLUMNS)
)
EVERY: dict[str, Schema] = {
    "name": NAME,
    "column": _count(MOST_COLUMNS),
    "named": FLAG,
    "raw": NAME,
    "missing": {"anyOf": [ROWS, {"type": "null"}]},
}
CATEGORY_LINE = _line(
    **EVERY, category=NAME, codes=_list(ROWS), groups=_list({"minItems": 1, **_list(ROWS)}), labels=_list(NAME)
)
NUMBER_LINE = _line(**EVERY, cuts=_list(NUMBER), anchors=_list(ROWS), least=NUMBER, largest=NUMBER, whole=FLAG)


def printed(model: InputModel) -> str:
    """Returns the text form, which ends in a newline."""
    head = {
        "model": model.model_hash,
        "rows": model.rows_seen,
        "width": model.width,
        "comparators": model.comparators,
        "kept": model.kept,
        "columns": len(model.inputs),
    }
    lines = [HEADER, NOTE, json.dumps(head), *(json.dumps(_field_values(column)) for column in model.inputs)]
    return "".join(f"{line}\n" for line in lines) + bayesian_network_text.printed(model.network)


def _field_values(column: InputColumn) -> dict[str, Any]:
    fields = {"name": column.name, "column": column.column, "named": column.named, "raw": str(column.raw)}
    if column.category:
        labels = {"labels": list(column.labels)} if column.labels else {}
        return (
            fields
            | labels
            | {
                "category": str(column.category),
                "missing": column.missing,
                "codes": list(column.codes),
                "groups": [list(codes) for codes in column.groups],
            }
        )
    return fields | {
        "cuts": list(column.cuts),
        "anchors": list(column.anchors),
        "least": column.least,
        "largest": column.largest,
        "whole": column.whole,
        "missing": column.missing,
    }


def parsed(text: str) -> InputModel:
    """Parses the text form of an input model. Raises ModelError for any other text. Sizes are checked before memory is
    taken."""
    lines = text.split("\n", 3)
    if len(text) > MOST_BYTES or len(lines) < 4 or lines[:2] != [HEADER, NOTE]:
        raise ModelError("is not the text of an input model", where="line 1", do=REMEDY)
    head = _fields(lines[2], 3, ("", HEAD_LINE))
    columns, width = head["columns"], head["width"]
    rest = lines[3].split("\n", columns)
    if len(rest) <= columns or columns > width:
        raise ModelError(f"has no lines for {columns} columns", where="line 3", do=REMEDY)
    inputs = tuple(_column(line, number, width) for number, line in enumerate(rest[:columns], start=4))
    if len({column.column for column in inputs}) < columns:
        raise ModelError("two lines are of one column", where="line 4", do=REMEDY)
    try:
        network = bayesian_network_text.parsed(rest[columns])
    except ModelError as error:
        where = f"the network from line {len(inputs) + 4}" + (f", its {error.where}" if error.where else "")
        raise ModelError(error.what, where=where, do=REMEDY) from None
    return InputModel(width, inputs, network, head["rows"], head["comparators"], head["kept"], head["model"])


def read_inputs(path: str | Path) -> InputModel:
    """Reads an input model that `model_inputs` wrote.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    InputModel
        The same model, bit for bit.

    Raises
    ------
    ModelError
        If the file can't be read, or is no input model.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> import forestc
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    >>> learnt, _ = forestc.model_inputs(model, X, "iris.inputs", samples=1)
    >>> forestc.read_inputs("iris.inputs")
    <InputModel: 4 comparators of 2 columns, 150 rows>
    """
    path = Path(path)
    text = file_text(path, ModelError, MOST_BYTES)
    try:
        return parsed(text)
    except ModelError as error:
        raise ModelError(error.what, where=f"{path}{', ' * bool(error.where)}{error.where}", do=error.do) from None


def text_hash(model: InputModel) -> str:
    return hashlib.sha256(printed(model).encode()).hexdigest()


def _fields(line: str, number: int, *kinds: tuple[str, Schema]) -> dict[str, Any]:
    """Parses a line of JSON and checks it against the schema for its fields."""
    try:
        fields = parse_json(line)
        hold(fields, {"type": "object"})
        hold(fields, next(schema for field, schema in kinds if not field or field in fields))
    except DamagedError as fault:
        raise ModelError(f"is damaged: {fault}", where=f"line {number}", do=REMEDY) from None
    return dict(fields)


def _column(line: str, number: int, width: int) -> InputColumn:
    fields = _fields(line, number, ("category", CATEGORY_LINE), ("", NUMBER_LINE))
    raw = parse_number_type(fields["raw"])
    column = InputColumn(fields["name"], fields["column"], fields["named"], raw, missing=fields.get("missing"))
    wrong = {"column": column.column >= width}
    if "category" in fields:
        category, codes = parse_number_type(fields["category"]), tuple(fields["codes"])
        groups = tuple(map(tuple, fields["groups"]))
        checked = category if isinstance(category, Category) else None
        wrong["category"] = checked is None or len(codes) != checked.count + 1
        wrong["groups"] = sorted(code for group in groups for code in group) != list(range(len(codes)))
        labels = tuple(fields.get("labels", ()))
        wrong["labels"] = len(labels) >= len(codes) > 0 or len(set(labels)) < len(labels)
        column = replace(column, category=checked, codes=codes, groups=groups, labels=labels)
    else:
        cuts, anchors = tuple(map(float, fields["cuts"])), tuple(fields["anchors"])
        least, largest, whole = float(fields["least"]), float(fields["largest"]), fields["whole"]
        wrong["cuts"] = any(b <= a for a, b in pairwise(cuts))
        wrong["anchors"] = any(b <= a for a, b in pairwise((*anchors, len(cuts))))
        wrong["least"], wrong["raw"] = least > largest, raw not in (FLOAT32, FLOAT64)
        column = replace(column, cuts=cuts, anchors=anchors, least=least, largest=largest, whole=whole)
    for key, is_wrong in wrong.items():
        if is_wrong:
            raise ModelError(f"{key} is {shown(fields.get(key))}", where=f"line {number}", do=REMEDY)
    return column
