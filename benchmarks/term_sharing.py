"""Gates of rule sets: as they are, with `share-terms`, and what yosys and ABC make of either.

    python benchmarks/term_sharing.py --data DIR --json FILE

Rules are learnt as in `rules_hardware.py`, from the comparators of a random forest of 20 trees of depth 6, of a
complexity of at most C a class; "paths" are instead all the paths of one decision tree to class 1, each a clause, as
tools that print trees as rules make them. Data sets of several classes have a rule each, against the rest.

Gates are ANDs and ORs of two inputs behind the comparators. Flat: each clause by itself, equal clauses once. ANDs
shared: `share-terms{factor=false}`, and the bound on any circuit that shares ANDs; factored: `share-terms`. Nets: the
logic behind the comparators, with the choice of the class, as AND gates (an OR is an AND of inverted nets) by yosys's
`aigmap`; ABC: the same after `synth` and `abc -g AND`. LUT: the whole design for an UltraScale+, comparators included.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import a_single_thread  # noqa: F401
import numpy as np
from data import shuffled
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier
from tools import arguments, show

from forestc import load
from forestc.backends import verilog
from forestc.costs.devices import DEVICES
from forestc.forest.ir import Forest
from forestc.lowering.trees import lower
from forestc.netlist.ir import BIT, And, Const, Input, InSet, Less, Mux, Netlist, Not, Or
from forestc.passes import passes_from
from forestc.passes.extract_rules.literals import Literals
from forestc.passes.extract_rules.rule_forest import Rules, rule_forest
from forestc.passes.pipeline import run_passes
from forestc.passes.share_terms.share_terms import ShareTerms
from forestc.rows.batches import ArrayRows
from forestc.toolchain.yosys import run_yosys, synthesise

MOST = 1500  # rows: half to train on, a quarter held out
TWO, SEVERAL = ("breast_cancer", "magic04", "spambase", "unsw_nb15_82k"), ("dry_bean", "digits")
CASES: tuple[tuple[str, int | str], ...] = (
    *((name, size) for name in TWO for size in (15, 30, 60)),
    *((name, size) for name in SEVERAL for size in (15, 30)),
    *((name, "paths") for name in TWO),
)
PATHS_DEPTH = 6


def main() -> None:
    parser = arguments(str(__doc__))
    parser.add_argument("--data", type=Path, required=True, metavar="DIR")
    parser.add_argument("--only", default="", metavar="NAMES", help="data sets; all by default")
    parser.add_argument("--seconds", type=float, default=15, help="time limit of extract-rules, and of share-terms")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for name, size in CASES:
        if not options.only or name in options.only.split(","):
            rows.append(measured(name, size, options.data, options.seconds))
            print(json.dumps(rows[-1]), flush=True)
            show("gates of rule sets", rows, options.json)


def measured(name: str, size: int | str, data: Path, seconds: float) -> dict[str, Any]:
    """One row of the table."""
    X, y = shuffled(name, data, MOST)
    half = len(X) // 2
    fit, held = slice(half), slice(half, half + len(X) // 4)
    rows, held_out = ArrayRows(X[fit], y[fit]), ArrayRows(X[held], y[held])
    if size == "paths":
        tree = DecisionTreeClassifier(max_depth=PATHS_DEPTH, random_state=0).fit(X[fit], y[fit])
        flat = of_paths(run_passes(load(tree), passes_from("simplify,quantize,simplify"), rows)[0])
    else:
        model = RandomForestClassifier(20, max_depth=6, random_state=0).fit(X[fit], y[fit])
        passes = f"simplify,quantize,extract-rules{{complexity={size},tolerance=1,seconds={seconds:g}}},simplify"
        flat = run_passes(load(model), passes_from(passes), rows, held_out)[0]
    begin = time.perf_counter()
    shared, factored = (ShareTerms(factor=one, seconds=seconds).run(flat, None) for one in (False, True))
    took = time.perf_counter() - begin
    netlists = [lower(replace(one, name="m")) for one in (flat, factored.forest)]
    drawn, optimised = zip(*map(and_gates, netlists), strict=True)
    report, luts = shared.report, list(map(lut_count, netlists))
    return {
        "set": name, "rules": str(size), "clauses": report["clauses"],
        "flat": report["gates"][0], "ANDs_shared": report["gates"][1],
        "bound": report["and_gates_bound"] + report["gates"][1] - report["and_gates"][1],
        "factored": factored.report["gates"][1],
        "nets_flat": drawn[0], "nets_factored": drawn[1], "ABC_flat": optimised[0], "ABC_factored": optimised[1],
        "LUT_flat": luts[0], "LUT_factored": luts[1], "s": round(took, 1),
    }  # fmt: skip


def of_paths(forest: Forest) -> Forest:
    """The paths of a decision tree to class 1 as clauses."""
    tree, places = forest.trees[0], forest.conditions.places[0].tolist()
    if forest.decision.kind == "threshold":
        yes = tree.values[:, 0] + forest.bias[0] >= forest.decision.threshold
    else:
        yes = np.argmax(tree.values + forest.bias, axis=1) == 1
    clauses = []
    open_: list[tuple[int, tuple[int, ...]]] = [(0, ())]
    while open_:
        node, path = open_.pop()
        if tree.left[node] < 0:
            clauses += [path] if yes[tree.leaf[node]] else []
            continue
        open_ += [
            (int(tree.left[node]), (*path, 2 * places[node])),
            (int(tree.right[node]), (*path, 2 * places[node] + 1)),
        ]
    assert clauses
    return rule_forest(forest, Rules("dnf", {1: tuple(clauses)}, (1,), 0), Literals(tuple(forest.conditions)))


def and_gates(netlist: Netlist) -> tuple[int, int]:
    """Two-input ANDs of the logic behind the comparators, as it is and after ABC."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "m.v").write_text("\n".join(logic(netlist)) + "\n")
        counts = []
        for steps in (
            ["proc", "flatten", "techmap", "aigmap", "opt_clean"],
            ["synth -flatten", "abc -g AND", "opt_clean"],
        ):
            run_yosys(
                "\n".join(["read_verilog m.v", "hierarchy -top m", *steps, "tee -q -o stat.json stat -json"]), folder
            )
            text = (folder / "stat.json").read_text()
            found = json.loads(text[text.index("{") :])["design"]["num_cells_by_type"]
            counts.append(int(found.get("$_AND_", 0)))
            assert set(found) <= {"$_AND_", "$_NOT_", "$scopeinfo"}, found
    return counts[0], counts[1]


def logic(netlist: Netlist) -> Iterator[str]:
    """A Verilog module of what is behind the comparators, each of which is an input, as are features of one bit."""
    bits = [
        net
        for net, cell in enumerate(netlist.cells)
        if isinstance(cell, Less | InSet) or (isinstance(cell, Input) and netlist.types[net] == BIT)
    ]
    yield "`default_nettype none"
    yield f"module m(input wire [{max(0, len(bits) - 1)}:0] x, output wire [31:0] y);"
    for net, cell in enumerate(netlist.cells):
        width = netlist.types[net].width
        match cell:
            case Const(value):
                text = f"{width}'d{value}"
            case Less() | InSet() | Input():
                text = f"x[{bits.index(net)}]" if net in bits else ""
            case Not(a):
                text = f"~n{a}"
            case And(a, b):
                text = f"n{a} & n{b}"
            case Or(a, b):
                text = f"n{a} | n{b}"
            case Mux(select, a, b):
                text = f"n{select} ? n{a} : n{b}"
            case _:
                continue
        if text:
            yield f"wire [{width - 1}:0] n{net} = {text};"
    yield f"assign y = n{netlist.outputs[0][1]};"
    yield "endmodule"


def lut_count(netlist: Netlist) -> int:
    """LUTs of the whole design."""
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "m.v"
        file.write_text(verilog.emit(netlist)["m.v"])
        return synthesise([file], "m", DEVICES["xcup"].family.synthesis).lut


if __name__ == "__main__":
    main()
