"""Folds ONNX operators that select, concatenate and reshape columns, before and after the trees."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from forestc.forest.verify import MAX_COLUMNS
from forestc.frontends.onnx.columns import RawColumn
from forestc.frontends.onnx.text import TextColumn, summed
from forestc.frontends.onnx.values import Node, Predicted, Tensor, TreeScores, Value

MAX_IMAGES = 1 << 22  # texts of all columns that are added; bounds time and memory
EXACT_SUM = 1 << 24  # bounds the integers that float32 adds exactly


def _columns_axis(node: Node, table: Tensor, axis: int) -> None:
    """Raises ModelError unless `axis` is the axis of the columns: the last one, after that of the rows alone."""
    if table.dims == 1 or axis not in (table.dims - 1, -1) or (table.dims == 3 and table.width != table.inner):
        raise node.fail("works across the rows, not the columns")


def concat(node: Node, subject: Value | None) -> Value | None:
    """Folds a Concat: the columns of its inputs lie side by side."""
    axis = node.attributes("axis").integer("axis", 0)
    tables = [value for value in node.inputs if isinstance(value, Tensor)]
    if len(tables) != len(node.inputs) or not tables:
        return None
    if len({table.dtype for table in tables}) != 1:
        raise node.fail("concatenates columns of several types")
    if len({table.dims for table in tables}) != 1:
        raise node.fail("concatenates tables of several dimensions", "reshape the encoders' outputs before")
    for table in tables:
        _columns_axis(node, table, axis)
    widths = [table.width for table in tables]
    if None in widths[:-1]:
        raise node.fail("concatenates an unknown number of columns", "give every input's shape")
    if sum(width or 0 for width in widths) > MAX_COLUMNS:
        raise node.fail(f"concatenates more than {MAX_COLUMNS} columns")
    ends = np.cumsum([width or 0 for width in widths]).tolist()

    def column(index: int) -> RawColumn | TextColumn:
        which = min(int(np.searchsorted(ends[:-1], index, side="right")), len(tables) - 1)
        return tables[which].column(index - (ends[which - 1] if which else 0))

    return replace(
        tables[0],
        width=None if widths[-1] is None else ends[-1],
        column=column,
        depth=1 + max(table.depth for table in tables),
        text=all(table.text for table in tables),
        inner=ends[-1] if tables[0].dims == 3 else 0,
    )


def select_columns(node: Node, subject: Value | None) -> Value | None:
    """Folds an ArrayFeatureExtractor or Gather: it selects columns, or looks up class labels by class index."""
    axis = -1
    if node.operator == "Gather":
        axis = node.attributes("axis").integer("axis", 0)
        if isinstance(subject, TreeScores) and axis not in (1, -1):
            raise node.fail("works across the rows, not the columns")
    else:
        node.attributes()
    if isinstance(subject, Predicted) and isinstance(node.input(0), np.ndarray) and node.input(1) is subject:
        labels = node.constant(0, "data").ravel().tolist()
        if not all(isinstance(k, int) and 0 <= k < len(labels) for k in subject.classes):
            raise node.fail(f"has {len(labels)} labels for {len(subject.classes)} classes")
        return replace(subject, classes=tuple(labels[int(k)] for k in subject.classes))
    if not isinstance(subject, Tensor | TreeScores) or node.input(0) is not subject:
        return None
    indices = node.integers(1, "list of columns")
    if isinstance(subject, Tensor):
        _columns_axis(node, subject, axis)
    width = subject.width if isinstance(subject, Tensor) else subject.columns
    if not indices or min(indices) < 0 or (width is not None and max(indices) >= width):
        raise node.fail(f"takes columns {indices[:5]} of {width}")
    if isinstance(subject, TreeScores):
        return replace(subject, part=True)
    lost = 0
    if node.operator == "Gather":
        lost = 1 - node.constant(1, "list of columns").ndim  # A scalar index removes the dimension.
        if lost < 0:
            raise node.fail("its list of columns has several dimensions")
    return _selected(subject, indices, subject.dims - lost)


def _selected(table: Tensor, indices: Sequence[int], dims: int) -> Tensor:
    selection = table.with_columns(lambda index: table.column(indices[index]), table.dtype, len(indices))
    return selection.shaped(dims, len(indices))


def split(node: Node, subject: Value | None) -> list[Value] | None:
    """Folds a Split: each output is a range of columns."""
    attributes = node.attributes("axis", "split", "num_outputs")
    if not isinstance(subject, Tensor) or node.input(0) is not subject:
        return None
    _columns_axis(node, subject, attributes.integer("axis", 0))
    count = len(node.proto.output)
    if subject.width is None:
        raise node.fail("splits an unknown number of columns", "give every input's shape")
    sizes = node.integers(1, "split") if node.input(1) is not None else attributes.ints("split").tolist()
    if not sizes:
        if attributes.integer("num_outputs", count) != count:
            raise node.fail(f"names {count} of {attributes.integer('num_outputs', count)} outputs")
        size = -(-subject.width // count)
        sizes = [*[size] * (count - 1), subject.width - size * (count - 1)]
    if len(sizes) != count or min(sizes) < 1 or sum(sizes) != subject.width:
        raise node.fail(f"splits {subject.width} columns into {count} parts of {sizes[:5]}")
    ends = np.cumsum(sizes).tolist()
    parts = zip(sizes, ends, strict=True)
    return [_selected(subject, range(end - size, end), subject.dims) for size, end in parts]


def slice_(node: Node, subject: Value | None) -> Value | None:
    """Folds a Slice of some columns of the scores. Converters output the columns one by one."""
    node.attributes()
    if not isinstance(subject, TreeScores) or node.integers(3, "axes") not in ([1], [-1]):
        return None
    return replace(subject, part=True)


def reshape(node: Node, subject: Value | None) -> Value | None:
    """Folds a Reshape, Flatten, Squeeze or Unsqueeze that keeps rows and columns, or removes or adds the dimension of a
    single column."""
    node.attributes("allowzero", "axis", "axes")
    if isinstance(subject, Tensor):
        return _TABLE_SHAPES[node.operator](node, subject)
    if not isinstance(subject, TreeScores):
        return subject if isinstance(subject, Predicted) else None
    width = 1 if subject.part else subject.columns
    if node.operator == "Flatten":
        node.axis(node.attributes("axis"), default=1)
        return subject
    if node.operator == "Unsqueeze":
        return None
    if node.operator == "Squeeze":
        return subject if _axes(node) in ([1], [-1]) and width == 1 else None
    shape = node.integers(1, "shape")
    return subject if shape in ([-1, width], [0, width], [0, -1]) or (shape == [-1] and width == 1) else None


def _axes(node: Node) -> list[int]:
    """Returns the axes of a Squeeze, Unsqueeze or ReduceSum: an attribute, or an input in later versions."""
    axes: list[int] = node.attributes("axes", "keepdims", "noop_with_empty_axes").ints("axes").tolist()
    return axes or (node.integers(1, "axes") if node.input(1) is not None else [])


def _reshaped(node: Node, table: Tensor) -> Tensor | None:
    shape = node.integers(1, "shape")
    if shape == [-1] and table.width == 1:
        return table.shaped(1)
    fits = shape == [0, -1] or (table.width is not None and shape in ([-1, table.width], [0, table.width]))
    return table.shaped(2) if fits else None


def _flattened(node: Node, table: Tensor) -> Tensor:
    axis = node.attributes("axis").integer("axis", 1)
    if axis != 1 and not (axis == -1 and table.dims == 2):
        raise node.fail("works across the rows, not the columns")
    return table.shaped(2)


def _squeezed(node: Node, table: Tensor) -> Tensor | None:
    axes = [axis % table.dims for axis in _axes(node) if -table.dims <= axis < table.dims]
    if table.dims == 2 and axes == [1] and table.width == 1:
        return table.shaped(1)
    single = table.dims == 3 and axes == ([1] if table.width == table.inner else [2] if table.inner == 1 else None)
    return table.shaped(2) if single else None


def _unsqueezed(node: Node, table: Tensor) -> Tensor | None:
    return table.shaped(2) if table.dims == 1 and _axes(node) in ([1], [-1]) else None


_TABLE_SHAPES: dict[str, Callable[[Node, Tensor], Tensor | None]] = {
    "Reshape": _reshaped,
    "Flatten": _flattened,
    "Squeeze": _squeezed,
    "Unsqueeze": _unsqueezed,
}


def reduce_sum(node: Node, subject: Value | None) -> Value | None:
    """Folds a ReduceSum of columns encoded from one column of text. Converters write infrequent categories so."""
    attributes = node.attributes("axes", "keepdims", "noop_with_empty_axes")
    axes = _axes(node)
    if not isinstance(subject, Tensor) or not subject.text or subject.width is None or len(axes) != 1:
        return None
    _columns_axis(node, subject, axes[0])
    parts, images = [], 0
    for index in range(subject.width):
        parts.append(subject.texts(index))
        images += len(parts[-1].images)
        if images > MAX_IMAGES:
            raise node.fail(f"adds columns with more than {MAX_IMAGES} texts in total")
    if len({part.index for part in parts}) > 1:
        raise node.fail("adds columns encoded from several columns of text")
    numbers = [[*part.images.values(), part.other] for part in parts]
    if not all(float(value or 0).is_integer() for values in numbers for value in values):
        raise node.fail("adds numbers that are not integers")
    if sum(max(abs(float(value or 0)) for value in values) for values in numbers) > EXACT_SUM:
        raise node.fail(f"adds numbers up to more than {EXACT_SUM}")
    total = summed(parts)
    dims = subject.dims - (not attributes.integer("keepdims", 1))
    return subject.with_columns(lambda _: total, subject.dtype, 1).shaped(dims, 1)
