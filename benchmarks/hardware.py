"""Hardware of shared models and of models trained here: accuracy, latency, LUTs, flip-flops, depth and Fmax, compared
with TreeLUT and conifer.

--peers DIR holds NAME.json (XGBoost) with NAME.npz beside it (X_train, y_train, X_test, y_test). xcup and lut6 count
LUTs (yosys), ecp5-85k is placed and routed between registers (nextpnr). TreeLUT's figures were recorded with the same
tools and options, the class decision inside. --conifer PYTHON: an interpreter that has conifer; with ghdl on the PATH
its VHDL is then synthesized and simulated here (`conifer_vhdl.py`), otherwise its recorded figures are shown.
--data DIR adds MNIST and UNSW-NB15, compared with published figures. --plot FILE draws LUTs against accuracy.

Passes see only training rows. Held-out rows are every fifth training row and are used only as a check: prices, budgets
and bits are fixed, and all that were tried are in the table. The test rows only measure.
same_on_train: share of training rows with the model's decision. promise: the weakest guarantee of the passes;
`on data`: the decision of no training row changes.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from conifer_vhdl import conifer, missing
from data import mnist, shared, unsw, whole_numbers
from designs import TREELUT, decided, given, share
from numpy.typing import NDArray
from tools import arguments, show

import forestc
from forestc.commands.synth import synth
from forestc.errors import CheckError, OptionError, ToolError
from forestc.forest.ir import Forest
from forestc.passes import passes_from
from forestc.passes.quantize.quantize import Quantize

KEYS = ("model", "design", "promise", "same_on_train_%", "test_%", "latency", "xcup_LUT", "to_TreeLUT", "FF",
        "lut6_LUT", "depth", "ECP5_LUT", "carry", "MHz", "s")  # fmt: skip
PEER = ("test_%", "latency", "xcup_LUT", "FF", "lut6_LUT", "depth", "ECP5_LUT", "MHz")
# test accuracy, LUTs, MHz
PUBLISHED = {
    "mnist": {"TreeLUT (II)": (96.0, 3499, 874), "TreeLUT (I)": (97.0, 4478, 791)},
    "unsw": {"TreeLUT (II)": (92.0, 89, None)},
}
TOOLS = """The published figures are second-hand transcriptions of Vivado's results after place and route on an xcvu9p.
Ours are from synthesis by yosys for the same kind of LUTs and, where MHz are given, place and route by nextpnr on an
ECP5: LUT counts can be compared, with care; clock rates can't. Scaling raw features to few bits is not part of the
designs, there and here."""
NOTES = {
    "mnist": "60,000 rows, of which 10,000 are held out; pixels of 4 bits; the official 10,000 test rows",
    "unsw": "the 82,332-row partition, raw features of 4 bits (sixteenths of the training rows, rank of a category), a "
    "random fifth for testing. TreeLUT's rows are LogicNets' binarized ones, so accuracies do not compare; only "
    "TreeLUT (II) was found",
}
CONIFER = {
    "bc": (95.32, 11, 526, "476 + 49 SRL", 615, 6, 476, 242.3),
    "digits": (94.26, 13, 10010, "8769 + 463 SRL", "-", "-", "-", "-"),
}
SHARED = "simplify,share-thresholds,quantize"
KEPT = "prune-splits{keep=decisions,leaf_bits=1"
NARROW = "simplify,share-thresholds{budget=BUDGET,tolerance=0.1},quantize"  # 0.42 of the model's comparators
LOSSLESS = {
    "rounded": f"{SHARED},simplify",
    "fitted to 1 bit": "simplify,share-thresholds,quantize{fit=true,leaf_bits=1,tolerance=0.1},simplify",
    **{f"decisions kept, to price {price}": f"{SHARED},{KEPT},price={price}}},simplify" for price in (0.05, 0.1, 0.2)},
    "decisions kept": f"{SHARED},{KEPT}}},simplify",
}
FITTED = {
    "price 0.1": f"{SHARED},prune-splits{{price=0.1,leaf_bits=1,tolerance=0.1}},simplify",
    **{
        f"budget, price {price}": f"{NARROW},prune-splits{{price={price},leaf_bits=1,tolerance=0.1}},simplify"
        for price in (0.05, 0.1, 0.2)
    },
}
TRAINED = {name: {**LOSSLESS, **FITTED}[name] for name in ("rounded", "decisions kept", "price 0.1")}
DEVICES = ("xcup", "lut6", "ecp5-85k")
HELD = 10_000  # rows of MNIST and UNSW-NB15
# settings of XGBoost; passes work on every n-th row; leaf bits; prices; devices
LARGE: dict[str, tuple[dict[str, Any], int, int, tuple[float, ...], tuple[str, ...]]] = {
    "mnist": (
        {"n_estimators": 30, "max_depth": 5, "learning_rate": 0.8, "max_bin": 16, "colsample_bytree": 0.25},
        4, 2, (0.1, 0.2), ("xcup", "lut6"),
    ),
    "unsw": ({"n_estimators": 10, "max_depth": 5, "learning_rate": 0.8}, 3, 1, (4, 8, 16, 32), DEVICES),
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A model on integer features of `bits` bits.

    depth, trees: the depth of the deepest tree and the trees per score, which conifer needs. held: rows and labels held
    out, if not every fifth. start: an integer forest from which passes start, instead of the model.
    """

    name: str
    model: Any
    X: NDArray[Any]
    y: NDArray[Any]
    X_test: NDArray[Any]
    y_test: NDArray[Any]
    bits: int
    depth: int = 0
    trees: int = 0
    held: tuple[NDArray[Any], NDArray[Any]] | None = None
    start: Forest | None = None


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--peers", type=Path, metavar="DIR", help="NAME.json and NAME.npz")
    parser.add_argument("--data", type=Path, metavar="DIR", help="mnist/ and unsw_nb15_82k.csv.gz")
    parser.add_argument("--conifer", metavar="PYTHON", help="an interpreter that has conifer")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw LUTs against accuracy (.png, .svg, .pdf)")
    parser.add_argument("--only", metavar="NAMES", help="some of bc,digits,trained,mnist,unsw")
    options = parser.parse_args()
    wanted = options.only.split(",") if options.only else ["bc", "digits", "trained", "mnist", "unsw"]
    tables: dict[str, list[dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.peers and (shared := [case for case in ("bc", "digits") if case in wanted]):
            tables["Shared models"] = [
                row for case in shared for row in peers_rows(read(options.peers, case), options.conifer, folder)
            ]
        if "trained" in wanted:
            tables["Trained here"] = [row for case in trained() for row in trained_rows(case, options.conifer, folder)]
        if options.data and (large := [name for name in PUBLISHED if name in wanted]):
            tables["Beside published figures"] = [
                row for name in large for row in published_rows(name, options.data, folder)
            ]
    for title, rows in tables.items():
        show(title, [{key: f"{v:.2f}" if isinstance(v, float) else v for key, v in row.items()} for row in rows])
    if "Beside published figures" in tables:
        print(*(f"{name}: {note}" for name, note in NOTES.items()), TOOLS, sep="\n")
    if options.json is not None:
        options.json.write_text(json.dumps(tables, indent=1) + "\n")
    if options.plot is not None and "Shared models" in tables:
        draw(tables["Shared models"], options.plot)


def peers_rows(case: Case, python: str | None, folder: Path) -> list[dict[str, Any]]:
    treelut = [line(case, "TreeLUT (recorded)", **dict(zip(PEER, row, strict=True))) for row in TREELUT[case.name]]
    rows = [*treelut, *conifer_rows(case, python, folder)]
    budget = round(0.42 * len(forestc.load(case.model).conditions.comparators))
    for what, passes in {**LOSSLESS, **FITTED}.items():
        rows += measured(case, what, passes.replace("BUDGET", str(budget)), (0, 2), folder)
    return [with_ratio(row, treelut) for row in rows]


def with_ratio(row: dict[str, Any], treelut: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The ratio of LUTs to TreeLUT's combinational or two-stage design, depending on the latency."""
    same = treelut[0 if row["latency"] == 0 else 1]
    return {**row, "to_TreeLUT": round(row["xcup_LUT"] / same["xcup_LUT"], 3)} if row["xcup_LUT"] != "-" else row


def trained_rows(case: Case, python: str | None, folder: Path) -> list[dict[str, Any]]:
    rows = [row for what, passes in TRAINED.items() for row in measured(case, what, passes, (2,), folder)]
    return rows + conifer_rows(case, python, folder)


def measured(
    case: Case, what: str, passes: str, latencies: Sequence[int], folder: Path, devices: Sequence[str] = DEVICES
) -> list[dict[str, Any]]:
    """The lines of a design, one per latency; its passes run once."""
    start = time.perf_counter()
    model = forestc.load(case.model)
    held = case.held or (case.X[4::5], case.y[4::5])
    steps = passes_from(passes)
    if case.start is not None:
        steps = [given(case.start), *(step for step in steps if not isinstance(step, Quantize))]
    try:
        done = forestc.compile(
            model, case.X, folder / "out", label=case.y, held_out=held, passes=steps,
            targets=["verilog"], name=case.name, latency=latencies[0],
        )  # fmt: skip
    except (OptionError, CheckError) as error:  # for example, a pass exceeds its tolerance
        print(f"{case.name}, {what}: {error}", flush=True)
        return [line(case, f"{what}: refused")]
    promises = [step.promise for step in done.steps]
    promise = "approximate" if "approximate" in promises else "on data"
    same = share(decided(model, case.X), decided(done.design.forest, case.X))
    rows = []
    for latency in latencies:
        design = done.design
        if latency != latencies[0]:
            later = forestc.compile(
                model, case.X, folder / "later", passes=[given(done.design.forest)], targets=["verilog"],
                name=case.name, latency=latency,
            )  # fmt: skip
            design = later.design
        tested = forestc.check(design, case.X_test, label=case.y_test, engines=["netlist"])
        assert tested.ok
        accuracy = share(decided(design.forest, case.X_test), case.y_test)
        figures = {device: synth(design, device) for device in devices}
        xcup, lut6 = figures["xcup"], figures["lut6"]
        row = {"xcup_LUT": xcup["lut"], "FF": xcup["ff"], "lut6_LUT": lut6["lut"], "depth": lut6["depth"]}
        if ecp5 := figures.get("ecp5-85k"):
            row |= {"ECP5_LUT": ecp5["lut"], "carry": ecp5["carry"], "MHz": ecp5["fmax_mhz"]}
        row |= {"promise": promise, "same_on_train_%": same, "test_%": accuracy, "latency": latency}
        now = time.perf_counter()
        rows.append(line(case, what, **row, s=round(now - start)))
        summary = f"{row['xcup_LUT']} LUT, train {same:g} %, test {accuracy:g} %"
        print(f"{case.name}, {what}, latency {latency}: {now - start:.0f} s, {summary}", flush=True)
        start = now
    return rows


def conifer_rows(case: Case, python: str | None, folder: Path) -> list[dict[str, Any]]:
    """conifer's design, as recorded and as measured here, or a line naming what is not installed."""
    rows = []
    if case.name in CONIFER:
        rows.append(line(case, "conifer VHDL (recorded)", **dict(zip(PEER, CONIFER[case.name], strict=True))))
    absent = "--conifer" if python is None else missing(python)
    if python is None or absent:
        return [*rows, line(case, f"conifer VHDL: not run, no {absent}")]
    boosted = isinstance(case.model, Path) or hasattr(case.model, "get_booster")
    path = folder / ("model.json" if boosted else "model.joblib")
    if isinstance(case.model, Path):
        path.write_bytes(case.model.read_bytes())
    elif boosted:
        case.model.save_model(path)
    else:
        import joblib

        joblib.dump(case.model, path)
    start = time.perf_counter()
    try:
        classes = len(np.unique(case.y))
        figures = conifer(
            python, path, case.depth, case.X_test, case.y_test, case.bits, case.trees, classes, folder, not boosted
        )
    except (ToolError, subprocess.CalledProcessError) as error:
        return [*rows, line(case, f"conifer VHDL: failed ({type(error).__name__})")]
    seconds = round(time.perf_counter() - start)
    print(f"{case.name}, conifer: {seconds} s, {figures['xcup_LUT']} LUT", flush=True)
    return [*rows, line(case, "conifer VHDL", **figures, s=seconds)]


def published_rows(name: str, data: Path, folder: Path) -> list[dict[str, Any]]:
    """Boosting with TreeLUT's settings, pruned at several prices; the first 10,000 training rows are held out."""
    from xgboost import XGBClassifier

    settings, step, bits, prices, devices = LARGE[name]
    X, y, X_test, y_test = (mnist if name == "mnist" else unsw)(data)
    model = XGBClassifier(**settings, n_jobs=2, random_state=0).fit(X[HELD:], y[HELD:])
    X_fit, y_fit = X[HELD::step], y[HELD::step]
    start = forestc.quantize(model, X_fit, y_fit, "simplify,quantize{leaf_bits=4,change=0.5},simplify")
    case = Case(name, model, X_fit, y_fit, X_test, y_test, 4, held=(X[:HELD], y[:HELD]), start=start)
    rows = [
        line(case, f"{who} (published)", **{"test_%": accuracy, "xcup_LUT": lut, "MHz": mhz or "-"})
        for who, (accuracy, lut, mhz) in PUBLISHED[name].items()
    ]
    float_accuracy = share(decided(forestc.load(model), X_test), y_test)
    rows.append(line(case, "the model itself", **{"test_%": float_accuracy, "same_on_train_%": 100.0}))
    for price in prices:
        # rewiring MNIST takes minutes: benchmarks/prune_speed.py does it
        rewire = "false" if name == "mnist" else "true"
        passes = f"prune-splits{{price={price},leaf_bits={bits},copies=0,rewire={rewire},tolerance=0.5}},simplify"
        rows += measured(
            case, f"{bits}-bit leaves, price {price}", passes, (2,) if name == "mnist" else (0, 2), folder, devices
        )
    return rows


def line(case: Case, what: str, **figures: Any) -> dict[str, Any]:
    return {key: {"model": case.name, "design": what, **figures}.get(key, "-") for key in KEYS}


def read(peers: Path, name: str) -> Case:
    X, y, X_test, y_test = shared(peers, name)
    forest = forestc.load(peers / f"{name}.json")
    depth, trees = shape(forest)
    return Case(name, peers / f"{name}.json", X, y, X_test, y_test, int(X.max()).bit_length(), depth, trees)


def shape(forest: Forest) -> tuple[int, int]:
    """The depth of the deepest tree, and the trees per score."""
    deepest = 0
    for tree in forest.trees:
        level = np.zeros(tree.size, dtype=np.int64)
        for node in range(tree.size):  # children come after their parents
            if tree.left[node] >= 0:
                level[[tree.left[node], tree.right[node]]] = level[node] + 1
        deepest = max(deepest, int(level.max()))
    scores = len({output for tree in forest.trees for output in tree.outputs})
    whole = all(len(tree.outputs) == scores for tree in forest.trees)
    return deepest, len(forest.trees) if whole else len(forest.trees) // scores


def trained() -> list[Case]:
    """Random forests and boosting of 2, 5 and 10 classes, on features of 8, 8 and 4 bits."""
    from sklearn.datasets import load_breast_cancer, load_digits, make_classification
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import train_test_split
    from xgboost import XGBClassifier

    made = make_classification(
        n_samples=3000, n_features=16, n_informative=10, n_classes=5, class_sep=1.5, random_state=0
    )
    sets = {
        "2 classes": (load_breast_cancer(return_X_y=True), 8),
        "5 classes": (made, 8),
        "10 classes": (load_digits(return_X_y=True), 4),
    }
    cases = []
    for name, ((X, y), bits) in sets.items():
        X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
        X, X_test = whole_numbers(X, X_test, bits)
        for kind, model in (
            ("random forest", RandomForestClassifier(10, max_depth=5, random_state=0)),
            ("boosting", XGBClassifier(n_estimators=10, max_depth=3, learning_rate=0.5, n_jobs=1, random_state=0)),
        ):
            model.fit(X, y)
            depth, trees = shape(forestc.load(model))
            cases.append(Case(f"{name}, {kind}", model, X, y, X_test, y_test, bits, depth, trees))
    return cases


def draw(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Draws LUTs of combinational designs against accuracy, one panel per model."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    names = list(dict.fromkeys(row["model"] for row in rows))
    figure, axes = pyplot.subplots(1, len(names), figsize=(5 * len(names), 4), squeeze=False)
    styles = {"on data": "o", "all training decisions kept": "s", "approximate": "^", "TreeLUT": "k*"}
    for axis, name in zip(axes.flat, names, strict=True):
        for kind, style in styles.items():
            points = [(r["xcup_LUT"], r["test_%"]) for r in rows if r["model"] == name and not r["latency"] and
                      kind_of(r) == kind]  # fmt: skip
            axis.plot(*zip(*points, strict=True), style, label=kind) if points else None
        axis.set(title=name, xlabel="LUTs (xcup)", ylabel="test accuracy, %")
        axis.grid(alpha=0.3)
    axes.flat[0].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    print(f"drawn to {path}")


def kind_of(row: dict[str, Any]) -> str:
    if row["design"].startswith("TreeLUT"):
        return "TreeLUT"
    kept = row["promise"] == "approximate" and row["same_on_train_%"] == 100
    return "all training decisions kept" if kept else str(row["promise"])


if __name__ == "__main__":
    main()
