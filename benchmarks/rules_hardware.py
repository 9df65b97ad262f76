"""A random forest, the same pruned, and rules extracted from it: accuracy and hardware side by side.

    python benchmarks/rules_hardware.py --data DIR --json FILE

Breast cancer from scikit-learn; the others from DIR (NAME.csv.gz, the last column is the class). A random forest of 20
trees of depth 6 is trained on half of the rows, of which at most 1,500 are taken; a quarter is held out for `-O3`
(tolerance 0.01); the accuracy is that on the last quarter. Rules have a complexity (clauses plus
conditions) of at most 15 and 60, and are taken whatever they lose; `auto` is the smallest within 0.02 on held-out rows,
and left out where there is none; rules of the forest are learnt from its decisions on rows and copies of them. Gates
are ANDs and ORs of the netlist after comparators; muxes are of the netlist, too. LUTs are forestc's estimate for an
UltraScale+ before synthesis, and with `--synth` what yosys needs for one. Bytes are text and constants of Cortex-M0+
code from raw rows to the class.
"""

from __future__ import annotations

import re
import tempfile
import time
from pathlib import Path
from typing import Any

import a_single_thread  # noqa: F401
from data import shuffled
from designs import estimated_luts, object_bytes
from sklearn.ensemble import RandomForestClassifier
from tools import arguments, show

import forestc
from forestc.errors import OptionError
from forestc.netlist.ir import And, Mux, Or

SETS = ("breast_cancer", "magic04", "spambase", "unsw_nb15_82k")
MOST = 1500
VARIANTS: dict[str, dict[str, Any]] = {
    "forest": {"passes": "simplify,quantize,simplify"},
    "pruned (-O3)": {"level": 3},
    **{
        f"rules, {most}": {
            "passes": f"simplify,quantize,extract-rules{{complexity={most},tolerance=inf,seconds=SECONDS}},simplify"
        }
        for most in (15, 60)
    },
    "rules, auto": {"passes": "simplify,quantize,extract-rules{tolerance=0.02,seconds=SECONDS},simplify"},
    "rules of the forest, 15": {
        "passes": "simplify,quantize,"
        "extract-rules{learn=forest,copies=2,complexity=15,tolerance=inf,seconds=SECONDS},simplify"
    },
}


def main() -> None:
    parser = arguments(str(__doc__))
    parser.add_argument("--data", type=Path, required=True, metavar="DIR")
    parser.add_argument("--only", default=",".join(SETS), metavar="NAMES")
    parser.add_argument("--seconds", type=float, default=60, help="time limit of extract-rules")
    parser.add_argument("--synth", action="store_true", help="synthesize with yosys as well")
    options = parser.parse_args()
    start = time.perf_counter()
    rows = [
        row for name in options.only.split(",") for row in measured(name, options.data, options.seconds, options.synth)
    ]
    show("rules beside forests", rows, options.json, s=time.perf_counter() - start)


def measured(name: str, data: Path, seconds: float, synth: bool) -> list[dict[str, Any]]:
    """The rows of one data set."""
    X, y = shuffled(name, data, MOST)
    half, quarter = len(X) // 2, len(X) // 4
    fit, held, test = slice(half), slice(half, half + quarter), slice(half + quarter, None)
    model = RandomForestClassifier(20, max_depth=6, random_state=0).fit(X[fit], y[fit])
    rows = []
    for variant, options in VARIANTS.items():
        wanted = {key: str(value).replace("SECONDS", f"{seconds:g}") for key, value in options.items()}
        with tempfile.TemporaryDirectory() as folder:
            begin = time.perf_counter()
            try:
                done = forestc.compile(
                    model, X[fit], Path(folder) / "out", label=y[fit], name="m", held_out=(X[held], y[held]), **wanted
                )
            except OptionError as error:
                print(f"{name}, {variant}: {error}")
                continue
            took = time.perf_counter() - begin
            tested = forestc.check(done.design, X[test], label=y[test], engines=["netlist"], random_rows=0)
            assert tested.ok and tested.agreement is not None and tested.agreement.compiled is not None
            netlist, header = done.design.netlist, done.design.path("c")
            row = {
                "set": name, "variant": variant,
                "test_%": 100 * tested.agreement.compiled, "agreement_%": 100 * tested.agreement.agreement,
                "trees_or_clauses": len(done.design.forest.trees),
                "comparators": done.figures["distinct_conditions"],
                "gates": sum(isinstance(cell, And | Or) for cell in netlist.cells),
                "muxes": sum(isinstance(cell, Mux) for cell in netlist.cells),
                "LUT": estimated_luts(done.figures),
            }  # fmt: skip
            if synth:
                row["yosys_LUT"] = forestc.synth(done.design, "xcup")["lut"]
            rows.append(
                {
                    **row,
                    "C_bytes": object_bytes(header, class_of_row(header), "cortex-m0plus"),
                    "s": round(took, 1),
                    "limit_reached": any(step.report.get("time_limit_reached") for step in done.steps),
                }
            )
    return rows


def class_of_row(header: Path) -> str:
    """A C function from raw rows to the class."""
    signature = re.search(r"static inline (\w+) m_predict\(const (\w+) x\[\w+\]\)", header.read_text())
    assert signature is not None
    result, word = signature.groups()
    return f"{result} run(const float *row) {{ {word} x[M_INPUTS]; m_quantize(row, x); return m_predict(x); }}"


if __name__ == "__main__":
    main()
