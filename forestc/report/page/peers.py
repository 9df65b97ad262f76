"""Reads figures of other designs (peers) from a CSV or JSON file, to show them beside a study's front."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from forestc.errors import ForestcError, known_names
from forestc.system.reading import file_text
from forestc.system.records import DamagedError, parse_json

MOST_BYTES, MOST_PEERS = 1 << 20, 500  # bytes, and peers, of a file at most, since its origin is unknown
KNOWN = ("accuracy", "lut", "ff", "latency_cycles", "fmax_mhz", "flash", "ram", "instructions")
_FORM = "give a table with the columns name and figures such as lut,accuracy; or JSON: a list of such objects"


@dataclass(frozen=True)
class Peer:
    """Another design to compare with."""

    name: str
    figures: Mapping[str, float] = field(default_factory=dict)  # known figures by name


def read_peers(path: Path, goals: Collection[str] = ()) -> tuple[Peer, ...]:
    """Reads other designs to compare with (peers) from a file. goals: figures that it may contain besides `KNOWN`.
    Raises ForestcError."""
    where = str(path)
    text = file_text(path, ForestcError, MOST_BYTES)
    rows = _from_json(text, where) if text.lstrip()[:1] in ("[", "{") else _from_csv(text, where)
    if not rows:
        raise ForestcError("holds no peers", where=where, do=_FORM)
    if len(rows) > MOST_PEERS:
        raise ForestcError(f"holds {len(rows):,} peers", where=where, do=f"give at most {MOST_PEERS}")
    known = [*dict.fromkeys((*goals, *KNOWN))]
    return tuple(_peer(row, known, f"{where}, peer {number}") for number, row in enumerate(rows, 1))


def _from_json(text: str, where: str) -> list[Mapping[str, Any]]:
    try:
        rows = parse_json(text)
    except DamagedError as error:
        raise ForestcError(f"is no readable JSON ({error})", where=where, do=_FORM) from None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ForestcError("is not a list of objects", where=where, do=_FORM)
    return rows


def _from_csv(text: str, where: str) -> list[Mapping[str, Any]]:
    try:
        reader = csv.DictReader(io.StringIO(text), strict=True)
        rows: list[Mapping[str, Any]] = list(reader)
    except csv.Error as error:
        raise ForestcError(f"is no readable table ({error})", where=where, do=_FORM) from None
    if len(set(reader.fieldnames or ())) < len(reader.fieldnames or ()):
        raise ForestcError("has two columns of one name", where=where, do="remove one")
    for number, row in enumerate(rows, 1):
        if None in [*row, *row.values()]:
            raise ForestcError("has another number of columns than the head", where=f"{where}, peer {number}", do=_FORM)
    return rows


def _peer(row: Mapping[str, Any], known: Collection[str], where: str) -> Peer:
    keys = [key.strip() for key in row]
    row = dict(zip(keys, row.values(), strict=True))
    if len(row) < len(keys):
        raise ForestcError("names one figure twice", where=where, do="remove one")
    name = row.get("name")
    if not isinstance(name, str) or not name.strip():
        raise ForestcError("has no name", where=where, do=_FORM)
    figures = {key: value for key, value in row.items() if key != "name"}
    unknown = [key for key in figures if key not in known]
    if unknown:
        raise ForestcError(f"unknown figure {unknown[0][:40]!r}", where=where, do=known_names(unknown[0], known))
    return Peer(
        name.strip(), {key: _number(value, key, where) for key, value in figures.items() if value not in ("", None)}
    )


def _number(value: object, key: str, where: str) -> float:
    try:
        number = math.nan if isinstance(value, bool) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ForestcError(f"{key} is no number: {str(value)[:40]!r}", where=where, do="remove it, or write a number")
    if key == "accuracy" and number > 1:
        raise ForestcError(f"accuracy is more than 1: {number:g}", where=where, do="write a share, as in 0.951")
    return number
