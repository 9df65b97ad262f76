"""Compares designs of two shared models at each level with TreeLUT's and conifer's designs of the same models: LUTs,
clock, accuracy.

    python benchmarks/hardware.py --peers DIR --json FILE

DIR holds bc and digits: NAME.json (XGBoost), NAME.meta.json (its parameters) and NAME.npz (X_train, y_train, X_test,
y_test). The model is trained again, must equal the file, and is compiled live with its training rows; the test rows
only measure. `xcup_LUT` is yosys's count for an UltraScale+, the decision included. Designs of two stages are placed
and routed on ecp5-85k by nextpnr, between registers. conifer runs if it is installed (conifer_circuit.py); TreeLUT's
figures stand in peers.json and come from the same tools and options. `to TreeLUT` is the ratio of LUTs to TreeLUT's
design of the same latency.
"""

from __future__ import annotations

import json
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from conifer_circuit import ConiferCircuit
from data import others, shared
from ledger import Case, Ledger, Steps, tool_version
from tools import arguments
from xgboost import Booster, XGBClassifier

import forestc
from forestc.compilation.synthesis import synthesis_figures
from forestc.options.commands import SynthOptions
from forestc.passes.scorer import Scorer
from forestc.rows.batches import ArrayRows

CONIFER = {"bc": (16, 8), "digits": (12, 4)}  # bits of a word and of a feature, by model
LATENCIES = (0, 2)
TOOLS = ("yosys", "nextpnr-ecp5", "forestc/toolchain", "forestc/commands/synth.py", "forestc/costs/devices.py")


def main() -> None:
    options = arguments(__doc__, "json", "peers!", "only").parse_args()
    names, levels = (("bc",), (1,)) if options.small else (tuple(CONIFER), (1, 2, 3))
    ledger = Ledger("two shared models beside TreeLUT and conifer", options, TOOLS)
    for name in names:
        for row, source in others("design"):
            if row["model"] == name:
                ledger.quote({"model": name, "design": row["design"]}, row, source)
        designs = {"conifer VHDL": (conifer,)} | {
            f"-O{level}, {latency} cycles": (measured, level, latency)
            for level in levels
            for latency in LATENCIES[: 1 if options.small else None]
        }
        for design, (measure, *given) in designs.items():
            case = {"model": name, "design": design}
            if options.only not in design or (measure is conifer and not find_spec("conifer")):
                ledger.keep(case)
            else:
                ledger.fill([case], measure, options, *given)
    ledger.show()


def trained(options: Any, name: str, X: Any, y: Any) -> XGBClassifier:
    """Trains the shared model again. Raises AssertionError if it is not the one in the file."""
    parameters = json.loads((options.peers / f"{name}.meta.json").read_text())["hp"]
    model = XGBClassifier(**parameters, base_score=0.5, tree_method="exact", n_jobs=1).fit(X.astype(float), y)
    shared_one = Booster(model_file=options.peers / f"{name}.json")
    same = shared_one.get_dump(dump_format="json") == model.get_booster().get_dump(dump_format="json")
    assert same, f"XGBoost trains another {name} than {name}.json"
    return model


def measured(options: Any, level: int, latency: int, case: Case) -> Steps:
    name = case["model"]
    X, y, X_test, y_test = shared(options.peers, name)
    model = trained(options, name, X, y)
    with tempfile.TemporaryDirectory() as folder:
        done = forestc.compile(
            model, X.astype(float), f"{folder}/out", label=y, level=level, targets="verilog", latency=latency, name=name
        )
        scorer = Scorer(forestc.load(model), ArrayRows(X_test.astype(float), y_test))
        loss = scorer.of(done.design.forest)
        made = [done.design.path("verilog"), scorer.accuracy, loss.accuracy, loss.error]
        yield [X, y, X_test, y_test, options.peers / f"{name}.json"], made
        xcup = forestc.synth(done.design, "xcup")
        ecp5 = forestc.synth(done.design, "ecp5-85k", try_anyway=True) if latency else {}
    peer = next(row["xcup_LUT"] for row, _ in others("design") if (row["model"], row["latency"]) == (name, latency))
    yield {
        "test_%": round(100 * loss.accuracy, 2), "latency": latency,
        "xcup_LUT": xcup["lut"], "FF": xcup["ff"], "depth": xcup["depth"], "ECP5_LUT": ecp5.get("lut"),
        "MHz": ecp5.get("fmax_mhz"), "to TreeLUT": round(xcup["lut"] / peer, 2),
        "model_test_%": round(100 * scorer.accuracy, 2), "standard_error_%": round(100 * loss.error, 2),
    }  # fmt: skip


def conifer(options: Any, case: Case) -> Steps:
    X, y, X_test, y_test = shared(options.peers, case["model"])
    model = trained(options, case["model"], X, y)
    with tempfile.TemporaryDirectory() as folder:
        circuit = ConiferCircuit(model, *CONIFER[case["model"]], Path(folder))
        made = circuit.made()
        sources = sorted((Path(folder) / "firmware").iterdir())
        yield [X, y, X_test, y_test], [*(path.read_bytes() for path in sources), tool_version("conifer")]
        right = circuit.accuracy(made, X_test.astype(float), y_test)
        xcup, ecp5 = (
            synthesis_figures(circuit, SynthOptions(None, device, route=device != "xcup"))
            for device in ("xcup", "ecp5-85k")
        )
    yield {
        "test_%": round(100 * right, 2), "latency": circuit.latency(made), "xcup_LUT": xcup["lut"],
        "FF": xcup["ff"], "SRL": xcup["bram"], "depth": xcup["depth"], "ECP5_LUT": ecp5["lut"], "MHz": ecp5["fmax_mhz"],
        "version": tool_version("conifer"),
    }  # fmt: skip


if __name__ == "__main__":
    main()
