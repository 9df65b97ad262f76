"""Shows a design's logic by part, its pipeline stages, and its cells on a device."""

from __future__ import annotations

import re

from forestc.compilation.synthesis import Placement
from forestc.costs.devices import DeviceFamily
from forestc.costs.shares import PARTS, part_of, shares
from forestc.forest.summary import counted
from forestc.lowering.timing import DELAYS, stages_of
from forestc.manifest.design import Design
from forestc.report.page import design_charts
from forestc.report.page.blocks import Block, Drawing, percent, table
from forestc.report.page.svg import placed_svg

PORTS = "registers on ports"
_KEYS = {"inputs": "k0", "comparators": "k1", "trees": "k2", "sums": "k3", "decision": "k4", PORTS: "k5"}
_LOGIC, _STORED = re.compile(r"COMB|_LC$"), re.compile(r"_FF|DFF")
UNITS = {"lut6": "levels of LUTs"}


def hardware_blocks(design: Design, family: DeviceFamily) -> list[Block]:
    netlist = design.netlist
    by_part = shares(netlist, family)
    whole = sum(share.all_luts for share in by_part.values())
    stored = sum(share.flip_flops for share in by_part.values())
    rows = [
        (part, by_part[part].cells, percent(by_part[part].all_luts, whole), percent(by_part[part].flip_flops, stored))
        for part in PARTS
        if by_part[part].cells
    ]
    foot = (
        f"Proportions, of a cover of the netlist by {family.lut_inputs}-input LUTs before synthesis. "
        "How many LUTs there are is what a tool finds for a device."
    )
    heads = ("part", "cells of the netlist", "share of LUTs", "share of flip-flops")
    delays = design.lowering.family
    unit = UNITS.get(delays, "ns")
    parts = [part_of(netlist, net) for net in range(len(netlist.cells))]
    stages = stages_of(netlist, DELAYS[delays])
    lines = [
        (stage.number + 1, round(stage.delay, 2), len(stage.path), stage.registers,
         ", ".join(dict.fromkeys(parts[net] for net, _ in stage.path)))
        for stage in stages
    ]  # fmt: skip
    title = counted(netlist.latency, "stage") if netlist.latency else "Combinational: one stage without registers"
    stage_heads = ("stage", f"delay, {unit}", "cells on the slowest path", "bits registered after it", "through")
    by_delay = f"By the delays of {delays}, by which the registers were placed."
    return [
        *([design_charts.shares_chart(by_part, family.name)] if whole else []),
        table("Shares by part", heads, rows, foot=foot),
        *([design_charts.stages_chart(stages, parts, unit)] if any(stage.path for stage in stages) else []),
        table(title, stage_heads, lines, foot=by_delay),
    ]


def placed_blocks(design: Design, placed: Placement | None) -> list[Block]:
    """Returns a drawing and a table of the placed design; empty without a placement."""
    if placed is None:
        return []
    netlist = design.netlist
    counts: dict[str, list[int]] = {part: [0, 0] for part in (*PARTS, PORTS)}
    spots: list[tuple[int, int, int, bool, str]] = []
    for cell, net in placed.cells:
        stored = bool(_STORED.search(cell.kind) or _STORED.search(cell.site))
        if not stored and not _LOGIC.search(cell.kind):
            continue
        part: str = PORTS if net is None else part_of(netlist, net)
        counts[part][stored] += 1
        spots.append((cell.x, cell.y, _index_in_tile(cell.site), stored, part))
    if not spots:
        return []
    used, available, mhz = placed.placed.used, placed.placed.available, placed.placed.fmax_mhz
    words = f"The placed design: {len(spots):,} cells on {placed.device}, {used:,} of {available:,} logic cells."
    foot = (
        "Squares are LUTs, dots flip-flops; the frame holds the tiles in use. "
        "A cell without a name of its own counts to the part of the named net it leads to."
    )
    key = tuple((_KEYS[part], part) for part in (*PARTS, PORTS) if any(counts[part]))
    rows = [(part, *counts[part]) for part in (*PARTS, PORTS) if any(counts[part])]
    return [
        Drawing(f"Placed on {placed.device}", words, placed_svg(spots), foot, key),
        table(
            "Placed and routed" + ("" if mhz is None else f": {mhz:.1f} MHz"),
            ("part", "LUTs", "flip-flops"),
            rows,
            foot=f"{used:,} of {available:,} logic cells, by {placed.placed.version}.",
        ),
    ]


def _index_in_tile(site: str) -> int:
    """Returns a cell's position in its tile, 0 to 7, on ECP5 or iCE40."""
    slice_ = re.search(r"SLICE([A-D])\.\D*(\d)", site)
    if slice_:
        return 2 * "ABCD".index(slice_[1]) + int(slice_[2]) % 2
    digits = re.search(r"(\d+)$", site)
    return int(digits[1]) % 8 if digits else 0
