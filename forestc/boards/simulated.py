"""Simulated boards: Verilator runs a design behind its UART, on a pseudo-terminal that clients open as a port."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forestc.errors import BoardError, MissingExtraError, OptionError, known_names, opt
from forestc.manifest.design import Design
from forestc.system.calls import end_process, pseudo_terminal
from forestc.toolchain import verilator
from hdl_templates import render

NAME, TOP = "sim", "board_top"


@dataclass(frozen=True)
class Line:
    """The serial line of a simulated board."""

    damaged: float = 0.0  # share of bytes with wrong bits, in both directions
    lost: float = 0.0  # share of bytes that do not arrive
    clocks: int = 12  # clocks of a bit
    seed: int = 1  # seed of damage and loss


_KEYS: dict[str, type] = {"damaged": float, "lost": float, "clocks": int, "seed": int}


def is_simulated(port: str) -> bool:
    return port == NAME or port.startswith(f"{NAME}:")


def line_of(port: str) -> Line:
    """Returns the line of a port such as `sim:damaged=0.01,lost=0.001`. Raises OptionError for unknown or impossible
    values."""
    given = dict[str, Any]()
    for part in filter(None, port[len(NAME) + 1 :].split(",")):
        name, _, text = part.partition("=")
        if name not in _KEYS:
            raise OptionError(
                f"unknown key {name!r} of {NAME}", where=f"{opt.port:{port}}", do=known_names(name, _KEYS)
            )
        try:
            given[name] = _KEYS[name](text)
        except ValueError:
            raise OptionError(f"{name} is {text!r}", where=f"{opt.port:{port}}", do=f"write {name}=NUMBER") from None
    line = Line(**given)
    if not (0 <= line.damaged < 1 and 0 <= line.lost < 1 and 8 <= line.clocks <= 1024 and 0 <= line.seed < 1 << 31):
        raise OptionError(
            "no line has these values", where=f"{opt.port:{port}}",
            do="give shares from 0 to 1 of damaged and lost bytes, and 8 to 1024 clocks of a bit",
        )  # fmt: skip
    return line


@contextmanager
def simulated_board(port: str, design: Design) -> Iterator[str]:
    """Simulates the board of a design until the block ends. Yields the name of its port. Raises MissingToolError
    without Verilator, BoardError where there are no pseudo-terminals."""
    line, tool = line_of(port), verilator.need_verilator()
    ends = pseudo_terminal()
    if ends is None:
        raise BoardError(
            "this system has no pseudo-terminals", where=f"{opt.port:{port}}", do="give the port of a board"
        )
    ours, theirs, name = ends
    with tempfile.TemporaryDirectory(prefix="forestc-board-") as scratch:
        try:
            command = [str(_program(tool, design, line, Path(scratch))), str(line.damaged), str(line.lost)]
            process = subprocess.Popen(
                [*command, str(line.seed)], stdin=ours, stdout=ours, stderr=subprocess.DEVNULL, start_new_session=True
            )
            try:
                yield name
            finally:
                end_process(process)
                process.wait()
        finally:
            for end in (ours, theirs):
                with suppress(OSError):
                    os.close(end)


def _program(tool: verilator.Verilator, design: Design, line: Line, folder: Path) -> Path:
    try:
        from forestc.boards.gateware import top_verilog
    except ImportError:
        raise MissingExtraError("Amaranth", "board") from None
    files = top_verilog(design, line.clocks)
    for file, text in files.items():
        (folder / file).write_text(text, encoding="utf-8")
    main = render("check/board_main.cpp.j2", clocks=line.clocks)
    return verilator.build(tool, [*files], TOP, main, folder, optimize="-O2")
