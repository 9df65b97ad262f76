"""Reads attributes, tensors and constants of an ONNX file, and checks their lengths and types."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from forestc.errors import ModelError

if TYPE_CHECKING:
    from onnx import NodeProto, TensorProto

Array: TypeAlias = NDArray[Any]

UNREAD = "export the model without this operator or setting: docs/reference/models.md lists those that are read"

# Maps TensorProto.DataType to a NumPy type and to the TensorProto field that holds the numbers.
TENSOR_TYPES: dict[int, tuple[Any, str]] = {
    1: (np.float32, "float_data"),
    2: (np.uint8, "int32_data"),
    3: (np.int8, "int32_data"),
    4: (np.uint16, "int32_data"),
    5: (np.int16, "int32_data"),
    6: (np.int32, "int32_data"),
    7: (np.int64, "int64_data"),
    9: (np.bool_, "int32_data"),
    11: (np.float64, "double_data"),
}
TEXT_TENSOR = 8  # stands for texts in TensorProto.DataType
# Holds values of AttributeProto.AttributeType.
_FLOAT, _INT, _STRING, _TENSOR, _FLOATS, _INTS, _STRINGS = 1, 2, 3, 4, 6, 7, 8


def tensor_array(tensor: TensorProto, fail: Callable[[str], ModelError]) -> Array:
    """Returns the numbers (or texts, as objects) of a TensorProto, in its shape and type. fail: makes the error for an
    invalid tensor."""
    if tensor.data_location == 1 or len(tensor.external_data):
        raise fail("keeps its data in another file, which is not read")
    if tensor.HasField("segment"):
        raise fail("is a segment of a tensor")
    shape = [int(dim) for dim in tensor.dims]
    if any(dim < 0 for dim in shape):
        raise fail(f"has the shape {shape}")
    if tensor.data_type == TEXT_TENSOR:
        array: Array = np.array([_text(item, fail) for item in tensor.string_data], dtype=object)
    elif tensor.data_type not in TENSOR_TYPES:
        raise fail(f"holds numbers of ONNX's type {tensor.data_type}, which is not read")
    else:
        dtype, field = TENSOR_TYPES[tensor.data_type]
        if tensor.HasField("raw_data"):
            raw = bytes(tensor.raw_data)
            if len(raw) % np.dtype(dtype).itemsize:
                raise fail(f"has {len(raw)} bytes of {np.dtype(dtype)}")
            array = np.frombuffer(raw, dtype=np.dtype(dtype).newbyteorder("<")).astype(dtype)
        else:
            wide = {"float_data": np.float32, "double_data": np.float64}.get(field, np.int64)
            items = getattr(tensor, field)
            numbers = np.fromiter(items, wide, len(items))
            with np.errstate(invalid="ignore", over="ignore"):
                array = numbers.astype(dtype)
            if wide is np.int64 and (array.astype(np.int64) != numbers).any():
                raise fail(f"holds numbers outside {np.dtype(dtype)}")
    if len(array) != math.prod(shape):
        raise fail(f"has the shape {shape} and {len(array)} numbers")
    return array.reshape(shape)


def _text(data: bytes, fail: Callable[[str], ModelError]) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise fail("holds text that is not UTF-8") from None


class Attributes:
    """The attributes of a node by name. Raises ModelError for unknown attributes and for attributes of another type."""

    def __init__(self, node: NodeProto, allowed: Iterable[str], where: str) -> None:
        self.where = where
        self.by_name: dict[str, Any] = {}
        names = set(allowed)
        for attribute in node.attribute:
            if attribute.name not in names:
                raise self.fail(f"attribute {attribute.name[:60]!r} is not known", "known: " + ", ".join(sorted(names)))
            if attribute.name in self.by_name:
                raise self.fail(f"attribute {attribute.name!r} appears twice")
            if attribute.ref_attr_name:
                raise self.fail(f"attribute {attribute.name!r} refers to an attribute of a function")
            self.by_name[attribute.name] = attribute

    def fail(self, what: str, do: str = UNREAD) -> ModelError:
        return ModelError(what, where=self.where, do=do)

    def has(self, name: str) -> bool:
        return name in self.by_name

    def _get(self, name: str, kind: int, meant: str) -> Any:
        attribute = self.by_name.get(name)
        if attribute is not None and attribute.type not in (0, kind):
            raise self.fail(f"attribute {name!r} is not {meant}")
        return attribute

    def ints(self, name: str) -> NDArray[np.int64]:
        """Returns the attribute's integers as an array; empty if the attribute is absent."""
        attribute = self._get(name, _INTS, "a list of whole numbers")
        numbers = () if attribute is None else attribute.ints
        return np.fromiter(numbers, np.int64, len(numbers))

    def floats(self, name: str) -> NDArray[np.float32]:
        attribute = self._get(name, _FLOATS, "a list of numbers")
        numbers = () if attribute is None else attribute.floats
        return np.fromiter(numbers, np.float32, len(numbers))

    def strings(self, name: str) -> Sequence[bytes]:
        attribute = self._get(name, _STRINGS, "a list of texts")
        return () if attribute is None else attribute.strings

    def texts(self, name: str) -> list[str]:
        return [_text(item, lambda what: self.fail(f"attribute {name!r} {what}")) for item in self.strings(name)]

    def integer(self, name: str, default: int) -> int:
        attribute = self._get(name, _INT, "a whole number")
        return default if attribute is None else int(attribute.i)

    def number(self, name: str, default: float) -> float:
        attribute = self._get(name, _FLOAT, "a number")
        return default if attribute is None else float(attribute.f)

    def text(self, name: str, default: str) -> str:
        attribute = self._get(name, _STRING, "a text")
        return default if attribute is None else _text(attribute.s, lambda what: self.fail(f"{name!r} {what}"))

    def tensor(self, name: str) -> Array | None:
        attribute = self._get(name, _TENSOR, "a tensor")
        return None if attribute is None else tensor_array(attribute.t, lambda what: self.fail(f"{name!r} {what}"))

    def vector(self, name: str, dtype: DTypeLike) -> Array:
        """Returns a one-dimensional tensor of the given type; empty if the attribute is absent."""
        array = self.tensor(name)
        if array is None:
            return np.zeros(0, dtype=dtype)
        if array.ndim != 1 or array.dtype != np.dtype(dtype):
            raise self.fail(
                f"{name!r} is {array.dtype} of shape {list(array.shape)}, not a list of {np.dtype(dtype)}",
                "the operator's tensors have its input's type",
            )
        return array
