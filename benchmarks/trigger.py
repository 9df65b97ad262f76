"""Compiles trigger models in conifer's JSON at -O0, compares them with the experiment's emulator, and measures their
logic beside conifer's VHDL.

    pip install --target SITE --no-deps conifer pybind11
    PYTHONPATH=SITE python benchmarks/trigger.py --models DIR --json FILE

LUTs are yosys's for an UltraScale+, `MHz` is nextpnr's on ecp5-85k between registers, `cycles` those from row to score.
Rows lie on thresholds, one step beside them, and at the ends of the type. conifer refuses the experiments' files, so
its design is that of the same trees with the fields that it asks for, in the type of scores alone, which holds the
inputs, too; GHDL translates its VHDL.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from contextlib import chdir
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from conifer_circuit import ConiferCircuit
from ledger import Case, Ledger, Steps, tool_version
from tools import arguments

import forestc
from forestc.compilation.synthesis import Synthesized, synthesis_figures
from forestc.forest.numbers import Fixed, parse_number_type
from forestc.options.commands import SynthOptions

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import conifer_emulator
from conifer_models import model, rows

CYCLES = (3, 7)
DEEP = 8  # conifer fills trees up to their depth, so deeper ones are not made
TOOLS = ("yosys", "nextpnr-ecp5", "ghdl", "forestc/toolchain", "forestc/costs/devices.py")
TOP = """module conifer_top (
    input wire clk, input wire in_valid, output wire out_valid,
    input wire [{x_bits}-1:0] x, output wire [{y_bits}-1:0] y
);
    BDTTop trees (.clk(clk), .X({{{words}}}), .X_vld(in_valid), .y(y), .y_vld(out_valid));
endmodule
"""


def main() -> None:
    parser = arguments(__doc__, "json", "only")
    parser.add_argument("--models", type=Path, metavar="DIR", help="a folder of conifer's JSON")
    parser.add_argument("--rows", type=int, default=20_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) if options.small or options.models is None else options.models
        if options.small:
            types = {role: Fixed(8, 3, True) for role in ("input", "threshold", "score")}
            (folder / "small.json").write_text(json.dumps(model(np.random.default_rng(0), types)))
        ledger = Ledger("trigger models beside conifer's VHDL", options, TOOLS, ("rows",))
        for path in sorted(folder.glob("*.json")):
            deep = max(depth_of(tree) for trees in json.loads(path.read_text())["trees"] for tree in trees) > DEEP
            designs = {
                f"forestc -O0, {cycles} cycles": partial(measured, cycles)
                for cycles in CYCLES[: 1 if options.small else 2]
            }
            for design, measure in (designs | ({} if deep else {"conifer VHDL": conifer})).items():
                case = {"model": path.stem, "design": design}
                if options.only not in path.stem or (measure is conifer and not find_spec("conifer")):
                    ledger.keep(case)
                else:
                    ledger.fill([case], measure, path, 500 if options.small else options.rows)
        ledger.show()


def types_of(forest: Any) -> dict[str, str]:
    return dict(re.findall(r"(input|threshold|score) (ap_\w+<[^>]*>)", " ".join(forest.provenance.notes)))


def measured(cycles: int, path: Path, count: int, case: Case) -> Steps:
    document = json.loads(path.read_text())
    with tempfile.TemporaryDirectory() as folder:
        done = forestc.compile(path, None, f"{folder}/out", level=0, targets="verilog,vhdl,c", latency=cycles)
        types = types_of(forestc.load(path))
        X = rows(np.random.default_rng(0), document, parse_number_type(types["input"]), count)
        yield [path, X], [done.design.path("verilog")]
        differ: Any = "not compared"
        if not isinstance(absent := conifer_emulator.includes(), str):
            scores = conifer_emulator.scores(conifer_emulator.build(Path(folder), types), document, X)
            differ = int((forestc.evaluate(forestc.load(path), X).values != scores).any(axis=1).sum())
            differ += sum(engine.differences or 0 for engine in forestc.check(done.design, X).engines.values())
        else:
            differ = absent
        xcup, ecp5 = forestc.synth(done.design, "xcup"), forestc.synth(done.design, "ecp5-85k", try_anyway=True)
    yield {
        "trees": len(done.design.forest.trees), "type of scores": types["score"], "rows": count,
        "differ from the emulator": differ, **figures(xcup, ecp5, cycles),
    }  # fmt: skip


def figures(xcup: Any, ecp5: Any, cycles: int) -> dict[str, Any]:
    return {
        "xcup LUT": xcup["lut"], "FF": xcup["ff"], "cycles": cycles, "ECP5 LUT": ecp5["lut"], "MHz": ecp5["fmax_mhz"],
    }  # fmt: skip


def depth_of(tree: Any, at: int = 0) -> int:
    if tree["feature"][at] == -2:
        return 0
    return 1 + max(depth_of(tree, tree[key][at]) for key in ("children_left", "children_right"))


@dataclass(frozen=True)
class ScoreCircuit(ConiferCircuit):
    """conifer's VHDL of a document (`model.document`) with one score; all ports have words of the type of scores."""

    def made(self) -> Any:
        import conifer
        import hls4ml

        os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        os.environ["XILINX_AP_INCLUDE"] = str(Path(hls4ml.__file__).parent / "templates/vivado/ap_types")
        document = self.model.document
        size, every = document["n_features"], [tree for group in document["trees"] for tree in group]
        for tree in every:
            tree["weight"] = [[int(k == feature) for k in range(size)] for feature in tree["feature"]]
        asked = {"library": "xgboost", "splitting_convention": "<="} | document
        asked |= {"max_depth": max(map(depth_of, every)), "init_predict": document["init_predict"][:1]}
        precision = f"ap_fixed<{self.bits},{self.feature_bits + 1}>"
        config = conifer.backends.vhdl.auto_config() | {"OutputDir": str(self.folder), "Precision": precision}
        with chdir(self.folder):  # conifer leaves a folder where it runs
            made = conifer.model.make_model(asked, config)
            made.write()
        return made

    def written(self, folder: Path) -> Synthesized:
        circuit = super().written(folder)
        size, bits = self.model.document["n_features"], self.bits
        words = ", ".join(f"x[{at * bits} +: {bits}]" for at in range(size))
        view = circuit.view | {"x_bits": size * bits, "y_bits": bits}
        (folder / "top_of_trees.v").write_text(TOP.format(**view, words=words))
        return replace(circuit, view=view)


def conifer(path: Path, count: int, case: Case) -> Steps:
    document, forest = json.loads(path.read_text()), forestc.load(path)
    score = parse_number_type(types_of(forest)["score"])
    assert isinstance(score, Fixed)
    with tempfile.TemporaryDirectory() as folder:
        model = SimpleNamespace(document=document, n_features_in_=document["n_features"])
        circuit = ScoreCircuit(model, score.bits, score.bits - score.fraction - 1, Path(folder))
        made = circuit.made()
        sources = sorted((Path(folder) / "firmware").iterdir())
        yield [path], [*(source.read_bytes() for source in sources), tool_version("conifer")]
        xcup, ecp5 = (
            synthesis_figures(circuit, SynthOptions(None, device, route=device != "xcup"))
            for device in ("xcup", "ecp5-85k")
        )
    yield {
        "trees": made.n_trees, "type of scores": f"ap_fixed<{score.bits},{score.bits - score.fraction}>",
        **figures(xcup, ecp5, circuit.latency(made)), "version": tool_version("conifer"),
    }  # fmt: skip


if __name__ == "__main__":
    main()
