"""Frames of the serial protocol: kind, sequence, length, payload and CRC-32, stuffed, between flags."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from enum import IntEnum

FLAG, ESCAPE, FLIPPED = b"\x7e", b"\x7d", 0x20
ANSWER = 0x80  # marks the kind of an answer
MOST_PAYLOAD = 0xFFFF  # bytes of a payload at most
SEQUENCES = 1 << 16  # limits sequence numbers, which then begin again
HEAD, CRC = struct.Struct("<BHH"), struct.Struct("<I")


class FrameKind(IntEnum):
    """The kinds of requests, and of the answer to a request that the board does not take."""

    IDENTIFY = 0x01
    ROWS = 0x02
    LOAD = 0x03
    PROBLEM = 0x7F


@dataclass(frozen=True)
class Frame:
    """A request or an answer."""

    kind: int
    sequence: int
    payload: bytes = b""


def encoded(frame: Frame) -> bytes:
    body = HEAD.pack(frame.kind, frame.sequence, len(frame.payload)) + frame.payload
    body += CRC.pack(zlib.crc32(body))
    for special in (ESCAPE, FLAG):
        body = body.replace(special, ESCAPE + bytes([special[0] ^ FLIPPED]))
    return FLAG + body + FLAG


def decoded(stuffed: bytes) -> Frame | None:
    """Returns the frame of the bytes between two flags; None if they are damaged."""
    first, *others = stuffed.split(ESCAPE)
    if not all(others):
        return None
    body = first + b"".join(bytes([part[0] ^ FLIPPED]) + part[1:] for part in others)
    if len(body) < HEAD.size + CRC.size:
        return None
    body, crc = body[: -CRC.size], body[-CRC.size :]
    kind, sequence, length = HEAD.unpack_from(body)
    if length != len(body) - HEAD.size or CRC.pack(zlib.crc32(body)) != crc:
        return None
    return Frame(kind, sequence, body[HEAD.size :])


class FrameReader:
    """Finds frames in arriving bytes. Drops damaged ones, and those longer than one of `most` stuffed bytes."""

    def __init__(self, most: int = MOST_PAYLOAD) -> None:
        self._limit = 2 * (HEAD.size + most + CRC.size)  # bytes of a frame, all of them stuffed
        self._rest = b""

    def frames(self, data: bytes) -> list[Frame]:
        """Returns the frames that these bytes complete."""
        *complete, rest = (self._rest + data).split(FLAG)
        self._rest = rest[: self._limit + 1]  # one more than fits, so that a frame that is too long stays so
        frames = [decoded(stuffed) for stuffed in complete if len(stuffed) <= self._limit]
        return [frame for frame in frames if frame is not None]
