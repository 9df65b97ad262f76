"""Gives categories their codes by a hash of their texts, as CatBoost does: rows hold texts, forests compare codes.

A category's hash is the lower half of its text's CityHash64 (version 1.0), as a signed integer of 32 bits. A
combination of columns is hashed member by member: h becomes M * (h + M * value) modulo 2^64, from h = 0.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from forestc.errors import HERE, ModelError

MULTIPLIER = 0x4906BA494954CB65  # M above
_MASK = (1 << 64) - 1
_K0, _K1, _K2, _K3 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F, 0xC949D7C7509E6557
_K4 = 0x9DDFEA08EB382D69

Kind: TypeAlias = Literal["category", "is", "from"]


@dataclass(frozen=True)
class Member:
    """A column in a hash.

    | kind     | value that is hashed                                                     |
    |----------|--------------------------------------------------------------------------|
    | category | the category's own hash                                                  |
    | is       | 1 if the category's hash is `value`, else 0                              |
    | from     | 1 if the number is >= `value`, else 0; `missing` if it is NaN            |
    """

    column: int
    name: str  # name of the column; "" if it has none
    kind: Kind = "category"
    value: float = 0.0
    missing: bool = False

    @property
    def title(self) -> str:
        name = self.name or f"f{self.column}"
        if self.kind == "from":
            with np.errstate(over="ignore"):
                border = np.nextafter(np.float32(self.value), np.float32(-np.inf))
            return f"{name} > {border:g}"
        return name if self.kind == "category" else f"{name} = {self.value:.0f}"


@dataclass(frozen=True)
class HashedColumn:
    """A column with codes of hashes. Its code is `count` for an unknown hash."""

    column: int
    count: int
    members: tuple[Member, ...]
    hashes: tuple[int, ...]  # known hashes, ascending
    codes: tuple[int, ...]  # their codes, from 0 to `count` - 1

    def __post_init__(self) -> None:
        try:
            hashes, codes = self._known
        except OverflowError:
            hashes, codes = np.zeros(2, dtype=np.uint64), np.zeros(0, dtype=np.int64)
        known = all(member.kind in get_args(Kind) and member.column >= 0 for member in self.members)
        inside = bool(((codes >= 0) & (codes < self.count)).all()) and len(codes) == len(hashes)
        if not (inside and known and self.members and (hashes[1:] > hashes[:-1]).all()):
            raise ModelError(
                f"the hashes of column {self.column} do not ascend, or do not fit its codes",
                where=HERE,
                do="give the model as its library saved it",
            )

    @cached_property
    def _known(self) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        return np.array(self.hashes, dtype=np.uint64), np.array(self.codes, dtype=np.int64)

    @property
    def combined(self) -> bool:
        """True if the source's rows have no such column."""
        return all(member.column != self.column for member in self.members)

    @property
    def title(self) -> str:
        return " & ".join(member.title for member in self.members)

    def codes_of(self, values: Mapping[int, NDArray[Any]]) -> NDArray[np.float64]:
        """Returns the codes (rows,). values: for each member's column the hashes of its categories, or its numbers."""
        parts = []
        for member in self.members:
            given = values[member.column]
            if member.kind == "from":
                given = np.where(np.isnan(given), member.missing, given >= member.value)
            parts.append(given == member.value if member.kind == "is" else given)
        hashes = combined_hash(parts)
        if not self.hashes:
            return np.full(len(hashes), float(self.count))
        known, codes = self._known
        at = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
        return np.where(known[at] == hashes, codes[at], self.count).astype(np.float64)


def combined_hash(parts: Iterable[NDArray[Any]]) -> NDArray[np.uint64]:
    """Returns the hash of the members' integers, each (rows,)."""
    factor, result = np.uint64(MULTIPLIER), np.zeros(1, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for part in parts:
            result = factor * (result + factor * part.astype(np.int64).view(np.uint64))
    return result


def text_hash(text: str) -> int:
    """Returns a category's hash, from -2^31 to 2^31 - 1."""
    low = city_hash(text.encode("utf-8", "surrogatepass")) & 0xFFFFFFFF
    return low - ((low & 1 << 31) << 1)


def city_hash(data: bytes) -> int:
    """Returns CityHash64 of version 1.0, which later versions changed."""
    size = len(data)
    if size > 64:
        return _long(data)
    if size > 32:
        return _up_to_64(data)
    if size > 16:
        a, b = _word(data, 0) * _K1, _word(data, 8)
        c, d = _word(data, size - 8) * _K2, _word(data, size - 16) * _K0
        first = _turned(a - b, 43) + _turned(c, 30) + d
        return _two(first, a + _turned(b ^ _K3, 20) - c + size)
    if size > 8:
        a, b = _word(data, 0), _word(data, size - 8)
        return _two(a, _turned(b + size, size)) ^ b
    if size >= 4:
        first, last = struct.unpack("<I", data[:4])[0], struct.unpack("<I", data[-4:])[0]
        return _two(size + (first << 3), last)
    if size:
        y, z = data[0] + (data[size >> 1] << 8), size + (data[-1] << 2)
        return _mixed((y * _K2 ^ z * _K3) & _MASK) * _K2 & _MASK
    return _K2


def _word(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 8], "little")


def _turned(value: int, by: int) -> int:
    value &= _MASK
    return (value >> by | value << (64 - by)) & _MASK


def _mixed(value: int) -> int:
    value &= _MASK
    return value ^ value >> 47


def _two(low: int, high: int) -> int:
    """Hashes two words to one."""
    low, high = low & _MASK, high & _MASK
    return _mixed((high ^ _mixed((low ^ high) * _K4)) * _K4) * _K4 & _MASK


def _up_to_64(data: bytes) -> int:
    size = len(data)
    ends = []
    head = _word(data, 0) + (size + _word(data, size - 16)) * _K0
    for a, at, z in (
        (head, 0, _word(data, 24)),
        (_word(data, 16) + _word(data, size - 32), size - 32, _word(data, size - 8)),
    ):
        b, c = _turned(a + z, 52), _turned(a, 37)
        a += _word(data, at + 8)
        c += _turned(a, 7)
        a += _word(data, at + 16)
        ends.append((a + z, b + _turned(a, 31) + c))
    (vf, vs), (wf, ws) = ends
    r = _mixed((vf + ws) * _K2 + (wf + vs) * _K0)
    return _mixed(r * _K0 + vs) * _K2 & _MASK


def _weak(data: bytes, at: int, a: int, b: int) -> tuple[int, int]:
    """Hashes 32 bytes with two seeds to two words."""
    w, x, y, z = (_word(data, at + 8 * k) for k in range(4))
    a += w
    b = _turned(b + a + z, 21)
    c = a
    a += x + y
    return (a + z) & _MASK, (b + _turned(a, 44) + c) & _MASK


def _long(data: bytes) -> int:
    size = len(data)
    x, y, z = _word(data, 0), _word(data, size - 16) ^ _K1, _word(data, size - 56) ^ _K0
    v, w = _weak(data, size - 64, size, y), _weak(data, size - 32, size * _K1, _K0)
    z += _mixed(v[1]) * _K1
    x, y = _turned(z + x, 39) * _K1, _turned(y, 33) * _K1
    for at in range(0, (size - 1) & ~63, 64):
        x = _turned(x + y + v[0] + _word(data, at + 16), 37) * _K1 & _MASK
        y = _turned(y + v[1] + _word(data, at + 48), 42) * _K1 & _MASK
        x ^= w[1]
        y ^= v[0]
        z = _turned((z ^ w[0]), 33)
        v = _weak(data, at, v[1] * _K1, x + w[0])
        w = _weak(data, at + 32, z + w[1], y)
        z, x = x, z
    return _two(_two(v[0], w[0]) + _mixed(y) * _K1 + z, _two(v[1], w[1]) + x)
