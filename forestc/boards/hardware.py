"""The hardware behind a serial line: a core, its AXI4-Stream wrapper or an engine, as Verilog and instances of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amaranth.hdl import Cat, ClockSignal, Const, Instance, Module, ResetSignal, Signal

from forestc.backends.base import Gives
from forestc.backends.ports import input_fields, output_fields, width_of
from forestc.backends.stream.axi_stream import AXI_LITE, Stream, stream_of
from forestc.backends.stream.lanes import LaneLayout
from forestc.backends.stream.options import StreamOptions
from forestc.backends.table import file_of, gives
from forestc.engine.capacity import Capacity
from forestc.engine.verilog import emit
from forestc.errors import OptionError, opt
from forestc.manifest.design import Design, hardware_in
from forestc.netlist.ir import Netlist

CORE, ENGINE = 1, 2  # targets of the protocol
WORD = 4  # bytes of a word of an image


@dataclass(frozen=True)
class HardwarePort:
    """Signals between the serial line and the hardware."""

    beat: Any  # stays until it is taken
    beat_valid: Any
    beat_ready: Any
    result: Any
    result_valid: Any
    result_ready: Any
    word: Any  # of an image
    word_last: Any
    word_valid: Any
    word_ready: Any
    status: Any  # of an engine

    @staticmethod
    def of(hardware: Hardware) -> HardwarePort:
        beat, result = Signal(8 * hardware.beat), Signal(8 * hardware.result)
        flags = (Signal() for _ in range(4))
        return HardwarePort(
            beat, next(flags), next(flags), result, next(flags), next(flags),
            Signal(8 * WORD), Signal(), Signal(), Signal(), Signal(32),
        )  # fmt: skip


@dataclass(frozen=True)
class Hardware:
    """What answers rows, and how rows reach it."""

    name: str
    target: int  # CORE or ENGINE
    row: int  # bytes of a row
    beat: int  # bytes of a part of a row that is handed over at once
    result: int  # bytes of a result
    design: bytes  # 8 bytes that tell designs apart
    files: Mapping[str, str]  # Verilog, by file name
    connect: Callable[[Module, HardwarePort], None]  # adds the instance to a module


Source = Hardware | Design | Capacity | str | Path


def hardware_of(source: Source) -> Hardware:
    """Returns the hardware of a compiled design or an engine. Raises ForestcError if the folder can't be read or holds
    no Verilog."""
    if isinstance(source, Hardware):
        return source
    source = hardware_in(source)
    if isinstance(source, Capacity):
        return _engine(source)
    if gives(source.targets, Gives.WALKERS) and not source.has_hardware:
        return _engine(source.engine)
    return _of_core(source)


def _of_core(design: Design) -> Hardware:
    roles = [role for role in ("axi_stream", "axi_lite") if role in design.manifest["files"]]
    paths = [file_of(design, Gives.VERILOG), *map(design.path, roles)]
    netlist, stream = design.netlist, design.manifest["options"].get("stream")
    if "axi_stream" in roles:
        connect = _stream(netlist, stream_of(netlist, StreamOptions(**stream)))
    else:
        connect = _core(netlist, str(design.manifest["core"]))
    row, result = (-(-max(1, width_of(fields(netlist))) // 8) for fields in (input_fields, output_fields))
    files = {path.name: path.read_text(encoding="utf-8") for path in paths}
    return Hardware(
        str(design.manifest["name"]),
        CORE,
        row,
        row,
        result,
        bytes.fromhex(design.manifest["hash"][:16]),
        files,
        connect,
    )


def _core(netlist: Netlist, module: str) -> Callable[[Module, HardwarePort], None]:
    x_bits, y_bits = max(1, width_of(input_fields(netlist))), width_of(output_fields(netlist))

    def connect(m: Module, port: HardwarePort) -> None:
        y, started, done, out_valid = Signal(y_bits), Signal(), Signal(), Signal()
        ports = {"i_x": port.beat[:x_bits], "o_y": y}
        m.d.comb += [port.result.eq(y), port.beat_ready.eq(port.result_valid & port.result_ready)]
        if not netlist.latency:
            m.d.comb += port.result_valid.eq(port.beat_valid)
        else:  # The beat stays, so y stays as well.
            ports |= {"i_clk": ClockSignal(), "i_in_valid": port.beat_valid & ~started, "o_out_valid": out_valid}
            control = {"rst": ResetSignal(), "en": Const(1)}
            ports |= {f"i_{name}": control[name] for name in netlist.clocking.ports}
            m.d.comb += port.result_valid.eq(done)
            m.d.sync += [started.eq(port.beat_valid), done.eq(done | out_valid)]
            with m.If(port.beat_ready):
                m.d.sync += [started.eq(0), done.eq(0)]
        m.submodules.core = Instance(module, **ports)

    return connect


def _stream(netlist: Netlist, stream: Stream) -> Callable[[Module, HardwarePort], None]:
    result_bits, latest = max(1, width_of(output_fields(netlist))), stream.beats - 1

    def connect(m: Module, port: HardwarePort) -> None:
        index, ready, data = Signal(range(stream.beats)), Signal(), Signal(stream.result_bits)
        row = Signal(stream.padded_bits)
        m.d.comb += [
            row.eq(_in_lanes(port.beat, stream.row)),
            port.result.eq(_packed(data, stream.result)[:result_bits]),
        ]
        m.d.comb += port.beat_ready.eq(ready & (index == latest))
        with m.If(port.beat_valid & ready):
            m.d.sync += index.eq(index + 1)
            with m.If(index == latest):
                m.d.sync += index.eq(0)
        registers = {f"i_s_axi_{name}": Const(0, bits) for name, output, bits in AXI_LITE if not output}
        m.submodules.stream = Instance(
            f"{stream.module}_axis",
            i_aclk=ClockSignal(), i_aresetn=~ResetSignal(),
            i_s_axis_tdata=row.word_select(index, stream.tdata_bits), i_s_axis_tlast=index == latest,
            i_s_axis_tuser=Const(0, stream.user_bits), i_s_axis_tvalid=port.beat_valid, o_s_axis_tready=ready,
            o_m_axis_tdata=data, o_m_axis_tvalid=port.result_valid, i_m_axis_tready=port.result_ready,
            **(registers if stream.registers else {}),
        )  # fmt: skip

    return connect


def _in_lanes(x: Any, layout: LaneLayout) -> Any:
    """Returns the stream's row of a packed row."""
    if not layout.align:
        return x
    parts, at = [], 0
    for lane in layout.lanes:
        parts += [Const(0, lane.offset - at), x[lane.field.offset :][: lane.field.word.width]]
        at = lane.offset + lane.field.word.width
    return Cat(*parts)


def _packed(data: Any, layout: LaneLayout) -> Any:
    lanes = sorted(layout.lanes, key=lambda lane: lane.field.offset)
    return Cat(*(data[lane.offset :][: lane.field.word.width] for lane in lanes)) if layout.align else data


def _engine(capacity: Capacity) -> Hardware:
    if capacity.load != "stream":
        raise OptionError(
            "the engine's images come over AXI4-Lite, and the serial line loads by a stream", where=opt.load,
            do=f"write the engine again with {opt.load:stream}",
        )  # fmt: skip

    def connect(m: Module, port: HardwarePort) -> None:
        m.submodules.engine = Instance(
            capacity.name,
            i_aclk=ClockSignal(), i_aresetn=~ResetSignal(),
            i_s_axis_tdata=port.beat, i_s_axis_tlast=Const(0), i_s_axis_tuser=Const(0, capacity.user_bits),
            i_s_axis_tvalid=port.beat_valid, o_s_axis_tready=port.beat_ready,
            o_m_axis_tdata=port.result, o_m_axis_tvalid=port.result_valid, i_m_axis_tready=port.result_ready,
            i_s_load_tdata=port.word, i_s_load_tlast=port.word_last, i_s_load_tvalid=port.word_valid,
            o_s_load_tready=port.word_ready, o_status=port.status,
        )  # fmt: skip

    beat, files = capacity.tdata_bits // 8, {f"{capacity.name}.v": emit(capacity)}
    design = capacity.id.to_bytes(8, "little")
    return Hardware(
        capacity.name, ENGINE, capacity.beats * beat, beat, capacity.result_bits // 8, design, files, connect
    )
