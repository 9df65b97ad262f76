"""Shows what tools measured of a design: the main figures at the top of its page, and tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from forestc.backends.base import Gives
from forestc.backends.table import gives
from forestc.manifest.design import Design
from forestc.manifest.results import Result
from forestc.report.page.blocks import Block, Cell, Code, table, texts
from forestc.report.tables import measure_tables, visible

BY_COMPILE = "when it was compiled"


def results_of(design: Design) -> list[Result]:
    """Returns a list of the results in a design's folder. The synthesis by `compile` is added unless there is a later
    one for the device."""
    results = design.results()
    made = design.manifest.get("made", {}).get("synthesis")
    if made and ("synth", str(made["device"]), False) not in {result.key for result in results}:
        hashes = dict(design.manifest["sha256"]["files"])
        version = str(design.manifest["made"]["versions"].get("forestc", ""))
        results.append(
            Result("synth", str(made["device"]), False, BY_COMPILE, version, design.manifest["hash"], hashes, made)
        )
    return results


def synthesized(design: Design) -> set[str]:
    """Returns the devices for which the design was synthesized without its stream wrapper."""
    return {result.on for result in results_of(design) if result.command == "synth" and not result.stream}


def result_items(design: Design) -> list[tuple[str, str, str]]:
    items = []
    for result in results_of(design):
        figures = result.figures
        if result.command == "synth":
            what = f"LUTs with the stream, {result.on}" if result.stream else f"LUTs on {result.on}"
            mhz = figures["fmax_mhz"]
            routed = "synthesized" if mhz is None else f"{mhz:.1f} MHz, placed and routed"
            if "area" in figures:
                what, routed = f"area on {result.on}", f"{figures['cells']:,} cells"
            size = f"{figures.get('area', figures['lut']):,}"
            items.append((what, size, f"{routed}; {figures['ff']:,} flip-flops"))
        elif result.command == "measure":
            taken = figures["cycles"] or figures["instructions"]
            count = "cycles" if figures["cycles"] else "instructions"
            ran = f"{taken['max_of_all']:,} {count} at most in what was run" if taken else "not run"
            items.append((f"bytes of flash on {result.on}", f"{figures['flash']:,}", ran))
    return [(visible(what), figure, visible(remark)) for what, figure, remark in items]


def result_blocks(design: Design) -> list[Block]:
    results = results_of(design)
    blocks: list[Block] = []
    devices = [_device_row(design, result) for result in results if result.command != "measure"]
    if devices:
        heads = ("device", "of", "LUTs", "logic cells placed", "flip-flops", "carry cells", "RAM cells", "depth, cells",
                 "latency, cycles", "Fmax, MHz", "rows a second", "tools", "date", "state")  # fmt: skip
        foot = "Logic cells placed and Fmax: after place and route, with registers on all ports."
        blocks.append(table("Measured on devices", heads, devices, foot=foot))
    processors = [row for result in results if result.command == "measure" for row in _cpu_rows(design, result)]
    if processors:
        names = ("processor", "entry", "flash, bytes", "RAM, bytes", "stack, bytes", "instructions, mean",
                 "instructions, most", "cycles, mean", "cycles, most", "tools", "date", "state")  # fmt: skip
        foot = "Most: of the rows and of all vectors on and beside thresholds."
        blocks.append(table("Measured on processors", names, processors, foot=foot))
    return blocks + _not_measured(design, results)


def _not_measured(design: Design, results: Sequence[Result]) -> list[Block]:
    commands = {result.command for result in results}
    device = design.manifest["options"].get("device") or "ecp5-25k"
    cpu = design.manifest["options"]["c"].get("cpu") or "cortex-m0plus"
    lines = []
    if gives(design.targets, Gives.VERILOG) and "synth" not in commands:
        lines.append(f"forestc synth DIR --device {device}")
    if gives(design.targets, Gives.HEADER) and "measure" not in commands:
        lines.append(f"forestc measure DIR --cpu {cpu}")
    lead = "Not measured yet: these commands do, and the next page begins with their figures"
    return [Code("\n".join(lines), lead)] if lines else []


def _state(design: Design, result: Result) -> Cell:
    same = result.date == BY_COMPILE or design.is_of_this_content(result)
    return Cell("of this design", tone="good") if same else Cell("the design changed since", tone="bad")


def _device_row(design: Design, result: Result) -> tuple[Any, ...]:
    figures = result.figures
    placed = figures if result.command == "place" else figures.get("placed")
    mhz = figures["fmax_mhz"]
    return (
        visible(result.on),
        "engine" if "clocks_per_row" in figures else "core with stream" if result.stream else "core",
        figures.get("lut"),
        None if placed is None else Cell(f"{placed['used']:,} of {placed['available']:,}", placed["used"]),
        *(figures.get(key) for key in ("ff", "carry", "bram", "depth", "latency_cycles")),
        None if mhz is None else Cell(f"{mhz:.1f}", mhz),
        figures.get("rows_per_second"),
        visible(", ".join(map(str, figures["tools"]))),
        visible(result.date),
        _state(design, result),
    )


def _cpu_rows(design: Design, result: Result) -> list[tuple[Any, ...]]:
    figures = result.figures
    return [
        (
            visible(result.on),
            visible(str(name)),
            *(entry[key] for key in ("flash", "ram", "stack")),
            *((entry[kind] or {}).get(key) for kind in ("instructions", "cycles") for key in ("mean", "max_of_all")),
            visible(", ".join(map(str, figures["tools"]))) + f", -O{visible(figures['optimize'])}",
            visible(result.date),
            _state(design, result),
        )
        for name, entry in figures["entries"].items()
    ]


def firmware_results(design: Design) -> list[Block]:
    measured = [result for result in design.results() if result.command == "measure"]
    return [
        block for result in measured for block in measure_tables(str(design.manifest["name"]), result.figures, texts)
    ]
