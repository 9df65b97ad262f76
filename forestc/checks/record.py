"""check.json: the results of the last check of a folder, and the hashes of what was checked."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from forestc.manifest.design import CHECK, CHECK_FORMAT, Design, umask
from forestc.version import __version__


def check_record(design: Design, digests: Mapping[str, str | None], results: Mapping[str, Any]) -> dict[str, Any]:
    """The record as JSON values. digests: of the design's files when the check began. results: the check's options and
    results."""
    return {
        "format": CHECK_FORMAT,
        "forestc": __version__,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "hash": design.manifest["hash"],
        "files": dict(digests),
        **results,
    }


def write_record(folder: Path, record: Mapping[str, Any]) -> str:
    """Writes the record beside the manifest, completely or not at all. Returns why it could not, or ""."""
    beside = None
    try:
        number, beside = tempfile.mkstemp(prefix=f".{CHECK}.", dir=folder)
        with os.fdopen(number, "w", encoding="utf-8", newline="\n") as file:
            file.write(json.dumps(record, indent=1) + "\n")
        Path(beside).chmod(0o666 & ~umask())
        Path(beside).replace(folder / CHECK)
        return ""
    except OSError as error:
        return f"{CHECK} was not written ({error.strerror}): {folder}"
    finally:
        if beside is not None:
            with suppress(OSError):  # it is gone once it has replaced the old one
                Path(beside).unlink()
