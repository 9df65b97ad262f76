"""Writes the Verilog of an engine, and a C header that evaluates its images."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from forestc.engine.capacity import FORMAT, ROWS, Capacity, bits_for
from forestc.system.version import __version__
from hdl_templates import render

MAGIC = int.from_bytes(b"FENG", "little")
HEADER_WORDS = 16
PARTS = ("step", "walker", "sum", "loader", "engine")
FIFO = 32  # limits the results that wait at the output
GROUP = 8  # walkers behind each relay
RELAYS = 2  # registers between the schedule and a walker, one of them in the walker

# Lists the AXI4-Lite registers: (name, byte offset, meaning).
REGISTERS = (
    ("id", 0x00, '"FENG"'),
    ("version", 0x04, "format of nodes and images"),
    ("capacity", 0x08, "number of the capacity, which images bear"),
    ("status", 0x0C, "the port status"),
    ("control", 0x10, "writing 1 to bit 0 clears the counters, to bit 1 forgets what came of an image; reads 0"),
    ("load", 0x14, "the next word of an image; reads 0"),
    ("load_last", 0x18, "its last word; reads 0"),
    ("rows_in", 0x20, "rows taken"),
    ("rows_out", 0x24, "results given"),
    *((f"hash{index}", 0x40 + 4 * index, "of the active model") for index in range(8)),
)
AXI_LITE = (
    ("awaddr", False, 7), ("awprot", False, 3), ("awvalid", False, 1), ("awready", True, 1), ("wdata", False, 32),
    ("wstrb", False, 4), ("wvalid", False, 1), ("wready", True, 1), ("bresp", True, 2), ("bvalid", True, 1),
    ("bready", False, 1), ("araddr", False, 7), ("arprot", False, 3), ("arvalid", False, 1), ("arready", True, 1),
    ("rdata", True, 32), ("rresp", True, 2), ("rvalid", True, 1), ("rready", False, 1),
)  # fmt: skip


@dataclass(frozen=True)
class AdderLevel:
    """A level of a tree of adders or comparators."""

    before: int  # number of input words
    narrow: int = 0  # bits of an input
    bits: int = 0  # bits of an output

    @property
    def count(self) -> int:
        return -(-self.before // 2)


def levels_of(count: int, bits: int = 0, most: int = 0) -> list[AdderLevel]:
    """Returns the levels that reduce `count` words to one. Sums grow by one bit a level, up to `most` bits."""
    levels: list[AdderLevel] = []
    while count > 1:
        levels.append(AdderLevel(count, bits, min(bits + 1, most)))
        bits = levels[-1].bits
        count = levels[-1].count
    return levels


def extended(name: str, bits: int, width: int) -> str:
    """Returns Verilog that extends a signed word."""
    return name if bits == width else f"{{{{{width - bits}{{{name}[{bits - 1}]}}}}, {name}}}"


def words_of(capacity: Capacity) -> tuple[int, int]:
    """Returns the fewest and the most words of an image."""
    fixed = HEADER_WORDS + capacity.outputs + 1
    words = capacity.node_words
    fewest = fixed + 1 + capacity.walkers * (1 + words)
    return fewest, fixed + capacity.slots + capacity.walkers * (1 + words * capacity.nodes)


def view_of(capacity: Capacity) -> dict[str, Any]:
    levels = levels_of(capacity.walkers, capacity.value_bits, capacity.score_bits)
    fewest, most = words_of(capacity)
    slot_bits = bits_for(capacity.slots)
    result = capacity.label_bits + capacity.scores * capacity.outputs * capacity.score_bits
    beat_address = 4 + capacity.beat_index_bits
    bus = [1, capacity.address_bits, 1, 4, 1, capacity.output_bits]  # of a row
    bus += [1, beat_address, capacity.beat_bits]  # of a beat
    bus += [1, bits_for(capacity.walkers), capacity.address_bits + capacity.banks - 1, capacity.node_bits]  # of a node
    return {
        **asdict(capacity),
        "A": capacity.address_bits,
        "BA": beat_address,
        "BEAT": capacity.beat_bits,
        "BI": capacity.beat_index_bits,
        "CB": 1 + max(5, capacity.address_bits, slot_bits, capacity.output_bits),
        "BUS": sum(bus),
        "D": RELAYS + ROWS + len(levels),
        "GROUP": GROUP,
        "GROUPS": -(-capacity.walkers // GROUP),
        "FB": capacity.feature_bits,
        "FIFO": FIFO,
        "IB": max(slot_bits, capacity.output_bits),
        "K": capacity.outputs,
        "KB": capacity.output_bits,
        "LB": capacity.lane_bits,
        "LBL": capacity.label_bits,
        "M": capacity.mask_index_bits,
        "MA": capacity.address_bits + capacity.banks - 1,
        "N": capacity.nodes,
        "NB": capacity.node_bits,
        "NW": capacity.node_words,
        "R": ROWS,
        "RB": capacity.result_bits,
        "RW": result,
        "S": capacity.score_bits,
        "SB": slot_bits,
        "SLOTS": 1 << slot_bits,
        "TD": capacity.tdata_bits,
        "U": capacity.user_bits,
        "V": capacity.value_bits,
        "W": capacity.walkers,
        "WB": bits_for(capacity.walkers),
        "X": capacity.word_bits,
        "at": {register: f"5'd{offset // 4}" for register, offset, _ in REGISTERS},
        "axi_lite": AXI_LITE,
        "beats": capacity.beats,
        "extended": extended,
        "format": FORMAT,
        "id": f"{capacity.id:08x}",
        "lanes": capacity.lanes,
        "least_words": fewest,
        "levels": levels,
        "magic": f"{MAGIC:08x}",
        "most_words": most,
        "register_map": REGISTERS,
        "registered": ("bresp", "bvalid", "rdata", "rresp", "rvalid"),
        "rounds": levels_of(capacity.outputs),
        "score_names": [f"v0_{k} ? c0_{k} : {capacity.score_bits}'d0" for k in reversed(range(capacity.outputs))],
        "version": __version__,
    }


def emit(capacity: Capacity) -> str:
    view = view_of(capacity)
    parts = [*PARTS[:-1], *(["registers"] if capacity.load == "axi-lite" else []), PARTS[-1]]
    texts = [render(f"engine/{part}.v.j2", **view) for part in parts]
    head = render("engine/head.v.j2", **view)
    return "\n".join([head + "`default_nettype none", *texts, "`default_nettype wire\n"])


def emit_walker(capacity: Capacity) -> str:
    """Returns a C99 header that evaluates the images of an engine on a processor."""
    return render("engine/image.h.j2", **view_of(capacity))


def emit_bench(capacity: Capacity) -> str:
    """Returns a self-checking test bench, which reads images, rows and results from files."""
    return render("engine/bench.v.j2", **view_of(capacity), most_clocks=capacity.most_clocks)
