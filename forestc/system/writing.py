"""Writes files and folders completely or not at all: first to a temporary folder beside them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from fnmatch import fnmatch
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from forestc.errors import ForestcError

MOST_NAME = 200  # bytes of a name at most; file systems take 255, some of them for a scratch folder's suffix
# Matches files that simulators leave behind, such as waveforms.
LEFT = ("work-obj*.cf", "e~*.o", "*.vcd", "*.ghw", "*.vvp")


def left_by_simulator(name: str) -> bool:
    return any(fnmatch(name.rpartition("/")[2], pattern) for pattern in LEFT)


@contextmanager
def replacing(*targets: Path) -> Iterator[list[Path]]:
    """Yields a path for a new version of each target. At the end all targets are replaced or, after an error, none.
    Targets share one folder; files come last."""
    first = targets[0].absolute()
    with TemporaryDirectory(prefix=f".{first.name}.", dir=first.parent, ignore_cleanup_errors=True) as scratch:
        written = [Path(scratch, f"new{k}") for k in range(len(targets))]
        yield written
        with ExitStack() as undo:  # Interrupts undo the moves, too.
            for target, new in zip(targets, written, strict=True):
                if target.is_dir() and not new.is_file():
                    old = new.with_name(f"old-{new.name}")
                    target.replace(old)
                    undo.callback(old.replace, target)
                if new.exists():
                    new.replace(target)
                if target.is_dir():
                    undo.callback(target.replace, new)
            undo.pop_all()


def check_name(folder: Path, where: str) -> None:
    """Raises ForestcError for the root of all folders, and for a name that file systems may not take."""
    if folder.absolute() == folder.absolute().parent:
        raise ForestcError("is the root of all folders", where=where, do="give a folder in it")
    if len(os.fsencode(folder.name)) > MOST_NAME:
        raise ForestcError("has too long a name", where=where, do=f"give a name of at most {MOST_NAME} bytes")


@contextmanager
def writing(where: Path | str, do: str = "choose another file") -> Iterator[None]:
    """Turns an OSError raised inside into a ForestcError. where: the path to name. do: the remedy."""
    try:
        yield
    except OSError as error:
        raise ForestcError(f"can't be written ({error.strerror})", where=str(where), do=do) from None


def write_text(path: Path, text: str) -> None:
    """Writes a UTF-8 file, with line ends as given, completely or not at all. Raises OSError."""
    with replacing(path) as (new,):
        new.write_text(text, encoding="utf-8", newline="\n")


def written_or_why(path: Path, record: Mapping[str, Any]) -> str:
    """Writes a record as JSON. Returns why it could not be written; "" if it was."""
    try:
        write_text(path, json.dumps(record, indent=1) + "\n")
    except OSError as error:
        return f"{path.name} was not written ({error.strerror}): {path.parent}"
    return ""
