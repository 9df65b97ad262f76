"""Opens YDF's model folders: packs a folder as a zip archive, and reads the files and tree nodes of such an archive."""

from __future__ import annotations

import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from forestc.errors import CUT, DAMAGED, ModelError
from forestc.frontends.ydf.wire import Message
from forestc.system.reading import file_bytes

MAX_RATIO = 100  # bounds the bytes that a compressed byte may become, beyond the first MiB
MAX_UNPACKED = 1 << 30  # bounds the bytes that compressed files become

MEMBER = r"([^/]+/)?[^/]*data_spec\.pb"  # matches the file in an archive that tells a model
_SPEC = "data_spec.pb"
_WANTED = re.compile(r"(data_spec|header|\w+_header)\.pb|nodes-\d+-of-\d+")


def is_model(folder: Path) -> bool:
    return any(folder.glob(f"*{_SPEC}"))


def packed(folder: Path, most: int) -> bytes:
    """Returns a zip archive, not compressed, of a model folder's files. most: limits their bytes."""
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for path in sorted(folder.iterdir()):
            if re.search(rf"({_WANTED.pattern})$", path.name):
                data = file_bytes(path, ModelError, most)
                most -= len(data)
                archive.writestr(zipfile.ZipInfo(path.name), data)  # The date of ZipInfo is fixed, so hashes agree.
    return stream.getvalue()


@dataclass(frozen=True)
class ModelFiles:
    """The files of a model by name, without the prefix that TensorFlow Decision Forests gives them."""

    data: dict[str, bytes]
    where: str

    def file(self, name: str) -> bytes:
        if name not in self.data:
            raise ModelError(f"has no {name}", where=self.where, do=CUT)
        return self.data[name]

    def message(self, name: str) -> Message:
        return Message(self.file(name), f"{self.where}, {name}")

    def nodes(self, shards: int, form: str) -> Iterator[Message]:
        """Yields the nodes of all trees. form: how the file's header calls the format of the node files."""
        count = 0
        for shard in range(shards):
            name = f"nodes-{shard:05d}-of-{shards:05d}"
            where = f"{self.where}, {name}"
            for record in _records(self.file(name), form, where):
                yield Message(record, f"{where}, node {count}")
                count += 1


def opened(data: bytes, where: str) -> ModelFiles:
    """Reads the archive of a model folder. Raises ModelError if it is damaged or holds several models."""
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            specs = [name for name in archive.namelist() if re.fullmatch(MEMBER, name)]
            if len(specs) != 1:
                names = ", ".join(specs)[:160]
                raise ModelError(
                    f"holds {len(specs)} models: {names}", where=where, do="give each model its own folder"
                )
            start = specs[0].removesuffix(_SPEC)
            wanted = [info for info in archive.infolist() if info.filename.startswith(start)]
            wanted = [info for info in wanted if _WANTED.fullmatch(info.filename.removeprefix(start))]
            if sum(info.file_size for info in wanted) > _most(data):
                raise ModelError(f"unpacks to more than {_most(data):,} bytes", where=where, do=DAMAGED)
            return ModelFiles({info.filename.removeprefix(start): archive.read(info) for info in wanted}, where)
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, RuntimeError, NotImplementedError, ValueError) as error:
        raise ModelError(f"not a readable zip archive ({error})", where=where, do=CUT) from None


def _most(data: bytes) -> int:
    return max(len(data), min((1 << 20) + MAX_RATIO * len(data), MAX_UNPACKED))


def _records(data: bytes, form: str, where: str) -> Iterator[bytes]:
    """Yields the records of a file of nodes: of a blob sequence, or of TensorFlow's TFRecord."""
    if form.startswith("BLOB_SEQUENCE"):
        magic, version, compression = struct.unpack("<2sHB3x", data[:8]) if len(data) >= 8 else (b"", 0, 0)
        if magic != b"BS" or version > 1 or compression > 1:
            raise ModelError(f"begins with {data[:8]!r}, not as a blob sequence", where=where, do=DAMAGED)
        data = _unzipped(data[8:], where) if version and compression else data[8:]
        head, tail, size_type = 4, 0, "<I"
    elif form.startswith("TFE_RECORDIO"):
        data = _unzipped(data, where) if data.startswith(b"\x1f\x8b") else data
        head, tail, size_type = 12, 4, "<Q"  # Checksums follow the size and the record.
    else:
        raise ModelError(f"nodes in the form {form[:40]!r} are not read", where=where, do="save it with YDF again")
    at = 0
    while at < len(data):
        start = at + head
        size = struct.unpack_from(size_type, data, at)[0] if start <= len(data) else len(data)
        at = start + size + tail
        if at > len(data):
            raise ModelError("ends within a node", where=where, do=CUT)
        yield data[start : start + size]


def _unzipped(data: bytes, where: str) -> bytes:
    unpacker = zlib.decompressobj(wbits=31)
    try:
        result = unpacker.decompress(data, _most(data))
    except zlib.error as error:
        raise ModelError(f"not readable gzip data ({error})", where=where, do=CUT) from None
    if not unpacker.eof:
        what = f"unpacks to more than {_most(data):,} bytes" if unpacker.unconsumed_tail else "ends within gzip data"
        raise ModelError(what, where=where, do=CUT)
    return result
