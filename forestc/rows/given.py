"""Opens rows from a user for a model, and splits them into rows for passes and held-out rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from forestc.errors import OptionError, RowsError, opt
from forestc.forest.ir import Forest
from forestc.rows.batches import FitAndHeldOut, Rows
from forestc.rows.categories import with_categories
from forestc.rows.columns import adopt_names, some_names
from forestc.rows.csv_table import is_sampled
from forestc.rows.files import rows_from
from forestc.rows.labels import label_columns
from forestc.rows.range_files import ranges_from


def rows_for_model(
    rows: object, forest: Forest, label: object = None, ranges: object = None
) -> tuple[Rows, Forest, tuple[str, ...]]:
    """Opens rows for a model, or `ranges` if `rows` is None. Returns the rows, the forest (with the rows' column names
    if it has none) and notes. Raises ForestcError."""
    if rows is None:
        return ranges_from(ranges, forest)
    forest = with_categories(forest, rows, label)
    opened = rows_from(rows, forest, label)
    names: tuple[str, ...] = getattr(opened, "names", ())
    if not names:
        return opened, forest, ()
    note = f"the model has no column names: the rows' columns are taken in their order, {some_names(names)}"
    return opened, adopt_names(forest, names), (note,)


def refuse_sampled(*given: object, allowed: bool) -> None:
    """Raises RowsError for a file of rows that `sample` invented, unless they are allowed. given: rows, or pairs (rows,
    labels)."""
    for rows in given:
        file = rows[0] if isinstance(rows, tuple) and rows else rows
        if allowed or not isinstance(file, str | Path):
            continue
        path = Path(file)
        if path.name.lower().endswith((".csv", ".csv.gz")) and path.is_file() and is_sampled(path):
            raise RowsError(
                "its rows are invented: forestc sample drew them from an input model, and what is kept on them says "
                "little of real rows",
                where=str(path),
                do=f"give real rows or {opt.ranges:FILE}; add {opt.rows_are_sampled} to take these all the same",
            )


def split_rows(rows: Rows, held_out: object, source: Forest, label: object) -> tuple[Rows, Rows | None]:
    """Returns the rows for passes, and the held-out rows or None. held_out: a share, other rows, a pair (rows, labels),
    or None. Raises OptionError for an impossible share or pair."""
    share = share_of(held_out)
    if held_out is None:
        return rows, None
    if share is not None:
        if not 0 < share <= 0.5:
            raise OptionError(
                f"a share of {share:g}",
                where=opt.held_out,
                do="set a share above 0 and up to 0.5 aside, or give a file",
            )
        return FitAndHeldOut.every(rows, round(1 / share))
    if isinstance(held_out, tuple):
        if len(held_out) != 2:
            raise OptionError(
                f"held_out is a tuple of {len(held_out)}", where=opt.held_out, do="give rows, or a pair (rows, labels)"
            )
        return FitAndHeldOut(rows, rows_from(held_out[0], source, held_out[1]))
    column = label_columns(label, held_out)
    if label is not None and column is None and isinstance(held_out, str | Path):
        raise OptionError(
            "held_out is a file, and label holds labels",
            where=opt.held_out,
            do="name the column, or give (rows, labels)",
        )
    return FitAndHeldOut(rows, rows_from(held_out, source, None if column is None else label))


def share_of(held_out: object) -> float | None:
    """Returns `held_out` as a float if it is a number or the text of a number; otherwise None."""
    try:
        return None if isinstance(held_out, Path) else float(held_out)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def count_shared(X: NDArray[np.float64], others: NDArray[np.float64]) -> int:
    seen = {row.tobytes() for row in np.ascontiguousarray(X)}
    return sum(row.tobytes() in seen for row in np.ascontiguousarray(others))
