"""Synthesizes the hardware of an engine: LUTs, flip-flops, memory, clock rate and rows a second."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

from forestc.compilation.synthesis import Synthesized, connected, tool_figures
from forestc.costs.devices import DEVICES
from forestc.engine.area import engine_estimate, rows_per_second
from forestc.engine.capacity import Capacity
from forestc.engine.verilog import emit
from forestc.errors import OptionError, opt
from forestc.options.commands import SynthOptions

_PORT = re.compile(r"^    (input|output) +(?:wire|reg) +(?:\[(\d+):0\] +)?(\w+)", re.M)


def engine_synthesis(capacity: Capacity, options: SynthOptions, clocks: int | None = None) -> dict[str, Any]:
    """Returns the figures of `forestc synth --json` for an engine. clocks: of a row, if an image is known."""
    if options.device not in DEVICES or options.stream:
        raise OptionError(
            "an engine has no stream wrapper"
            if options.stream
            else f"engines are not synthesized for {options.device}",
            where=opt.stream if options.stream else opt.device,
            do="leave it out" if options.stream else "give a device of yosys and nextpnr",
        )
    text = emit(capacity)
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "engine.v"
        path.write_text(text, encoding="utf-8")
        view = connected(capacity.name, ports_of(text, capacity.name))
        figures = tool_figures(Synthesized(capacity.name, [path], view, capacity.memory == "spram"), options)
    rate = rows_per_second(capacity, figures["fmax_mhz"], clocks)
    estimate = engine_estimate(capacity, options.device, clocks)
    return figures | {"estimate": estimate, "latency_cycles": 0, "stream": False} | rate


def ports_of(verilog: str, module: str) -> list[tuple[str, bool, int]]:
    """Returns the ports of a module beside its clock: (name, True for an output, bits)."""
    head = verilog.partition(f"module {module} (")[2].partition(");")[0]
    ports = [(name, way == "output", int(top or 0) + 1) for way, top, name in _PORT.findall(head)]
    return [port for port in ports if port[0] != "aclk"]
