"""Implements `simulate`: runs a design's netlist clock by clock on rows."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from forestc.backends.running import netlist_words
from forestc.backends.saif import saif as activity_text
from forestc.backends.vectors import expected
from forestc.errors import ForestcError
from forestc.fields.options import takes
from forestc.forest.evaluate import encode_numbers
from forestc.manifest.design import Design, design_of
from forestc.options.commands import SimulateOptions
from forestc.report.tables import Shown, titled
from forestc.rows.given import rows_from
from forestc.system.compiled import announce
from forestc.system.writing import replacing, write_text, writing
from hw_sim import activity, clock_rows


@takes(SimulateOptions)
def simulate(options: SimulateOptions) -> Shown:
    """Simulates the netlist of a compiled design, one row per clock.

    The results are compared with the quantized forest.

    Returns
    -------
    dict
        The figures of `forestc simulate --json`, such as `cycles` and `differences`.

    Raises
    ------
    RowsError
        If the rows do not match the model.
    ForestcError
        If the folder can't be read or holds no hardware, or a file can't be written.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> import forestc
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    >>> compiled = forestc.compile(model, X, "iris", label=y, latency=2)
    >>> figures = forestc.simulate("iris", X)
    >>> figures["cycles"], figures["differences"]
    (152, 0)
    """
    design = design_of(options.design)
    _ = design.netlist  # A design without a netlist raises here.
    vcd, saif = (None if file is None else Path(file) for file in (options.vcd, options.saif))
    for file, what in ((vcd, "waveform"), (saif, "activity")):
        if file is not None and (not file.name or file.is_dir()):
            raise ForestcError("is a folder", where=str(file), do=f"name a file for the {what}")
    opened = rows_from(options.rows, design.model, options.label)
    words = np.concatenate([encode_numbers(design.forest, batch.X) for batch in opened.batches()])
    idle = [int(n) for n in np.random.default_rng(0).integers(0, 3, len(words))] if options.gaps else None
    announce()
    with ExitStack() as stack:
        waveform = None
        if vcd is not None:
            stack.enter_context(writing(vcd))
            (waveform,) = stack.enter_context(replacing(vcd))
        run = clock_rows(design.netlist, words, idle, waveform, lambda done: options.progress(done, len(words)))
    toggles = None if saif is None else _write_activity(design, words, saif)
    reference = expected(design.forest, design.netlist, words)
    figures = {
        "rows": len(words),
        "cycles": run.cycles,
        "latency_cycles": run.latency,
        "differences": int((run.outputs != reference).any(axis=1).sum()),
        "vcd": None if vcd is None else str(vcd),
        "saif": None if saif is None else str(saif),
        "toggles_per_row": toggles,
    }
    return Shown(figures, titled(f"simulation of {design.manifest['name']}"))


def _write_activity(design: Design, words: NDArray[np.int64], file: Path) -> float:
    """Writes the switching activity as SAIF. Returns the bits that change per row."""
    counts = activity(design.netlist, netlist_words(design.netlist, words))
    with writing(file):
        write_text(file, activity_text(design.netlist, counts))
    return sum(int(changes.sum()) for changes in counts.toggles) / max(1, counts.rows - 1)
