"""Defines options that several commands have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from forestc.fields.options import argument, keyword, option

MODEL = argument(
    "MODEL",
    "a model file, of XGBoost, LightGBM, CatBoost, ONNX, skops, treelite or forestc, under any name",
    takes="str, path or fitted model",
)
ROWS = "CSV (gzip too), Parquet, Arrow or NumPy"
FOLDER = argument("DIR", "a folder that forestc compile wrote", takes="str, path or Design")
SOURCE = argument(
    "MODEL|DIR", "a model file, or a folder that forestc compile wrote", takes="str, path, fitted model or Design"
)
# What Python takes for rows, labels, held-out rows and ranges
TABLE = "str, path, array or data frame"
COLUMN = "str or list of str"
GROUPS = "str, or array of shape (rows,)"
LABELS = "str, list of str or array of shape (rows,) or (rows, targets)"
HELD_OUT = "str, path, array, pair (rows, labels) or float"
RANGES = "str, path or dict of (smallest, largest)"
BAUD = 115_200  # bits a second of a board's serial line by default
Progress = Callable[[str], None]


def quiet(_: str) -> None:
    """Shows no progress."""


def progress_keyword() -> Any:
    return keyword(quiet, "Called with the name of each stage")


def record_keyword() -> Any:
    return keyword(True, "Add the figures to measured.json in the folder, for `Design.results`")


def rows_option(help: str = ROWS, *, repeated: bool = False) -> Any:
    return option(None, "--rows", help, "FILE", recorded=False, repeated=repeated, takes=TABLE)


def sampled_option() -> Any:
    return option(False, "--rows-are-sampled", "take rows that forestc sample invented, which are refused otherwise")


def label_option(help: str = "column of the true labels; for several targets: y1,y2", takes: str = COLUMN) -> Any:
    schema = {"type": ["string", "array", "null"], "items": {"type": "string"}}
    return option(None, "--label", help, "COL", kind=str, schema=schema, takes=takes)


def unseen_option() -> Any:
    return option(
        "count",
        "--unseen",
        "categories in the rows that training never saw; count: they go where the model sends them, and a note counts "
        "them; error: they are refused",
        recorded=False,
    )


def trust_option() -> Any:
    return option(False, "--trust-pickle", "allow opening pickles; opening a pickle runs the code in it")


def iterations_option() -> Any:
    return option(
        None,
        "--iterations",
        "boosting iterations to read from XGBoost, LightGBM and CatBoost: the first N, or best for all up "
        "to the best one; default: the iterations with which the library predicts",
        "N",
        kind=str,
    )


def types_option() -> Any:
    return option(
        None,
        "--ap-types",
        "number types of conifer's emulator instead of those in the file: input=ap_fixed<10,5>,threshold=TYPE,"
        "score=TYPE",
        "TYPES",
        kind=str,
        schema={"type": ["string", "null"]},
        takes="str or dict",
    )


def sum_option() -> Any:
    return option("sequential", "--sum", "order in which conifer's emulator adds trees: sequential or tree")


def native_option(help: str = "prefer tools on the PATH to those from pip") -> Any:
    return option(False, "--native", help)
