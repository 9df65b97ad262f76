"""Implements `synth`: size and clock rate of a design on a device, by synthesis and place and route."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

from forestc.backends.base import Gives
from forestc.backends.engine.files import engine_of
from forestc.backends.table import gives
from forestc.compilation.engine_synthesis import engine_synthesis
from forestc.compilation.synthesis import Circuit, check_fits, known_device, need_tools, synthesis_figures
from forestc.engine.capacity import Capacity
from forestc.engine.folder import CAPACITY, add_synthesis
from forestc.engine.image import image_of
from forestc.errors import OptionError, opt
from forestc.fields.options import takes
from forestc.manifest.design import MANIFEST, Design, open_design
from forestc.options.commands import SynthOptions
from forestc.report.tables import Shown, synth_tables, table
from forestc.toolchain.vendor import PROGRAMS


@takes(SynthOptions)
def synth(options: SynthOptions) -> Shown:
    """Synthesizes a compiled design for a device, and places and routes it.

    Returns
    -------
    dict
        The figures of `forestc synth --json`: `lut`, `ff`, `carry`, `bram` and `depth` of the design itself, and
        `fmax_mhz` with registers on all ports.

    Raises
    ------
    OptionError
        If the device is unknown, or an option does not apply to it.
    ToolError
        If a tool is missing or fails.
    ForestcError
        If the folder can't be read or holds no Verilog, or the design does not fit the device.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> import forestc
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    >>> compiled = forestc.compile(model, X, "iris", label=y)
    >>> forestc.synth("iris", "lut6")["lut"] < 20
    True
    """
    options = replace(options, device=known_device(options.device))
    tool = options.device.partition(":")[0]
    if tool in PROGRAMS and options.stream:
        raise OptionError(
            f"{tool}'s script times the core alone",
            where=opt.stream,
            do=f"leave {opt.stream} out, or give another device",
        )
    if not isinstance(options.design, Design) and _holds_engine(Path(options.design)):
        return _engine(options, engine_of(options.design), Path(options.design), None)
    design = options.design if isinstance(options.design, Design) else open_design(options.design)
    if gives(design.targets, Gives.WALKERS) and not design.has_hardware:
        return _engine(options, design.engine, design.folder, design)
    if options.stream and "stream" not in design.manifest:
        raise OptionError("the design has no stream wrapper", where=str(design.folder), do=f"compile with {opt.stream}")
    circuit = Circuit.of(design)
    need_tools(options.device, options.native, circuit.core)
    if not options.try_anyway:
        check_fits(circuit.netlist, options.device)
    figures = synthesis_figures(circuit, options)
    changed = [path for path in design.changed_files() if path.endswith((".v", ".vhd"))]
    notes = [f"{path} changed after forestc wrote it: the figures are those of the changed file" for path in changed]
    note = design.record("synth", figures, stream=options.stream) if options.record else ""
    name = str(design.manifest["name"])
    figures |= {"notes": [*notes, *([note] if note else [])]}
    return Shown(figures, partial(synth_tables, name, make_table=table))


def _holds_engine(folder: Path) -> bool:
    return (folder / CAPACITY).is_file() and not (folder / MANIFEST).exists()


def _engine(options: SynthOptions, capacity: Capacity, folder: Path, design: Design | None) -> Shown:
    """Synthesizes an engine; with a design the rows a second are those of its image."""
    need_tools(options.device, options.native)
    clocks = None if design is None else image_of(design.forest, capacity).clocks
    figures, note = engine_synthesis(capacity, options, clocks), ""
    if options.record:
        note = add_synthesis(folder, figures) if design is None else design.record("synth", figures)
    figures |= {"notes": [note] if note else []}
    return Shown(figures, partial(synth_tables, capacity.name, make_table=table))
