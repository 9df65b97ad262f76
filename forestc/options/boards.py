"""Defines the options of `bitstream` and `program`."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from forestc.fields.options import argument, flag, option
from forestc.options.shared import BAUD, FOLDER, Progress, native_option, progress_keyword

_BOARD = flag("--board", "the board, such as icebreaker, ulx3s-25f or tang-nano-9k", "BOARD")


@dataclass(frozen=True)
class BitstreamOptions:
    """The options of `bitstream`."""

    design: Any = field(metadata=FOLDER)
    board: str = field(metadata=_BOARD)
    _: KW_ONLY
    out: Any = option(None, "-o --out", "the file to write; default: NAME-BOARD.bin, .bit or .fs", "FILE")
    clock_mhz: float | None = option(
        None, "--clock", "clock of the gateware: the board's (default), or that divided by an even number", "MHZ"
    )
    baud: int = option(BAUD, "--baud", "bits a second of the serial line", "N", least=1)
    seed: int = option(1, "--seed", "seed of place and route", least=0)
    native: bool = native_option()
    progress: Progress = progress_keyword()


@dataclass(frozen=True)
class ProgramOptions:
    """The options of `program`."""

    bitstream: Any = field(metadata=argument("FILE", "a bitstream that forestc bitstream wrote"))
    board: str = field(metadata=_BOARD)
    _: KW_ONLY
    flash: bool = option(False, "--flash", "write the board's flash, so that the design stays without power")
    progress: Progress = progress_keyword()
