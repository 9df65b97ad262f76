"""Reads and writes check.json: the results of a folder's last check, and the hashes of the checked files."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from forestc.system.records import COUNT, FIGURE, FILES, SHA256, TEXT, Schema, read_record
from forestc.system.version import __version__
from forestc.system.writing import written_or_why

CHECK = "check.json"
CHECK_FORMAT = 2
VERDICTS = ("proved", "refuted", "undecided")
AGAIN = "remove it, or run forestc check again"

_SHARE_OR_NONE: Schema = {"type": ["number", "null"], "minimum": 0, "maximum": 1}
_FIGURE_OR_NONE: Schema = FIGURE | {"type": ["number", "null"]}
_SCHEMA: Schema = {
    "type": "object",
    "required": [
        "format", "result", "date", "forestc", "hash", "files", "engines", "proof", "agreement", "rows",
    ],
    "properties": {
        "format": {"const": CHECK_FORMAT},
        "result": {"enum": ["ok", "failed"]},
        "date": TEXT,
        "forestc": TEXT,
        "hash": SHA256,
        "problem": {"type": ["string", "null"]},
        "files": FILES,
        "changed": {"type": "array", "items": TEXT},
        "vectors": {"type": "object", "additionalProperties": COUNT},
        "engines": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "required": ["differences"],
                "properties": {
                    "differences": COUNT | {"type": ["integer", "null"]}, "vectors": COUNT, "left_out": COUNT,
                    "seconds": FIGURE, "tool": TEXT, "why": TEXT, "first": TEXT, "unfit": TEXT,
                },
            },
        },
        "proof": {
            "type": ["object", "null"],
            "required": ["verdict", "parts"],
            "properties": {
                "verdict": {"enum": list(VERDICTS)},
                "parts": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["name", "asked", "proved"],
                        "properties": {"name": TEXT, "asked": COUNT, "proved": COUNT, "seconds": FIGURE, "why": TEXT},
                    },
                },
            },
        },
        "agreement": {
            "type": ["object", "null"],
            "required": ["agreement"],
            "properties": {
                "rows": COUNT, "agreement": _SHARE_OR_NONE, "foreign": COUNT, "model": _FIGURE_OR_NONE,
                "compiled": _FIGURE_OR_NONE, "rms_difference": _FIGURE_OR_NONE,
                "largest_difference": _FIGURE_OR_NONE,
            },
        },
        "rows": {
            "type": ["object", "null"],
            "required": ["sha256"],
            "properties": {"sha256": SHA256, "file": TEXT, "made": {"type": "boolean"}},
        },
    },
}  # fmt: skip


def write_check(folder: Path, design: tuple[str, Mapping[str, str | None]], results: Mapping[str, Any]) -> str:
    """Writes check.json. Returns why it could not be written, or "". design: its hash, and the hash of each file when
    the check began. results: further fields, such as the result of each engine."""
    record = {
        "format": CHECK_FORMAT,
        "forestc": __version__,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "hash": design[0],
        "files": dict(design[1]),
        **results,
    }
    return written_or_why(folder / CHECK, record)


def read_check(folder: Path) -> dict[str, Any] | None:
    """Returns the content of a folder's check.json; None if there is none. Raises ForestcError if forestc did not write
    the file."""
    if not (folder / CHECK).exists():
        return None
    record: dict[str, Any] = read_record(folder / CHECK, _SCHEMA, AGAIN, AGAIN)
    return record
