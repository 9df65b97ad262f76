"""Reads protobuf messages without a schema: a caller asks for a field by its number and type."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from forestc.errors import DAMAGED, ModelError

MAX_FIELDS = 1 << 21  # bounds the fields of a message, and the numbers of a packed field
_SIZES = {1: 8, 5: 4}  # bytes of the wire types of fixed size, which hold floats


class Message:
    """A protobuf message. Methods raise ModelError, with the place `where`, for a field of another type."""

    __slots__ = ("_fields", "where")

    def __init__(self, data: bytes, where: str) -> None:
        self.where = where
        self._fields = _fields(data, where)

    def fail(self, what: str, do: str = DAMAGED) -> ModelError:
        return ModelError(what, where=self.where, do=do)

    def has(self, number: int) -> bool:
        return number in self._fields

    def integer(self, number: int, default: int = 0) -> int:
        value = self._fields.get(number, [default])[-1]
        if isinstance(value, bytes):
            raise self.fail(f"field {number} is not an integer")
        return value - (1 << 64) if value >> 63 == 1 else value

    def flag(self, number: int, default: bool = False) -> bool:
        return self.integer(number, int(default)) != 0

    def data(self, number: int) -> bytes:
        """Returns a text or packed numbers; b"" if the field is absent."""
        return b"".join(self._parts(number)[-1:])

    def text(self, number: int) -> str:
        return self.data(number).decode("utf-8", "ignore")  # as YDF reads texts

    def real(self, number: int, bits: int = 32) -> float:
        """Returns a float of 32 or 64 bits; 0 if the field is absent."""
        return float([0.0, *self.reals(number, bits)][-1])

    def reals(self, number: int, bits: int = 32) -> NDArray[np.float64]:
        """Returns the floats of a repeated field, packed or not."""
        joined = b"".join(self._parts(number))
        if len(joined) % (bits // 8):
            raise self.fail(f"field {number} is not a float of {bits} bits")
        return np.frombuffer(joined, f"<f{bits // 8}").astype(np.float64)

    def integers(self, number: int) -> list[int]:
        """Returns the integers of a repeated field, packed or not; negative ones become very large."""
        result: list[int] = []
        for value in self._fields.get(number, []):
            at = 0
            while isinstance(value, bytes) and at < len(value) and len(result) < MAX_FIELDS:
                item, at = _varint(value, at, self.where)
                result.append(item)
            result += [] if isinstance(value, bytes) else [value]
        return result

    def message(self, number: int) -> Message:
        """Returns a message; an empty one if the field is absent."""
        return Message(b"".join(self._parts(number)), self.where)  # Protobuf merges repeated parts of a single message.

    def messages(self, number: int) -> list[Message]:
        return [Message(part, self.where) for part in self._parts(number)]

    def _parts(self, number: int) -> list[bytes]:
        values = self._fields.get(number, [])
        parts = [value for value in values if isinstance(value, bytes)]
        if len(parts) < len(values):
            raise self.fail(f"field {number} is an integer")
        return parts


def _fields(data: bytes, where: str) -> dict[int, list[int | bytes]]:
    """Returns {field number: its values}. Floats stay bytes."""
    fields: dict[int, list[int | bytes]] = {}
    at, count = 0, 0
    while at < len(data):
        key, at = _varint(data, at, where)
        value: int | bytes
        if key & 7 == 0:
            value, at = _varint(data, at, where)
        elif key & 7 in (1, 2, 5):
            size, at = _varint(data, at, where) if key & 7 == 2 else (_SIZES[key & 7], at)
            value, at = data[at : at + size], at + size
        else:
            raise ModelError(f"byte {at} begins no protobuf field", where=where, do=DAMAGED)
        count += 1
        if at > len(data) or count > MAX_FIELDS:
            what = f"has more than {MAX_FIELDS:,} fields" if count > MAX_FIELDS else "ends within a field"
            raise ModelError(what, where=where, do=DAMAGED)
        fields.setdefault(key >> 3, []).append(value)
    return fields


def _varint(data: bytes, at: int, where: str) -> tuple[int, int]:
    """Returns an integer of variable length, and the position after it."""
    result = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        at += 1
        result |= (byte & 127) << shift
        if byte < 128:
            return result & ((1 << 64) - 1), at
        shift += 7
    raise ModelError("ends within a number, or has one that is too long", where=where, do=DAMAGED)
