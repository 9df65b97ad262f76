"""Reads and verifies evidence: a folder that describes a design as it was checked, with a copy of its files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from forestc.errors import CheckError, ForestcError
from forestc.manifest.content import digest
from forestc.manifest.design import digest_of
from forestc.system.records import INNER_PATH, SHA256, TEXT, Schema, hold_text, inside, read_text

RECORD, PAGE, COPIES = "evidence.json", "evidence.html", "design"
FORMAT = 1
MOST_BYTES = 1 << 24  # bytes of evidence.json, and of a file whose changed line is shown
SHOWN = 80  # characters of a changed line that are shown
AGAIN = "make the evidence again, or take the folder as it was filed"

_TEXTS: Schema = {"type": "array", "items": TEXT}
_SECTION: dict[str, Schema] = {
    "name": {"type": "string", "pattern": "^[a-z]+$"},
    "title": TEXT,
    "text": _TEXTS,
    "head": _TEXTS,
    "rows": {"type": "array", "items": {"type": "array", "items": {"type": ["string", "number", "null"]}}},
}
_FIELDS: dict[str, Schema] = {
    "format": {"const": FORMAT},
    "name": TEXT,
    "command": TEXT,
    "files": {"type": "object", "propertyNames": INNER_PATH, "additionalProperties": SHA256},
    "tools": {"type": "object", "additionalProperties": TEXT},
    "processor": TEXT,
    "native": {"type": "boolean"},
    "sections": {
        "type": "array",
        "items": {
            "type": "object", "properties": _SECTION, "required": list(_SECTION), "additionalProperties": False,
        },
    },
    "sha256": SHA256,
}  # fmt: skip


def schema() -> Schema:
    """Returns the JSON Schema of evidence.json."""
    return {"type": "object", "properties": _FIELDS, "required": list(_FIELDS), "additionalProperties": False}


def sealed(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a record with, as its last field, the SHA-256 of the others. fields: all fields but this one."""
    return {**fields, "sha256": digest(text_of(fields))}


def text_of(record: Mapping[str, Any]) -> str:
    return json.dumps(record, indent=1, allow_nan=False) + "\n"


def read_evidence(folder: Path) -> dict[str, Any]:
    """Returns the content of evidence.json. Raises CheckError if it is missing, or is not as forestc wrote it."""
    try:
        text = read_text(folder / RECORD, MOST_BYTES)
    except (OSError, ValueError) as error:
        raise CheckError(f"{RECORD} can't be read ({error})", where=str(folder), do=AGAIN) from None
    try:
        record: dict[str, Any] = hold_text(text, folder / RECORD, schema(), AGAIN)
    except ForestcError as error:
        raise CheckError(error.what, where=str(folder), do=AGAIN) from None
    widths = all(len(row) == len(part["head"]) for part in record["sections"] for row in part["rows"])
    fields = {name: value for name, value in record.items() if name != "sha256"}
    if not widths or text != text_of(sealed(fields)):
        raise CheckError(f"{RECORD} changed after forestc wrote it", where=str(folder), do=AGAIN)
    return record


def changes(record: Mapping[str, Any], folder: Path, design: Path | None) -> Iterator[str]:
    """Yields a line for each file that differs from the record, in the evidence's copy and in a design's folder."""
    for path, recorded in record["files"].items():
        copied = digest_of(folder / COPIES, path)
        if copied != recorded:
            yield f"{COPIES}/{path} in the evidence {'changed' if copied else 'is missing'}"
        if design is None:
            continue
        present = digest_of(design, path)
        if present != recorded:
            where = _first_change(folder / COPIES, design, path) if present and copied == recorded else ""
            yield f"{path} of the design {'changed' if present else 'is missing'}{where}"


def _first_change(before: Path, after: Path, path: str) -> str:
    try:
        old, new = (read_text(inside(folder, path), MOST_BYTES).split("\n") for folder in (before, after))
    except (OSError, ValueError):
        return ""
    line = next(
        (k for k, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]), min(len(old), len(new))
    )
    was, now = (ascii(lines[line].strip()[:SHOWN]) if line < len(lines) else "nothing" for lines in (old, new))
    return f", line {line + 1}: {was} became {now}"
