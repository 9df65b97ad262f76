"""Implements `sample`: draws rows from an input model into a file that is marked as invented."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from forestc.errors import ModelError, OptionError, opt
from forestc.fields.options import takes
from forestc.forest.numbers import FloatArray
from forestc.inputs.columns import InputColumn
from forestc.inputs.model import InputModel
from forestc.inputs.reaching import reaching_rows
from forestc.inputs.text import read_inputs
from forestc.manifest.design import design_of
from forestc.options.commands import SampleOptions
from forestc.rows.csv_table import NULLS, SAMPLED
from forestc.system.writing import replacing, writing


@takes(SampleOptions)
def sample_rows(options: SampleOptions) -> tuple[NDArray[np.float64], dict[str, Any]]:
    """Draws rows from an input model.

    The rows are invented, and the first line of the file says so. `check`, `measure`, `simulate` and `activity` take
    it; `compile`, `explore` and `make_image` refuse it, because what is kept on invented rows says little of real ones.
    A file has the columns that the input model knows by name; without names it has every column, and no header.

    Returns
    -------
    rows : float64 array of shape (rows, columns)
        Raw rows: NaN for a missing value, the code for a category.
    figures : dict
        The figures of `forestc sample --json`: `rows` and, with `reach`, counts of leaves.

    Raises
    ------
    ModelError
        If the input model can't be read, or a category has an empty name.
    OptionError
        If `out` is no CSV file.
    RowsError
        If the design has other columns than the input model.
    ForestcError
        If the folder can't be read, or the file can't be written.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> import forestc
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    >>> inputs, _ = forestc.model_inputs(model, X, samples=1)
    >>> compiled = forestc.compile(model, X, "iris", label=y)
    >>> rows, figures = forestc.sample_rows(inputs, 100, "sampled.csv", reach="iris")
    >>> figures["leaves"], figures["leaves_unreachable"], forestc.check("iris", "sampled.csv").ok
    (4, 0, True)
    """
    out = None if options.out is None else Path(options.out)
    if out is not None and out.suffix.lower() != ".csv":
        raise OptionError(
            f"{out.name} is no CSV file, and only these carry the mark of invented rows", where=opt.out,
            do="name the file .csv",
        )  # fmt: skip
    inputs = options.inputs if isinstance(options.inputs, InputModel) else read_inputs(options.inputs)
    options.progress("drawing rows")
    figures: dict[str, Any] = {} if out is None else {"out": str(out)}
    if options.reach is None:
        values = inputs.draw(options.rows, options.seed)
        figures |= {"rows": len(values)}
    else:
        design = design_of(options.reach)
        found = reaching_rows(inputs, design.model, design.forest, options.rows, options.seed)
        values = found.values
        figures |= {
            "rows": len(values),
            "drawn": options.rows,
            "leaves": found.leaves,
            "leaves_reached_by_drawn": found.reached_by_drawn,
            "leaves_unreachable": found.unreachable,
        }
    if out is not None:
        _write(inputs, values, out)
    return inputs.raw_rows(values), figures


def _write(inputs: InputModel, values: FloatArray, out: Path) -> None:
    """Writes a CSV file. Without names its columns are found by position, so that it has every column and no header."""
    cells = {column.column: _cells(column, values[:, index]) for index, column in enumerate(inputs.inputs)}
    named = all(column.named for column in inputs.inputs)
    if named:
        table = pa.table(list(cells.values()), names=[column.name for column in inputs.inputs])
    else:
        unread = pa.array(np.zeros(len(values)))
        table = pa.table([cells.get(index, unread) for index in range(inputs.width)], names=[""] * inputs.width)
    with writing(out), replacing(out) as (new,), new.open("wb") as file:
        file.write(f"{SAMPLED}\n".encode())
        pyarrow.csv.write_csv(table, file, pyarrow.csv.WriteOptions(include_header=named))


def _cells(column: InputColumn, values: FloatArray) -> pa.Array:
    """Returns a column of numbers, or of the names of categories if the model has names."""
    labels = column.labels
    if not labels:
        return pa.array(values)
    if "" in labels:
        raise ModelError(
            f"a category of column {column.name!r} has an empty name, which CSV can't tell from a missing value",
            where="the input model", do="rename the category in the rows and in the model, and learn both again",
        )  # fmt: skip
    absent, other = next(text for text in NULLS if text and text not in labels), "other"
    while other in labels:
        other += "_"
    return pa.array([absent if np.isnan(x) else labels[int(x)] if x < len(labels) else other for x in values.tolist()])
