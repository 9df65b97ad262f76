"""Gateware that answers requests of the serial protocol (docs/reference/serial.md), in Amaranth."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amaranth.back import rtlil
from amaranth.hdl import Cat, ClockDomain, ClockSignal, Const, Module, Mux, ResetSignal, Signal

from forestc.boards.hardware import ENGINE, WORD, Hardware, HardwarePort, Source, hardware_of
from forestc.boards.uart import CRC_BYTES, FLAG, HEAD, ReceivedFrame, frame_receiver, frame_sender
from forestc.toolchain.yosys import run_yosys

TOP = "board_top"
PROTOCOL, WINDOW = 1, 2
IDENTIFY, ROWS, LOAD, ANSWER, PROBLEM = 1, 2, 3, 0x80, 0xFF
NOT_WHOLE, NO_IMAGE, UNKNOWN = 1, 2, 3  # codes of PROBLEM
LOADED, REFUSED = 1, 2  # states of an image
PAYLOAD = 512  # bytes of the largest payload, unless a row or a result is larger
PAUSE = 31  # clocks in which an engine's status settles


def top_verilog(source: Source, divisor: int, *, native: bool = False) -> dict[str, str]:
    """Returns the Verilog of a design behind a UART, {file name: text}, without pads and PLL.

    The module `board_top` has the ports clk, rst, rx and tx. divisor: clocks of a bit, at least 8. native: convert with
    the yosys on the PATH. Raises ForestcError if the folder can't be read or holds no Verilog.
    """
    hardware = hardware_of(source)
    with tempfile.TemporaryDirectory() as name:
        folder, ports = Path(name), {port: Signal(name=port) for port in ("clk", "rst", "rx", "tx")}
        text = rtlil.convert(top(hardware, divisor, ports), TOP, ports=[*ports.values()], emit_src=False)
        (folder / "top.il").write_text(text)
        script = f"read_rtlil top.il; proc -nomux -norom; memory_collect; write_verilog -norename -noattr {TOP}.v"
        run_yosys(script, folder, writes=[f"{TOP}.v"], native=native)
        return {f"{TOP}.v": (folder / f"{TOP}.v").read_text(), **hardware.files}


@dataclass(frozen=True)
class CurrentRequest:
    """The request that is answered."""

    kind: Any
    sequence: Any
    left: Any  # bytes of the payload that the reader has not taken

    @staticmethod
    def new() -> CurrentRequest:
        return CurrentRequest(Signal(8), Signal(16), Signal(16))


@dataclass(frozen=True)
class Image:
    """The image that an engine loads."""

    next: Any  # offset of the next word
    state: Any  # 0 while more is to come, 1 loaded, 2 refused
    crc: Any  # last word of the active image
    word: Any  # last word that the engine took
    opening: Any  # 1 before a chunk's offset
    counts: Any  # of images loaded and refused, as the image began
    pause: Any  # clocks since the last word

    @staticmethod
    def new() -> Image:
        words = (Signal(32) for _ in range(3))
        return Image(
            next(words), Signal(8), next(words), next(words), Signal(init=1), Signal(16), Signal(range(PAUSE + 1))
        )


def top(hardware: Hardware, divisor: int, ports: Mapping[str, Any]) -> Module:
    """Returns the Amaranth module of a design behind a UART. ports: signals for clk, rst, rx and tx."""
    m = Module()
    m.domains.sync = ClockDomain()
    m.d.comb += [ClockSignal().eq(ports["clk"]), ResetSignal().eq(ports["rst"])]
    most = 1 << (max(PAYLOAD, hardware.row, hardware.result) - 1).bit_length()
    request = frame_receiver(m, ports["rx"], divisor, most, (hardware.row, hardware.result))
    answer = frame_sender(m, ports["tx"], divisor)
    port, job, image = HardwarePort.of(hardware), CurrentRequest.new(), Image.new()
    hardware.connect(m, port)
    _reader(m, hardware, port, request, job, image)
    held = Mux(port.status[0], image.crc, 0) if hardware.target == ENGINE else Const(0, 32)
    identity = Cat(
        Const(PROTOCOL, 8), Const(hardware.target, 8), Const(WINDOW, 8), Const(0, 8), Const(most, 16),
        Const(hardware.row, 16), Const(hardware.result, 16), Const(int.from_bytes(hardware.design, "little"), 64), held,
    )  # fmt: skip
    code, size, reply, at = Signal(8), Signal(16), Signal(8), Signal(16)
    fixed = {IDENTIFY | ANSWER: identity, LOAD | ANSWER: Cat(image.next, image.state), PROBLEM: code}

    def respond(kind: int, length: Any) -> None:
        m.d.sync += [reply.eq(kind), size.eq(length)]
        m.next = "OPEN"

    def refuse(problem: int) -> None:
        m.d.sync += code.eq(problem)
        respond(PROBLEM, 1)

    def send(byte: Any, then: str, last: Any = True, raw: int = 0, covered: int = 0) -> None:
        m.d.comb += [answer.byte.eq(byte), answer.valid.eq(1), answer.raw.eq(raw), answer.covered.eq(covered)]
        with m.If(answer.ready):
            m.d.sync += at.eq(at + 1)
            with m.If(last):
                m.d.sync += at.eq(0)
                m.next = then

    result, left = Signal(8 * hardware.result), Signal(range(hardware.result + 1))
    header = Cat(reply, job.sequence, size)
    with m.FSM(name="answer"):
        with m.State("IDLE"), m.If(request.held):
            m.d.comb += request.take.eq(1)
            m.d.sync += [job.kind.eq(request.kind), job.sequence.eq(request.sequence), job.left.eq(0)]
            with m.Switch(request.kind):
                with m.Case(IDENTIFY):
                    respond(IDENTIFY | ANSWER, len(identity) // 8)
                with m.Case(ROWS):
                    with m.If(~request.whole | (request.results > most)):
                        refuse(NOT_WHOLE)
                    if hardware.target == ENGINE:
                        with m.Elif(~port.status[0]):
                            refuse(NO_IMAGE)
                    with m.Else():
                        m.d.sync += job.left.eq(request.length)
                        respond(ROWS | ANSWER, request.results)
                if hardware.target == ENGINE:
                    with m.Case(LOAD):
                        with m.If((request.length % WORD != 0) | (request.length == 0)):
                            refuse(NOT_WHOLE)
                        with m.Else():
                            m.d.sync += job.left.eq(request.length)
                            m.next = "LOAD"
                with m.Default():
                    refuse(UNKNOWN)
        if hardware.target == ENGINE:
            with m.State("LOAD"), m.If((job.left == 0) & (image.pause == PAUSE)):
                respond(LOAD | ANSWER, 5)
        with m.State("OPEN"):
            m.d.comb += answer.start.eq(1)
            send(FLAG, "HEADER", raw=1)
        with m.State("HEADER"):
            send(header.word_select(at[:3], 8), "PAYLOAD", at == HEAD - 1, covered=1)
        with m.State("PAYLOAD"):
            with m.If(at == size):
                m.d.sync += at.eq(0)
                m.next = "CRC"
            with m.Elif(reply != ROWS | ANSWER):
                byte = Signal(8)
                with m.Switch(reply):
                    for kind, content in fixed.items():
                        with m.Case(kind):
                            m.d.comb += byte.eq(content.word_select(at[:5], 8))
                send(byte, "PAYLOAD", False, covered=1)
            with m.Elif(left == 0):
                m.d.comb += port.result_ready.eq(1)
                with m.If(port.result_valid):
                    m.d.sync += [result.eq(port.result), left.eq(hardware.result)]
            with m.Else():
                send(result[:8], "PAYLOAD", False, covered=1)
                with m.If(answer.ready):
                    m.d.sync += [result.eq(result >> 8), left.eq(left - 1)]
        with m.State("CRC"):
            send(answer.crc.word_select(at[:2], 8), "CLOSE", at == CRC_BYTES - 1)
        with m.State("CLOSE"):
            send(FLAG, "IDLE", raw=1)
    return m


def _reader(
    m: Module, hardware: Hardware, port: HardwarePort, request: ReceivedFrame, job: CurrentRequest, image: Image
) -> None:
    """Adds the machine that hands a payload to the hardware: rows, or words of an image."""
    loads = hardware.target == ENGINE
    part = Signal(8 * max(hardware.beat, WORD * loads))
    filled, size = Signal(range(len(part) // 8)), len(part) // 8
    is_row = Mux(job.kind == ROWS, 1, 0) if loads else Const(1)
    whole = filled == (Mux(is_row, hardware.beat, WORD) - 1 if loads else size - 1)
    m.d.comb += [port.beat.eq(part[-len(port.beat) :]), port.word.eq(part[-8 * WORD :] if loads else 0)]
    m.d.sync += image.pause.eq(0)
    with m.FSM(name="read"):
        with m.State("FETCH"):
            with m.If(job.left != 0):
                m.next = "TAKE"
            with m.Else():
                m.d.sync += [request.address.eq(0), filled.eq(0), image.opening.eq(1)]
                m.d.sync += image.pause.eq(Mux(image.pause == PAUSE, PAUSE, image.pause + 1))
                with m.If(image.pause == PAUSE - 1):
                    with m.If(port.status[16:24] != image.counts[8:]):
                        m.d.sync += image.state.eq(REFUSED)
                    with m.Elif(port.status[8:16] != image.counts[:8]):
                        m.d.sync += [image.state.eq(LOADED), image.crc.eq(image.word)]
        with m.State("TAKE"):
            m.d.sync += [part.eq(Cat(part[8:], request.data)), request.address.eq(request.address + 1)]
            m.d.sync += [job.left.eq(job.left - 1), filled.eq(filled + 1)]
            m.next = "FETCH"
            with m.If(whole):
                m.d.sync += filled.eq(0)
                m.next = "GIVE"
        with m.State("GIVE"):
            with m.If(is_row):
                m.d.comb += port.beat_valid.eq(1)
                with m.If(port.beat_ready):
                    m.next = "FETCH"
            if loads:
                with m.Else():
                    m.next = "WORD"
        if loads:
            _load(m, port, job, image)


def _load(m: Module, port: HardwarePort, job: CurrentRequest, image: Image) -> None:
    """Adds the reader's states that load an image into an engine."""
    accepted, begun, last = Signal(), Signal(), Signal()
    total = Signal(32)
    m.d.comb += last.eq((image.next > 3) & (image.next + 1 == total))
    with m.State("WORD"):
        m.next = "FETCH"
        with m.If(image.opening):
            m.d.sync += [image.opening.eq(0), accepted.eq((port.word == image.next) & (image.state == 0))]
            with m.If(port.word == 0):
                m.d.sync += [image.next.eq(0), image.state.eq(0), accepted.eq(1), image.counts.eq(port.status[8:24])]
                with m.If(begun):
                    m.next = "ABORT"
        with m.Elif(accepted):
            m.d.comb += [port.word_valid.eq(1), port.word_last.eq(last)]
            with m.If(port.word_ready):
                m.d.sync += [image.next.eq(image.next + 1), image.word.eq(port.word)]
                m.d.sync += [begun.eq(~last), accepted.eq(~last)]
                with m.If(image.next == 3):  # the header's number of words
                    m.d.sync += total.eq(port.word)
            with m.Else():
                m.next = "WORD"
    with m.State("ABORT"):  # A last word in the middle ends the image that was begun.
        m.d.comb += [port.word_valid.eq(1), port.word_last.eq(1)]
        with m.If(port.word_ready):
            m.d.sync += begun.eq(0)
            m.next = "SETTLE"
    with m.State("SETTLE"):
        m.d.sync += image.pause.eq(image.pause + 1)
        with m.If(image.pause == PAUSE):
            m.d.sync += image.counts.eq(port.status[8:24])
            m.next = "FETCH"
