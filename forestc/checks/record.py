"""Makes and writes check.json: the results of a folder's last check, and the hashes of the checked files."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from forestc.manifest.checked import CHECK, CHECK_FORMAT
from forestc.manifest.design import Design
from forestc.system.version import __version__
from forestc.system.writing import written_or_why


def check_record(design: Design, digests: Mapping[str, str | None], results: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the content of check.json. digests: hash of each file when the check began. results: further fields, such
    as the result of each engine."""
    return {
        "format": CHECK_FORMAT,
        "forestc": __version__,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "hash": design.manifest["hash"],
        "files": dict(digests),
        **results,
    }


def write_record(folder: Path, record: Mapping[str, Any]) -> str:
    """Writes check.json. Returns why it could not be written; "" if it was."""
    return written_or_why(folder / CHECK, record)
