"""The folder of an engine: Verilog, test bench, C that walks images, and the capacity as JSON."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from forestc.engine.capacity import FORMAT, Capacity
from forestc.engine.verilog import emit, emit_bench, emit_walker
from forestc.errors import ForestcError
from forestc.writing import replacing, writing

CAPACITY = "engine.json"


def described(capacity: Capacity) -> dict[str, Any]:
    """The content of engine.json: the capacity, and the widths that follow from it."""
    names = (
        "address_bits", "feature_bits", "node_bits", "value_bits", "output_bits", "mask_index_bits", "lanes", "beats",
        "tdata_bits", "label_bits", "result_bits", "node_words",
    )  # fmt: skip
    widths = {name: getattr(capacity, name) for name in names}
    return {"format": FORMAT, "id": f"{capacity.id:08x}", "capacity": capacity.as_dict(), "widths": widths}


def write_engine(folder: Path, capacity: Capacity) -> None:
    """Writes all files or none. Raises ForestcError for a folder that holds anything else than an engine."""
    files = {
        f"{capacity.name}.v": emit(capacity),
        f"{capacity.name}_tb.v": emit_bench(capacity),
        f"{capacity.name}_image.h": emit_walker(capacity),
        CAPACITY: json.dumps(described(capacity), indent=1) + "\n",
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


def open_engine(folder: str | Path) -> Capacity:
    """The capacity of an engine that `write_engine` wrote. Raises ForestcError."""
    path = Path(folder) / CAPACITY
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["format"] != FORMAT:
            raise ForestcError(
                "was written by another version of forestc", where=str(path), do="write the engine again"
            )
        return Capacity.of(content["capacity"])
    except OSError:
        raise ForestcError(
            f"has no readable {CAPACITY}", where=str(folder), do="give a folder that forestc engine wrote"
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ForestcError(f"is damaged ({error})", where=str(path), do="write the engine again") from None


def _foreign(folder: Path) -> str:
    """A file in the folder that no engine has; "" if there is none."""
    present = {entry.name for entry in os.scandir(folder)}
    if not present:
        return ""
    try:
        name = open_engine(folder).name
    except ForestcError:
        return min(present)
    return min(present - {f"{name}.v", f"{name}_tb.v", f"{name}_image.h", CAPACITY}, default="")
