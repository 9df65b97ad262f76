"""Wraps parsed documents with the path of each part, so that errors can name it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from forestc.errors import CUT, DAMAGED, ModelError


def read_document(data: bytes, where: str) -> Any:
    """Parses JSON. Raises ModelError for invalid or too deeply nested JSON."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ModelError(f"not readable JSON ({error})", where=where, do=CUT) from None


class Document:
    """A part of a parsed document. Methods raise ModelError, with the part's path, for unexpected content."""

    def __init__(self, value: object, path: str, where: str) -> None:
        self.value: Any = value
        self.path = path
        self.where = where

    def fail(self, what: str, do: str = DAMAGED) -> ModelError:
        return ModelError(what, where=f"{self.where}, {self.path}" if self.path else self.where, do=do)

    def get(self, key: str, default: object = None) -> Document:
        """Returns the part with this key, or else `default` as a Document. Raises ModelError if there is neither."""
        if not self.has(key) and default is None:
            raise self.fail(f"has no {key!r}", CUT)
        value = self.value[key] if self.has(key) else default
        return Document(value, f"{self.path}.{key}".lstrip("."), self.where)

    def has(self, key: str) -> bool:
        return isinstance(self.value, Mapping) and key in self.value

    def items(self) -> list[Document]:
        if not isinstance(self.value, list | np.ndarray):
            raise self.fail("is not a list")
        return [Document(item, f"{self.path}[{index}]", self.where) for index, item in enumerate(self.value)]

    def text(self) -> str:
        if not isinstance(self.value, str):
            raise self.fail("is not text")
        return self.value

    def integer(self, low: int, high: int) -> int:
        try:
            value = int(self.value)
        except (TypeError, ValueError, OverflowError):
            raise self.fail(f"is not an integer: {str(self.value)[:40]!r}") from None
        if not low <= value <= high:
            raise self.fail(f"is {value}, outside {low} to {high}")
        return value

    def array(self, dtype: DTypeLike) -> NDArray[Any]:
        if not isinstance(self.value, list | np.ndarray):
            raise self.fail("is not a list")
        try:
            array = np.asarray(self.value)
            if array.size and array.dtype.kind not in "iufb":
                raise ValueError("not numbers")
            if np.dtype(dtype).kind == "i" and array.dtype.kind == "f" and not (array == np.floor(array)).all():
                raise ValueError("not whole numbers")
            if np.dtype(dtype).kind == "i" and array.size and array.dtype.itemsize > np.dtype(dtype).itemsize:
                limits = np.iinfo(dtype)
                if array.min() < limits.min or array.max() > limits.max:
                    raise ValueError(f"not numbers of {limits.bits} bits")
            with np.errstate(over="ignore", invalid="ignore"):
                array = array.astype(dtype, copy=False)
        except (ValueError, TypeError, OverflowError) as error:
            raise self.fail(f"is not an array of numbers ({error})") from None
        if array.ndim != 1:
            raise self.fail(f"has {array.ndim} dimensions instead of 1")
        return array
