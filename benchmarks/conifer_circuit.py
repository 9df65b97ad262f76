"""Makes VHDL of boosted models with conifer, as a circuit that forestc's flow of yosys and nextpnr takes.

    pip install --target SITE --no-deps conifer pybind11
    PYTHONPATH=SITE python benchmarks/hardware.py --peers DIR --only conifer --json FILE

conifer needs the headers of `ap_fixed`, which hls4ml brings, and g++; GHDL translates and simulates its VHDL.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.compilation.synthesis import Synthesized
from forestc.netlist.ports import Clocking
from forestc.toolchain.ghdl import need_ghdl
from forestc.toolchain.run import run_tool

# The decision that conifer leaves to the user, and rows of whole numbers in place of its fixed-point words.
TOP = """module conifer_top (
    input wire clk, input wire in_valid, output wire out_valid, input wire [{x_bits}-1:0] x, output reg [{y_bits}-1:0] y
);
    wire [{scores}*{bits}-1:0] s;
    wire [{scores}-1:0] valid;
    reg signed [{bits}-1:0] most;
    integer k;
    BDTTop trees (.clk(clk), .X({{{words}}}), .X_vld(in_valid), .y(s), .y_vld(valid));
    assign out_valid = valid[0];
    always @* begin
        most = {scores} == 1 ? 0 : s[({scores}-1)*{bits} +: {bits}];
        y = 0;
        for (k = {scores} == 1 ? 0 : 1; k < {scores}; k = k + 1)
            if ($signed(s[({scores}-1-k)*{bits} +: {bits}]) > most) begin
                y = {scores} == 1 ? 1 : k;
                most = s[({scores}-1-k)*{bits} +: {bits}];
            end
    end
endmodule
"""


@dataclass(frozen=True)
class ConiferCircuit:
    """A model in conifer's VHDL, with the decision behind it.

    bits: of a fixed-point word. feature_bits: of a feature, a whole number from 0 on.
    """

    model: Any
    bits: int
    feature_bits: int
    folder: Path
    name = "conifer"
    core = None

    @property
    def fraction(self) -> int:
        return self.bits - self.feature_bits - 1

    def made(self) -> Any:
        """Writes conifer's VHDL to the folder, and returns conifer's model. Raises ImportError without conifer."""
        import conifer
        import hls4ml

        os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        os.environ["XILINX_AP_INCLUDE"] = str(Path(hls4ml.__file__).parent / "templates/vivado/ap_types")
        precision = f"ap_fixed<{self.bits},{self.feature_bits + 1}>"
        config = conifer.backends.vhdl.auto_config() | {"OutputDir": str(self.folder), "Precision": precision}
        with chdir(self.folder):  # conifer leaves a folder where it runs
            made = conifer.converters.convert_from_xgboost(self.model, config)
        made.write()
        return made

    def accuracy(self, made: Any, X: NDArray[np.float64], y: NDArray[Any]) -> float:
        """Returns the share of rows that conifer's VHDL decides rightly, in GHDL."""
        assert made.compile()
        scores = made.decision_function(X)
        decided = scores[:, 0] > 0 if scores.shape[1] == 1 else scores.argmax(axis=1)
        return float((decided == y).mean())

    def latency(self, made: Any) -> int:
        """Returns the clock cycles of `y_vld`: of a tree, of the sum with the base score, of the scaling."""
        return made.max_depth + 3 + int(made.n_trees).bit_length() + 1

    def refuse(self, device: str, *, any_size: bool) -> None:
        """Refuses no device."""

    def written(self, folder: Path) -> Synthesized:
        arrays = sorted(path.stem for path in (self.folder / "firmware").glob("Arrays*.vhd"))
        names = ["Constants", "Types", "Split", "Tree", "AddReduce", *arrays, "BDT", "BDTTop"]
        sources = [str(self.folder / "firmware" / f"{name}.vhd") for name in names]
        command = [need_ghdl(), "--synth", "--std=08", "--out=verilog", *sources, "-e", "BDTTop"]
        text = run_tool(command, folder, seconds=3600).decode()
        (folder / "trees.v").write_text(re.sub(r'"([01]+)"', lambda bits: f"{len(bits[1])}'b{bits[1]}", text))
        columns, pad = self.model.n_features_in_, f"{self.fraction}'b0"
        words = [f"1'b0, x[{at * self.feature_bits} +: {self.feature_bits}], {pad}" for at in range(columns)]
        view: dict[str, Any] = {
            "module": "conifer_top", "clocking": Clocking(), "clocked": True, "x_bits": columns * self.feature_bits,
            "y_bits": max(1, (len(arrays) - 1).bit_length()),
        }  # fmt: skip
        top = TOP.format(**view, words=", ".join(words), scores=len(arrays), bits=self.bits)
        (folder / "top_of_trees.v").write_text(top)
        return Synthesized("conifer_top", [folder / "trees.v", folder / "top_of_trees.v"], view)

    def figures(self, device: str, mhz: float | None) -> Mapping[str, Any]:
        return {}
