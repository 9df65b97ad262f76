"""Large forests to C: seconds and peak memory, and how long gcc takes for what `auto` chooses. For firmware.py.

Called with a model and a folder, it compiles one into the other and prints the figures, so that peak memory is its own.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from compile_scale import train
from tools import in_fresh_process, peak_memory_mb

CPU = "cortex-m4f"
LEAVES, COMPILED = (1000, 5000), 1000  # of each of 100 trees; the forest that gcc compiles has this many


def large(folder: Path) -> list[dict[str, Any]]:
    """A row for each forest."""
    rows = []
    for leaves in LEAVES:
        model = train(folder, leaves)
        row = in_fresh_process(__file__, model, folder / f"large{leaves}")
        rows.append(
            {**row, **(_built(folder / f"large{leaves}") if leaves == COMPILED else {"gcc_s": "", "flash": ""})}
        )
        print(*(f"{key} {value}" for key, value in rows[-1].items()), flush=True)
    return rows


def _built(folder: Path) -> dict[str, Any]:
    """What gcc -Os makes of the folder's header."""
    import forestc

    figures = forestc.measure(folder, CPU, entries=["predict"])
    assert figures["differences"] == 0
    return {"gcc_s": figures["entries"]["predict"]["seconds"]["build"], "flash": figures["flash"]}


def measure(model: Path, out: Path) -> None:
    import forestc
    from forestc.backends.c import chosen_layout

    start = time.perf_counter()
    done = forestc.compile(model, None, out, targets=["c"], name="m")
    seconds = time.perf_counter() - start
    row = {
        "nodes": done.design.forest.n_nodes,
        "layout": chosen_layout(done.design.forest, done.design.c_options),
        "to_C_s": round(seconds, 1),
        "peak_MB": round(peak_memory_mb()),
        "header_MB": round(done.design.path("c").stat().st_size / 1e6, 1),
        "seconds": json.dumps(done.figures["seconds"]).replace('"', "").strip("{}"),
    }
    print(json.dumps(row))


if __name__ == "__main__":
    measure(Path(sys.argv[1]), Path(sys.argv[2]))
