"""Implements `synth`: size and clock rate of a design on a device, by synthesis and place and route."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

from forestc.compilation.synthesis import circuit_of, known_device, need_tools, synthesis_figures
from forestc.engine.folder import add_synthesis
from forestc.fields.options import takes
from forestc.manifest.design import Design, hardware_in
from forestc.options.commands import SynthOptions
from forestc.report.tables import Shown, synth_tables, table


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
    source = hardware_in(options.design)
    changed = source.changed_files() if isinstance(source, Design) and source.has_hardware else ()
    circuit = circuit_of(source, stream=options.stream)
    circuit.refuse(options.device, any_size=options.try_anyway)
    need_tools(options.device, options.native, circuit.core)
    figures = synthesis_figures(circuit, options)
    if isinstance(source, Design):
        note = source.record("synth", figures, stream=options.stream) if options.record else ""
    else:
        note = add_synthesis(Path(options.design), figures) if options.record else ""
    notes = [
        f"{path} changed after forestc wrote it: the figures are those of the changed file"
        for path in changed
        if path.endswith((".v", ".vhd"))
    ]
    figures |= {"notes": [*notes, *([note] if note else [])]}
    return Shown(figures, partial(synth_tables, circuit.name, make_table=table))
