"""Checks that C compiled within a budget keeps it on other rows: 60 compiles with --flash, --ram and --instructions.

For each compile a fixed seed draws a model, its level (-O0 or -O1), its inputs (words, struct, floats or raw integers),
one of four processors, a compiler (pip's or GCC) and a budget: 0.5 to 2 times the figures of the layout with the least
flash. Half of the rows train the model and are given to `compile`. `forestc measure` runs the design on 150 of the
other rows, on inputs on and beside thresholds, random ones, and inputs of the longest paths made from these.

A refusal was in vain if some layout keeps the budget in `measure`. It is counted apart if that layout is `nodes`, whose
bound for any input exceeds the budget of instructions. The exit status is 1 if a budget of flash or RAM is broken, or
if more than one compile is refused in vain.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import catboost
import lightgbm
import numpy as np
import xgboost
from ledger import Case, Ledger, Steps
from numpy.typing import NDArray
from sklearn import datasets, ensemble
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from tools import arguments

import forestc
from forestc.errors import CheckError, OptionError
from forestc.toolchain.firmware import CPUS

COMPILES, SEED = 60, 50
MEASURES = ("forestc/compilation", "forestc/layouts", "forestc/backends/c", "forestc/firmware")
CPU_NAMES = ("cortex-m0plus", "cortex-m4f", "rv32imc", "avr")
FORMS = ("words", "struct", "float", "raw")
RAW_TYPES = "1=int16,*=float"  # rounds the first column to integers; the others stay floats
LAYOUTS = ("nodes", "masks", "mixed", "ranked", "branches")
LIMITS = (("flash",), ("instructions",), ("flash",), ("instructions",), ("flash", "instructions"), ("flash", "ram"))
FIGURES = {"flash": "flash", "ram": "ram", "instructions": "most"}  # names of figures by budget
ROWS = 150
PATH = os.environ["PATH"]

Table = tuple[NDArray[np.float64], NDArray[Any]]


def _categories() -> Table:
    random = np.random.default_rng(77)
    X = random.integers(0, [9, 30, 9, 5], (900, 4)).astype(np.float64)
    secret = random.normal(size=(4, 30))
    return X, (sum(secret[k, X[:, k].astype(int)] for k in range(4)) > 0).astype(int)


def _missing() -> Table:
    X, y = datasets.make_classification(700, 9, n_informative=7, n_classes=4, random_state=303)
    return np.where(np.random.default_rng(78).random(X.shape) < 0.15, np.nan, X), y


def _targets() -> Table:
    return datasets.make_regression(500, 7, n_informative=5, n_targets=2, noise=3.0, random_state=304)  # type: ignore[return-value]


def _even() -> Table:
    X, y = datasets.load_digits(return_X_y=True)
    return X, y % 2


def _flat() -> Table:
    return np.ones((80, 3)), np.arange(80) % 2


DATA: dict[str, Callable[[], Table]] = {
    "moons": lambda: datasets.make_moons(700, noise=0.25, random_state=31),
    "friedman1": lambda: datasets.make_friedman1(700, 9, noise=1.0, random_state=32),
    "friedman3": lambda: datasets.make_friedman3(600, noise=0.1, random_state=33),
    "quantiles": lambda: datasets.make_gaussian_quantiles(n_samples=800, n_features=6, n_classes=3, random_state=34),
    "hastie": lambda: datasets.make_hastie_10_2(900, random_state=35),
    "blobs12": lambda: datasets.make_blobs(900, 5, centers=12, cluster_std=2.5, random_state=36)[:2],
    "made6": lambda: datasets.make_classification(900, 20, n_informative=12, n_classes=6, random_state=37),
    "made2b": lambda: datasets.make_classification(900, 30, n_informative=9, n_classes=2, random_state=38),
    "categories": _categories, "missing": _missing, "targets": _targets, "even": _even, "flat": _flat,
}  # fmt: skip
SEEDED: dict[str, Any] = {"random_state": 9}


def _of(kind: Any, trees: int, depth: int, **more: Any) -> Callable[[], Any]:
    """Returns a function that makes an ensemble of `trees` trees of `depth`."""
    return lambda: kind(n_estimators=trees, max_depth=depth, **SEEDED, **more)


def _hist(kind: Any, rounds: int, leaves: int) -> Callable[[], Any]:
    return lambda: kind(max_iter=rounds, max_leaf_nodes=leaves, **SEEDED)


def _lgb(rounds: int, leaves: int, **more: Any) -> Callable[[], Any]:
    return lambda: lightgbm.LGBMClassifier(n_estimators=rounds, num_leaves=leaves, verbose=-1, n_jobs=1, **more)


def _tree(kind: Any, depth: int) -> Callable[[], Any]:
    return lambda: kind(max_depth=depth, **SEEDED)


def _vote() -> Any:
    forest = ensemble.RandomForestClassifier(6, max_depth=5, random_state=7)
    return ensemble.VotingClassifier(
        [("a", forest), ("b", ensemble.ExtraTreesClassifier(5, max_depth=5, random_state=8))]
    )


XGB = partial(xgboost.XGBClassifier, n_jobs=1)
CAT = {
    "iterations": 15, "depth": 4, "verbose": False, "thread_count": 1, "random_seed": 9, "allow_writing_files": False,
}  # fmt: skip
# Each name begins with the name of its data in DATA.
MODELS: dict[str, Callable[[], Any]] = {
    "moons, forest of 12": _of(ensemble.RandomForestClassifier, 12, 6), "moons, XGBoost": _of(XGB, 18, 4),
    "friedman1, forest": _of(ensemble.RandomForestRegressor, 9, 5),
    "friedman1, boosting": _of(ensemble.GradientBoostingRegressor, 35, 3),
    "friedman3, extra trees": _of(ensemble.ExtraTreesRegressor, 14, 5),
    "friedman3, hist": _hist(ensemble.HistGradientBoostingRegressor, 12, 10),
    "quantiles, extra trees": _of(ensemble.ExtraTreesClassifier, 16, 7),
    "quantiles, tree": _tree(DecisionTreeClassifier, 6),
    "hastie, stumps": _of(ensemble.GradientBoostingClassifier, 45, 1), "hastie, LightGBM": _lgb(20, 10),
    "blobs12, forest": _of(ensemble.RandomForestClassifier, 10, 6),
    "blobs12, XGBoost": lambda: XGB(n_estimators=4, max_depth=3),
    "made6, forest": _of(ensemble.RandomForestClassifier, 25, 6),
    "made2b, CatBoost": lambda: catboost.CatBoostClassifier(**CAT),
    "made2b, bagging": lambda: ensemble.BaggingClassifier(DecisionTreeClassifier(max_depth=5), 12, **SEEDED),
    "categories, LightGBM": _lgb(10, 8, min_data_per_group=5, max_cat_to_onehot=1),
    "missing, hist": _hist(ensemble.HistGradientBoostingClassifier, 5, 8),
    "targets, forest": _of(ensemble.RandomForestRegressor, 7, 5),
    "even, forest": _of(ensemble.RandomForestClassifier, 30, 7), "moons, stump": _tree(DecisionTreeClassifier, 1),
    "hastie, tree": _tree(DecisionTreeClassifier, 2), "made6, tree": _tree(DecisionTreeClassifier, 4),
    "friedman1, stump": _tree(DecisionTreeRegressor, 1),
    "quantiles, forest of 3": _of(ensemble.RandomForestClassifier, 3, 4), "made2b, XGBoost": _of(XGB, 3, 2),
    "friedman3, boosting": _of(ensemble.GradientBoostingRegressor, 5, 2),
    "flat, forest": lambda: ensemble.RandomForestClassifier(2, **SEEDED), "quantiles, vote": _vote,
    "friedman1, AdaBoost": lambda: ensemble.AdaBoostRegressor(n_estimators=6, **SEEDED),
}  # fmt: skip


@dataclass(frozen=True)
class Draw:
    """A drawn compile. factors: the budgets, as multiples of the figures of the layout with the least flash."""

    model: str
    level: int
    form: str
    cpu: str
    compiler: str
    factors: dict[str, float]


def draws(count: int) -> list[Draw]:
    """Draws the compiles, with every model, processor and compiler nearly equally often. Models of categories or
    with missing values take no raw integers; they get words."""
    random, names = np.random.default_rng(SEED), list(MODELS)
    order = [name for _ in range(-(-COMPILES // len(names))) for name in random.permutation(names).tolist()]
    drawn = []
    for number in range(count):
        cpu = CPU_NAMES[number % 4]
        compiler = "ziglang" if number // 4 % 2 and CPUS[cpu].target else "gcc"
        limits = LIMITS[int(random.integers(len(LIMITS)))]
        level, form = int(random.integers(2)), FORMS[int(random.integers(len(FORMS)))]
        if order[number].startswith(("categories", "missing")) and form in ("float", "raw"):
            form = "words"
        factors = {limit: float(random.uniform(0.5, 2.0)) for limit in limits}
        drawn.append(Draw(order[number], level, form, cpu, compiler, factors))
    return drawn


@cache
def trained(name: str) -> tuple[Any, NDArray[np.float64], NDArray[np.float64]]:
    """Returns a model, the rows that trained it, and other rows."""
    X, y = DATA[name.partition(",")[0]]()
    categories = {"categorical_feature": [0, 1, 2, 3]} if name == "categories, LightGBM" else {}
    return MODELS[name]().fit(X[::2], y[::2], **categories), X[::2], X[1::2]


def compiled(draw: Draw, folder: Path, **options: Any) -> Any:
    """Compiles the model from the rows that trained it. At -O0 if -O1 refuses the model, and with words if the
    processor has no doubles."""
    model, X, _ = trained(draw.model)
    form = {"c_inputs": draw.form, "c_types": RAW_TYPES if draw.form == "raw" else ""}
    given = {"targets": "c", "name": "m", "c_quantizer": "none", "c_values": "none", "cpu": draw.cpu} | options
    for level, inputs in ((draw.level, form), (0, form), (draw.level, {}), (0, {})):
        try:
            rows = np.round(X) if inputs.get("c_types") else X
            return forestc.compile(model, rows, folder, level=level, **given, **inputs)
        except CheckError:
            continue
        except OptionError as error:
            if "double has 32 bits" not in error.what:
                raise
    raise AssertionError(draw)


def measured(draw: Draw, folder: Path) -> dict[str, int]:
    """Measures a design on the other rows. Returns its figure of each budget."""
    other = trained(draw.model)[2]
    rows = np.round(other) if draw.form == "raw" else other
    entry = "predict" if forestc.open_design(folder).forest.decides else "scores"
    figures = forestc.measure(folder, draw.cpu, rows, entries=[entry], most=ROWS)
    taken = figures["cycles"] or figures["instructions"]
    return {"flash": figures["flash"], "ram": figures["ram"] + figures["stack"], "instructions": taken["max_of_all"]}


def compared(drawn: list[Draw], case: Case) -> Steps:
    draw = drawn[case["draw"] - 1]
    yield [draw, *trained(draw.model)[1:]], None
    with tempfile.TemporaryDirectory() as folder:
        yield outcome(draw, Path(folder))


def outcome(draw: Draw, folder: Path) -> dict[str, Any]:
    """Compiles within the budget and measures the design; after a refusal, measures each layout."""
    os.environ["PATH"] = PATH if draw.compiler == "gcc" else ""
    layouts = compiled(draw, folder / "free").figures["firmware"]["layouts"]
    least = min(layouts.values(), key=lambda own: own["flash"])
    budget = {name: round(factor * least[FIGURES[name]]) for name, factor in draw.factors.items()}
    row: dict[str, Any] = {
        "model": draw.model, "level": draw.level, "inputs": draw.form, "cpu": draw.cpu, "compiler": draw.compiler,
        "budget": ", ".join(f"{name} {most:,}" for name, most in budget.items()),
    }  # fmt: skip
    try:
        done = compiled(draw, folder / "kept", **budget)
    except OptionError:
        in_vain = {"": False, "nodes": False}
        for layout in layouts:
            compiled(draw, folder / layout, c_layout=layout)
            used = measured(draw, folder / layout)
            if all(used[name] <= most for name, most in budget.items()):
                bound = layouts[layout]["bound"] or 0
                in_vain["nodes" if bound > budget.get("instructions", bound) else ""] = True
        return row | {
            "chosen": "refused", "measured": "", "over": "",
            "in_vain": in_vain[""], "by_bound": in_vain["nodes"] and not in_vain[""],
        }  # fmt: skip
    used = measured(draw, folder / "kept")
    over = [name for name, most in budget.items() if used[name] > most]
    return row | {
        "chosen": done.figures["firmware"]["layout"],
        "measured": ", ".join(f"{used[name]:,}" for name in budget), "over": ", ".join(over),
        "in_vain": False, "by_bound": False,
    }  # fmt: skip


def main() -> None:
    options = arguments(__doc__, MEASURES).parse_args()
    drawn = draws(COMPILES)
    if options.small:
        drawn = [next(draw for draw in drawn if "stump" in draw.model and draw.compiler == "gcc" and draw.cpu != "avr")]
    ledger = Ledger("budgets of C", options, ("arm-none-eabi-gcc", "ziglang", "unicorn"))
    ledger.fill([{"draw": number} for number in range(1, len(drawn) + 1)], compared, drawn)
    rows = ledger.rows
    os.environ["PATH"] = PATH
    refused = [row for row in rows if row["chosen"] == "refused"]
    counts = {
        "draws": len(rows), "refused": len(refused), "accepted": len(rows) - len(refused),
        "refused_in_vain": sum(row["in_vain"] for row in rows),
        "refused_by_bound": sum(row["by_bound"] for row in rows),
        "broken_flash_or_ram": sum("flash" in row["over"] or "ram" in row["over"] for row in rows),
        "exceeded_by_other_inputs": sum("instructions" in row["over"] for row in rows),
    }  # fmt: skip
    ledger.show(**counts)
    if counts["broken_flash_or_ram"] or counts["refused_in_vain"] > 1:
        sys.exit(1)


if __name__ == "__main__":
    main()
