"""Checks designs on simulated boards, over a clean line and over one that damages and loses bytes.

`check --port sim` sends at least 20,000 vectors through the top that is placed on a board, simulated by Verilator, with
12 clocks a bit. Damaged and lost bytes are those of both directions. `differences` counts vectors with another answer
than the evaluator's, `wrong` the model's own rows with another prediction than the design's.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from ledger import Case, Ledger, Steps
from sklearn.datasets import load_iris
from sklearn.ensemble import ExtraTreesClassifier
from tools import arguments

import forestc
from forestc.manifest.design import Design

LINES = {"clean": "sim", "1 % damaged, 0.1 % lost": "sim:damaged=0.01,lost=0.001"}
VECTORS = 20_000


def _iris() -> tuple[Any, Any, Any]:
    X, y = load_iris(return_X_y=True)
    return ExtraTreesClassifier(8, max_depth=4, random_state=0), X, y


def _bytes() -> tuple[Any, Any, Any]:
    """Returns a model of 64 columns of bytes, and rows for it."""
    random = np.random.default_rng(0)
    X = random.integers(0, 256, (600, 64)).astype(float)
    y = (X[:, :32].sum(axis=1) > X[:, 32:].sum(axis=1)).astype(int) + (X[:, 5] > 200)
    return ExtraTreesClassifier(16, max_depth=4, max_features=1, random_state=0), X, y


CASES = {"iris": (_iris, ""), "bytes": (_bytes, "quantize-inputs{input_bits=8},round-leaves{leaf_bits=8}")}


def compiled(name: str, folder: Path) -> tuple[Design, Any]:
    make, passes = CASES[name]
    model, X, y = make()
    chosen = {"passes": passes} if passes else {}
    done = forestc.compile(model.fit(X, y), X, folder / name, label=y, outputs="both", targets=["verilog"], **chosen)
    return done.design, X


def measured(design: Design, X: Any, vectors: int, case: Case) -> Steps:
    """Checks a design on a simulated board, then predicts its rows there."""
    yield [X, vectors], None
    line = case["line"]
    netlist = forestc.check(design, X, engines=["netlist"], random_rows=0, record=False)
    more, start = max(0, vectors - sum(netlist.vectors.values())), time.perf_counter()
    result = forestc.check(design, X, port=LINES[line], engines=["board"], random_rows=more, record=False)
    seconds, board = time.perf_counter() - start, result.engines["board"]
    with forestc.Board(LINES[line], design) as client:
        wrong = int((client.predict(X) != design.predict(X)).sum())
        row, answer = client.identity.row, client.identity.result
    figures = result.figures["board"]
    yield {
        "row_bytes": row, "result_bytes": answer, "vectors": board.vectors,
        "differences": board.differences, "predicted": len(X), "wrong": wrong, "resends": figures["resends"],
        "rows_per_second": figures["rows_per_second"], "seconds": round(seconds, 1),
    }  # fmt: skip


def main() -> None:
    options = arguments(__doc__, "json", "only").parse_args()
    names = ["iris"] if options.small else [name for name in CASES if not options.only or name in options.only]
    ledger = Ledger("designs on simulated boards, against the evaluator", options, ("verilator",))
    with tempfile.TemporaryDirectory() as scratch:
        for name in names:
            design, X = compiled(name, Path(scratch))
            X, vectors = (X[:50], 100) if options.small else (X, VECTORS)
            ledger.fill([{"design": name, "line": line} for line in LINES], measured, design, X, vectors)
    ledger.show()


if __name__ == "__main__":
    main()
