"""Checks that C chosen for a budget keeps it when it is measured: 60 compiles with --flash and --instructions.

The models, from a stump on, have other data, seeds and libraries than the models of forestc/costs/firmware.json. For
each compile a fixed seed draws a model, its level (-O0 or -O1), its inputs (words, struct, floats or raw integers), one
of four processors, a compiler (pip's or GCC) and a budget. The budget is 0.5 to 2 times the measured figures of the
layout with the least flash. The same compiles run a second time, `strict`, with budgets around the least flash and the
fewest instructions of any layout. The choice of a layout never runs the compiler.

A compile is kept if its chosen layout keeps the budget in `forestc measure`: flash of predict (of scores for a
regression), and the most instructions (cycles on AVR) of rows, inputs beside thresholds, random inputs and inputs of
the longest paths. A compile is refused in vain if some layout would have kept the budget. --cache FILE stores the
figures by the SHA-256 of the header. The exit status is 1 if a budget is not kept, or if more than a tenth of the
compiles are refused in vain.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import catboost
import lightgbm
import numpy as np
import xgboost
from firmware_costs import measured
from firmware_models import Subject
from numpy.typing import NDArray
from sklearn import datasets, ensemble
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from tools import arguments, show

import forestc
from forestc.backends.c import COptions, chosen_layout
from forestc.backends.c.choice import estimates
from forestc.backends.c.inputs import inputs_of
from forestc.backends.c.layouts import LAYOUTS
from forestc.checks.vectors import Vectors
from forestc.commands.measure import measured_inputs
from forestc.errors import CheckError, OptionError
from forestc.toolchain.firmware import CPUS, find_compiler
from forestc.toolchain.run import together

COMPILES, SEED = 60, 50
MEASURES = ("forestc/costs", "forestc/layouts", "forestc/backends/c", "forestc/firmware")
CPU_NAMES = ("cortex-m0plus", "cortex-m4f", "rv32imc", "avr")
FORMS = ("words", "struct", "float", "raw")
RAW_TYPES = "1=int16,*=float"  # rounds the first column to integers; the others stay floats
IN_VAIN = 6  # compiles that may be refused although a layout keeps the budget
ROWS = 150
PLAIN: dict[str, Any] = {"c_values": "none", "c_quantizer": "none"}

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
    """A drawn compile: model, level, form of inputs, processor and compiler (`kind`). factors: the budgets, by limit,
    as multiples of the measured figures of the smallest layout."""

    model: str
    level: int
    form: str
    cpu: str
    kind: str
    factors: dict[str, float]


def draws() -> list[Draw]:
    """Draws the compiles, with every model, processor and compiler nearly equally often. Models of categories take no
    floats or raw integers; they get words."""
    random, names = np.random.default_rng(SEED), list(MODELS)
    order = [name for _ in range(-(-COMPILES // len(names))) for name in random.permutation(names).tolist()]
    drawn = []
    for number in range(COMPILES):
        cpu = CPU_NAMES[number % 4]
        kind = "ziglang" if number // 4 % 2 and CPUS[cpu].target else "gcc"
        limits = (("flash",), ("instructions",), ("flash",), ("instructions",), ("flash", "instructions"))
        chosen = limits[int(random.integers(len(limits)))]
        level, form = int(random.integers(2)), FORMS[int(random.integers(len(FORMS)))]
        if order[number].startswith("categories") and form in ("float", "raw"):
            form = "words"
        factors = {limit: float(random.uniform(0.5, 2.0)) for limit in chosen}
        drawn.append(Draw(order[number], level, form, cpu, kind, factors))
    return drawn


@cache
def given(name: str, level: int) -> tuple[Subject, Vectors]:
    """Trains and quantizes a model; returns it with the inputs that measure it. If -O1 refuses the model, -O0
    is used."""
    of, make = name.partition(",")[0], MODELS[name]
    X, y = DATA[of]()
    categories = {"categorical_feature": [0, 1, 2, 3]} if name == "categories, LightGBM" else {}
    model = make().fit(X, y, **categories)
    try:
        forest = forestc.quantize(model, X, y, level=level)
    except CheckError as error:
        print(f"{name}: {error}")
        forest = forestc.quantize(model, X, y, level=0)
    forest = replace(forest, name="m")
    parts = list(measured_inputs(forest, X[:ROWS]))
    words, raw = (np.concatenate(own) for own in zip(*((part.words, part.raw) for part in parts), strict=True))
    return Subject(name, of, forest, X), Vectors(words, raw, "rows")


def taken(draw: Draw) -> dict[str, Any]:
    """Returns the options of a compile's inputs. Words replace doubles if the processor has no doubles."""
    forest = given(draw.model, draw.level)[0].forest
    form = {"c_inputs": draw.form, "c_types": RAW_TYPES if draw.form == "raw" else ""}
    if not CPUS[draw.cpu].doubles and inputs_of(forest, draw.form, form["c_types"]).float_bytes == 8:
        return {"c_inputs": "words", "c_types": ""}
    return form


def figures(draw: Draw, cached: dict[str, Any]) -> dict[str, dict[str, int]]:
    """Measures each layout that holds the forest. Returns flash and most instructions by layout."""
    subject, inputs = given(draw.model, draw.level)
    cpu, found = CPUS[draw.cpu], dict[str, dict[str, int]]()
    compiler, form = find_compiler(cpu, draw.kind), taken(draw)
    estimates_of = estimates(subject.forest, form["c_inputs"], form["c_types"], draw.cpu)
    layouts = list(estimates_of) if subject.forest.adds else [next(iter(LAYOUTS))]
    jobs = [
        partial(measured, subject, inputs, layout, COptions(c_layout=layout, **PLAIN, **form), cpu, compiler, cached)
        for layout in layouts
    ]
    for layout, took in zip(layouts, together(jobs), strict=True):
        found[layout] = {"flash": int(took["flash"]), "instructions": int(took["taken"].max())}
    return found


def compared(draw: Draw, cached: dict[str, Any], strict: bool = False) -> dict[str, Any]:
    """Compiles within the budget and compares the chosen layout with the measured figures of all layouts. strict: draws
    the budgets around the least figure of any layout instead of those of the smallest layout."""
    forest, by_layout = given(draw.model, draw.level)[0].forest, figures(draw, cached)
    least = min(by_layout.values(), key=lambda own: own["flash"])
    if strict:
        least = {name: min(own[name] for own in by_layout.values()) for name in draw.factors}
    budget = {name: round(factor * least[name]) for name, factor in draw.factors.items()}
    keeping = [layout for layout, own in by_layout.items() if all(own[name] <= most for name, most in budget.items())]
    try:
        chosen = chosen_layout(forest, COptions(cpu=draw.cpu, **taken(draw), **budget))
    except OptionError:
        chosen = ""
    return {
        "model": draw.model, "level": draw.level, "inputs": taken(draw)["c_inputs"], "cpu": draw.cpu,
        "compiler": draw.kind,
        "budget": ", ".join(f"{name} {most:,}" for name, most in budget.items()),
        "smallest": ", ".join(f"{least[name]:,}" for name in budget),
        "chosen": chosen or "refused",
        "measured": ", ".join(f"{by_layout[chosen][name]:,}" for name in budget) if chosen else "",
        "kept": not chosen or chosen in keeping,
        "in_vain": not chosen and bool(keeping),
    }  # fmt: skip


def main() -> None:
    options = arguments(__doc__, MEASURES, "cache").parse_args()
    cached: dict[str, Any] = json.loads(options.cache.read_text()) if options.cache and options.cache.exists() else {}
    drawn = draws()
    if options.small:  # The first compile of a stump runs on a processor with quick builds.
        drawn = [replace(next(draw for draw in drawn if "stump" in draw.model), cpu="cortex-m0plus", kind="gcc")]
    rows, strict = [], []
    for draw in drawn:
        rows.append(compared(draw, cached))
        strict.append(compared(draw, cached, strict=True))
        print(f"{len(rows)} of {len(drawn)}: {rows[-1]}", flush=True)
        if options.cache:
            options.cache.write_text(json.dumps(cached))
    kept, in_vain = (sum(row[name] for row in rows) for name in ("kept", "in_vain"))
    counts = {
        "kept_or_refused": kept, "refused": sum(row["chosen"] == "refused" for row in rows),
        "refused_in_vain": in_vain, "strict_kept_or_refused": sum(row["kept"] for row in strict),
        "strict_refused": sum(row["chosen"] == "refused" for row in strict),
        "strict_refused_in_vain": sum(row["in_vain"] for row in strict),
    }  # fmt: skip
    show("budgets of C", rows, options, **counts)
    if min(kept, counts["strict_kept_or_refused"]) < len(drawn) or in_vain > IN_VAIN:
        sys.exit(1)


if __name__ == "__main__":
    main()
