"""Where the logic of a design goes, its stages, and where its cells lie on a device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from forestc.costs.devices import DELAYS, Family
from forestc.costs.shares import PARTS, part_of, shares
from forestc.design import Design
from forestc.lowering.stages import stages_of
from forestc.report.page import design_charts
from forestc.report.page.blocks import Block, table

UNITS = {"lut6": "levels of LUTs"}


def hardware_blocks(design: Design, family: Family) -> list[Block]:
    """LUTs by part, and the stages with their delays."""
    netlist = design.netlist
    found = shares(netlist, family)
    whole = sum(share.all_luts for share in found.values())
    rows = [
        (part, found[part].cells, found[part].luts, found[part].chain_bits, found[part].flip_flops)
        for part in PARTS
        if found[part].cells
    ]
    foot = (
        f"Counted before synthesis in a cover of the netlist by {family.lut_inputs}-input LUTs, {whole:,} in all: "
        "proportions rather than what a tool will find."
    )
    heads = ("part", "cells of the netlist", "LUTs", "bits of carry chains", "flip-flops")
    delays = design.lowering.family
    unit = UNITS.get(delays, "ns")
    parts = [part_of(netlist, net) for net in range(len(netlist.cells))]
    stages = stages_of(netlist, DELAYS[delays])
    lines = [
        (stage.number + 1, _shown(stage.delay), len(stage.path), stage.registers,
         ", ".join(dict.fromkeys(parts[net] for net, _ in stage.path)))
        for stage in stages
    ]  # fmt: skip
    title = f"{netlist.latency} stages" if netlist.latency else "Combinational: one stage without registers"
    stage_heads = ("stage", f"delay, {unit}", "cells on the slowest path", "bits registered after it", "through")
    by_delay = f"By the delays of {delays}, by which the registers were placed."
    return [
        *([design_charts.shares_chart(found, family.name)] if whole else []),
        table("LUTs and flip-flops by part", heads, rows, foot=foot),
        *([design_charts.stages_chart(stages, parts, unit)] if any(stage.path for stage in stages) else []),
        table(title, stage_heads, lines, foot=by_delay),
    ]


def _shown(value: float) -> float:
    return round(value, 2)


def placed_blocks(design: Design, placed: Mapping[str, Any] | None) -> list[Block]:
    """The placed design drawn; nothing without a placement."""
    return []
