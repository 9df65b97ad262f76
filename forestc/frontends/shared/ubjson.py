"""Reads Universal Binary JSON (draft 12), the binary format in which XGBoost saves models.

Every count is compared with the remaining bytes before memory is allocated, and nesting is bounded.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import repeat
from typing import Any

import numpy as np

from forestc.errors import CUT, ModelError

MAX_DEPTH = 64  # limits nested containers, because Python's stack is limited; models nest fewer than ten

# Maps a marker to its big-endian `struct` format and number of bytes.
_NUMBERS = {
    b"i": (">b", 1),
    b"U": (">B", 1),
    b"I": (">h", 2),
    b"l": (">i", 4),
    b"L": (">q", 8),
    b"d": (">f", 4),
    b"D": (">d", 8),
}
_CONSTANTS: dict[bytes, Any] = {b"Z": None, b"T": True, b"F": False}
_NO_MARKER = b""


def parse_ubjson(data: bytes, where: str) -> Any:
    """Parses UBJSON into Python objects; typed arrays of numbers become NumPy arrays. Raises ModelError with the byte
    offset for invalid data."""
    reader = _UbjsonReader(data, where)
    value = reader.value(reader.marker(), 0)
    reader.at = reader.skip_noop(reader.at)
    if reader.at != len(data):
        raise reader.fail(f"{len(data) - reader.at} bytes after the end")
    return value


class _UbjsonReader:
    def __init__(self, data: bytes, where: str) -> None:
        self.data = data
        self.where = where
        self.at = 0

    def fail(self, what: str) -> ModelError:
        return ModelError(
            f"not a readable UBJSON model: {what}",
            where=f"{self.where}, byte {self.at}",
            do=CUT,
        )

    def take(self, count: int) -> bytes:
        if count < 0 or count > len(self.data) - self.at:
            raise self.fail(f"{count} bytes promised, {len(self.data) - self.at} left")
        self.at += count
        return self.data[self.at - count : self.at]

    def skip_noop(self, at: int) -> int:
        while self.data[at : at + 1] == b"N":
            at += 1
        return at

    def marker(self) -> bytes:
        self.at = self.skip_noop(self.at)
        return self.take(1)

    def number(self, marker: bytes) -> Any:
        form, size = _NUMBERS[marker]
        return struct.unpack(form, self.take(size))[0]

    def count(self) -> int:
        marker = self.marker()
        if marker not in _NUMBERS or marker in (b"d", b"D"):
            raise self.fail(f"marker {marker!r} where a count should be")
        count = int(self.number(marker))
        if count < 0:
            raise self.fail(f"count {count}")
        return count

    def string(self) -> str:
        try:
            return self.take(self.count()).decode("utf-8")
        except UnicodeDecodeError as error:
            raise self.fail(f"text is not UTF-8 ({error.reason})") from None

    def value(self, marker: bytes, depth: int) -> Any:
        if marker in _NUMBERS:
            return self.number(marker)
        if marker in _CONSTANTS:
            return _CONSTANTS[marker]
        if marker == b"S":
            return self.string()
        if marker == b"C":
            return self.take(1).decode("latin-1")
        if marker == b"H":
            text = self.string()
            try:
                return float(text)
            except ValueError:
                raise self.fail(f"number {text[:20]!r}") from None
        if marker in (b"[", b"{"):
            if depth >= MAX_DEPTH:
                raise self.fail(f"nested deeper than {MAX_DEPTH}")
            return self.array(depth + 1) if marker == b"[" else self.object(depth + 1)
        raise self.fail(f"unknown marker {marker!r}")

    def container(self) -> tuple[bytes, int | None]:
        """Reads the optional type and count at the start of a container. Returns (type, count); the count is None if
        absent."""
        kind = _NO_MARKER
        if self.data[self.at : self.at + 1] == b"$":
            self.at += 1
            kind = self.take(1)
            if self.data[self.at : self.at + 1] != b"#":
                raise self.fail("a typed container without a count")
        if self.data[self.at : self.at + 1] == b"#":
            self.at += 1
            return kind, self.count()
        return kind, None

    def array(self, depth: int) -> Any:
        kind, count = self.container()
        if kind in _NUMBERS and count is not None:
            form, size = _NUMBERS[kind]
            if count > (len(self.data) - self.at) // size:
                raise self.fail(f"{count} numbers promised, {len(self.data) - self.at} bytes left")
            # This array is a big-endian view of the data, not a copy.
            numbers = np.frombuffer(self.data, dtype=np.dtype(form), count=count, offset=self.at)
            self.at += count * size
            return numbers
        return [self.value(kind or self.marker(), depth) for _ in self.items(kind, count, b"]")]

    def object(self, depth: int) -> dict[str, Any]:
        kind, count = self.container()
        result: dict[str, Any] = {}
        for _ in self.items(kind, count, b"}"):
            self.at = self.skip_noop(self.at)
            key = self.string()
            if key in result:
                raise self.fail(f"key {key[:40]!r} twice")
            result[key] = self.value(kind or self.marker(), depth)
        return result

    def items(self, kind: bytes, count: int | None, end: bytes) -> Iterator[None]:
        """Yields once before each item of a container: `count` times, or until the marker `end`."""
        if count is not None:
            # Typed constants take no bytes, so the remaining bytes would not bound their count.
            if kind in _CONSTANTS or count > len(self.data) - self.at:
                raise self.fail(f"{count} values promised, {len(self.data) - self.at} bytes left")
            yield from repeat(None, count)
            return
        while not self.data.startswith(end, self.skip_noop(self.at)):
            yield
        self.marker()
