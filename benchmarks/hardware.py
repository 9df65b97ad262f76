"""Compares designs of two shared models at each level with TreeLUT's and conifer's designs of the same models: LUTs,
clock, accuracy.

    python benchmarks/hardware.py --peers DIR --json FILE

DIR holds bc and digits: NAME.json (XGBoost), NAME.meta.json (its parameters) and NAME.npz (X_train, y_train, X_test,
y_test). The model is trained again, must equal the file, and is compiled live with its training rows; the test rows
only measure. `xcup_LUT` is yosys's count for an UltraScale+, the decision included. Designs of two stages are placed
and routed on ecp5-85k by nextpnr, between registers. The figures of the peers are recorded here; they come from the
same tools and options. `to TreeLUT` is the ratio of LUTs to TreeLUT's design of the same latency.
"""

from __future__ import annotations

import json
import tempfile
from typing import Any

from data import shared
from ledger import Case, Ledger, Steps
from tools import arguments
from xgboost import Booster, XGBClassifier

import forestc
from forestc.passes.scorer import Scorer
from forestc.rows.batches import ArrayRows

MEASURES = ("forestc/passes", "forestc/algorithms", "forestc/compilation", "forestc/lowering", "forestc/netlist",
            "forestc/backends/verilog", "forestc/backends/hdl.py")  # fmt: skip
KEYS = ("test_%", "latency", "xcup_LUT", "FF", "depth", "ECP5_LUT", "MHz")
RECORDED: dict[str, dict[str, tuple[Any, ...]]] = {
    "bc": {
        "TreeLUT": (95.91, 0, 187, 0, 8, 234, 78.6),
        "TreeLUT, two stages": (95.91, 2, 177, 45, 3, 115, 152.6),
        "conifer VHDL": (95.32, 11, 526, 525, 6, 476, 242.3),
    },
    "digits": {
        "TreeLUT": (95.0, 0, 998, 0, 15, 1343, 42.1),
        "TreeLUT, two stages": (95.0, 2, 1010, 319, 11, 1165, 69.0),
        "conifer VHDL": (94.26, 13, 10010, 9232, None, None, None),
    },
}
LATENCIES = (0, 2)
TOOLS = ("yosys", "nextpnr-ecp5", "forestc/toolchain", "forestc/commands/synth.py", "forestc/costs/devices.py")


def main() -> None:
    options = arguments(__doc__, MEASURES, "peers!").parse_args()
    names, levels = (("bc",), (1,)) if options.small else (tuple(RECORDED), (1, 2, 3))
    ledger = Ledger("two shared models beside TreeLUT and conifer", options, TOOLS)
    for name in names:
        for who, figures in RECORDED[name].items():
            row = dict(zip(KEYS, figures, strict=True))
            ledger.quote({"model": name, "design": who}, row, "recorded in this script")
        for level in levels:
            for latency in LATENCIES[: 1 if options.small else None]:
                case = {"model": name, "design": f"-O{level}, {latency} cycles"}
                ledger.fill([case], measured, options, level, latency)
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
    peer = RECORDED[name]["TreeLUT, two stages" if latency else "TreeLUT"][2]
    yield {
        "test_%": round(100 * loss.accuracy, 2), "latency": latency,
        "xcup_LUT": xcup["lut"], "FF": xcup["ff"], "depth": xcup["depth"], "ECP5_LUT": ecp5.get("lut"),
        "MHz": ecp5.get("fmax_mhz"), "to TreeLUT": round(xcup["lut"] / peer, 2),
        "model_test_%": round(100 * scorer.accuracy, 2), "standard_error_%": round(100 * loss.error, 2),
    }  # fmt: skip


if __name__ == "__main__":
    main()
