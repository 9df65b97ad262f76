"""What compilers made before, kept in the user's folder by the content it was made from.

The folder is $FORESTC_CACHE, else $XDG_CACHE_HOME/forestc, else ~/.cache/forestc. An empty FORESTC_CACHE keeps nothing.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

MOST_BYTES = 512 << 20


def kept(made_from: Iterable[str | bytes], target: Path, make: Callable[[], Path]) -> Path:
    """The file that `make` makes, or a kept copy of it at `target`.

    made_from: all that the file depends on: sources, options, versions of tools. A folder that can't be written to
    keeps nothing, and no error is made of it.
    """
    folder = _folder()
    if folder is None:
        return make()
    place = folder / _key(made_from)
    with suppress(OSError):
        shutil.copy2(place, target)
        os.utime(place)  # the oldest are removed first
        return target
    made = make()
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=folder, prefix=".")
        os.close(handle)
        try:
            shutil.copy2(made, name)
            Path(name).replace(place)  # whole or not at all, whoever else writes it
        finally:
            Path(name).unlink(missing_ok=True)
        _make_room(folder)
    return made


def _folder() -> Path | None:
    given = os.environ.get("FORESTC_CACHE")
    if given is not None:
        return Path(given) / "programs" if given else None
    with suppress(RuntimeError):  # there may be no home
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "forestc" / "programs"
    return None


def _key(parts: Iterable[str | bytes]) -> str:
    found = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        found.update(len(data).to_bytes(8, "little") + data)
    return found.hexdigest()


def _make_room(folder: Path) -> None:
    """Removes the files that were not used for longest until the rest is small enough."""
    sizes = {path: path.stat() for path in folder.iterdir()}
    total = sum(told.st_size for told in sizes.values())
    for path in sorted(sizes, key=lambda path: sizes[path].st_mtime):
        if total <= MOST_BYTES:
            break
        path.unlink(missing_ok=True)
        total -= sizes[path].st_size
