"""Holds the bytes of a model file, with properties that tell its kind."""

from __future__ import annotations

import bz2
import lzma
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import PurePath
from typing import Any

from forestc.frontends.shared.document import read_document
from forestc.frontends.shared.emulator import UNSAID, Emulator
from forestc.frontends.shared.iterations import Iterations
from forestc.frontends.shared.ubjson import parse_ubjson

HEAD = 1 << 16  # bytes of a text or a compressed file that are examined
_UTF8_MARK = b"\xef\xbb\xbf"
_UBJSON = frozenset(b"iUIlL$#N")  # lists the markers that may follow the first brace
# Maps a compressed file's first bytes to a function that makes an unpacker.
_UNPACKERS: dict[bytes, Callable[[], Any]] = {
    b"\x1f\x8b": lambda: zlib.decompressobj(wbits=31),
    **dict.fromkeys((b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda"), zlib.decompressobj),
    b"BZh": bz2.BZ2Decompressor,
    b"\xfd7zXZ\x00": lzma.LZMADecompressor,
    b"\x5d\x00\x00": lzma.LZMADecompressor,
}


@dataclass(frozen=True)
class Content:
    """A model file. where: its path. iterations: the boosting iterations to read. emulator: of conifer's models."""

    data: bytes
    where: str
    iterations: Iterations = None
    emulator: Emulator = UNSAID

    @property
    def suffix(self) -> str:
        return PurePath(self.where).suffix.lower()

    @cached_property
    def head(self) -> bytes:
        """The first bytes, without UTF-8's byte order mark and leading white space."""
        return self.data[:HEAD].removeprefix(_UTF8_MARK).lstrip()

    @cached_property
    def document(self) -> Any:
        """The parsed document of a JSON or UBJSON file; None for any other. Raises ModelError if it is damaged."""
        if self.data[:1] == b"{" and self.data[1:2] and self.data[1] in _UBJSON:
            return parse_ubjson(self.data, self.where)
        return read_document(self.data, self.where) if self.head[:1] in (b"{", b"[") else None

    def has(self, *keys: str) -> bool:
        """Returns True if the document is an object with these keys. A key `a.b` is the key b of the object under a."""
        return all(_inside(self.document, key.split(".")) for key in keys)

    @cached_property
    def members(self) -> tuple[str, ...]:
        """The names of the files in a zip archive; empty for other files and damaged archives."""
        if not self.data.startswith(b"PK"):
            return ()
        try:
            with zipfile.ZipFile(BytesIO(self.data)) as archive:
                return tuple(archive.namelist())
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
            return ()

    @cached_property
    def unpacked(self) -> bytes:
        """The first unpacked bytes of a compressed file; empty for other files and damaged ones."""
        for start, unpacker in _UNPACKERS.items():
            if self.data.startswith(start):
                try:
                    return bytes(unpacker().decompress(self.data[:HEAD], HEAD))
                except (zlib.error, lzma.LZMAError, OSError, EOFError, ValueError):
                    return b""
        return b""


def _inside(document: object, path: list[str]) -> bool:
    for key in path:
        if not isinstance(document, Mapping) or key not in document:
            return False
        document = document[key]
    return True
