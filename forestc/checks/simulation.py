"""simulate: a design's netlist, clock by clock, on rows; waveforms on request."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from forestc.checks.vectors import expected
from forestc.design import Design, open_design
from forestc.errors import ForestcError
from forestc.rows import rows_from
from forestc.rows.encode import encode
from hw_sim import clock_rows


def simulate(
    design: Design | str | Path,
    rows: Any,
    *,
    label: Any = None,
    vcd: Path | None = None,
    gaps: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, Any]:
    """Simulates a compiled design's netlist with one row per clock, and compares the results with the evaluator.

    design: a Design or its folder. vcd: a file for the waveform. gaps: insert idle cycles with invalid inputs between
    some rows. Returns the figures of `forestc simulate --json`. Raises ForestcError for a file that can't be written.
    """
    design = design if isinstance(design, Design) else open_design(design)
    if vcd is not None and (not vcd.name or vcd.is_dir()):
        raise ForestcError("is a folder", where=str(vcd), do="name a file for the waveform")
    opened = rows_from(rows, design.model, label)
    words = np.concatenate([encode(design.forest, batch.X) for batch in opened.batches()])
    idle = [int(n) for n in np.random.default_rng(0).integers(0, 3, len(words))] if gaps else None
    staged: Path | None = None
    try:
        if vcd is not None:  # moved into place at the end, so that no incomplete waveform is left
            staged = vcd.with_name(f".{vcd.name}.part")
        run = clock_rows(design.netlist, words, idle, staged, lambda done: progress(done, len(words)))
        if staged is not None and vcd is not None:
            staged.replace(vcd)
    except OSError as error:
        raise ForestcError(f"can't be written ({error.strerror})", where=str(vcd), do="choose another file") from None
    finally:
        if staged is not None:
            with suppress(OSError):
                staged.unlink(missing_ok=True)
    wanted = expected(design.forest, design.netlist, words)
    return {
        "rows": len(words),
        "cycles": run.cycles,
        "latency_cycles": run.latency,
        "differences": int((run.outputs != wanted).any(axis=1).sum()),
        "vcd": None if vcd is None else str(vcd),
    }
