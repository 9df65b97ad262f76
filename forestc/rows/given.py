"""Opens rows from a user, in a file of any format or in memory, for a model; identifies them by a hash."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from forestc.errors import ModelError, OptionError, RowsError, opt
from forestc.forest.ir import Forest
from forestc.rows.arrow_files import ArrowFiles, readable
from forestc.rows.batches import ArrayRows, Rows
from forestc.rows.columns import TableRows, adopt_names, matched, with_categories
from forestc.rows.csv_table import CsvTable, is_sampled
from forestc.rows.range_files import ranges_from
from forestc.rows.ranges import OF_ROWS, ranges_of
from forestc.rows.table import ArrayTable, Table, find_labels, in_memory, label_columns, label_position, some_names
from forestc.system.reading import check_file

# Maps suffixes of files that a folder of rows may hold to formats.
_FOLDERS = {".parquet": "parquet", ".arrow": "ipc", ".feather": "ipc"}
_FORMATS = {".csv": "csv", ".csv.gz": "csv", **_FOLDERS, ".npy": "numpy", ".npz": "numpy"}


def rows_for_model(
    rows: object, forest: Forest, label: object = None, ranges: object = None, others: Sequence[object] = ()
) -> tuple[Rows, Forest, tuple[str, ...]]:
    """Opens rows for a model, or `ranges` if `rows` is None; takes the rows' own ranges if these are OF_ROWS. Returns
    the rows, the forest (with the rows' column names if it has none) and notes. others: names of columns that the model
    does not read, where they are texts. Raises ForestcError."""
    if forest.on_words:
        raise ModelError(
            "holds words, which passes have made of the model's own thresholds",
            where=f"forest {forest.name!r}",
            do="give the model that it was made of, such as model.forest in a compiled folder",
        )
    if rows is None:
        return ranges_from(ranges, forest)
    opened, forest = _opened(rows, forest, label, others, assign_categories=True)
    names: tuple[str, ...] = getattr(opened, "names", ())
    if isinstance(ranges, str) and ranges == OF_ROWS:
        opened = ranges_of(opened, forest)
    if not names:
        return opened, forest, ()
    note = f"the model has no column names: the rows' columns are taken in their order, {some_names(names)}"
    return opened, adopt_names(forest, names), (note,)


def unseen_notes(rows: Rows, forest: Forest, unseen: Literal["count", "error"]) -> tuple[str, ...]:
    """Returns a note for each column of categories that holds unknown texts. Raises RowsError for the first such column
    if `unseen` is "error"."""
    columns = zip(forest.features, forest.row_columns, strict=True)
    named = [(feature, column) for feature, column in columns if feature.other_text is not None]
    counts = Counter[str]()
    for batch in rows.batches() if named else ():
        for feature, column in named:
            codes = batch.X[:, column]
            unknown = (codes < 0) | (codes >= len(feature.labels)) if feature.labels else codes == feature.unknown
            counts[feature.name] += int(unknown.sum())
    whats = [f"{counts[f.name]:,} values of column {f.name!r} are no category of the model" for f, _ in named
             if counts[f.name]]  # fmt: skip
    if whats and unseen == "error":
        raise RowsError(whats[0], where=opt.rows, do=f"change these values, or count them: {opt.unseen:count}")
    own = "; XGBoost itself refuses them" * (forest.provenance.source == "xgboost")
    return tuple(f"{what}: they go where the model sends unseen ones{own}" for what in whats)


def rows_from(rows: object, forest: Forest, label: object = None, others: Sequence[object] = ()) -> Rows:
    """Returns rows for a model from a path, an array, or a data frame.
    label: labels, or names of label columns.
    others: as in `rows_for_model`.

    Raises RowsError or OptionError for unsuitable rows.
    """
    return _opened(rows, forest, label, others, assign_categories=False)[0]


def _opened(
    rows: object, forest: Forest, label: object, others: Sequence[object], *, assign_categories: bool
) -> tuple[Rows, Forest]:
    if isinstance(rows, ArrayRows | TableRows):
        return rows, forest
    columns = label_columns(label, rows)
    if isinstance(rows, str | Path):
        if label is not None and columns is None:
            raise RowsError("rows in a file take their labels from the file", where=str(rows), do="name their column")
        lists = [*(feature.labels for feature in forest.features), *forest.categories]
        named = {feature.name for feature in forest.features if feature.named}
        table = open_file(rows, columns, named, [text for texts in lists for text in texts])
        label = table.truth if isinstance(table, ArrayTable) else None
    else:
        table = in_memory(rows)
    if isinstance(table, ArrayTable):
        return matched(table, forest, (), label), forest
    names = find_labels(columns, table)
    aside = find_labels(tuple(name for name in others if isinstance(name, str)), table)
    if assign_categories and forest.categories:
        read = [str(name) for name in table.names if name not in (*names, *aside)]
        forest = with_categories(forest, read, table.texts())
    return matched(table, forest, names, None if names else label, aside), forest


def open_file(
    rows: str | Path, label: str | Sequence[Any] | None, names: Collection[str] = (), categories: Collection[str] = ()
) -> Table | ArrayTable:
    """Opens a file or folder as a table. Raises RowsError or OptionError if it can't be read.
    label: names or positions of label columns.
    names, categories: names of columns and texts in them, which tell a header from a row."""
    path = Path(rows)
    match _format_of(path):
        case "csv":
            return CsvTable.open(path, label, names, categories)
        case "numpy":
            return _open_numpy(path, label.split(",") if isinstance(label, str) else label or ())
        case form:
            return ArrowFiles.open(path, form)


def _open_numpy(path: Path, labels: Sequence[str]) -> ArrayTable:
    """Opens a NumPy file. Raises RowsError if it lacks rows or labels, or can't be read."""
    truth, positions = None, []
    with readable(path, "not a readable NumPy file"), path.open("rb") as file:
        # A memory map allocates nothing, even if the header claims more than the file holds.
        mapped = path.suffix.lower() == ".npy"
        loaded = np.load(path if mapped else file, mmap_mode="r" if mapped else None, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            data, width = loaded, loaded.shape[1] if loaded.ndim == 2 else 0
            positions = [label_position(text, width, str(path)) for text in labels]
            truth = data[:, positions] if labels else None
        else:
            key = "X" + labels[0][1:] if labels and f"X{labels[0][1:]}" in loaded else "X"
            lacking = [name for name in (key, *labels) if name not in loaded]
            if lacking:
                raise RowsError(
                    f"has no array {lacking[0]!r}", where=str(path), do=f"it has: {', '.join(loaded.files)}"
                )
            data = loaded[key]
            truth = np.column_stack([loaded[name] for name in labels]) if labels else None
        if data.dtype.kind not in "biuf":
            raise RowsError(
                f"the array holds {data.dtype}, not numbers", where=str(path), do="give an array of numbers"
            )
    return ArrayTable(data, truth, str(path), tuple(positions))


def _format_of(path: Path) -> str:
    """Returns the format of a file or folder: csv, parquet, ipc (Arrow) or numpy. Raises RowsError or OptionError for
    other paths."""
    check_file(path, RowsError)
    for suffix, form in _FORMATS.items():
        if path.name.lower().endswith(suffix):
            return form
    for suffix, form in _FOLDERS.items():
        if path.is_dir() and any(path.glob(f"*{suffix}")):
            return form
    if path.is_dir():
        raise RowsError(
            "the folder holds no .parquet, .arrow or .feather file", where=str(path), do="give a folder of such files"
        )
    raise OptionError(f"unknown kind of rows file {path.suffix!r}", where=str(path), do=f"known: {', '.join(_FORMATS)}")


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


def share_of(held_out: object) -> float | None:
    """Returns `held_out` as a float if it is a number or the text of a number; otherwise None."""
    try:
        return None if isinstance(held_out, Path) else float(held_out)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def fingerprint(given: object, opened: Rows) -> dict[str, Any]:
    """Returns a dictionary that identifies rows, with the SHA-256 of the file or of the arrays. given: the rows as the
    user gave them. Raises RowsError for an unreadable file."""
    path = opened.table.where if isinstance(opened, TableRows) and not isinstance(given, str | Path) else given
    if isinstance(path, str | Path):
        return {"file": Path(path).name, "sha256": _hash_of(Path(path))}
    assert isinstance(opened, ArrayRows)
    figures = {"shape": list(opened.X.shape), "sha256": _hash_of_array(opened.X)}
    return figures if opened.truth is None else figures | {"labels_sha256": _hash_of_array(opened.truth)}


def _hash_of_array(array: NDArray[np.generic]) -> str:
    kind = "<f8" if array.dtype.kind == "f" else "<i8"
    return hashlib.sha256(np.ascontiguousarray(array, dtype=kind).tobytes()).hexdigest()


def _hash_of(path: Path) -> str:
    try:
        if not path.is_dir():
            with path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        files = sorted((file.relative_to(path).as_posix(), file) for file in path.rglob("*") if file.is_file())
    except OSError as error:
        raise RowsError(
            f"can't be read ({error.strerror})", where=str(path), do="check the path and its permissions"
        ) from None
    return hashlib.sha256("".join(f"{_hash_of(file)} {name}\n" for name, file in files).encode()).hexdigest()
