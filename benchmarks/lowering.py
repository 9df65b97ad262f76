"""The effect of each step of lowering on size: an ablation, one step at a time.

| step                    | what                                                                                       |
|-------------------------|--------------------------------------------------------------------------------------------|
| smallest leaf in offset | a tree's leaves start at 0; their minimum becomes part of one constant offset              |
| offset in the threshold | with two classes the offset moves into the threshold; with more only differences are added |
| narrow sums first       | words are added in the order in which a Huffman code is built                              |
| comparators bit by bit  | `x < constant` as and/or of bits rather than `<`                                           |

All variants are simulated against the quantised forest. Models: XGBoost on bundled data, or those of --peers DIR.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import xgboost
from sklearn.datasets import load_breast_cancer, load_digits
from tools import arguments, show

import forestc
from forestc.backends import verilog
from forestc.checks.engines import simulated
from forestc.checks.vectors import expected, random_words
from forestc.costs.devices import FAMILIES
from forestc.forest.ir import LEAF, Forest
from forestc.lowering import trees
from forestc.lowering.trees import lower
from forestc.netlist.builder import width_for
from forestc.netlist.ir import FALSE, Net, Origin
from forestc.toolchain.yosys import synthesise
from hw_sim import Simulator

TARGETS = ("xcup", "lut6", "ecp5", "ice40")
Lowering = trees._Lowering


def in_order(self: Any, words: Any) -> tuple[Net, int, int]:
    """Adds words in sequence."""
    net, largest = FALSE, 0
    for word, most in words:
        if most:
            net = word if not largest else self.builder.add((net, word), width_for(0, largest + most))
            largest += most
    return net, 0, largest


def with_offsets(label: Callable[..., Any]) -> Callable[..., Any]:
    """Adds its offset to every sum before the decision."""

    def call(self: Any, decision: Any, sums: Any, offsets: Any) -> Net:
        whole = [self.plus(*score, offset) for score, offset in zip(sums, offsets, strict=True)]
        if decision.kind == "threshold":
            return self.builder.not_(self.builder.less(whole[0][0], int(decision.threshold)))
        return label(self, decision, sums, offsets)

    return call


def from_zero(self: Any, index: int, output: int) -> tuple[Net, int]:
    """A tree's leaves minus the smallest leaf of all trees."""
    tree = self.forest.trees[index]
    column = tree.outputs.index(output)
    used = tree.values[tree.leaf[tree.left == LEAF], column]
    least = min(int(other.values[other.leaf[other.left == LEAF]].min()) for other in self.forest.trees)
    self.offsets[output] += least
    return self.muxes(tree, index, column, least, width_for(0, int(used.max()) - least)), int(used.max()) - least


def muxes(self: Any, tree: Any, index: int, column: int, least: int, word: Any) -> Net:
    nets: dict[int, Net] = {}
    asked = self.forest.conditions.places[index].tolist()
    for level in reversed(tree.levels):
        for node in level.tolist():
            if tree.left[node] == LEAF:
                nets[node] = self.builder.const(int(tree.values[tree.leaf[node], column]) - least, word)
            else:
                at = Origin(index, node)
                a, b = nets.pop(int(tree.left[node])), nets.pop(int(tree.right[node]))
                nets[node] = a if a == b else self.builder.mux(self.condition(asked[node], at), a, b, at)
    return nets[0]


@contextmanager
def as_it_is() -> Iterator[None]:
    yield


def variants() -> dict[str, Any]:
    def several(*patches: Any) -> Any:
        @contextmanager
        def call() -> Iterator[None]:
            for item in patches:
                item.start()
            yield
            for item in patches:
                item.stop()

        return call

    change = lambda name, new: patch.object(Lowering, name, new, create=True)  # noqa: E731
    return {
        "as it is": as_it_is,
        "without: smallest leaf in offset": several(change("tree_word", from_zero), change("muxes", muxes)),
        "without: offset in the threshold": several(change("label", with_offsets(Lowering.label))),
        "without: narrow sums first": several(change("added", in_order)),
        "comparators by <": several(patch.object(verilog._Writer, "bitwise", lambda self, net: False)),
    }


def models(peers: Path | None) -> Iterator[tuple[str, Forest]]:
    passes = "simplify,share-thresholds,quantize,simplify"
    few = "simplify,share-thresholds,quantize,prune-splits{keep=decisions,leaf_bits=1,copies=2},simplify"
    if peers is not None:
        for name in ("bc", "digits"):
            with np.load(peers / f"{name}.npz") as data:
                X, y = data["X_train"], data["y_train"]
            yield name, forestc.quantize(peers / f"{name}.json", X, y, passes)
            yield f"{name}, 1-bit leaves", forestc.quantize(peers / f"{name}.json", X, y, few)
        return
    for name, (X, y) in (
        ("breast cancer", load_breast_cancer(return_X_y=True)),
        ("digits", load_digits(return_X_y=True)),
    ):
        model = xgboost.XGBClassifier(n_estimators=13, max_depth=4, random_state=0).fit(X, y)
        yield name, forestc.quantize(model, X, y, passes)
        yield f"{name}, 1-bit leaves", forestc.quantize(model, X, y, few)


def sizes(forest: Forest) -> dict[str, Any]:
    netlist = lower(forest)
    random = np.random.default_rng(0)
    words = random_words(forest, np.zeros((1, len(forest.features)), dtype=np.int64), 2000, random)
    assert np.array_equal(simulated(Simulator(netlist).run, netlist, words), expected(forest, netlist, words))
    top = verilog.module_name(netlist)
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "core.v"
        file.write_text(verilog.emit(netlist)[f"{top}.v"])
        for target in TARGETS:
            cells = synthesise([file], top, FAMILIES[target].synthesis)
            found[f"{target}_LUT"] = cells.lut
            if cells.carry or target in ("ecp5", "ice40"):
                found[f"{target}_carry"] = cells.carry
            if target == "lut6":
                found["lut6_depth"] = cells.depth
    return found


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--peers", type=Path, metavar="DIR", help="bc and digits from there instead of bundled data")
    options = parser.parse_args()
    columns = ("model", "step", *(f"{t}_{what}" for t in TARGETS for what in ("LUT", "carry", "depth")))
    rows = []
    for name, forest in models(options.peers):
        for step, changes in variants().items():
            with changes():
                made = {"model": name, "step": step, **sizes(forest)}
            rows.append(made)
            print(f"{name}, {step}: {made}", flush=True)
    kept = [column for column in columns if any(column in row for row in rows)]
    show("Steps of lowering", [{column: row.get(column, 0) for column in kept} for row in rows], options.json)


if __name__ == "__main__":
    main()
