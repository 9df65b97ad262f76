"""Fits rows to the C types of a header's inputs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from forestc.backends.c.inputs import Inputs, fits
from forestc.backends.c.raw import RawType
from forestc.backends.vectors import COSTLY, Vectors, disturbed
from forestc.forest.evaluate import encode_numbers
from forestc.forest.ir import Forest


def taken(forest: Forest, vectors: Vectors, inputs: Inputs, start: int = 0) -> tuple[Vectors, str, int]:
    """Makes generated vectors fit the C types, and leaves out given rows that do not fit. Returns the vectors, the
    first value left out as text, and the number of rows left out."""
    if vectors.origin != "rows":
        raw = inputs.fitted(vectors.raw if vectors.origin == COSTLY else disturbed(forest, vectors.raw))
        return Vectors(encode_numbers(forest, raw), raw, vectors.origin), "", 0
    fitting = fits(forest, inputs.types, vectors.raw).all(axis=1)
    raw = inputs.fitted(vectors.raw[fitting])
    first = unfit(forest, vectors.raw, inputs.types, start)
    return Vectors(encode_numbers(forest, raw), raw, vectors.origin), first, int((~fitting).sum())


def unfit(forest: Forest, rows: NDArray[np.float64], types: Sequence[RawType], start: int | None = 0) -> str:
    """Returns the first value that its column's C type does not hold, as text; "" if there is none.
    start: number of rows before these; None hides row numbers."""
    wrong = np.argwhere(~fits(forest, types, rows))
    if not len(wrong):
        return ""
    row, column = wrong[0].tolist()
    name = forest.features[forest.row_columns.index(column)].name
    where = "" if start is None else f"row {start + row + 1}, "
    return f"{where}{name!r} = {rows[row, column]:.17g} is no {types[column].c}"
