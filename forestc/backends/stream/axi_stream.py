"""The AXI4-Stream backend: writes a wrapper that puts the core between an input stream and an output stream.

It also writes an IP-XACT component, a C driver, a Python quantizer, test benches and optional AXI4-Lite registers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from forestc.backends.base import Artifact, Core, shared
from forestc.backends.hdl import module_name
from forestc.backends.ports import input_fields, output_fields, width_of
from forestc.backends.stream import SHARED, quantizer
from forestc.backends.stream.lanes import LaneLayout, layout_of
from forestc.backends.stream.options import StreamOptions
from forestc.forest.ir import Forest
from forestc.netlist.ir import Netlist, WordType
from forestc.system.version import __version__
from hdl_templates import render

if TYPE_CHECKING:
    from forestc.backends.source import Source

IDENTITY = int.from_bytes(b"FRST")  # reads as "FRST" in ASCII: the value of the register `id`
MAP_VERSION = 1  # identifies the layout of the registers: the value of the register `version`
CONTROL = "control"
COUNTERS = ("rows_in", "rows_out", "short_rows", "stalls_in", "stalls_out")
_HASH_WORDS = 8  # registers of 32 bits that together hold the manifest's SHA-256


@dataclass(frozen=True)
class Stream:
    """The sizes and field positions of a core's AXI4-Stream wrapper."""

    module: str  # the core's module name
    latency: int  # of the core, in clock cycles
    x_bits: int  # bits of the core's input port
    y_bits: int  # bits of the core's output port
    tdata_bits: int  # bits of s_axis_tdata
    beats: int  # transfers that carry one row
    user_bits: int  # bits of tuser
    depth: int  # entries of the buffer for results
    registers: bool  # True if there are AXI4-Lite registers
    row: LaneLayout  # positions of features in the input stream
    result: LaneLayout  # positions of fields in the output stream

    @property
    def result_bits(self) -> int:
        """The number of bits of m_axis_tdata."""
        return self.result.total

    @property
    def padded_bits(self) -> int:
        return self.row.total


def stream_of(netlist: Netlist, options: StreamOptions) -> Stream:
    inputs, outputs = input_fields(netlist), output_fields(netlist)
    row, result = layout_of(inputs, options.align), layout_of(outputs, options.align)
    tdata_bits = options.tdata_bits or row.total
    beats = -(-row.bits // tdata_bits)
    return Stream(
        module=module_name(netlist),
        latency=netlist.latency,
        x_bits=max(1, width_of(inputs)),
        y_bits=width_of(outputs),
        tdata_bits=tdata_bits,
        beats=beats,
        user_bits=options.user_bits,
        # A row occupies a buffer entry for latency + 2 clocks; more entries avoid stalls.
        depth=1 << (netlist.latency + 2).bit_length(),
        registers=options.registers,
        row=replace(row, total=beats * tdata_bits),
        result=result,
    )


def emit(
    forest: Forest, netlist: Netlist, options: StreamOptions, design_hash: str, core: Core
) -> dict[str, tuple[str, str]]:
    """Returns {role: (file name, text)} of the stream wrapper.
    design_hash: the manifest's SHA-256, 64 hexadecimal digits."""
    stream, spelling = stream_of(netlist, options), _SPELLINGS[core.language]
    module, words = stream.module, quantizer.file_name(netlist)
    constants, offsets = _constants(stream, design_hash), register_map()
    view = {
        **vars(stream),
        **_wiring(stream, spelling),
        "clocking": netlist.clocking,
        "files": core,
        "language": core.language,
        "result_bits": stream.result_bits,
        "padded_bits": stream.padded_bits,
        "core_version": __version__,
        "macro": module.upper(),
        "words": words,
        "held": forest.carried,
        "identity": constants,
        "counted": COUNTERS,
        "offsets": offsets,
        "constants": [
            (spelling.address(offset), name, spelling.value(constants[name])) for name, offset in _map(constants)
        ],
        "counters": [(spelling.address(offset), name) for name, offset in _map(COUNTERS)],
        "control": spelling.address(offsets[CONTROL]),
    }
    parts = {"axi_stream": "axis", **({"axi_lite": "axi_lite"} if stream.registers else {})}
    written = {
        role: (f"{module}_{part}.{core.suffix}", render(f"{core.language}/{role}.{core.suffix}.j2", **view))
        for role, part in parts.items()
    }
    view["sources"] = [f"{module}.{core.suffix}", *(path for path, _ in reversed(written.values()))]
    view["members"] = [(lane, lane.field.identifier) for lane in stream.row.lanes]
    written["ip_xact"] = ("component.xml", render("synth/component.xml.j2", **view))
    if core.stream_bench:
        written["stream_testbench"] = (f"{module}_axis_tb.vhd", render("vhdl/axi_stream_bench.vhd.j2", **view))
    return {
        **{f"{core.prefix}{role}": file for role, file in written.items()},
        "driver": (f"{module}_axis.h", render("c/driver.h.j2", **view)),
        "words": (f"{words}.py", quantizer.emit(forest, netlist, stream.row, stream.result)),
        "cocotb": (f"test_{module}_axis.py", render("cocotb/test_axis.py.j2", **view)),
    }


def written(source: Source, _: Sequence[Artifact], cores: Sequence[Core]) -> list[Artifact]:
    files, options = list[Artifact](), StreamOptions(**source.options["stream"])
    for core in cores:
        own = emit(source.forest, source.netlist, options, source.hash, core)
        files += shared(core, cores, SHARED, own | {"raw_rows": ("rows.txt", source.raw_rows())})
    return files


def _wiring(stream: Stream, spelling: _Spelling) -> dict[str, Any]:
    wiring = {"ports": stream_ports(stream), "registered": _REGISTERED, "spread": spelling.spread(stream)}
    if not stream.row.align:
        x, y = stream.x_bits, stream.y_bits
        places = {"row_places": ((0, x, 0),), "result_places": ((0, y, False, 0, y),)}
        return {**wiring, "gathered": [], "unused": [], **places}
    row = [(lane.field.offset, lane.field.word.width, lane.offset) for lane in stream.row.lanes]
    result = [(lane.field.offset, *lane.field.word, lane.offset, lane.bits) for lane in stream.result.lanes]
    return {
        **wiring,
        "gathered": [spelling.part("row", at, bits) for _, bits, at in reversed(row)],
        "unused": [spelling.part("row", first, bits) for first, bits in stream.row.gaps],
        "row_places": tuple(row),
        "result_places": tuple(result),
    }


def register_map() -> dict[str, int]:
    """Returns the byte offsets of the AXI4-Lite registers, by name."""
    names = ["id", "version", "latency", "beats", "x_bits", "y_bits", CONTROL]
    offsets = {name: 4 * index for index, name in enumerate(names)}
    offsets |= {f"hash{index}": 0x20 + 4 * index for index in range(_HASH_WORDS)}
    return offsets | {name: 0x40 + 4 * index for index, name in enumerate(COUNTERS)}


def stream_object(netlist: Netlist, options: StreamOptions) -> dict[str, Any]:
    """Returns the object that describes the stream wrapper in the manifest."""
    stream = stream_of(netlist, options)
    return {
        "module": f"{stream.module}_axis",
        "tdata_bits": stream.tdata_bits,
        "beats": stream.beats,
        "tuser_bits": stream.user_bits,
        "result_tdata_bits": stream.result_bits,
        "align": options.align,
        "row": _lanes(stream.row),
        "result": _lanes(stream.result),
        "registers": register_map() if stream.registers else None,
    }


@dataclass(frozen=True)
class _Piece:
    """A range of bits of m_axis_tdata: either copied from the core's result or zeros."""

    offset: int
    bits: int
    low: int | None = None  # first bit of the result to copy; None for zeros
    repeated: bool = False  # True to copy bit `low` into all bits (sign extension)


def _pieces(stream: Stream) -> Iterator[_Piece]:
    """Yields the ranges of bits that make up m_axis_tdata, from the lowest bits to the highest."""
    at = 0
    lanes = [(lane.field.offset, lane.field.word, lane.offset, lane.bits) for lane in stream.result.lanes]
    if not stream.result.align:
        lanes = [(0, WordType(stream.y_bits, False), 0, stream.y_bits)]
    for low, word, offset, bits in lanes:
        if offset > at:
            yield _Piece(at, offset - at)
        yield _Piece(offset, word.width, low)
        if bits > word.width:
            top = low + word.width - 1 if word.signed else None
            yield _Piece(offset + word.width, bits - word.width, top, repeated=True)
        at = offset + bits
    if stream.result_bits > at:
        yield _Piece(at, stream.result_bits - at)


@dataclass(frozen=True)
class _Spelling:
    """Functions that write parts of the wrapper in one language."""

    part: Callable[[str, int, int], str]  # bits of a signal, from (name, first bit, number of bits)
    address: Callable[[int], str]  # a register's address, from its byte offset
    value: Callable[[int], str]  # the constant in a register
    spread: Callable[[Stream], list[str]]  # the statements that assign a result to m_axis_tdata


def _in_verilog(stream: Stream) -> list[str]:
    """Returns the operands of the Verilog concatenation for m_axis_tdata, highest bits first."""

    def operand(piece: _Piece) -> str:
        if piece.low is None:
            return f"{piece.bits}'d0"
        if piece.repeated:
            return f"{{{piece.bits}{{result[{piece.low}]}}}}"
        return f"result[{piece.low + piece.bits - 1}:{piece.low}]" if stream.result.align else "result"

    return [operand(piece) for piece in reversed([*_pieces(stream)])]


def _in_vhdl(stream: Stream) -> list[str]:
    """Returns the VHDL assignments to m_axis_tdata."""
    above = stream.user_bits + 1

    def value(piece: _Piece) -> str:
        if piece.low is None:
            return "(others => '0')"
        low = above + piece.low
        return f"(others => popped({low}))" if piece.repeated else _downto("popped", low, piece.bits)

    return [f"{_downto('m_axis_tdata', piece.offset, piece.bits)} <= {value(piece)};" for piece in _pieces(stream)]


def _downto(name: str, at: int, bits: int) -> str:
    return f"{name}({at + bits - 1} downto {at})"


_SPELLINGS: Mapping[str, _Spelling] = {
    "verilog": _Spelling(
        part=lambda name, at, bits: f"{name}[{at + bits - 1}:{at}]",
        address=lambda offset: f"5'd{offset // 4}",
        value=lambda value: f"32'h{value:08x}",
        spread=_in_verilog,
    ),
    "vhdl": _Spelling(
        part=_downto,
        address=lambda offset: f'"{offset // 4:05b}"',
        value=lambda value: f'X"{value:08x}"',
        spread=_in_vhdl,
    ),
}
_REGISTERED = ("s_axis_tready", "m_axis_tlast", "m_axis_tuser", "m_axis_tvalid")


def _lanes(layout: LaneLayout) -> list[dict[str, Any]]:
    return [{"name": lane.field.name, "offset": lane.offset, "bits": lane.bits} for lane in layout.lanes]


# Lists the ports of the AXI4-Lite registers: (name, True for an output, bits).
AXI_LITE = (
    ("awaddr", False, 7), ("awprot", False, 3), ("awvalid", False, 1), ("awready", True, 1), ("wdata", False, 32),
    ("wstrb", False, 4), ("wvalid", False, 1), ("wready", True, 1), ("bresp", True, 2), ("bvalid", True, 1),
    ("bready", False, 1), ("araddr", False, 7), ("arprot", False, 3), ("arvalid", False, 1), ("arready", True, 1),
    ("rdata", True, 32), ("rresp", True, 2), ("rvalid", True, 1), ("rready", False, 1),
)  # fmt: skip


def stream_ports(stream: Stream) -> dict[str, list[tuple[str, bool, int]]]:
    """Returns the ports by interface: {interface: [(name without the interface, True for outputs, bits)]}."""

    def channel(results: bool, data: int) -> list[tuple[str, bool, int]]:
        sent = [("tdata", data), ("tlast", 1), ("tuser", stream.user_bits), ("tvalid", 1)]
        return [*((name, results, bits) for name, bits in sent), ("tready", not results, 1)]

    ports = {"s_axis": channel(False, stream.tdata_bits), "m_axis": channel(True, stream.result_bits)}
    return ports | ({"s_axi": [*AXI_LITE]} if stream.registers else {})


def _constants(stream: Stream, design_hash: str) -> dict[str, int]:
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
