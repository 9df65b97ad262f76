"""conifer's VHDL backend without vendor tools: ghdl converts its output to Verilog, yosys and nextpnr do the rest.

Needs ghdl on the PATH, g++, iverilog, and an interpreter with conifer, xgboost (xgboost-cpu), pandas, scikit-learn and
pybind11, perhaps in a separate environment; the ap_types headers for conifer come from this environment's hls4ml. Two
defects of conifer are worked around, so that it is measured at its best: a model reloaded from JSON has lost max_depth,
and all trees would be padded to six levels; the padding of its adders is undriven.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.costs.devices import DEVICES, ECP5, LUT6, XCUP
from forestc.toolchain.nextpnr import place
from forestc.toolchain.yosys import run_yosys, synthesize

SCORE_BITS = 7  # fraction bits: conifer has one format for features, thresholds and scores
FILES = ("Constants", "Split", "Types", "Tree", "AddReduce", "Arrays*", "BDT", "BDTTop")
PLACED = 3000  # LUTs; larger designs are counted but not placed
WRITE = """
import sys
import conifer
model, out, precision, depth = sys.argv[1:]
if model.endswith(".json"):
    import xgboost
    source = xgboost.Booster()
    source.load_model(model)
    source.set_param({"max_depth": int(depth)})
    convert = conifer.converters.convert_from_xgboost
else:
    import joblib
    source = joblib.load(model)
    convert = conifer.converters.convert_from_sklearn
config = conifer.backends.vhdl.auto_config()
config.update({"OutputDir": out, "Precision": precision})
written = convert(source, config)
written.write()
"""
TOP = """
module conifer_top(input clk, input [{x_bits}:0] x, output [{y_bits}:0] y);
  wire [{s_bits}:0] s;
  BDTTop core(.clk(clk), .X(x), .X_vld(1'b1), .y(s), .y_vld());
{decision}
endmodule
module conifer_registered(input clk, input [{x_bits}:0] x, output reg [{y_bits}:0] y);
  reg [{x_bits}:0] held;
  wire [{y_bits}:0] result;
  conifer_top top(.clk(clk), .x(held), .y(result));
  always @(posedge clk) begin held <= x; y <= result; end
endmodule
"""
BENCH = """
module bench;
  reg clk = 0; reg [{x_bits}:0] x = 0; wire [{y_bits}:0] y;
  reg [{x_bits}:0] rows [0:{last}];
  conifer_top top(.clk(clk), .x(x), .y(y));
  integer i;
  initial begin
    $readmemh("rows.hex", rows);
    for (i = 0; i <= {last} + {latency}; i = i + 1) begin
      x = rows[i > {last} ? {last} : i];
      #1 if (i >= {latency}) $display("%0d", y);
      #1 clk = 1; #1 clk = 0;
    end
  end
endmodule
"""


def missing(python: str) -> str | None:
    """The first requirement that is not installed, or None."""
    if shutil.which("ghdl") is None:
        return "ghdl"
    if importlib.util.find_spec("hls4ml") is None:
        return "hls4ml (its ap_types headers)"
    for module in ("conifer", "xgboost", "pandas", "pybind11", "sklearn"):
        if subprocess.run([python, "-c", f"import {module}"], check=False, capture_output=True).returncode:
            return module
    return None


def conifer(
    python: str,
    model: Path,
    depth: int,
    X_test: NDArray[Any],
    y_test: NDArray[Any],
    bits: int,
    trees: int,
    classes: int,
    folder: Path,
    shares: bool = False,
) -> dict[str, Any]:
    """Figures of a model (XGBoost `.json`, or scikit-learn by joblib) on integer features of `bits` bits.

    trees: per class. classes: 2 for one score. shares: whether the score is the probability of class 0, as conifer
    takes it from a scikit-learn forest, instead of the log odds of class 1. Raises ToolError, CalledProcessError.
    """
    width, n_features = bits + 1 + SCORE_BITS, X_test.shape[1]
    scores = 1 if classes == 2 else classes
    out = folder / "conifer"
    shutil.rmtree(out, ignore_errors=True)
    package = importlib.util.find_spec("hls4ml")
    assert package is not None and package.origin is not None
    environment = {
        **os.environ,
        "PATH": f"{Path(python).parent}:{os.environ['PATH']}",
        "XILINX_AP_INCLUDE": str(Path(package.origin).parent / "templates/vivado/ap_types"),
    }
    precision = f"ap_fixed<{width},{bits + 1}>"
    _run([python, "-c", WRITE, str(model), str(out), precision, str(depth)], folder, environment)
    files = [file for name in FILES for file in sorted((out / "firmware").glob(f"{name}.vhd"))]
    _run(["ghdl", "-a", "--std=08", *map(str, files)], out)
    (out / "core.v").write_text(_run(["ghdl", "--synth", "--std=08", "--out=verilog", "BDTTop"], out))
    x_bits, y_bits = width * n_features - 1, max(1, (classes - 1).bit_length()) - 1
    sizes = {"x_bits": x_bits, "y_bits": y_bits, "s_bits": width * scores - 1}
    (out / "top.v").write_text(TOP.format(**sizes, decision=_decision(width, scores, shares)))
    run_yosys(
        "read_verilog core.v top.v\nhierarchy -top conifer_top\nproc\nflatten\nopt_clean\n"
        "setundef -undriven -zero\nopt_clean\nwrite_verilog -noattr -norename clean.v\n",
        out,
        writes=["clean.v"],
    )
    latency = depth + 3 + int(np.ceil(np.log2(trees + 1))) + 1  # comparisons, levels, leaf; adders; normalization
    (out / "bench.v").write_text(BENCH.format(**sizes, latency=latency, last=len(X_test) - 1))
    (out / "rows.hex").write_text("".join(f"{_packed(row, width):x}\n" for row in X_test.astype(int).tolist()))
    _run(["iverilog", "-g2005", "-o", "bench.vvp", "clean.v", "bench.v"], out)
    labels = np.array(_run(["vvp", "bench.vvp"], out).split()[: len(X_test)])
    (out / "registered.v").write_text(TOP[TOP.index("module conifer_registered") :].format(**sizes))
    xcup = synthesize([out / "clean.v"], "conifer_top", XCUP.synthesis)
    lut6 = synthesize([out / "clean.v"], "conifer_top", LUT6.synthesis)
    figures = {
        "test_%": 100 * float((labels == y_test.astype(int).astype(str)).mean()),
        "latency": latency,
        "xcup_LUT": xcup.lut,
        "FF": f"{xcup.flip_flops} + {xcup.memory} SRL",
        "lut6_LUT": lut6.lut,
        "depth": lut6.depth,
    }
    if xcup.lut <= PLACED:
        ecp5 = synthesize([out / "clean.v"], "conifer_top", ECP5.synthesis)
        both = [out / "clean.v", out / "registered.v"]
        synthesize(both, "conifer_registered", ECP5.synthesis, netlist="top.json")
        placed = place(out / "top.json", ECP5.nextpnr, DEVICES["ecp5-85k"].nextpnr, ECP5.logic_cell)
        figures |= {"ECP5_LUT": ecp5.lut, "carry": ecp5.carry, "MHz": placed.fmax_mhz}
    return figures


def _packed(row: list[int], width: int) -> int:
    """The features packed as ghdl packs an array, the first one in the highest bits."""
    word = 0
    for value in row:
        word = word << width | value << SCORE_BITS
    return word


def _decision(width: int, scores: int, shares: bool) -> str:
    """Verilog for the class: the sign of a single score, or the first of the largest scores."""
    if scores == 1:
        half = f"$signed({width}'d{1 << SCORE_BITS - 1})"
        return f"  assign y = $signed(s) < {half};" if shares else "  assign y = $signed(s) > 0;"
    lines, bits = [], (scores - 1).bit_length()
    for index in range(scores):
        high = (scores - index) * width - 1
        lines.append(f"  wire signed [{width - 1}:0] s{index} = s[{high}:{high - width + 1}];")
        if index == 0:
            lines.append(f"  wire signed [{width - 1}:0] m0 = s0; wire [{bits - 1}:0] i0 = 0;")
            continue
        lines.append(
            f"  wire g{index} = s{index} > m{index - 1}; wire signed [{width - 1}:0] m{index} = g{index} ? s{index} : "
            f"m{index - 1}; wire [{bits - 1}:0] i{index} = g{index} ? {bits}'d{index} : i{index - 1};"
        )
    lines.append(f"  assign y = i{scores - 1};")
    return "\n".join(lines)


def _run(command: list[str], folder: Path, environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, check=False, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        print(f"{Path(command[0]).name}: {done.stderr.strip()[-400:]}", file=sys.stderr)
    done.check_returncode()
    return done.stdout
