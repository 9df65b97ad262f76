"""The parameter x of a C header's functions: words or raw values, in an array or in a struct."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forestc.backends.c.raw import TYPES, RawType, column_types, retyped
from forestc.backends.c.types import FLOATS, FloatType, float_inputs, members, size_of, word_type
from forestc.backends.names import feature_name, identifier
from forestc.backends.vectors import COSTLY, Vectors, disturbed
from forestc.forest.evaluate import encode_numbers
from forestc.forest.ir import Forest
from forestc.forest.numbers import Float, Ordered, round_to

FLOAT_TYPES = {"float": "<f4", "double": "<f8"}


def numpy_type(c_type: str) -> np.dtype[np.generic]:
    """Returns the little-endian NumPy type of a C type."""
    if c_type in FLOAT_TYPES:
        return np.dtype(FLOAT_TYPES[c_type])
    return np.dtype(f"<{c_type[0]}{size_of(c_type)}")


@dataclass(frozen=True)
class Inputs:
    """The parameter x of a C header's functions: words or raw columns."""

    forest: Forest  # thresholds are in the units of x
    raw: bool  # True if x holds raw columns, False for words
    type: str  # the name of the C type of x if a struct, otherwise of its elements
    kinds: tuple[str, ...]  # C types of members or elements; never empty
    names: tuple[str, ...]  # of a struct's members; empty for an array
    columns: tuple[int, ...]  # the row's column for each member or element
    types: tuple[RawType, ...] = ()  # of the columns of raw rows
    elements: tuple[int, ...] = ()  # index in x of each row's column; empty if equal

    @property
    def struct(self) -> bool:
        return bool(self.names)

    @property
    def floats(self) -> list[FloatType]:
        """The float types of values in x."""
        return [kind for name, kind in FLOATS.items() if name in self.kinds]

    @property
    def float_bytes(self) -> int:
        """The number of bytes of the widest raw float; 0 without any."""
        return max((kind.bits // 8 for kind in self.floats), default=0) if self.raw else 0

    @property
    def in_order(self) -> bool:
        """True if x is an array that begins with the forest's features, in order."""
        columns = [feature.column for feature in self.forest.features]
        return not self.struct and (not self.raw or columns == list(range(len(columns))))

    def place(self, index: int) -> str:
        """Returns a C expression for a feature's element or member in x."""
        if self.struct:
            return f"x->{self.names[index]}"
        return f"x[{self.at(index)}]"

    def at(self, index: int) -> int:
        """Returns a feature's index in the array x."""
        return self.forest.features[index].column if self.raw else index

    def kind(self, index: int) -> str:
        """Returns the C type of a feature's value."""
        return self.kinds[index if self.struct else 0]

    def fitted(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Returns the raw rows changed so that the C types hold them. In integer columns, even rows are rounded down
        and odd rows up, then clipped; NaN becomes 0."""
        result = rows.copy()
        up = np.arange(len(rows)) % 2 == 1
        for column, kind in enumerate(self.types):
            values = result[:, column]
            if kind.whole:
                numbers = np.where(np.isnan(values), 0.0, values)
                result[:, column] = np.clip(np.where(up, np.ceil(numbers), np.floor(numbers)), *kind.ends) + 0.0
            elif isinstance(kind.number, Ordered):
                result[:, column] = round_to(values, Float(kind.number.bits))
        return result

    def table(self, rows: NDArray[np.generic], aligned: bool = True) -> NDArray[np.uint8]:
        """Returns the bytes of x in memory for each row: (rows, bytes).

        rows: words, or raw rows that fit the C types.
        aligned: pads members as C does.
        """
        layout = np.dtype([(f"x{k}", numpy_type(kind)) for k, kind in enumerate(self.kinds)], align=aligned)
        table = np.zeros(len(rows), dtype=layout)
        for member, column in enumerate(self.columns):
            with np.errstate(over="ignore"):
                table[f"x{member}"] = rows[:, column].astype(layout[member])
        return table.view(np.uint8).reshape(len(table), layout.itemsize)


def inputs_of(forest: Forest, form: str, types: str = "") -> Inputs:
    """Returns the inputs of a quantized forest's C header.
    form: words, struct, float or raw.
    types: the option `c_types`.

    Raises OptionError for an unsuitable form or type.
    """
    features = range(len(forest.features))
    struct, word = (f"{identifier(forest.name)}_{what}" for what in ("features", "word"))
    if form == "words":
        kind = word_type(forest)
        return Inputs(forest, False, word, (kind,) * max(1, len(features)), (), tuple(features))
    if form == "struct":
        names, kinds = zip(*members(forest), strict=True)
        return Inputs(forest, False, struct, kinds, names, tuple(features))
    raw = (TYPES[float_inputs(forest).name],) * forest.width if form == "float" else column_types(forest, types)
    on_raw, columns = retyped(forest, raw), forest.row_columns
    used = {raw[column].c for column in columns}
    if len(used) > 1:
        names = tuple(feature_name(feature.column, feature.name) for feature in forest.features)
        return Inputs(on_raw, True, struct, tuple(raw[column].c for column in columns), names, columns, raw)
    kind = next(iter(used), "float")
    raw = tuple(next(entry for entry in TYPES.values() if entry.c == kind) for _ in range(forest.width))
    return _array(on_raw, word, kind, raw)


def rows_of(forest: Forest, kind: str) -> Inputs:
    """Returns the parameter x of a header's quantizer: raw rows with all columns, as floats of one C type."""
    return _array(forest, kind, kind, (TYPES[kind],) * forest.width)


def _array(forest: Forest, name: str, kind: str, types: tuple[RawType, ...]) -> Inputs:
    """Returns the parameter x as an array of one C type that holds all columns of a raw row. name: of this type."""
    width = forest.width
    return Inputs(forest, True, name, (kind,) * max(1, width), (), tuple(range(width)), types, forest.carried)


def fits(forest: Forest, types: Sequence[RawType], rows: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Returns booleans (rows, columns): True if a column's C type holds the raw value. They are True for floats, and
    for columns that the forest does not read."""
    valid = np.ones(rows.shape, dtype=bool)
    for column in forest.row_columns:
        if types[column].whole:
            (least, greatest), values = types[column].ends, rows[:, column]
            valid[:, column] = (values >= least) & (values <= greatest) & (values == np.floor(values))
    return valid


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
