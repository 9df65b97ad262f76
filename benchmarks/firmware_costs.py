"""Estimates of firmware compared with real builds, and the fit that produces forestc/costs/firmware.json.

Small and medium forests (forests, extra trees and boosting by scikit-learn and XGBoost; 2, 3 and 10 classes and
regression; depth 2 to 9, 2 to 100 trees; two of -O0 to -O2; words, and raw floats of a third) become C in each layout,
are compiled for each processor with -Os (GCC where it is on the PATH, else ziglang), and run in the emulator on rows
and random words.
--cache FILE keeps the figures by the SHA-256 of the header, so that a run continues where the last one ended
(`--minutes N` ends it early). Then the costs are fitted: flash, stack and mean instructions by least squares of the
relative errors, the worst case as the least costs by which no row is more expensive than the bound. The printed
errors, and the ranges that hold nine of ten builds, are from cross-validation over the data sets. --write writes
forestc/costs/firmware.json.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import xgboost
from numpy.typing import NDArray
from scipy.optimize import linprog, nnls
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine, make_classification
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from tools import arguments, show

import forestc
from forestc.backends.c import COptions, emit
from forestc.backends.c.demands import DEMANDS, Demand
from forestc.backends.c.inputs import inputs_of
from forestc.checks.vectors import Vectors, vectors
from forestc.costs.firmware import FIGURES, RANGED, parsed
from forestc.errors import ForestcError, OptionError
from forestc.firmware import avr
from forestc.firmware.emulator import Emulator
from forestc.firmware.entries import made_entry
from forestc.firmware.image import read_image, static_stack
from forestc.forest.evaluate import leaf_nodes, missing_words
from forestc.forest.ir import Forest
from forestc.manifest.design import Design
from forestc.rows.batches import ArrayRows
from forestc.rows.encode import encode
from forestc.toolchain.firmware import CPUS, Compiler, Cpu, build, find_compiler
from forestc.toolchain.run import find

FITTED = Path(__file__).parents[1] / "forestc" / "costs" / "firmware.json"
ROWS, RANDOM = 40, 40
MOST_SPLITS = 2500
SLACK = 1.15  # of the worst case
# Of the worst case, features that cost the same: a forest of a kind that few of these are of is not estimated too low.
TABLES = ("nodes", "masks")
ALIKE = (("by_index", "by_split", "by_wide"), ("value", "rows", "bits", "pairs"), ("far", "long", "tree"))


@dataclass(frozen=True)
class Subject:
    """A forest, its rows, and the data set by which errors are judged."""

    name: str
    data: str
    forest: Forest
    rows: NDArray[np.float64]


def data(name: str) -> tuple[NDArray[np.float64], NDArray[Any]]:
    if name.startswith("made"):
        classes = int(name[4:])
        return make_classification(800, 16, n_informative=8, n_classes=classes, random_state=classes, flip_y=0.1)
    if name == "categories":  # some of 12, some of 60
        random = np.random.default_rng(0)
        X = random.integers(0, [12, 12, 60, 60, 12, 100], (1500, 6)).astype(np.float64)
        secret = random.normal(size=(6, 100))
        return X, (sum(secret[k, X[:, k].astype(int)] for k in range(6)) > 0).astype(int)
    of = {
        "bc": load_breast_cancer, "digits": load_digits, "iris": load_iris, "wine": load_wine, "diabetes": load_diabetes
    }  # fmt: skip
    X, y = of[name](return_X_y=True)
    return X, y


def _xgb(**options: Any) -> Any:
    return xgboost.XGBClassifier(n_jobs=1, **options)


MODELS: dict[str, tuple[str, Any]] = {
    "rf10x6": ("bc", RandomForestClassifier(10, max_depth=6, random_state=0)),
    "rf40x8": ("bc", RandomForestClassifier(40, max_depth=8, random_state=0)),
    "xgb13x3": ("bc", _xgb(n_estimators=13, max_depth=3)),
    "rf4x5": ("bc", RandomForestClassifier(4, max_depth=5, random_state=0)),
    "digits_rf10x6": ("digits", RandomForestClassifier(10, max_depth=6, random_state=0)),
    "digits_et8x9": ("digits", ExtraTreesClassifier(8, max_depth=9, random_state=0)),
    "digits_xgb8x3": ("digits", _xgb(n_estimators=8, max_depth=3)),
    "digits_rf30x4": ("digits", RandomForestClassifier(30, max_depth=4, random_state=0)),
    "iris_rf20": ("iris", RandomForestClassifier(20, random_state=0)),
    "iris_xgb5": ("iris", _xgb(n_estimators=5, max_depth=4)),
    "iris_et3": ("iris", ExtraTreesClassifier(3, max_depth=3, random_state=0)),
    "wine_gb10x3": ("wine", GradientBoostingClassifier(n_estimators=10, random_state=0)),
    "wine_rf50x3": ("wine", RandomForestClassifier(50, max_depth=3, random_state=0)),
    "wine_xgb30x2": ("wine", _xgb(n_estimators=30, max_depth=2)),
    "diabetes_rf10x6": ("diabetes", RandomForestRegressor(10, max_depth=6, random_state=0)),
    "diabetes_et20x4": ("diabetes", ExtraTreesRegressor(20, max_depth=4, random_state=0)),
    "diabetes_xgb40x3": ("diabetes", xgboost.XGBRegressor(n_estimators=40, max_depth=3, n_jobs=1)),
    "made2_rf15x8": ("made2", RandomForestClassifier(15, max_depth=8, random_state=0)),
    "made2_gb100x2": ("made2", GradientBoostingClassifier(n_estimators=100, max_depth=2, random_state=0)),
    "made2_xgb20x5": ("made2", _xgb(n_estimators=20, max_depth=5)),
    "made5_rf12x7": ("made5", RandomForestClassifier(12, max_depth=7, random_state=0)),
    "made5_xgb6x4": ("made5", _xgb(n_estimators=6, max_depth=4)),
    "categories_lgb": (
        "categories",
        lightgbm.LGBMClassifier(
            n_estimators=12, num_leaves=12, min_data_per_group=1, max_cat_to_onehot=1, verbose=-1, n_jobs=1
        ),
    ),
    "made4_et25x5": ("made4", ExtraTreesClassifier(25, max_depth=5, random_state=0)),
}


def subjects() -> Iterator[Subject]:
    """Each model at two levels."""
    for number, (name, (of, model)) in enumerate(MODELS.items()):
        X, y = data(of)
        model.fit(X, y, **({"categorical_feature": [0, 1, 2, 3, 4]} if of == "categories" else {}))
        for level in (0, 1) if of == "diabetes" else ((0, 1), (1, 2), (0, 2))[number % 3]:
            forest = replace(forestc.quantize(model, X, y, level=level), name="m")
            if sum(len(tree.inner) for tree in forest.trees) <= MOST_SPLITS:
                yield Subject(f"{name} -O{level}", of, forest, X)


def given_to(subject: Subject) -> Vectors:
    """Some rows and some random words."""
    some = subject.rows[:: max(1, len(subject.rows) // ROWS)][:ROWS]
    parts = list(vectors(subject.forest, ArrayRows(some), RANDOM, boundary=0))
    return Vectors(np.concatenate([p.words for p in parts]), np.concatenate([p.raw for p in parts]), "rows")


def nodes_reached(forest: Forest, words: NDArray[np.int64]) -> NDArray[np.int64]:
    """(rows, trees)"""
    missing = missing_words(forest)
    return np.stack([leaf_nodes(forest, tree, words, missing) for tree in forest.trees], axis=1)


def failing(forest: Forest, words: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(rows, conditions) that do not hold."""
    missing, absent = missing_words(forest)
    fails = np.zeros((len(words), len(forest.conditions)), dtype=bool)
    for place, condition in enumerate(forest.conditions):
        own = words[:, condition.feature]
        gone = (own == absent[condition.feature]) & missing[condition.feature]
        fails[:, place] = ~condition.sends_left(own, gone)
    return fails


def measured(
    subject: Subject,
    given: Vectors,
    layout: str,
    options: COptions,
    cpu: Cpu,
    compiler: Compiler,
    cache: dict[str, Any],
) -> dict[str, Any]:
    """Flash, stack and the instructions (cycles on AVR) of each input."""
    text = next(iter(emit(subject.forest, options).values()))
    key = hashlib.sha256(f"{cpu.name}{compiler.version}{ROWS},{RANDOM}{text}".encode()).hexdigest()
    if key not in cache:
        manifest = {"options": {"c": options.c_record()}, "files": {"c": "m.h"}}
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            (folder / "m.h").write_text(text, encoding="utf-8")
            design = Design(folder, manifest, subject.forest, subject.forest)
            entry = made_entry(design, cpu, "predict" if subject.forest.decides else "scores")
            (folder / "e.c").write_text(entry.source, encoding="utf-8")
            made = build(cpu, compiler, "e.c", folder, "s")
            image, stack = read_image(made.image), static_stack(made)
            if cpu.machine:
                machine: Any = Emulator(cpu, image)
            else:
                machine = avr.Simavr(find("simavr"), compiler, made, image.flash, folder)
            run = machine.run(entry.inputs(given, machine.aligned), entry.gives, entry.count, entry.returned)
            taken = run.instructions if run.cycles is None else run.cycles
            cache[key] = [image.flash, max(4, stack.size or 0, run.stack), taken.tolist()]
    flash, deepest, taken = cache[key]
    return {"flash": flash, "stack": deepest, "taken": np.array(taken, dtype=np.float64)}


@dataclass(frozen=True)
class Sample:
    """A build: its data set, what it asks for, and what it took. nodes: (rows, trees) reached by the rows. fails:
    (rows, conditions) that do not hold on them."""

    data: str
    demand: Demand
    nodes: NDArray[np.int64]
    fails: NDArray[np.bool_]
    flash: float
    stack: float
    taken: NDArray[np.float64]

    def features(self, figure: str) -> list[dict[str, float]]:
        """One for each equation of a figure."""
        if figure in ("flash", "stack"):
            return [getattr(self.demand, figure)]
        rows = self.demand.of_rows(self.nodes, self.fails)
        if figure == "mean":
            return [{name: float(own.mean()) for name, own in rows.items()}]
        return [{name: float(own[k]) for name, own in rows.items()} for k in range(len(self.taken))]

    def actual(self, figure: str) -> list[float]:
        if figure in ("flash", "stack"):
            return [getattr(self, figure)]
        return [float(self.taken.mean())] if figure == "mean" else self.taken.tolist()


def fit(samples: Sequence[Sample], layout: str, figure: str) -> dict[str, float]:
    """Costs by feature, none negative."""
    rows = [features for sample in samples for features in sample.features(figure)]
    actual = np.array([value for sample in samples for value in sample.actual(figure)])
    names = sorted({name for row in rows for name in row})
    A = np.array([[row.get(name, 0.0) for name in names] for row in rows])
    if figure != "worst":
        costs = nnls(A / actual[:, None], np.ones(len(actual)), maxiter=100_000)[0]
    else:  # the least sum of what is estimated beyond the rows' own, relative to these
        alike = [[names.index(name) for name in group if name in names] for group in ALIKE if layout in TABLES]
        equal = [(own[0], other) for own in alike for other in own[1:]]
        E = np.zeros((len(equal), len(names)))
        E[np.arange(len(equal)), [first for first, _ in equal]] = 1
        E[np.arange(len(equal)), [other for _, other in equal]] = -1
        program = linprog(
            (A / actual[:, None]).sum(axis=0), -A, -SLACK * actual, E if equal else None, [0] * len(equal) or None
        )
        costs = program.x
    return {name: round(float(cost), 4) for name, cost in zip(names, costs, strict=True) if cost > 5e-5}


def estimated(sample: Sample, figure: str, costs: dict[str, float]) -> float:
    if figure == "worst":
        return sample.demand.worst(costs)
    return sum(costs.get(name, 0.0) * amount for name, amount in sample.features(figure)[0].items())


def judged(samples: list[Sample], layout: str, figure: str) -> tuple[NDArray[np.float64], float]:
    """Actual to estimated values of each build, estimated from builds of other data sets; of the worst case the largest
    share of the bound that any row takes, and the mean ratio of the bound to the most expensive row."""
    ratios = []
    for left_out in sorted({sample.data for sample in samples}):
        costs = fit([sample for sample in samples if sample.data != left_out], layout, figure)
        for sample in samples:
            if sample.data == left_out:
                actual = sample.taken.max() if figure == "worst" else sample.actual(figure)[0]
                ratios.append(actual / max(1e-9, estimated(sample, figure, costs)))
    return np.array(ratios), float(np.mean(np.abs(np.log(ratios))))


def main() -> None:
    parser = arguments(str(__doc__))
    parser.add_argument("--cpu", default="cortex-m0plus,cortex-m4f,rv32imc,avr", metavar="NAMES")
    parser.add_argument("--cache", type=Path, metavar="FILE")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--layouts", default=",".join(DEMANDS), metavar="NAMES", help="the others keep their costs")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    end = time.monotonic() + 60 * options.minutes
    cache: dict[str, Any] = json.loads(options.cache.read_text()) if options.cache and options.cache.exists() else {}
    samples: dict[tuple[str, str], list[Sample]] = {}
    tools: dict[str, str] = {}
    for number, subject in enumerate(subjects()):
        given = given_to(subject)
        reached = nodes_reached(subject.forest, given.words)
        for layout, demand_of in DEMANDS.items():
            if layout not in options.layouts.split(","):
                continue
            for inputs in ("words", "float") if number % 3 == 0 and subject.data != "categories" else ("words",):
                c = COptions(c_inputs=inputs, c_layout=layout, c_values="none", c_quantizer="none")  # type: ignore[arg-type]
                taken = inputs_of(subject.forest, inputs)
                try:
                    demand = demand_of(taken)
                except OptionError:
                    continue  # a forest that the layout does not hold
                words = given.words if inputs == "words" else encode(taken.forest, taken.fitted(given.raw))
                fails = failing(taken.forest, words)
                for name in options.cpu.split(","):
                    cpu = CPUS[name]
                    if taken.float_bytes == 8 and not cpu.doubles:
                        continue
                    compiler = find_compiler(cpu)
                    tools[name] = compiler.version
                    if time.monotonic() > end:
                        continue
                    try:
                        figures = measured(subject, given, layout, c, cpu, compiler, cache)
                    except ForestcError as error:
                        print(f"{subject.name}, {layout}, {inputs}, {name}: {error}"[:300], flush=True)
                        continue
                    samples.setdefault((name, layout), []).append(
                        Sample(
                            subject.data, demand, reached, fails, figures["flash"], figures["stack"], figures["taken"]
                        )
                    )
        print(f"{subject.name}: {len(cache)} builds", flush=True)
        if options.cache:
            options.cache.write_text(json.dumps(cache))
    table: dict[str, Any] = json.loads(FITTED.read_text())
    show("firmware: estimates and builds", fitted(samples, tools, table), options.json)
    if options.write:
        text = json.dumps(table, indent=1) + "\n"
        parsed(text)
        FITTED.write_text(text)


def fitted(
    samples: dict[tuple[str, str], list[Sample]], tools: dict[str, str], table: dict[str, Any]
) -> list[dict[str, Any]]:
    """Fits the costs of each processor and layout into the table, and returns how near they come."""
    rows = []
    for (cpu_name, layout), own in samples.items():
        entry = table.setdefault(cpu_name, {"costs": {}, "nine_of_ten": {}})
        entry["tool"] = tools[cpu_name]
        entry["costs"][layout] = {figure: fit(own, layout, figure) for figure in FIGURES}
        row: dict[str, Any] = {"cpu": cpu_name, "layout": layout, "builds": len(own)}
        ranges = entry["nine_of_ten"][layout] = {}
        for figure in FIGURES:
            ratios, error = judged(own, layout, figure)
            if figure in RANGED:
                low, high = np.quantile(ratios, (0.05, 0.95))
                ranges[figure] = [round(float(low), 3), round(float(high), 3)]
                row |= {f"{figure}_mean_error_%": round(100 * error, 1), f"{figure}_9_of_10": f"{low:.2f}-{high:.2f}"}
            else:
                row |= {
                    "worst_row_to_bound": f"{ratios.min():.2f}-{ratios.max():.2f}",
                    "above": int((ratios > 1).sum()),
                }
        rows.append(row)
    return rows


if __name__ == "__main__":
    main()
