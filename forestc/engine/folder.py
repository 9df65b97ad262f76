"""The folder of an engine: Verilog, a test bench, C that evaluates images, and the capacity as JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from forestc.engine.capacity import FORMAT, Capacity
from forestc.engine.capacity import schema as capacity_schema
from forestc.engine.verilog import emit, emit_bench, emit_walker
from forestc.errors import ForestcError, OptionError
from forestc.system.records import COUNT, DamagedError, Schema, hold, read_record, refusing, shown
from forestc.system.writing import left_by_simulator, replacing, writing, written_or_why

CAPACITY = "engine.json"
MOST_BYTES = 1 << 16  # bytes of engine.json at most
AGAIN = "write the engine again"


def described(capacity: Capacity) -> dict[str, Any]:
    """Returns the content of engine.json: the capacity, and the widths that follow from it."""
    names = (
        "address_bits", "feature_bits", "node_bits", "value_bits", "output_bits", "mask_index_bits", "lanes", "beats",
        "tdata_bits", "label_bits", "result_bits", "node_words",
    )  # fmt: skip
    widths = {name: getattr(capacity, name) for name in names}
    return {"format": FORMAT, "id": f"{capacity.id:08x}", "capacity": asdict(capacity), "widths": widths}


def write_engine(folder: Path, capacity: Capacity, estimate: Mapping[str, Any] | None = None) -> None:
    """Writes the folder of an engine. estimate: figures for engine.json. Raises ForestcError if the folder holds
    anything but an engine."""
    files = {
        f"{capacity.name}.v": emit(capacity),
        f"{capacity.name}_tb.v": emit_bench(capacity),
        f"{capacity.name}_image.h": emit_walker(capacity),
        CAPACITY: json.dumps(described(capacity) | ({"estimate": estimate} if estimate else {}), indent=1) + "\n",
    }
    if folder.exists() and (not folder.is_dir() or (foreign := _foreign(folder))):
        what = f"holds {foreign!r}, which forestc did not write" if folder.is_dir() else "is a file"
        raise ForestcError(what, where=str(folder), do="give another folder")
    with writing(folder, "choose a folder you may write to"):
        folder.absolute().parent.mkdir(parents=True, exist_ok=True)
        with replacing(folder) as (new,):
            new.mkdir()
            for name, text in files.items():
                (new / name).write_text(text, encoding="utf-8", newline="\n")


def add_synthesis(folder: Path, figures: Mapping[str, Any]) -> str:
    """Adds the figures of a synthesis to engine.json, in place of those of the same device. Returns why writing failed,
    or "". Raises ForestcError if engine.json can't be read."""
    path = folder / CAPACITY
    content = read_engine(path)
    others = [
        figures_before
        for figures_before in content.get("synthesis", [])
        if figures_before.get("device") != figures["device"]
    ]
    return written_or_why(path, content | {"synthesis": [*others, dict(figures)]})


def open_engine(folder: str | Path) -> Capacity:
    """Returns the capacity of an engine in a folder. Raises ForestcError if engine.json can't be read or is wrong."""
    return Capacity.of(read_engine(Path(folder) / CAPACITY)["capacity"])


def read_engine(path: Path) -> dict[str, Any]:
    """Reads and checks engine.json. Raises ForestcError if it can't be read or is wrong."""
    content: dict[str, Any] = read_record(path, _schema(), "give a folder that forestc engine wrote", AGAIN, MOST_BYTES)
    with refusing(path, AGAIN):
        try:
            expected = described(Capacity.of(content["capacity"]))
        except OptionError as error:
            raise DamagedError(str(error).removeprefix("engine: ")) from None
        if content["id"] != expected["id"]:
            raise DamagedError(f"id is {shown(content['id'])}, and the capacity's is {expected['id']}")
        widths = expected["widths"]
        exactly = {"required": list(widths), "additionalProperties": False}
        hold(content["widths"], {"properties": {n: {"const": w} for n, w in widths.items()}, **exactly}, "widths")
    return content


def _schema() -> Schema:
    return {
        "type": "object",
        "properties": {
            "format": {"const": FORMAT},
            "id": {"type": "string"},
            "capacity": capacity_schema(),
            "widths": {"type": "object", "additionalProperties": COUNT},
            "estimate": {"type": "object"},
            "synthesis": {"type": "array", "items": {"type": "object"}},
        },
        "required": ["format", "id", "capacity", "widths"],
        "additionalProperties": False,
    }


def _foreign(folder: Path) -> str:
    """Returns a name in the folder that belongs to no engine, or ""."""
    present = {entry.name for entry in os.scandir(folder) if not left_by_simulator(entry.name)}
    if not present:
        return ""
    try:
        name = open_engine(folder).name
    except ForestcError:
        return min(present)
    return min(present - {f"{name}.v", f"{name}_tb.v", f"{name}_image.h", CAPACITY}, default="")
