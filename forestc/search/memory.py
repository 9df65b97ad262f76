"""Stores results of passes in a folder `.kept/`, so that no search runs the same pass twice. Each file is named by a
hash of everything that its result depends on."""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import zipfile
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.errors import ForestcError
from forestc.forest.ir import Forest
from forestc.forest.text import parse_forest, print_forest
from forestc.passes.base import Pass, PassResult, print_pass
from forestc.passes.promises import CHECKS, Promise
from forestc.passes.scorer import Scorer
from forestc.rows.batches import Rows
from forestc.search.settle import settled
from forestc.system.records import COUNT, TEXT, Schema, hold
from forestc.system.version import __version__

FOLDER = ".kept"
MOST = 500_000_000  # bytes of the folder; beyond it, the least recently used files are removed
MOST_CONTENT = 1 << 30  # bytes of one result after decompression
_PROMISES = {kind.__name__: kind for kind in CHECKS}


@dataclass(frozen=True)
class ResultStore:
    """A folder of results that several processes may use at once. An error in writing is ignored."""

    folder: Path
    most: int = MOST  # limits the folder's bytes

    def get(self, key: str) -> bytes | None:
        """Returns the content stored under a key; None if it is missing or damaged."""
        path = self._path(key)
        try:
            unpacker = zlib.decompressobj()
            content = unpacker.decompress(path.read_bytes(), MOST_CONTENT)
        except (OSError, zlib.error):
            return None
        if not unpacker.eof:  # The file is cut off, or larger than any result.
            return None
        with suppress(OSError):
            os.utime(path)
        return content

    def put(self, key: str, content: bytes) -> None:
        """Stores a content. Removes the least recently used files if the folder is too large."""
        path = self._path(key)
        half = path.with_name(f"{path.name}.{os.getpid()}")
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            half.write_bytes(zlib.compress(content, 1))
            half.replace(path)
            self._drop()

    def _path(self, key: str) -> Path:
        return self.folder / hashlib.sha256(key.encode()).hexdigest()

    def _drop(self) -> None:
        with os.scandir(self.folder) as entries:
            files = sorted((entry.stat().st_mtime, entry.stat().st_size, entry.path) for entry in entries)
        over = sum(size for _, size, _ in files) - self.most
        for _, size, path in files:
            if over <= 0:
                break
            Path(path).unlink(missing_ok=True)
            over -= size


@dataclass(frozen=True)
class Ran:
    """A forest and the SHA-256 of its text, which is part of the keys of results stored for the forest."""

    forest: Forest
    text_hash: str

    @staticmethod
    def of(forest: Forest) -> Ran:
        return Ran(forest, hashlib.sha256(print_forest(forest).encode()).hexdigest())


@dataclass(frozen=True)
class StoredArrays:
    """Stored arrays from which a pass can resume."""

    store: ResultStore
    key: str

    def recall(self, name: str) -> dict[str, NDArray[Any]] | None:
        content = self.store.get(f"{self.key} {name}")
        if content is None:
            return None
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as file:
                return {part.filename.removesuffix(".npy"): _array(file, part) for part in file.infolist()}
        except Exception:  # noqa: BLE001  a damaged archive can raise anything
            return None

    def remember(self, name: str, arrays: Mapping[str, NDArray[Any]]) -> None:
        file = io.BytesIO()
        np.savez(file, allow_pickle=False, **arrays)
        self.store.put(f"{self.key} {name}", file.getvalue())


def _array(file: zipfile.ZipFile, part: zipfile.ZipInfo) -> NDArray[Any]:
    """Returns an array of a NumPy archive. Raises ValueError for unsafe content."""
    with file.open(part) as content:
        npy = np.lib.format
        read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}[npy.read_magic(content)]
        shape, _, kind = read(content)
        if kind.hasobject or math.prod(shape) * kind.itemsize > part.file_size or part.compress_type:
            raise ValueError("no array that was kept")
    with file.open(part) as content:
        return np.asarray(npy.read_array(content, allow_pickle=False))


@dataclass(frozen=True)
class Passes:
    """A runner of passes on one model and its rows, which stores their results."""

    store: ResultStore
    rows: Rows
    scorer: Scorer

    @cached_property
    def content(self) -> str:
        """A hash of forestc's version, the model, its rows and the scoring rows."""
        parts = hashlib.sha256(f"{__version__} {print_forest(self.scorer.model)}".encode())
        for rows in (self.rows, self.scorer.held_out):
            for batch in rows.batches():
                parts.update(f"{batch.X.shape}".encode() + batch.X.tobytes())
                parts.update(b"" if batch.truth is None else batch.truth.tobytes())
            parts.update(b"end")
        return parts.hexdigest()

    def run(self, step: Pass, before: Ran) -> tuple[PassResult, Ran]:
        """Returns the result of a pass, either stored or computed, and the result's forest with its hash."""
        key = " ".join((self.content, before.text_hash, print_pass(step)))
        content = self.store.get(key)
        result = None if content is None else read_result(content)
        if result is None:
            memory = StoredArrays(self.store, f"{self.content} {before.text_hash}")
            result = settled(step, before.forest, self.rows, self.scorer, memory)
            content = printed_result(result)
            if content is not None:
                self.store.put(key, content)
        return result, Ran.of(result.forest)


def printed_result(result: PassResult) -> bytes | None:
    """Returns a result as bytes; None if it can't be restored from bytes."""
    try:
        text = json.dumps(
            {
                "report": result.report,
                "promises": [[type(promise).__name__, vars(promise)] for promise in result.promises],
                "forest": print_forest(result.forest),
            }
        )
        same = json.loads(text)["report"] == result.report
    except (TypeError, ValueError):
        return None
    return text.encode() if same else None


_PROMISE: Schema = {
    "type": "object",
    "properties": {"changed": COUNT},
    "additionalProperties": {"type": "number"},
}
_RESULT: Schema = {
    "type": "object",
    "required": ["report", "promises", "forest"],
    "properties": {
        "report": {"type": "object"},
        "forest": TEXT,
        "promises": {
            "type": "array",
            "items": {"type": "array", "minItems": 2, "maxItems": 2, "items": {"anyOf": [TEXT, _PROMISE]}},
        },
    },
}


def read_result(content: bytes) -> PassResult | None:
    """Returns the result from the bytes of `printed_result`; None for other bytes."""
    try:
        record = json.loads(content)
        hold(record, _RESULT)
        promises: list[Promise] = [_PROMISES[name](**values) for name, values in record["promises"]]
        return PassResult(parse_forest(record["forest"]), tuple(promises), dict(record["report"]))
    except (ForestcError, ValueError, KeyError, TypeError, RecursionError):
        return None
