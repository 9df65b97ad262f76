"""The rows that a user gives: opened for a model, and split into those to fit on and those to be judged on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from forestc.errors import OptionError
from forestc.forest.ir import Forest
from forestc.rows.batches import FitAndHeldOut, Rows
from forestc.rows.categories import place_categories
from forestc.rows.columns import adopt_names, some_names
from forestc.rows.files import rows_from
from forestc.rows.labels import label_columns
from forestc.rows.range_files import ranges_from


def rows_for_model(
    rows: object, forest: Forest, label: object = None, ranges: object = None
) -> tuple[Rows, Forest, tuple[str, ...]]:
    """The rows, the forest with their columns' names where it has none of its own, and what is to be said of that.

    rows: a path, an array or a frame; None: ranges stand in their place. Raises ForestcError.
    """
    if rows is None:
        return ranges_from(ranges, forest)
    forest = place_categories(forest, rows, label)
    opened = rows_from(rows, forest, label)
    names: tuple[str, ...] = getattr(opened, "names", ())
    if not names:
        return opened, forest, ()
    note = f"the model has no column names: the rows' columns are taken in their order, {some_names(names)}"
    return opened, adopt_names(forest, names), (note,)


def split_rows(rows: Rows, held_out: object, source: Forest, label: object) -> tuple[Rows, Rows | None]:
    """The rows that passes look at, and those held out: a share of the rows set aside, or others; None without.

    Raises OptionError for a share, or a pair, that can't be.
    """
    share = share_of(held_out)
    if held_out is None:
        return rows, None
    if share is not None:
        if not 0 < share <= 0.5:
            raise OptionError(f"held_out={share:g}", do="set a share above 0 and up to 0.5 aside, or give a file")
        return FitAndHeldOut.every(rows, round(1 / share))
    if isinstance(held_out, tuple):
        if len(held_out) != 2:
            raise OptionError(f"held_out is a tuple of {len(held_out)}", do="give rows, or a pair (rows, labels)")
        return FitAndHeldOut(rows, rows_from(held_out[0], source, held_out[1]))
    column = label_columns(label, held_out)
    if label is not None and column is None and isinstance(held_out, str | Path):
        raise OptionError("held_out is a file, and label holds labels", do="name the column, or give (rows, labels)")
    return FitAndHeldOut(rows, rows_from(held_out, source, None if column is None else label))


def share_of(held_out: object) -> float | None:
    """The share of the rows that is held out, given as a number or as text; None where it is something else."""
    try:
        return None if isinstance(held_out, Path) else float(held_out)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def count_shared(X: NDArray[np.float64], others: NDArray[np.float64]) -> int:
    """The number of the other rows that are also rows of X."""
    seen = {row.tobytes() for row in np.ascontiguousarray(X)}
    return sum(row.tobytes() in seen for row in np.ascontiguousarray(others))
