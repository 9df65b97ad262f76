"""Gateware of the serial line, in Amaranth: a UART, and the frames on it (docs/reference/serial.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.crc.catalog import CRC32_ISO_HDLC
from amaranth.lib.memory import Memory

FLAG, ESCAPE, FLIP = 0x7E, 0x7D, 0x20
HEAD = 5  # bytes of a body before its payload: kind, sequence, length
CRC_BYTES = 4


@dataclass(frozen=True)
class ReceivedFrame:
    """The last frame that arrived whole. `take` frees the receiver; the payload stays until the next `take`."""

    held: Any  # 1 while a frame waits
    take: Any
    kind: Any
    sequence: Any
    length: Any
    results: Any  # bytes of the results of all rows in the payload
    whole: Any  # 1 if the payload is whole rows
    address: Any  # which byte of the payload to read
    data: Any  # that byte, a clock later


@dataclass(frozen=True)
class Answer:
    """The bytes of frames to send; `ready` accepts one."""

    byte: Any
    valid: Any
    ready: Any
    raw: Any  # 1 for a flag, which is not stuffed
    start: Any  # begins a CRC
    covered: Any  # 1 for bytes that the CRC covers
    crc: Any


def receiver(m: Module, rx: Any, divisor: int) -> tuple[Any, Any]:
    """Adds a UART receiver. Returns the byte, and a signal that is 1 for a clock when it is complete."""
    line, timer, bits = Signal(init=1), Signal(range(2 * divisor)), Signal(range(10))
    byte, valid = Signal(8), Signal()
    m.submodules.rx_line = FFSynchronizer(rx, line, init=1)
    m.d.sync += [valid.eq(0), timer.eq(timer - 1)]
    with m.FSM(name="receive"):
        with m.State("IDLE"):
            m.d.sync += [timer.eq(divisor // 2 - 1), bits.eq(0)]
            with m.If(~line):
                m.next = "START"
        with m.State("START"), m.If(timer == 0):
            m.d.sync += timer.eq(divisor - 1)
            with m.If(line):  # too short for a start bit
                m.next = "IDLE"
            with m.Else():
                m.next = "DATA"
        with m.State("DATA"), m.If(timer == 0):
            m.d.sync += [timer.eq(divisor - 1), byte.eq(Cat(byte[1:], line)), bits.eq(bits + 1)]
            with m.If(bits == 7):
                m.next = "STOP"
        with m.State("STOP"), m.If(timer == 0):
            m.d.sync += valid.eq(line)
            m.next = "HIGH"
        with m.State("HIGH"), m.If(line):
            m.next = "IDLE"
    return byte, valid


def transmitter(m: Module, tx: Any, byte: Any, valid: Any, divisor: int) -> Any:
    """Adds a UART transmitter. Returns a signal that is 1 when it accepts a byte."""
    shift, timer, bits, ready = Signal(9, init=-1), Signal(range(divisor)), Signal(range(11)), Signal()
    m.d.comb += [tx.eq(shift[0]), ready.eq(bits == 0)]
    with m.If(~ready):
        m.d.sync += timer.eq(timer - 1)
        with m.If(timer == 0):
            m.d.sync += [timer.eq(divisor - 1), shift.eq(Cat(shift[1:], 1)), bits.eq(bits - 1)]
    with m.Elif(valid):
        m.d.sync += [timer.eq(divisor - 1), shift.eq(Cat(0, byte)), bits.eq(10)]
    return ready


def frame_receiver(m: Module, rx: Any, divisor: int, most: int, sizes: tuple[int, int]) -> ReceivedFrame:
    """Adds a receiver of frames. most: bytes of a payload, a power of 2. sizes: bytes of a row and of a result."""
    row, result = sizes
    byte, valid = receiver(m, rx, divisor)
    escaped, spoilt, index, in_row = Signal(), Signal(), Signal(range(most + 16)), Signal(range(row))
    half, address, clear = Signal(), Signal(range(most)), Signal()
    request = ReceivedFrame(
        Signal(),
        Signal(),
        Signal(8),
        Signal(16),
        Signal(16),
        Signal(range(most * most + 1)),
        Signal(),
        address,
        Signal(8),
    )
    flag, taken, in_payload = Signal(), Signal(), Signal()
    m.submodules.rx_crc = crc = CRC32_ISO_HDLC(8).create()
    m.submodules.payload = memory = Memory(shape=8, depth=2 * most, init=[])
    store, load = memory.write_port(), memory.read_port()
    place = Signal(range(most + 16))
    m.d.comb += [
        flag.eq(valid & (byte == FLAG)),
        taken.eq(valid & ~flag & (escaped | (byte != ESCAPE)) & ~request.held),
        crc.data.eq(byte ^ Mux(escaped, FLIP, 0)),
        crc.valid.eq(taken),
        crc.start.eq(clear),
        place.eq(index - HEAD),
        in_payload.eq((index >= HEAD) & (place < request.length) & (place < most)),
        store.addr.eq(Cat(place[: len(address)], half)),
        store.data.eq(crc.data),
        store.en.eq(taken & in_payload),
        load.addr.eq(Cat(address, ~half)),
        load.en.eq(1),
        request.data.eq(load.data),
        request.whole.eq(in_row == 0),
        clear.eq(request.take | (flag & ~request.held)),
    ]
    with m.If(valid):
        m.d.sync += [escaped.eq(~escaped & (byte == ESCAPE)), spoilt.eq(~flag & (spoilt | request.held))]
    with m.If(taken & ~index.all()):
        m.d.sync += index.eq(index + 1)
    with m.If(taken):
        with m.Switch(index):
            for at, part in enumerate((request.kind, *_bytes(request.sequence), *_bytes(request.length))):
                with m.Case(at):
                    m.d.sync += part.eq(crc.data)
        with m.If(in_payload):
            m.d.sync += in_row.eq(in_row + 1)
            with m.If(in_row == row - 1):
                m.d.sync += [in_row.eq(0), request.results.eq(request.results + result)]
    good = crc.match_detected & (index == request.length + HEAD + CRC_BYTES) & (request.length <= most) & ~spoilt
    with m.If(flag & ~request.held & good):
        m.d.sync += request.held.eq(1)
    with m.Elif(clear):
        m.d.sync += [request.held.eq(0), index.eq(0), in_row.eq(0), request.results.eq(0)]
        m.d.sync += half.eq(half ^ request.take)
    return request


def frame_sender(m: Module, tx: Any, divisor: int) -> Answer:
    """Adds a sender of frames, which stuffs their bytes and computes their CRC."""
    m.submodules.tx_crc = crc = CRC32_ISO_HDLC(8).create()
    answer = Answer(Signal(8), Signal(), Signal(), Signal(), Signal(), Signal(), crc.crc)
    special, escaped, byte = Signal(), Signal(), Signal(8)
    m.d.comb += special.eq(~answer.raw & ~escaped & ((answer.byte == FLAG) | (answer.byte == ESCAPE)))
    m.d.comb += byte.eq(Mux(special, ESCAPE, answer.byte ^ Mux(escaped, FLIP, 0)))
    ready = transmitter(m, tx, byte, answer.valid, divisor)
    with m.If(answer.valid & ready):
        m.d.sync += escaped.eq(special)
    m.d.comb += [
        answer.ready.eq(ready & ~special),
        crc.start.eq(answer.start),
        crc.data.eq(answer.byte),
        crc.valid.eq(answer.valid & answer.ready & answer.covered),
    ]
    return answer


def _bytes(word: Any) -> list[Any]:
    return [word.word_select(at, 8) for at in range(len(word) // 8)]
