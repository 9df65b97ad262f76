"""The AXI4-Stream backend: a wrapper of the Verilog core, AXI4-Lite registers, and a cocotb test bench."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from forestc.backends import quantiser
from forestc.backends.ports import input_fields, output_fields, width_of
from forestc.backends.verilog import module_name
from forestc.errors import OptionError
from forestc.netlist.ir import Netlist
from hdl_templates import render

IDENTITY = int.from_bytes(b"FRST")
MAP_VERSION = 1
WIDEST = 1 << 16
CONTROL = "control"
COUNTERS = ("rows_in", "rows_out", "short_rows", "stalls_in", "stalls_out")
_HASH_WORDS = 8


@dataclass(frozen=True)
class StreamOptions:
    """tdata_bits: of the input, a multiple of 8; 0 takes a row in one beat. user_bits: of tuser. registers: an
    AXI4-Lite block as well."""

    tdata_bits: int = 0
    user_bits: int = 1
    registers: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.tdata_bits, int) or not 0 <= self.tdata_bits <= WIDEST or self.tdata_bits % 8:
            raise OptionError(
                f"stream: tdata of {self.tdata_bits} bits",
                do=f"use a multiple of 8 up to {WIDEST}, or 0 for whole rows",
            )
        if not isinstance(self.user_bits, int) or not 1 <= self.user_bits <= WIDEST:
            raise OptionError(f"stream: tuser of {self.user_bits} bits", do=f"use 1 to {WIDEST} bits")


@dataclass(frozen=True)
class Stream:
    """What the options come to for one netlist: widths in bits, beats of a row, places for results."""

    module: str
    latency: int
    x_bits: int
    y_bits: int
    tdata_bits: int
    beats: int
    user_bits: int
    depth: int
    registers: bool

    @property
    def result_bits(self) -> int:
        """Width of m_axis_tdata: y in whole bytes."""
        return -(-self.y_bits // 8) * 8


def stream_of(netlist: Netlist, options: StreamOptions) -> Stream:
    """The widths that the options come to."""
    x_bits = max(1, width_of(input_fields(netlist)))
    tdata_bits = options.tdata_bits or -(-x_bits // 8) * 8
    return Stream(
        module=module_name(netlist),
        latency=netlist.latency,
        x_bits=x_bits,
        y_bits=width_of(output_fields(netlist)),
        tdata_bits=tdata_bits,
        beats=-(-x_bits // tdata_bits),
        user_bits=options.user_bits,
        # a row holds its place for latency + 2 clocks when nothing stalls; one more lets the next one in
        depth=1 << (netlist.latency + 2).bit_length(),
        registers=options.registers,
    )


def emit(netlist: Netlist, options: StreamOptions, design_hash: str) -> dict[str, tuple[str, str]]:
    """{role: (relative path, text)} of the wrapper, the register block if wanted, and the cocotb test bench.

    design_hash: the manifest's, 64 hexadecimal digits. Same input, same bytes.
    """
    stream = stream_of(netlist, options)
    view = {**vars(stream), "result_bits": stream.result_bits, "padded_bits": stream.beats * stream.tdata_bits}
    constants = _constants(stream, design_hash)
    registers = {
        "constants": [(f"5'd{offset // 4}", name, f"32'h{constants[name]:08x}") for name, offset in _map(constants)],
        "counters": [(f"5'd{offset // 4}", name) for name, offset in _map(COUNTERS)],
        "control": f"5'd{register_map()[CONTROL] // 4}",
        "offsets": [(f"0x{offset:02x}", name) for name, offset in register_map().items()],
    }
    parts = {"axi_stream": (f"{stream.module}_axis.v", render("verilog/axi_stream.v.j2", **view))}
    if stream.registers:
        parts["axi_lite"] = (f"{stream.module}_axi_lite.v", render("verilog/axi_lite.v.j2", **view, **registers))
    view |= {"words": quantiser.file_name(netlist), "told": constants, "offsets": register_map(), "counted": COUNTERS}
    bench = render("cocotb/test_axis.py.j2", **view)
    parts["cocotb"] = (f"test_{stream.module}_axis.py", bench)
    return parts


def register_map() -> dict[str, int]:
    """{register: byte offset}; all have 32 bits."""
    names = ["id", "version", "latency", "beats", "x_bits", "y_bits", CONTROL]
    offsets = {name: 4 * index for index, name in enumerate(names)}
    offsets |= {f"hash{index}": 0x20 + 4 * index for index in range(_HASH_WORDS)}
    return offsets | {name: 0x40 + 4 * index for index, name in enumerate(COUNTERS)}


def stream_object(netlist: Netlist, options: StreamOptions) -> dict[str, Any]:
    """The manifest's `stream`."""
    stream = stream_of(netlist, options)
    return {
        "module": f"{stream.module}_axis",
        "tdata_bits": stream.tdata_bits,
        "beats": stream.beats,
        "tuser_bits": stream.user_bits,
        "result_tdata_bits": stream.result_bits,
        "registers": register_map() if stream.registers else None,
    }


def _constants(stream: Stream, design_hash: str) -> dict[str, int]:
    """What the read-only registers say; the hash's first digits in its first word."""
    return {
        "id": IDENTITY,
        "version": MAP_VERSION,
        "latency": stream.latency,
        "beats": stream.beats,
        "x_bits": stream.x_bits,
        "y_bits": stream.y_bits,
        **{f"hash{index}": int(design_hash[8 * index : 8 * index + 8], 16) for index in range(_HASH_WORDS)},
    }


def _map(names: Mapping[str, int] | tuple[str, ...]) -> list[tuple[str, int]]:
    offsets = register_map()
    return [(name, offsets[name]) for name in names]
