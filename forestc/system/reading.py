"""Reads files that a user names. Pipes and devices are refused, as they may never end, or be read only once."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path

from forestc.errors import ForestcError

_KINDS = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}


def check_file(path: Path, kind: type[ForestcError]) -> None:
    """Raises an error of type `kind` unless the path is a file or a folder. For a missing file its remedy names a
    similar one of the same folder."""
    mode = 0
    with suppress(OSError, ValueError):
        mode = path.stat().st_mode
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return
    if mode:
        what = _KINDS.get(stat.S_IFMT(mode), "something else")
        raise kind(f"{what}, not a file", where=str(path), do="write the content to a file, and give that")
    beside: list[str] = []
    with suppress(OSError, ValueError):  # The folder does not exist, or the name is too long.
        beside = [file.name for file in path.parent.iterdir()]
    near = get_close_matches(path.name, beside, 1, 0.8)
    remedy = f"did you mean {str(path.parent / near[0])!r}?" if near else "check the path"
    raise kind("there is no such file", where=str(path), do=remedy)


def file_bytes(path: Path, kind: type[ForestcError], most: int) -> bytes:
    """Returns the content of a file. Raises an error of type `kind` if it can't be read, has more than `most` bytes, or
    grows meanwhile."""
    check_file(path, kind)
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            data = file.read(min(size, most) + 1)  # A read allocates as many bytes as it is asked for.
    except OSError as error:
        raise kind(f"can't be read ({error.strerror})", where=str(path), do="check who may read it") from None
    if size > most:
        raise kind(f"the file has {size:,} bytes", where=str(path), do=f"at most {most:,} are read")
    if len(data) != size:
        raise kind("the file changes while it is read", where=str(path), do="wait until it is complete")
    return data


def file_text(path: Path, kind: type[ForestcError], most: int) -> str:
    """Returns the text of a UTF-8 file. Raises an error of type `kind` as `file_bytes` does, and for other bytes."""
    try:
        return file_bytes(path, kind, most).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise kind(f"not UTF-8, from byte {error.start} on", where=str(path), do="save it as UTF-8") from None
