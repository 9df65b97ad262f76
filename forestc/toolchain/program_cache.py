"""Caches compiled programs in the user's folder, by the content that they were compiled from.

They are in the folder `programs` of $FORESTC_CACHE, otherwise of $XDG_CACHE_HOME/forestc, otherwise of
~/.cache/forestc. An empty FORESTC_CACHE turns the cache off.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from forestc.system.writing import replacing

MOST_BYTES = 512 << 20  # bytes of all files in the cache; beyond, the least recently used are removed
SEAL = 32  # bytes of the hash that follows a program in the cache


def cached_program(dependencies: Iterable[str | bytes], target: Path, make: Callable[[], Path]) -> Path:
    """Returns a compiled file: a copy in `target` from the cache, or the result of `make`, which is then cached.
    dependencies: everything that the file depends on."""
    folder = _folder()
    if folder is None:
        return make()
    cached = folder / _key(dependencies)
    with suppress(OSError):
        content, seal = (data := cached.read_bytes())[:-SEAL], data[-SEAL:]
        if _seal(content) == seal:  # A damaged file is built again.
            target.write_bytes(content)
            shutil.copymode(cached, target)
            os.utime(cached)  # The least recently used files are removed first.
            return target
    built = make()
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with replacing(cached) as (new,):  # The file appears at once, so concurrent writers don't matter.
            content = built.read_bytes()
            new.write_bytes(content + _seal(content))
            shutil.copymode(built, new)
        _make_room(folder)
    return built


def _seal(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


def _folder() -> Path | None:
    setting = os.environ.get("FORESTC_CACHE")
    if setting is not None:
        return Path(setting) / "programs" if setting else None
    with suppress(RuntimeError):  # There may be no home folder.
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "forestc" / "programs"
    return None


def _key(parts: Iterable[str | bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


def _make_room(folder: Path) -> None:
    stats = {path: path.stat() for path in folder.rglob("*") if path.is_file()}
    total = sum(stat.st_size for stat in stats.values())
    for path in sorted(stats, key=lambda path: stats[path].st_mtime):
        if total <= MOST_BYTES:
            break
        path.unlink(missing_ok=True)
        total -= stats[path].st_size


def remember(content: bytes) -> None:
    """Notes that this user built a file, so that `is_own` knows it."""
    if (folder := _folder()) is not None:
        with suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            (folder / f"own-{_seal(content).hex()}").touch()


def is_own(content: bytes) -> bool:
    """Returns True if this user built a file with this content. Others may hold anything, and are not run unasked."""
    folder = _folder()
    return folder is not None and (folder / f"own-{_seal(content).hex()}").is_file()
