"""Reads and writes measured.json, the results of synthesis and measurement for a folder's design.

It holds the last result for each command, device or processor, and with or without stream.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from forestc.errors import ForestcError
from forestc.system.records import (
    COUNT,
    FIGURE,
    FILES,
    SHA256,
    TEXT,
    DamagedError,
    Schema,
    hold,
    read_record,
    record_of,
    refusing,
    shown,
)
from forestc.system.version import __version__
from forestc.system.writing import written_or_why

MEASURED = "measured.json"
FORMAT = 1
Command = Literal["synth", "measure", "place"]
AGAIN = "remove it, and run synth or measure again"

_OPTIONAL: Schema = FIGURE | {"type": ["number", "null"]}
_TEXTS: Schema = {"type": "array", "items": TEXT}
# Describes the mean and the maxima, over rows, of instructions or cycles.
_RUN: Schema = {
    "type": ["object", "null"],
    "required": ["mean", "max", "max_of_all"],
    "properties": dict.fromkeys(("mean", "max", "max_of_all"), FIGURE),
}
_PLACED: Schema = {
    "type": ["object", "null"],
    "required": ["used", "available"],
    "properties": {"used": COUNT, "available": COUNT},
}
_ENTRY: dict[str, Schema] = {
    "flash": COUNT, "ram": COUNT, "stack": _OPTIONAL, "instructions": _RUN, "cycles": _RUN, "differences": _OPTIONAL,
}  # fmt: skip
_ENTRIES: Schema = {
    "type": "object",
    "additionalProperties": {
        "type": "object",
        "required": [*_ENTRY, "bound", "stack_by", "stack_seen"],
        "properties": _ENTRY | {"bound": _OPTIONAL, "stack_by": TEXT, "stack_seen": _OPTIONAL},
    },
}
_BUDGET: Schema = {
    "type": "object",
    "additionalProperties": {"type": "array", "items": COUNT, "minItems": 2, "maxItems": 2},
}
# Lists the required figures of each command; `_MORE` lists optional ones.
_NEEDED: dict[str, dict[str, Schema]] = {
    "synth": {
        "device": TEXT, "lut": COUNT, "ff": COUNT, "carry": COUNT, "bram": COUNT, "depth": _OPTIONAL,
        "fmax_mhz": _OPTIONAL, "tools": _TEXTS, "latency_cycles": COUNT,
    },
    "measure": {
        "cpu": TEXT, "entry": TEXT, **_ENTRY, "entries": _ENTRIES, "rows": COUNT, "rows_given": COUNT,
        "vectors": COUNT, "optimize": TEXT, "tools": _TEXTS,
    },
    "place": {"device": TEXT, "fmax_mhz": _OPTIONAL, "used": COUNT, "available": COUNT, "tools": _TEXTS},
}  # fmt: skip
_MORE: dict[str, dict[str, Schema]] = {
    "synth": {
        "placed": _PLACED,
        "cells": COUNT,
        "area": {"type": "number"},
        "rows_per_second": _OPTIONAL,
        "stream": {"type": ["object", "boolean", "null"]},
    },
    "measure": {"budget": _BUDGET},
    "place": {},
}


@dataclass(frozen=True)
class Result:
    """A result of synth, measure or place for a design."""

    command: Command
    on: str  # device or processor
    stream: bool  # True if the design had its stream wrapper
    date: str  # date and time in ISO 8601
    forestc: str  # version of forestc
    hash: str  # SHA-256 of the design
    files: Mapping[str, str | None]  # SHA-256 of each file of the design
    figures: Mapping[str, Any]

    @property
    def key(self) -> tuple[str, str, bool]:
        return self.command, self.on, self.stream


def read_results(folder: Path) -> list[Result]:
    """Returns the results in a folder's measured.json; an empty list without the file. Raises ForestcError if forestc
    did not write the file."""
    path = folder / MEASURED
    if not path.exists():
        return []
    results = read_record(path, _SCHEMA, AGAIN, AGAIN)["results"]
    with refusing(path, AGAIN):
        for index, result in enumerate(results):
            figures = f"results[{index}].figures"
            check_figures(result["command"], result["figures"], figures)
            on = "cpu" if result["command"] == "measure" else "device"
            named = result["figures"][on]
            if result["on"] != named:
                raise DamagedError(f"{figures}.{on} is {shown(named)}, and the result is of {shown(result['on'])}")
    return [Result(**result) for result in results]


def add_result(
    folder: Path,
    command: Command,
    figures: Mapping[str, Any],
    design: tuple[str, Mapping[str, str | None]],
    *,
    stream: bool = False,
) -> str:
    """Adds a result to a folder's measured.json, or replaces the one of the same `key`. design: hash, and SHA-256 of
    each file. Returns why writing failed, or ""."""
    date = datetime.now(UTC).isoformat(timespec="seconds")
    on = str(figures["cpu" if command == "measure" else "device"])
    added = Result(command, on, stream, date, __version__, design[0], design[1], figures)
    try:
        before = read_results(folder)
    except ForestcError as error:
        return f"{MEASURED} was not written: {error}"
    results = {result.key: result for result in (*before, added)}
    record = {"format": FORMAT, "results": [asdict(results[key]) for key in sorted(results)]}
    return written_or_why(folder / MEASURED, record)


_SCHEMA: Schema = {
    "type": "object",
    "required": ["format", "results"],
    "properties": {
        "format": {"const": FORMAT},
        "results": {
            "type": "array",
            "items": record_of(Result, hash=SHA256, files=FILES, figures={"type": "object"})
            | {"additionalProperties": False},
        },
    },
}


def check_figures(command: Command, figures: Mapping[str, Any], path: str) -> None:
    """Raises DamagedError if the figures do not fit the command. path: names the figures in the error."""
    needed = _NEEDED[command]
    hold(figures, {"required": list(needed), "properties": needed | _MORE[command]}, path)
    if command == "synth" and figures["fmax_mhz"] is not None and figures.get("placed") is None:
        raise DamagedError(f"{path}.placed is missing, and fmax_mhz is there")
