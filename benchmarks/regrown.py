"""What `regrow-trees`, and `--train priced`, make of models and data whose classes overlap: LUTs and test accuracy.

    python benchmarks/regrown.py --data DIR --peers DIR --json FILE

models: XGBoost of 20 rounds and depth 4 (five classes: of 13 rounds and depth 5, on rows of make_classification)
trained on 70 % of at most 15,000 rows; the passes of -O1, and `regrow-trees` after them. Half of the other rows are
held out for the pass, which goes by a tolerance of 0.01, and half are test rows.

budget: the most accurate ensemble on validation rows among those of at most a share (a quarter) of the LUTs of a
published or recorded design: KANELE's (trained here) and TreeLUT's (grown from the shared model). Leaf bits, prices,
noise on the rows, depths and kinds of thresholds are as listed below. Of each combination the largest number of trees
within the budget is judged on a fifth of the training rows, of fewer than 1,000 on all fifths, the best six then by
cross-validation in five parts, of fewer than 1,000 rows five times with other parts, and of equally accurate ones the
smallest is taken.

Test rows choose nothing. LUTs: yosys, synth_xilinx -family xcup, the whole decision, without registers. MHz: two
stages on ecp5-85k by nextpnr; fastest: of those of the six whose validation accuracy is within a standard error of the
best. TreeLUT's figures were recorded with the same tools; KANELE's RTL was synthesized by them, with an argmax.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import a_single_thread  # noqa: F401
import numpy as np
from data import read, shared, whole_numbers
from designs import TREELUT, given, right
from neighbors import split
from numpy.typing import NDArray
from sklearn.datasets import make_classification
from sklearn.model_selection import StratifiedKFold, train_test_split
from tools import arguments, save, show

import forestc
from forestc.costs.estimate import estimate
from forestc.costs.prices import prices
from forestc.lowering.trees import lower
from forestc.passes import passes_from
from forestc.passes.judge import Judge
from forestc.passes.pipeline import run_passes
from forestc.passes.regrow_trees.regrow_trees import RegrowTrees
from forestc.passes.simplify import Simplify
from forestc.rows.batches import ArrayRows
from forestc.training import TRAINERS, Task

TITLE = "regrown trees"
DEVICE = "xcup"
SETS = ("spambase", "diabetic_retinopathy", "magic04", "pima", "dry_bean", "winequality_red", "five_classes")
MOST_ROWS = 15_000
FIRST = "simplify,share-thresholds,quantize,simplify"
FEW_BITS = "simplify,share-thresholds,quantize{leaf_bits=auto,change=1},simplify"  # leaves have few as they are
KANELE = {"wine": (98.15, 819), "moons": (97.35, 70), "dry_bean": (92.03, 665)}  # test accuracy in %, LUTs
PARTS, FINALISTS, REPEATS = 5, 6, 5
TREES, SWEEPS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 18, 22, 27, 33, 40), 2
CHOICES: dict[str, tuple[Any, ...]] = {"leaf_bits": (1, 2), "price": (3.0, 1.0), "depth": (5, 6)}
FEW_ROWS, LOWER = 1_000, (0.1, 0.03)  # with fewer training rows lower prices are tried, too
NOISE, MOST_NOISY = (0.0, 0.02, 0.1), 100_000  # noise on the rows, where they hold no more values than that
GRID = {"depth": (4, 5), "input_bits": (0, 5)}  # of data trained here; quantiles, or bits
UNCERTAIN = 2  # designs estimated at that many times the budget are not synthesized
COPIES = 4
Labels = NDArray[np.int64]
Made = tuple[forestc.Forest, forestc.Forest]  # a model, and the integer forest made of it


def main() -> None:
    parser = arguments(str(__doc__))
    parser.add_argument("--data", type=Path, required=True, metavar="DIR")
    parser.add_argument("--peers", type=Path, required=True, metavar="DIR", help="NAME.json and NAME.npz")
    parser.add_argument("--only", metavar="NAMES", help="others in the file stay")
    parser.add_argument("--share", type=float, default=0.25, help="of the peer's LUTs that may be taken")
    options = parser.parse_args()
    wanted = options.only.split(",") if options.only else [*SETS, *KANELE, *TREELUT]
    kept = json.loads(options.json.read_text()) if options.only and options.json and options.json.exists() else {}
    again = {(name, options.share) for name in wanted}
    models, budgets = (
        [row for row in kept.get(key, ()) if (row["data"], row.get("share", options.share)) not in again]
        for key in ("rows", "budget")
    )
    for name in wanted:
        lines = {**dict.fromkeys(TREELUT, of_model), **dict.fromkeys(KANELE, of_rows)}
        if name in lines:
            budgets.append(lines[name](name, options.peers if name in TREELUT else options.data, options.share))
            print(budgets[-1], flush=True)
        if name in SETS and (name not in KANELE or not options.only):
            models.append(shrunk(name, options.data))
            print(models[-1], flush=True)
        save(TITLE, models, options.json, budget=budgets)
    more = {"budget": budgets} if models and budgets else {}
    show(TITLE, models or budgets, options.json, **more)


def shrunk(name: str, data: Path) -> dict[str, Any]:
    """A line: the model's and the new ensemble's LUTs and accuracy."""
    from xgboost import XGBClassifier

    start = time.perf_counter()
    if name == "five_classes":
        X, y = make_classification(
            n_samples=6000, n_features=16, n_informative=10, n_classes=5, class_sep=1.5, random_state=0
        )
    else:
        X, y = read(name, data)
    order = np.random.default_rng(0).permutation(len(X))[:MOST_ROWS]
    X, Xt, y, yt = train_test_split(X[order], y[order], test_size=0.3, random_state=0, stratify=y[order])
    if name == "five_classes":
        X, Xt = whole_numbers(X, Xt, 8)
    rounds, depth = (13, 5) if name == "five_classes" else (20, 4)
    settings = {"n_estimators": rounds, "max_depth": depth, "learning_rate": 0.3, "n_jobs": 1, "random_state": 0}
    model = forestc.load(XGBClassifier(**settings).fit(X, y))
    before, _ = run_passes(model, passes_from(FIRST), ArrayRows(X, y))
    began = time.perf_counter()
    held_out, rows = ArrayRows(Xt[::2], yt[::2]), ArrayRows(X, y)
    result = RegrowTrees().run(before, rows, Judge(model, held_out))
    seconds = time.perf_counter() - began
    Xt, yt = Xt[1::2], yt[1::2]
    line = {"data": name, "rows": len(X), "O1_LUT": luts(model, before, X), "LUT": luts(model, result.forest, X)}
    line |= {"ratio": line["LUT"] / line["O1_LUT"], "model_test_%": right(model, Xt, yt)}
    line |= {"test_%": right(result.forest, Xt, yt), "standard_error": error_of(right(model, Xt, yt), len(yt))}
    report = {key: result.report[key] for key in ("trees", "leaf_bits", "price", "tried")}
    return line | {"trees": report.pop("trees")[1], **report, "pass_s": seconds, "s": time.perf_counter() - start}


def of_model(name: str, peers: Path, share: float) -> dict[str, Any]:
    """A line of a shared model, grown again from all training rows."""
    model = forestc.load(peers / f"{name}.json")
    X, y, Xt, yt = shared(peers, name)
    y = y.astype(np.int64)
    quantized, _ = run_passes(model, passes_from(FIRST), ArrayRows(X, y))

    def made(options: dict[str, Any], rows: NDArray[Any], labels: Labels) -> Made:
        fit = ArrayRows(rows, labels)
        step = RegrowTrees(**options, sweeps=SWEEPS, copies=2 * COPIES)
        return model, run_passes(step.run(quantized, fit, Judge(model, fit)).forest, [Simplify()], fit)[0]

    accuracy, _, lut, *_ = TREELUT[name][0]
    peer = ("TreeLUT", accuracy, lut, share)
    line, finalists = within_budget(name, (X, y, Xt, yt), made, CHOICES, peer)
    its_mhz = TREELUT[name][1][-1]
    best = finalists[0][0]
    least = best - error_of(best, len(y))
    speeds = [(megahertz(pair, X), smaller, pair) for accuracy, smaller, pair in finalists if accuracy >= least]
    mhz, smaller, (_, forest) = max(speeds, key=lambda speed: speed[:2])
    line |= {"MHz_2_stages": speeds[0][0], "its_MHz": its_mhz, "MHz_ratio": speeds[0][0] / its_mhz}
    line |= {"fastest_MHz": mhz, "fastest_ratio": mhz / its_mhz, "fastest_LUT": -smaller}
    return line | {"fastest_test_%": right(forest, Xt, yt)}


def megahertz(pair: Made, X: NDArray[Any]) -> float:
    """The clock rate of two stages on an ECP5."""
    with tempfile.TemporaryDirectory() as folder:
        written(*pair, X, folder, latency=2)
        return float(forestc.synth(folder + "/out", device="ecp5-85k")["fmax_mhz"])


def of_rows(name: str, data: Path, share: float) -> dict[str, Any]:
    """A line of a data set, trained here."""
    X, y, Xt, yt = split(name, data)
    names = tuple(f"x{index}" for index in range(X.shape[1]))

    def made(options: dict[str, Any], rows: NDArray[Any], labels: Labels) -> Made:
        trees, bits = options["trees"], options["leaf_bits"]
        settings = {**options, "shape": "symmetric", "sweeps": SWEEPS, "cuts": 60, "l2": 1.0, "copies": COPIES}
        settings |= {"thresholds": "grid" if options["input_bits"] else "quantiles"}
        settings |= {"price": options["price"] / len(rows), "unit": 2 * min(1.0, 2 / trees**0.5) / (1 << bits)}
        task = Task(rows, labels, names, int(y.max()) + 1, prices("lut6"))
        model = TRAINERS["priced"].fit(task, settings)
        return model, run_passes(model, passes_from(FEW_BITS), ArrayRows(rows, labels))[0]

    choices = CHOICES | GRID
    if len(X) < FEW_ROWS:
        choices |= {"price": (*CHOICES["price"], *LOWER)}
    return within_budget(name, (X, y, Xt, yt), made, choices, ("KANELE", *KANELE[name], share))[0]


def within_budget(
    name: str,
    rows: tuple[NDArray[Any], Labels, NDArray[Any], Labels],
    made: Callable[[dict[str, Any], NDArray[Any], Labels], Made],
    choices: dict[str, tuple[Any, ...]],
    peer: tuple[str, float, int, float],
) -> tuple[dict[str, Any], list[tuple[float, int, Made]]]:
    """A line: the ensemble that the rule of this file's description chooses, beside the peer's; and the finalists from
    the best on, each with its validation accuracy and, below 0, its LUTs."""
    X, y, Xt, yt = rows
    who, its_accuracy, its_lut, share = peer
    start = time.perf_counter()
    parts = [
        part
        for repeat in range(REPEATS if len(X) < FEW_ROWS else 1)
        for part in StratifiedKFold(PARTS, shuffle=True, random_state=repeat).split(X, y)
    ]

    def validated(options: dict[str, Any], judged: Sequence[tuple[Any, Any]]) -> float:
        correct = sum(right(made(options, X[fit], y[fit])[1], X[held], y[held]) * len(held) for fit, held in judged)
        return round(correct / sum(len(held) for _, held in judged), 9)

    if X.size <= MOST_NOISY:
        choices = choices | {"noise": NOISE}
    designs = []
    for values in product(*choices.values()):
        chosen = dict(zip(choices, values, strict=True))
        largest: tuple[Made, int, dict[str, Any]] | None = None
        fitting, too_many = 0, len(TREES)  # places in TREES: those before `fitting` are within the budget
        while fitting < too_many:
            middle = (fitting + too_many) // 2
            pair = made(chosen | {"trees": TREES[middle]}, X, y)
            lut = estimated(pair[1])
            if share * its_lut < lut < UNCERTAIN * share * its_lut:  # estimates are too high more often than too low
                lut = luts(*pair, X)  # versions of yosys differ by a fifth: the one that is measured
            if lut <= share * its_lut:
                largest, fitting = (pair, lut, chosen | {"trees": TREES[middle]}), middle + 1
            else:
                too_many = middle
        if largest is not None:
            first = parts[: 1 if len(X) >= FEW_ROWS else PARTS]  # a fifth of few rows says little
            designs.append((validated(largest[2], first), -largest[1], len(designs), *largest))
    judged = []
    for _, _, place, pair, _, options in sorted(designs, key=lambda design: design[:3])[-FINALISTS:]:
        lut = luts(*pair, X)
        if lut <= share * its_lut:
            judged.append((validated(options, parts), -lut, place, pair, options))
    judged.sort(key=lambda design: design[:3], reverse=True)
    accuracy, smaller, _, (_, forest), options = judged[0]
    line = {"data": name, "share": share, "LUT": -smaller, "validation_%": accuracy, "test_%": right(forest, Xt, yt)}
    line |= {"standard_error": error_of(its_accuracy, len(yt)), "of": who, "its_test_%": its_accuracy}
    line |= {"its_LUT": its_lut, "ratio": line["LUT"] / its_lut, **options}
    return line | {"judged": len(designs), "s": time.perf_counter() - start}, [
        (value, lut, pair) for value, lut, _, pair, _ in judged
    ]


def estimated(forest: forestc.Forest) -> int:
    return int(estimate(lower(forest), DEVICE)["lut"])


def luts(model: forestc.Forest, forest: forestc.Forest, X: NDArray[Any]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        written(model, forest, X, folder)
        return int(forestc.synth(folder + "/out", device=DEVICE)["lut"])


def written(model: forestc.Forest, forest: forestc.Forest, X: NDArray[Any], folder: str, latency: int = 0) -> None:
    """Compiles the forest into folder/out."""
    passes = [given(forest), Simplify()]
    forestc.compile(model, X[:5000], folder + "/out", targets=["verilog"], passes=passes, latency=latency)


def error_of(percent: float, rows: int) -> float:
    """The standard error of an accuracy in percent."""
    return float(np.sqrt(percent * (100 - percent) / rows))


if __name__ == "__main__":
    main()
