"""Measures the designs that -O3 tries on one shared model: LUTs by yosys, and accuracy on rows that chose nothing.

    python benchmarks/curve.py --peers DIR --json FILE

DIR holds digits, as for benchmarks/hardware.py, from whose result come the rows of TreeLUT and conifer. The model is
compiled live with its training rows, for 0 cycles. `tried` are -O3's designs of which none is both smaller and loses
less than another, by its estimates. `points_lost` and its standard error are what the search measured on the rows that
score its designs; `test_%` is measured on the test rows, which the search has not seen. This takes about ten minutes.
"""

from __future__ import annotations

import json
from typing import Any

from data import shared
from hardware import trained
from ledger import Case, Ledger, Steps, tool_version
from tools import ROOT, arguments

import forestc
from forestc.compilation.level_search import planned_run
from forestc.compilation.request import Request
from forestc.options.compile import CompileOptions
from forestc.passes.scorer import Scorer
from forestc.rows.batches import ArrayRows
from forestc.search.finalists import synthesized_luts

MODEL = "digits"


def measured(options: Any, name: str, level: int, case: Case) -> Steps:
    X, y, X_test, y_test = shared(options.peers, name)
    X = X.astype(float)
    yield [X, y, X_test, y_test, options.peers / f"{name}.json", tool_version("yosys")], None
    model = trained(options, name, X, y)
    source, rows = forestc.load(model), ArrayRows(X, y)
    scorer = Scorer(source, ArrayRows(X_test.astype(float), y_test))
    request = Request.of(CompileOptions(model, X, None, label=y, level=level, targets="verilog"))
    planned = planned_run(source, rows, request)
    tried = [trial for trial in planned.plan.curve[1:] if trial is not planned.plan.chosen]
    found = []
    for trial in [planned.plan.chosen, *tried]:
        forest = planned.run(source)[0] if trial is planned.plan.chosen else trial.forest
        row = {"tried": "" if trial is planned.plan.chosen else "tried"}
        loss = scorer.of(forest)
        row |= {
            "LUT": synthesized_luts(forest, "xcup", request.lowering, native=False),
            "test_%": round(100 * loss.accuracy, 2), "standard_error_%": round(100 * loss.error, 2),
        }  # fmt: skip
        if trial is not None:
            row |= {"points_lost": round(100 * trial.loss.lost, 2), "its_error": round(100 * trial.loss.error, 2)}
            row |= {"on_rows": trial.loss.rows, "family": trial.family}
        found.append(row)
    yield found


def main() -> None:
    options = arguments(__doc__, "json", "peers!").parse_args()
    name = "bc" if options.small else MODEL
    ledger = Ledger("the designs that -O3 tries on one model", options, ("yosys",))
    others = json.loads((ROOT / "docs" / "benchmarks" / "hardware.json").read_text(encoding="utf-8"))["rows"]
    for row in others:
        if row["model"] == name and not row["design"].startswith("-O"):
            figures = {"LUT": row["xcup_LUT"], "test_%": row["test_%"], "latency": row["latency"]}
            ledger.quote({"design": row["design"]}, figures, "docs/benchmarks/hardware.json")
    for level in (1,) if options.small else (1, 2, 3):
        ledger.fill([{"design": f"-O{level}"}], measured, options, name, level)
    ledger.show()


if __name__ == "__main__":
    main()
