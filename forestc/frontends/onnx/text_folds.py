"""Folds ONNX's operators on text: encoders, and operators that converters write for imputers of text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from forestc.forest.ir import Label
from forestc.forest.verify import MAX_COLUMNS
from forestc.frontends.onnx.attributes import Attributes
from forestc.frontends.onnx.columns import Hot, RawColumn
from forestc.frontends.onnx.text import Image, TextColumn, together
from forestc.frontends.onnx.values import Array, Node, Predicted, Tensor, Value

# Lists the operators that take columns of text, or booleans computed from text.
TEXT_OPERATORS = {
    *("Identity", "Cast", "Concat", "Gather", "ArrayFeatureExtractor", "Split", "Reshape", "Flatten", "Squeeze"),
    *("Unsqueeze", "LabelEncoder", "OneHotEncoder", "Equal", "Where"),
}
MAX_WHOLE = 1 << 53  # bounds the integers that float64 holds exactly
_KINDS = {"int64s": np.int64, "strings": object, "floats": np.float32}
_DEFAULTS: dict[Any, tuple[str, Image]] = {
    np.dtype(object): ("default_string", "_Unused"),
    np.dtype(np.int64): ("default_int64", -1),
    np.dtype(np.float32): ("default_float", 0.0),
}


def one_hot(node: Node, subject: Value | None) -> Value | None:
    """Folds a OneHotEncoder of text or of integers. Unknown categories become zeros, also where onnxruntime refuses
    them."""
    attributes = node.attributes("cats_strings", "cats_int64s", "zeros")
    if not isinstance(subject, Tensor) or subject.dims > 2:
        return None
    texts, integers = attributes.texts("cats_strings"), attributes.ints("cats_int64s").tolist()
    of_text = subject.dtype == object
    if not (of_text or subject.dtype == np.int64):
        raise node.fail(f"its input is {subject.dtype}", "text and int64 are read")
    cats: list[Any] = texts if of_text else integers
    if not cats or (texts and integers):
        raise node.fail(f"needs {'cats_strings' if of_text else 'cats_int64s'} only, for its input")
    if len(set(cats)) < len(cats):
        raise node.fail(f"names a category twice: {_twice(cats)!r}")
    count = len(cats)
    if (subject.width or 1) * count > MAX_COLUMNS:
        raise node.fail(f"makes more than {MAX_COLUMNS} columns")
    names = tuple(texts)

    def column(index: int) -> RawColumn | TextColumn:
        category, encoded = cats[index % count], subject.column(index // count)
        if subject.text and isinstance(encoded, TextColumn):
            return encoded.looked_up({category: 1.0}, 0.0, names)
        return encoded.then(Hot(category))

    if not of_text and max(map(abs, integers)) > MAX_WHOLE:
        raise node.fail("names integers beyond 2^53, which rows can't hold")
    width = None if subject.width is None else subject.width * count
    encoded = subject.with_columns(column, np.float32, width).shaped(subject.dims + 1, count)
    return replace(encoded, truncated=False)


def _twice(items: list[Any]) -> Any:
    return next(item for item, count in Counter(items).items() if count > 1)


def label_encoder(node: Node, subject: Value | None) -> Value | None:
    """Folds a LabelEncoder of text, of integers encoded from text, of constants, or of the decided class."""
    if isinstance(subject, Predicted):
        return _other_labels(node, subject)
    data = node.input(0)
    if not isinstance(data, Tensor | np.ndarray):
        return None
    if isinstance(data, Tensor) and not data.text:
        raise node.fail("a LabelEncoder of numbers is not read", "train on the numbers themselves")
    table, default, dtype = _mapping(node, data.dtype)
    if isinstance(data, Tensor):
        return data.with_columns(lambda index: data.texts(index).looked_up(table, default), dtype, data.width)
    items = [table.get(item, default) for item in data.ravel().tolist()]
    return np.array(items, dtype=dtype).reshape(data.shape)


def _mapping(node: Node, dtype: np.dtype[Any]) -> tuple[dict[Any, Image], Image, np.dtype[Any]]:
    first = node.opset < 2
    kinds = [] if first else [*_KINDS, *(["tensor"] if node.opset >= 4 else [])]
    attributes = node.attributes(
        *(["classes_strings"] if first else [f"{side}_{kind}" for side in ("keys", "values") for kind in kinds]),
        *(["default_tensor"] if "tensor" in kinds else []),
        *(name for name, _ in _DEFAULTS.values()),
    )
    if first:
        keys: Array = np.array(attributes.texts("classes_strings"), dtype=object)
        values: Array = np.arange(len(keys))
    else:
        keys, values = _listed(node, attributes, "keys"), _listed(node, attributes, "values")
    if len(keys) != len(values) or not len(keys):
        raise node.fail(f"has {len(keys)} keys and {len(values)} values")
    if keys.dtype != dtype or keys.dtype.kind == "f":
        key_type, input_type = ("text" if number.kind == "O" else str(number) for number in (keys.dtype, dtype))
        raise node.fail(f"its keys are {key_type}, and its input {input_type}")
    table: dict[Any, Image] = dict(zip(keys.tolist(), values.tolist(), strict=True))
    if len(table) < len(keys):
        raise node.fail(f"has a key twice: {_twice(keys.tolist())!r}")
    default = _default(attributes, values.dtype)
    if values.dtype.kind in "iu" and max(abs(int(value)) for value in [*table.values(), default]) > MAX_WHOLE:
        raise node.fail("makes integers beyond 2^53, which rows can't hold")
    return table, default, values.dtype


def _listed(node: Node, attributes: Attributes, side: str) -> Array:
    kinds = [kind for kind in (*_KINDS, "tensor") if attributes.has(f"{side}_{kind}")]
    if len(kinds) != 1:
        raise node.fail(f"has {len(kinds) or 'no'} lists of {side}")
    name = f"{side}_{kinds[0]}"
    if kinds[0] == "tensor":
        tensor = attributes.tensor(name)
        if tensor is None or tensor.ndim != 1 or tensor.dtype.kind not in "Oiuf":
            raise node.fail(f"{name} is not a list of texts or numbers")
        return tensor
    read: dict[str, Callable[[str], Any]] = {
        "int64s": attributes.ints,
        "strings": attributes.texts,
        "floats": attributes.floats,
    }
    return np.array(read[kinds[0]](name), dtype=_KINDS[kinds[0]])


def _default(attributes: Attributes, dtype: np.dtype[Any]) -> Image:
    tensor = attributes.tensor("default_tensor") if attributes.has("default_tensor") else None
    if tensor is not None:
        if tensor.size != 1 or tensor.dtype != dtype:
            raise attributes.fail(f"its default is {tensor.dtype} of shape {list(tensor.shape)}, its values {dtype}")
        image: Image = tensor.ravel().tolist()[0]
        return image
    if dtype not in _DEFAULTS:
        raise attributes.fail(f"has values of {dtype} and no default_tensor", "give a default_tensor")
    name, default = _DEFAULTS[dtype]
    if isinstance(default, str):
        return attributes.text(name, default)
    return attributes.number(name, default) if dtype.kind == "f" else attributes.integer(name, int(default))


def _other_labels(node: Node, answer: Predicted) -> Predicted:
    names = [f"{side}_{kind}" for side in ("keys", "values") for kind in _KINDS]
    attributes = node.attributes(*names, *(name for name, _ in _DEFAULTS.values()))
    keys: list[Label] = [*attributes.ints("keys_int64s").tolist(), *attributes.texts("keys_strings")]
    values: list[Label] = [*attributes.ints("values_int64s").tolist(), *attributes.texts("values_strings")]
    table = dict(zip(keys, values, strict=False))
    if len(keys) != len(values) or len(table) != len(keys) or not all(k in table for k in answer.classes):
        raise node.fail(f"does not name all of the classes {', '.join(map(str, answer.classes[:5]))}")
    return replace(answer, classes=tuple(table[k] for k in answer.classes))


def cast_text(table: Tensor, dtype: np.dtype[Any]) -> Tensor | None:
    """Folds a cast between booleans and numbers computed from text."""
    if table.dtype == object or dtype.kind not in "biuf":
        return None

    def column(index: int) -> TextColumn:
        return table.texts(index).changed(lambda values: values != 0) if dtype.kind == "b" else table.texts(index)

    return table.with_columns(column, dtype, table.width)


def equal(node: Node, subject: Value | None) -> Value | None:
    """Folds an Equal of a constant and text, or integers encoded from text."""
    node.attributes()
    constant = node.input(1) if node.input(0) is subject else node.input(0)
    if not isinstance(subject, Tensor) or not subject.text or not isinstance(constant, np.ndarray):
        return None
    if constant.dtype != subject.dtype or subject.dtype.kind not in "Oi" or len(node.inputs) != 2:
        return None
    values = _broadcast(node, constant, subject)

    def column(index: int) -> TextColumn:
        return subject.texts(index).looked_up({values[index % len(values)]: 1.0}, 0.0)

    return subject.with_columns(column, np.bool_, subject.width)


def where(node: Node, subject: Value | None) -> Value | None:
    """Folds a Where: one of two texts or numbers, chosen by booleans computed from the same column of text."""
    node.attributes()
    parts = [node.input(index) for index in range(3)]
    condition = parts[0]
    if not isinstance(condition, Tensor) or condition.dtype != np.bool_ or condition.width is None:
        return None
    dtypes = {part.dtype for part in parts[1:] if isinstance(part, Tensor | np.ndarray)}
    tables = [part for part in parts if isinstance(part, Tensor)]
    if len(dtypes) != 1 or not all(isinstance(part, Tensor | np.ndarray) for part in parts):
        return None
    if not all(table.text and table.width == condition.width for table in tables):
        return None
    (dtype,) = dtypes
    if dtype.kind not in "Oiuf":
        return None
    constants = {k: _broadcast(node, part, condition) for k, part in enumerate(parts) if isinstance(part, np.ndarray)}

    @cache  # The cache prevents repeated work on parts that depend on one another.
    def column(index: int) -> TextColumn:
        operands: list[TextColumn | Image] = [
            part.texts(index) if isinstance(part, Tensor) else constants[k][index % len(constants[k])]
            for k, part in enumerate(parts)
        ]
        if len({operand.index for operand in operands if isinstance(operand, TextColumn)}) > 1:
            raise node.fail("chooses by one column of text between values of another")
        return together(operands, lambda truth, yes, no: yes if truth else no)

    return replace(condition, depth=max(table.depth for table in tables)).with_columns(column, dtype, condition.width)


def _broadcast(node: Node, constant: Array, table: Tensor) -> list[Any]:
    plain = constant.ndim < 2 or (constant.ndim == 2 and len(constant) == 1)
    if not plain or constant.size not in (1, table.width):
        raise node.fail(f"its constant has the shape {list(constant.shape)} for {table.width} columns")
    items: list[Any] = constant.ravel().tolist()
    return items
