"""Sends requests over a serial port and repeats them until the board has answered."""

from __future__ import annotations

import secrets
import time
from collections import deque
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from forestc.boards.frames import ANSWER, SEQUENCES, Frame, FrameKind, FrameReader, encoded
from forestc.errors import BoardError, MissingExtraError

TRIES = 64  # limits requests for the same rows
SILENCE = 8  # limits time-outs without a single byte
POLL = 0.01  # seconds that one read waits for a byte
FIRST_WAIT = 0.5  # seconds to wait for the first answer, unless the time-out is shorter
SLOWER = 1.25  # multiplies the wait after a time-out
LEAST_WAIT = 0.02  # seconds to wait for an answer at least; operating systems deliver bytes in bursts
NO_ANSWER = "check the port and the baud rate, and that the board has its power and its bitstream"

# Maps the codes of a PROBLEM to what is wrong and the remedy.
_PROBLEMS = {
    1: ("the board says that a request has no whole rows", "program the board with the bitstream of this design"),
    2: ("the board has no image", "load an image first, with Board.load"),
    3: ("the board does not know a request", "program the board with a bitstream of this version of forestc"),
}


class LostError(BoardError):
    """Raised if all requests for the same items were lost."""


@dataclass(frozen=True)
class Parts:
    """Work that requests share: `count` items, up to `most` of them in a request."""

    count: int
    most: int
    payload: Callable[[int, int], bytes]  # returns a request for the items start .. stop - 1
    take: Callable[[int, int, bytes], bool]  # takes an answer to it; False if it can't be one


@dataclass(frozen=True)
class _Sent:
    start: int
    stop: int
    before: int  # requests for these items before
    at: float  # time of sending


class SerialLink:
    """An open port. Requests that the board does not answer in time are sent again, with fewer items."""

    def __init__(self, port: str, baud: int, timeout: float) -> None:
        self.where, self.timeout, self.resends = port, timeout, 0
        self._port = _opened(port, baud, SILENCE * max(timeout, FIRST_WAIT))
        self._reader, self._arrived = FrameReader(), deque[Frame]()
        # Answers to an earlier program's requests may still arrive, so numbers do not begin at 0.
        self._sequence = secrets.randbelow(SEQUENCES)
        self._silent = 0.0  # seconds of waiting since the last byte
        self._clocks = {kind: _Clock(timeout) for kind in FrameKind}

    def close(self) -> None:
        self._port.close()

    def ask(self, kind: FrameKind, payload: bytes = b"", tries: int = TRIES) -> bytes:
        """Returns the payload of the answer to one request. Raises LostError after `tries` of them."""
        answers: list[bytes] = []

        def take(start: int, stop: int, answer: bytes) -> bool:
            answers.append(answer)
            return True

        self.run(kind, Parts(1, 1, lambda start, stop: payload, take), tries=tries)
        return answers[0]

    def run(self, kind: FrameKind, parts: Parts, window: int = 1, tries: int = TRIES) -> None:
        """Sends requests for all items until each is answered. window: requests under way. Raises LostError after
        `tries` requests for the same items, BoardError for a silent board and an impossible answer."""
        left, size, clock = np.ones(parts.count, dtype=bool), parts.most, self._clocks[kind]
        waiting = [(0, parts.count, 0)]  # items to send: start, stop, requests for them before
        sent: dict[int, _Sent] = {}  # requests under way, by their sequence
        asked: dict[int, _Sent] = {}  # requests without an answer: answers that are late count, too, but once
        while left.any():
            while waiting and len(sent) < window:
                start, stop, before = waiting.pop()
                if not left[start:stop].any():  # A late answer had these items.
                    continue
                end = min(stop, start + size)
                waiting += [(end, stop, before)] if end < stop else []
                sequence = self._send(kind, parts.payload(start, end))
                sent[sequence] = asked[sequence] = _Sent(start, end, before, time.monotonic())
            frame = self._next(kind, asked, clock.deadline(sent.values()))
            if frame is None:
                clock.expired()
                lost = list(sent)
            else:
                request, late = asked.pop(frame.sequence), frame.sequence not in sent
                if frame.kind != kind + ANSWER or not parts.take(request.start, request.stop, frame.payload):
                    self._refuse(frame)
                left[request.start : request.stop] = False
                clock.answered(request, late)
                # A board answers in order: what was sent before this request and is not answered was lost.
                lost = [] if late else list(sent)[: list(sent).index(frame.sequence)]
                if not late:
                    del sent[frame.sequence]
                    size = min(parts.most, size + size // 8 + 1)
            for request in [sent.pop(sequence) for sequence in lost]:
                self.resends += 1
                if request.before + 1 >= tries:
                    what = f"{TRIES} requests for the same rows were damaged or lost on the line"
                    raise LostError(what, where=self.where, do="take a shorter cable, or a lower baud rate")
                waiting.append((request.start, request.stop, request.before + 1))
            size = max(1, size // 2) if lost else size

    def _send(self, kind: FrameKind, payload: bytes) -> int:
        self._sequence = (self._sequence + 1) % SEQUENCES
        try:
            self._port.write(encoded(Frame(kind, self._sequence, payload)))
        except OSError as error:
            self._fail(error)
        return self._sequence

    def _next(self, kind: FrameKind, asked: Container[int], deadline: float) -> Frame | None:
        """Returns the next answer to a request in `asked`; None if there is none before the deadline. Raises BoardError
        for a silent board."""
        while True:
            while self._arrived:
                frame = self._arrived.popleft()
                if frame.sequence in asked and frame.kind in (kind + ANSWER, FrameKind.PROBLEM + ANSWER):
                    return frame
            before = time.monotonic()
            if before >= deadline:
                return None
            try:
                data = self._port.read(max(1, self._port.in_waiting))
            except OSError as error:
                self._fail(error)
            self._silent = 0.0 if data else self._silent + time.monotonic() - before
            if self._silent > SILENCE * self.timeout:
                what, self._silent = f"the board has sent nothing for {SILENCE * self.timeout:.0f} s", 0.0
                raise BoardError(what, where=self.where, do=NO_ANSWER)
            self._arrived.extend(self._reader.frames(data))

    def _fail(self, error: OSError) -> NoReturn:
        what = f"the port failed ({error.strerror or error})"
        raise BoardError(what, where=self.where, do="plug the board in again, and open it again") from None

    def _refuse(self, frame: Frame) -> NoReturn:
        """Raises BoardError for an answer that is none to its request."""
        code = frame.payload[0] if frame.kind == FrameKind.PROBLEM + ANSWER and frame.payload else 0
        other = f"the board answered with a frame of kind {frame.kind:#04x} and {len(frame.payload)} bytes"
        what, do = _PROBLEMS.get(code, (other, "program the board with the bitstream of this design"))
        raise BoardError(what, where=self.where, do=do)


class _Clock:
    """Times answers, and tells how long to wait for the next one (as TCP does, RFC 6298)."""

    def __init__(self, most: float) -> None:
        self._wait, self._most, self._mean, self._spread = min(FIRST_WAIT, most), most, 0.0, 0.0
        self._last = time.monotonic()  # time of the last answer or expiry

    def deadline(self, sent: Iterable[_Sent]) -> float:
        """Returns the time when all requests under way count as lost."""
        return max(self._last, min(request.at for request in sent)) + self._wait

    def answered(self, request: _Sent, late: bool) -> None:
        """Learns from an answer. late: its request counted as lost."""
        now = time.monotonic()
        took = now - (request.at if late else max(self._last, request.at))
        first, self._last = not self._mean, now
        self._spread = took / 2 if first else 0.75 * self._spread + 0.25 * abs(took - self._mean)
        self._mean = took if first else 0.875 * self._mean + 0.125 * took
        self._wait = min(self._most, max(LEAST_WAIT, self._mean + 4 * self._spread))

    def expired(self) -> None:
        self._wait, self._last = min(self._most, SLOWER * self._wait), time.monotonic()


def _opened(port: str, baud: int, seconds: float) -> Any:
    """Returns an open port of pyserial. seconds: limit of a write. Raises BoardError if it can't be opened."""
    try:
        import serial
        from serial.tools.list_ports import comports
    except ImportError:
        raise MissingExtraError("pyserial", "board") from None
    try:
        return serial.serial_for_url(port, baudrate=baud, timeout=POLL, write_timeout=seconds, exclusive=True)
    except (OSError, ValueError) as error:
        present = ", ".join(entry.device for entry in comports()) or "none"
        what = f"the port can't be opened ({error})"
        raise BoardError(what, where=port, do=f"give one of the ports of this machine: {present}") from None
