"""Makes the tables of a design's stream wrapper for its page."""

from __future__ import annotations

from typing import Any

from forestc.backends.stream.axi_stream import stream_of
from forestc.backends.stream.options import StreamOptions
from forestc.compilation.synthesis import STREAM_CLOCKS
from forestc.manifest.design import Design
from forestc.report.page.blocks import Block, Code, table
from forestc.report.page.results import results_of


def stream_blocks(design: Design) -> list[Block]:
    """Returns tables of the stream wrapper; empty without a wrapper."""
    described = design.manifest.get("stream")
    if not described:
        return []
    stream = stream_of(design.netlist, StreamOptions(**design.manifest["options"]["stream"]))
    beats = f"{stream.beats}, of {stream.tdata_bits} bits; a row takes {stream.row.bits}"
    rows: list[tuple[str, Any]] = [
        ("module", str(described["module"])),
        ("beats of a row", beats),
        ("bits of a result, one beat", stream.result_bits),
        ("bits of tuser", stream.user_bits),
        ("lanes of words", f"{stream.row.align} bits or more" if stream.row.align else "packed"),
        ("FIFO of results, places", stream.depth),
        ("clocks from a row's last beat to its result", stream.latency + STREAM_CLOCKS),
        ("rows", "one a clock" if stream.beats == 1 else f"one in {stream.beats} clocks"),
        ("AXI4-Lite registers", len(described["registers"]) if described["registers"] else "none"),
    ]
    blocks: list[Block] = [table("AXI4-Stream", ("what", "figure"), rows)]
    measured = [
        (result.on, *(result.figures[key] for key in ("lut", "ff", "carry", "bram", "fmax_mhz")))
        for result in results_of(design)
        if result.command == "synth" and result.stream
    ]
    if measured:
        heads = ("device", "LUTs", "flip-flops", "carry cells", "RAM cells", "Fmax, MHz")
        return [*blocks, table("The core with its stream, as it goes on the chip", heads, measured)]
    lead = "What goes on the chip, the core with its stream, is measured by"
    return [*blocks, Code("forestc synth DIR --device DEVICE --stream", lead)]
