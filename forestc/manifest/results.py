"""measured.json: the results of synthesis and measurement for a folder's design, each with tools and date.

It holds the last result for each command, device or processor, and with or without stream; each with the hashes of the
design and of its files at that time. A file that forestc did not write is refused and never replaced.
"""

from __future__ import annotations

import json
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
from forestc.system.writing import write_text

MEASURED = "measured.json"
FORMAT = 1
Command = Literal["synth", "measure", "place"]
AGAIN = "remove it, and run synth or measure again"

_OPTIONAL: Schema = FIGURE | {"type": ["number", "null"]}
_TEXTS: Schema = {"type": "array", "items": TEXT}
# Holds counts of one run.
_RUN: Schema = {
    "type": ["object", "null"],
    "required": ["mean", "max", "max_of_all"],
    "properties": dict.fromkeys(("mean", "max", "max_of_all"), FIGURE),
}
_BOUND: Schema = COUNT | {"type": ["integer", "null"]}
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
        "required": [*_ENTRY, "stack_by", "stack_seen", "expected"],
        "properties": _ENTRY | {"stack_by": TEXT, "stack_seen": _OPTIONAL, "expected": _OPTIONAL, "worst_case": _BOUND},
    },
}
_BUDGET: Schema = {
    "type": "object",
    "additionalProperties": {"type": "array", "items": COUNT, "minItems": 2, "maxItems": 2},
}
# Figures that tables show, by command: `_NEEDED` must be there, `_MORE` may be there.
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
    "synth": {"placed": _PLACED, "stream": {"type": ["object", "boolean", "null"]}},
    "measure": {"worst_case": _BOUND, "budget": _BUDGET},
    "place": {},
}


@dataclass(frozen=True)
class Result:
    """A result of a command for a design. command: synth, measure or place. on: the device or processor. stream:
    whether the design had its stream wrapper. date: in ISO 8601. hash, files: of the design and its files at that time.
    figures: as the command gives them."""

    command: Command
    on: str
    stream: bool
    date: str
    forestc: str
    hash: str
    files: Mapping[str, str | None]
    figures: Mapping[str, Any]

    @property
    def key(self) -> tuple[str, str, bool]:
        return self.command, self.on, self.stream


def read_results(folder: Path) -> list[Result]:
    """Returns the results of a folder in the order of measured.json; an empty list if there is no file. Raises
    ForestcError, naming the field, if forestc did not write the file."""
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
    """Adds a result to a folder's measured.json, completely or not at all. It replaces an older result of the same
    kind. design: hash and digests of the design. Returns why the file could not be written, or ""."""
    date = datetime.now(UTC).isoformat(timespec="seconds")
    on = str(figures["cpu" if command == "measure" else "device"])
    added = Result(command, on, stream, date, __version__, design[0], design[1], figures)
    try:
        before = read_results(folder)
    except ForestcError as error:
        return f"{MEASURED} was not written: {error}"
    results = {result.key: result for result in (*before, added)}
    record = {"format": FORMAT, "results": [asdict(results[key]) for key in sorted(results)]}
    try:
        write_text(folder / MEASURED, json.dumps(record, indent=1) + "\n")
        return ""
    except OSError as error:
        return f"{MEASURED} was not written ({error.strerror}): {folder}"


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
    """Raises DamagedError, naming the field, if the figures do not fit the command. path: names them in the error."""
    needed = _NEEDED[command]
    hold(figures, {"required": list(needed), "properties": needed | _MORE[command]}, path)
    if command == "synth" and figures["fmax_mhz"] is not None and figures.get("placed") is None:
        raise DamagedError(f"{path}.placed is missing, and fmax_mhz is there")
