"""measured.json: what tools found of a folder's design, by command and by what it ran on, each with tools and date.

The last result of each is kept, with the hashes of the design and of its files when the tool ran. A file that forestc
did not write counts as none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from forestc.version import __version__
from forestc.writing import write_text

MEASURED = "measured.json"
FORMAT = 1
Command = Literal["synth", "measure", "place"]
LARGEST = 1e15  # a number beyond it is no figure

_OPTIONAL = (int, float, type(None))
_RUN = (dict, type(None))
# Keys of the figures that tables show, with their types.
_FORMS: Mapping[str, Mapping[str, Any]] = {
    "synth": {
        "device": str, "lut": int, "ff": int, "carry": int, "bram": int, "depth": _OPTIONAL, "fmax_mhz": _OPTIONAL,
        "tools": list, "latency_cycles": int,
    },
    "measure": {
        "cpu": str, "entry": str, "flash": int, "ram": int, "stack": _OPTIONAL, "instructions": _RUN, "cycles": _RUN,
        "entries": dict, "rows": int, "rows_given": int, "vectors": int, "optimize": str, "tools": list,
        "differences": _OPTIONAL,
    },
    "place": {"device": str, "fmax_mhz": _OPTIONAL, "used": int, "available": int, "tools": list},
}  # fmt: skip
_ENTRY: Mapping[str, Any] = {
    "flash": int, "ram": int, "stack": _OPTIONAL, "stack_by": str, "stack_seen": _OPTIONAL, "instructions": _RUN,
    "cycles": _RUN, "expected": _OPTIONAL, "differences": _OPTIONAL,
}  # fmt: skip


@dataclass(frozen=True)
class Result:
    """command: synth, measure or place. on: the device or processor. stream: whether of the design with its stream
    wrapper. date: ISO 8601. hash, files: of the design and its files at that time. figures: of the command."""

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
    """The results of a folder, by command and device; none if forestc did not write the file."""
    try:
        record = json.loads((folder / MEASURED).read_text(encoding="utf-8"))
        results = [Result(**result) for result in record["results"]]
        return results if record["format"] == FORMAT and all(map(_well_formed, results)) else []
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return []


def add_result(
    folder: Path,
    command: Command,
    figures: Mapping[str, Any],
    design: tuple[str, Mapping[str, str | None]],
    *,
    stream: bool = False,
) -> str:
    """Adds a result to a folder's measured.json, in place of an older one of its kind, completely or not at all.
    design: hash and digests of the design. Returns why it could not be written, or ""."""
    date = datetime.now(UTC).isoformat(timespec="seconds")
    on = str(figures["cpu" if command == "measure" else "device"])
    added = Result(command, on, stream, date, __version__, design[0], design[1], figures)
    results = {result.key: result for result in (*read_results(folder), added)}
    record = {"format": FORMAT, "results": [asdict(results[key]) for key in sorted(results)]}
    try:
        write_text(folder / MEASURED, json.dumps(record, indent=1) + "\n")
        return ""
    except OSError as error:
        return f"{MEASURED} was not written ({error.strerror}): {folder}"


_PAIR = {"a": int, "b": int}  # what is used, and the budget


def _well_formed(result: Result) -> bool:
    texts = (result.command, result.on, result.date, result.forestc, result.hash)
    figures = result.figures
    if not (all(isinstance(text, str) for text in texts) and result.command in _FORMS and isinstance(figures, dict)):
        return False
    if not isinstance(result.files, dict) or not _has(figures, _FORMS[result.command]):
        return False
    if result.command == "measure":
        return (
            result.on == figures["cpu"]
            and all(
                isinstance(entry, dict)
                and _has(entry, _ENTRY)
                and all(map(_is_count, (entry["instructions"], entry["cycles"])))
                and _is_bound(entry)
                for entry in figures["entries"].values()
            )
            and all(map(_is_count, (figures["instructions"], figures["cycles"])))
            and _is_bound(figures)
            and all(_has(dict(zip("ab", pair, strict=True)), _PAIR) for pair in figures.get("budget", {}).values())
        )
    placed = figures.get("placed")
    return (
        result.on == figures["device"]
        and (placed is None or _has(placed, {"used": int, "available": int}))
        and (placed is not None or figures["fmax_mhz"] is None or result.command == "place")
    )


def _has(figures: object, form: Mapping[str, Any]) -> bool:
    """Whether all keys are there, with values of their types; numbers are of a size that figures have."""
    if not isinstance(figures, dict) or not form.keys() <= figures.keys():
        return False
    values = [figures[key] for key in form]
    sized = all(not isinstance(value, int | float) or -LARGEST < value < LARGEST for value in values)
    return sized and all(
        isinstance(figures[key], kind) and not isinstance(figures[key], bool) for key, kind in form.items()
    )


def _is_bound(figures: Mapping[str, Any]) -> bool:
    return figures.get("worst_case") is None or _has(figures, {"worst_case": int})


def _is_count(counts: object) -> bool:
    """Whether these are counts of a run: mean, max, max_of_all."""
    return counts is None or _has(counts, dict.fromkeys(("mean", "max", "max_of_all"), (int, float)))
