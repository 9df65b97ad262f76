"""Makes the bitstream of a design behind a serial line for a board: synthesis, place and route, packing."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amaranth.hdl import ClockDomain, ClockSignal, Instance, Module, ResetSignal, Signal
from amaranth.lib import io

from forestc.boards.gateware import TOP, top_verilog
from forestc.boards.hardware import Source
from forestc.boards.platforms import platform_of
from forestc.costs.boards import Board
from forestc.errors import ForestcError, OptionError, ToolError, opt
from forestc.options.shared import Progress, quiet
from forestc.toolchain.packaged import need_command
from forestc.toolchain.run import run_tool
from forestc.toolchain.yosys import need_yosys

NAME, REPORT = "forestc", "report.json"
LEAST_CLOCKS = 8  # clocks of a bit, at least
INEXACT = 0.02  # limits the relative error of the baud rate; a UART tolerates about 0.04 for both ends together
LOGIC = ("ICESTORM_LC", "TRELLIS_COMB", "LUT4")  # lists nextpnr's names for cells with a LUT
SUFFIXES = (".bin", ".bit", ".fs")


@dataclass(frozen=True)
class BoardClock:
    """The clock of the gateware and of a bit."""

    board_mhz: float
    parts: int  # clocks of the board in a clock of the gateware: 1, or an even number
    divisor: int  # clocks of the gateware in a bit

    @property
    def mhz(self) -> float:
        return self.board_mhz / self.parts

    @staticmethod
    def of(board_mhz: float, clock_mhz: float | None, baud: int) -> BoardClock:
        """Returns the timing for a clock and a baud rate. Raises OptionError if the board's clock can't give them."""
        parts = round(board_mhz / clock_mhz) if clock_mhz else 1
        if (parts != 1 and parts % 2) or not parts or abs(board_mhz / parts - (clock_mhz or board_mhz)) > 0.01:
            possible = ", ".join(f"{board_mhz / part:g}" for part in (1, 2, 4, 6, 8))
            raise OptionError(
                f"the board's clock of {board_mhz:g} MHz does not give {clock_mhz:g} MHz", where=opt.clock,
                do=f"give the board's clock divided by 1 or an even number: {possible}, ...",
            )  # fmt: skip
        divisor = round(board_mhz * 1e6 / parts / baud)
        if divisor < LEAST_CLOCKS or abs(board_mhz * 1e6 / parts / divisor / baud - 1) > INEXACT:
            raise OptionError(
                f"a clock of {board_mhz / parts:g} MHz does not give {baud} baud", where=opt.baud,
                do=f"give at most {int(board_mhz * 1e6 / parts / LEAST_CLOCKS)}, such as 115200",
            )  # fmt: skip
        return BoardClock(board_mhz, parts, divisor)


@dataclass(frozen=True)
class Bitstream:
    """A bitstream, and figures of the design in it."""

    data: bytes
    suffix: str  # of its file
    lut: int  # logic cells that are used
    available: int  # logic cells of the chip
    fmax_mhz: float
    timing: BoardClock
    seconds: Mapping[str, float]  # by step


def build(
    source: Source, board: Board, *, clock_mhz: float | None = None, baud: int = 115_200,
    native: bool = False, seed: int = 1, progress: Progress = quiet,
) -> Bitstream:  # fmt: skip
    """Returns the bitstream of a compiled design or an engine. Raises OptionError for impossible clocks, ForestcError
    if the design does not reach the clock, ToolError if a tool fails."""
    platform = platform_of(board)
    timing = BoardClock.of(platform.default_clk_frequency / 1e6, clock_mhz, baud)
    need_yosys(native)
    start, seconds = time.perf_counter(), dict[str, float]()
    for name, text in top_verilog(source, timing.divisor, native=native).items():
        platform.add_file(name, text)
    options = ["--report", REPORT, "--seed", str(seed), "--timing-allow-fail"]
    plan = platform.prepare(pads(platform, timing), NAME, nextpnr_opts=options)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        plan.extract(place)
        seconds["gateware"] = time.perf_counter() - start
        for program, *arguments in json.loads((folder / f"build_{NAME}.json").read_text())["commands"]:
            if program in _LEFT_OUT:
                continue
            start = time.perf_counter()
            progress(f"{program} for {board.title}")
            name, arguments = _translated(program, arguments, timing)
            run_tool([*need_command(name, native, "board"), *arguments], folder, seconds=3600)
            seconds[name] = time.perf_counter() - start
        written = next((path for suffix in SUFFIXES if (path := folder / f"{NAME}{suffix}").is_file()), None)
        if written is None:
            raise ToolError("the packing program wrote no bitstream", where=place)
        used, available, fmax = _reported(folder / REPORT)
        rounded = {name: round(value, 3) for name, value in seconds.items()}
        made = Bitstream(written.read_bytes(), written.suffix, used, available, fmax, timing, rounded)
    if fmax < timing.mhz:
        raise ForestcError(
            f"the design reaches {fmax:.1f} MHz, and the gateware's clock is {timing.mhz:g} MHz", where=opt.clock,
            do=f"add {opt.clock:{timing.board_mhz / (timing.parts * 2 if timing.parts > 1 else 2):g}}, or compile with "
               f"{opt.clock:{timing.mhz:g}} and {opt.device}",
        )  # fmt: skip
    return made


def pads(platform: Any, timing: BoardClock) -> Module:
    """Returns the module around `board_top`: buffers of the serial line's pads, and the clock."""
    m = Module()
    line = platform.request("uart", 0, dir={signal.name: "-" for signal in platform.lookup("uart", 0).ios})
    m.submodules.rx = rx = io.Buffer("i", line.rx)
    m.submodules.tx = tx = io.Buffer("o", line.tx)
    domain = "sync"
    if timing.parts > 1:
        domain, count, slow = "slow", Signal(range(timing.parts // 2)), Signal()
        m.domains.slow = ClockDomain(reset_less=True)
        m.d.comb += ClockSignal(domain).eq(slow)
        m.d.sync += count.eq(count + 1)
        with m.If(count == timing.parts // 2 - 1):
            m.d.sync += [count.eq(0), slow.eq(~slow)]
        platform.add_clock_constraint(slow, timing.mhz * 1e6)
    m.submodules.board = Instance(
        TOP, i_clk=ClockSignal(domain), i_rst=ResetSignal("sync", allow_reset_less=True), i_rx=rx.i, o_tx=tx.o
    )
    return m


# Names programs of Amaranth's build that make nothing for the bitstream.
_LEFT_OUT = ("dfu-suffix",)
_OPTIONS = {"--family": "family=", "--cst": "cst="}  # maps options of nextpnr-gowin to himbaechel's --vopt


def _translated(program: str, arguments: list[str], timing: BoardClock) -> tuple[str, list[str]]:
    """Returns a command of Amaranth's build as its present program takes it."""
    if program != "nextpnr-gowin":
        return program, arguments
    given: list[str] = []
    for before, argument in zip(["", *arguments], arguments, strict=False):
        given.append("--vopt" if argument in _OPTIONS else f"{_OPTIONS.get(before, '')}{argument}")
    return "nextpnr-himbaechel-gowin", [*given, "--freq", f"{timing.mhz:g}"]


def _reported(path: Path) -> tuple[int, int, float]:
    try:
        figures = json.loads(path.read_text())
        logic = next(figures["utilization"][name] for name in LOGIC if name in figures["utilization"])
        fmax = min(float(clock["achieved"]) for clock in figures["fmax"].values())
        return int(logic["used"]), int(logic["available"]), fmax
    except (OSError, ValueError, KeyError, TypeError, AttributeError, StopIteration) as error:
        raise ToolError(f"nextpnr's report can't be read ({error})", where=str(path)) from None
