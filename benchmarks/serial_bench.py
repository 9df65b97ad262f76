"""Talks to simulated gateware, with frames of its own."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from forestc.toolchain.run import run_tool
from hdl_templates import render

DIVISOR = 8  # clocks of a bit
PATIENCE = 500_000  # clocks before an answer counts as missing
Answer = tuple[int, int, bytes]  # kind, sequence, payload


def frame(kind: int, sequence: int, payload: bytes = b"") -> bytes:
    """Returns a frame as it is on the line."""
    body = struct.pack("<BHH", kind, sequence, len(payload)) + payload
    body += struct.pack("<I", zlib.crc32(body))
    stuffed = body.replace(b"\x7d", b"\x7d\x5d").replace(b"\x7e", b"\x7d\x5e")
    return b"\x7e" + stuffed + b"\x7e"


def answers(data: bytes) -> list[Answer]:
    """Returns the frames in what a board sent. All of them must be whole."""
    found = []
    for part in filter(None, data.split(b"\x7e")):
        body = part.replace(b"\x7d\x5e", b"\x7e").replace(b"\x7d\x5d", b"\x7d")
        kind, sequence, length = struct.unpack_from("<BHH", body)
        assert len(body) == length + 9 and zlib.crc32(body[:-4]) == int.from_bytes(body[-4:], "little"), part.hex()
        found.append((kind, sequence, body[5:-4]))
    return found


@dataclass(frozen=True)
class SimulatedBoard:
    """What is simulated."""

    top: str = "board_top"
    ports: Mapping[str, str] = field(default_factory=lambda: {name: name for name in ("clk", "rst", "rx", "tx")})
    divisor: int = DIVISOR
    reset: bool = True
    settle: int = 8  # clocks before the first byte
    compiled: bool = False  # True to simulate by Verilator
    defines: tuple[str, ...] = ()


GATEWARE = SimulatedBoard()


class Line:
    """What is sent to a board, in the order of time."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.answers = 0  # wanted so far

    def send(self, data: bytes) -> Line:
        self.lines += [f"b {byte:02x}" for byte in data]
        return self

    def ask(self, *frames: bytes) -> Line:
        """Sends frames without a pause, and waits for an answer to each."""
        for data in frames:
            self.send(data)
        self.answers += len(frames)
        self.lines.append(f"f {self.answers:x}")
        return self

    def wait(self, clocks: int) -> Line:
        self.lines.append(f"c {clocks:x}")
        return self

    def run(self, files: Mapping[str, str], folder: Path, board: SimulatedBoard = GATEWARE) -> list[Answer]:
        """Simulates these files, and returns the board's answers."""
        bench = render(
            "check/serial_bench.v.j2", **asdict(board), sent="sent.txt", received="received.txt", patience=PATIENCE
        )
        for name, text in {**files, "bench.v": bench, "sent.txt": "\n".join(self.lines) + "\n"}.items():
            (folder / name).write_text(text)
        sources = ["bench.v", *files]
        if board.compiled:
            flags = [
                "-Wno-fatal",
                "-Wno-lint",
                "-CFLAGS",
                "-O1",
                "--top-module",
                "bench",
                "--Mdir",
                "made",
                "-o",
                "bench",
            ]
            run_tool(["verilator", "--binary", "--timing", *flags, *board.defines, *sources], folder)
            said = run_tool([str(folder / "made" / "bench")], folder)
        else:
            run_tool(["iverilog", "-g2005", *board.defines, "-o", "bench.vvp", *sources], folder)
            said = run_tool(["vvp", "-n", "bench.vvp"], folder)
        assert b"can't read" not in said, said
        return answers(bytes(int(byte, 16) for byte in (folder / "received.txt").read_text().split()))
