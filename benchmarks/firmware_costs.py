"""Estimates of firmware compared with real builds, and the fit that produces forestc/costs/firmware.json.

Small and medium forests (forests, extra trees, boosting, votes, rules and single trees by scikit-learn, XGBoost and
LightGBM; up to 10 classes, regression, several targets, categories, missing values, nothing to split on; -O0 to -O2;
words, and raw floats of a fifth) become C in each layout, are compiled for each processor with -Os by GCC and by
ziglang, where `forestc measure` knows both, and run in the emulator on rows, random words and inputs of long paths.
--cache FILE keeps the figures by the SHA-256 of the header, so that a run continues where the last one ended
(`--minutes N` ends it early). The costs of each compiler are then fitted such that no build takes more, with the least
excess. The upper ends hold all builds of the fit, and nine of ten builds of models that were left out of it.
--write writes forestc/costs/firmware.json. benchmarks/budgets.py judges it on other models.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import xgboost
from numpy.typing import NDArray
from scipy.optimize import linprog
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_wine,
    make_circles,
    make_classification,
    make_friedman2,
    make_regression,
)
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingClassifier,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from tools import arguments, show

import forestc
from forestc.backends.c import COptions, emit
from forestc.backends.c.demands import DEMANDS, Demand
from forestc.backends.c.inputs import inputs_of
from forestc.backends.c.types import adds
from forestc.checks.vectors import Vectors, vectors, with_raw
from forestc.costs.firmware import EXACT, FIGURES, parsed
from forestc.errors import ForestcError, MissingToolError, OptionError
from forestc.firmware import avr
from forestc.firmware.costly import costly_words
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

# Features that cost something where a register holds one byte.
OF_BYTES = ("bytes", "add_bytes", "score_bytes", "width", "added_bytes", "slot_bytes", "mask_width")
FITTED = Path(__file__).parents[1] / "forestc" / "costs" / "firmware.json"
ROWS, RANDOM = 40, 40
MOST_SPLITS = 2500
CATEGORIES = {"categories": 5, "sets": 3}  # columns of categories, the first
FOLDS = 12  # of the models; more estimate each build from nearly all others, and take longer
TOP = 4  # inputs of each build that the worst case is fitted on, the most expensive; more make it looser
SHARE = 0.9  # of the builds of models left out of the fit, within each end; more refuses budgets that could be kept
MARGIN = 1.02  # beyond these and all builds of the fit, for models of other kinds
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
    if name == "moon":  # two features
        return make_circles(600, noise=0.2, factor=0.5, random_state=15)  # type: ignore[no-any-return]
    if name == "friedman":
        return make_friedman2(500, noise=20.0, random_state=16)  # type: ignore[no-any-return]
    if name == "sets":  # small sets beside numbers
        random = np.random.default_rng(3)
        X = np.column_stack([random.integers(0, [6, 20, 8], (800, 3)), random.normal(size=(800, 3)).round(2)])
        secret = random.normal(size=20)
        return X.astype(np.float64), (secret[X[:, 1].astype(int)] + X[:, 3] > 0.2).astype(int) + (X[:, 0] > 3)
    if name == "missing":  # a fifth of the values are not there
        random = np.random.default_rng(1)
        X, y = make_classification(800, 12, n_informative=8, n_classes=3, random_state=11)
        return np.where(random.random(X.shape) < 0.2, np.nan, X), y
    if name == "targets":
        return make_regression(600, 8, n_informative=6, n_targets=3, noise=5.0, random_state=12)  # type: ignore[no-any-return]
    if name == "flat":  # nothing to split on
        return np.zeros((60, 4)), np.arange(60) % 3
    if name == "level":
        return np.zeros((60, 4)), np.arange(60) / 7.0
    if name == "levels":
        return np.zeros((60, 4)), np.arange(180).reshape(60, 3) / 7.0
    if name == "labels":  # two targets
        X, y = make_classification(600, 10, n_informative=7, n_classes=4, random_state=13)
        return X, np.stack([y % 2, y], axis=1)
    if name == "few":  # three integers of 10 bits
        random = np.random.default_rng(2)
        X = random.integers(0, 1024, (900, 3)).astype(np.float64)
        return X, (X[:, 0] + 2 * X[:, 1] - X[:, 2] + random.normal(0, 200, 900) > 1000).astype(int)
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
    "missing_xgb8x4": ("missing", _xgb(n_estimators=8, max_depth=4)),
    "missing_hgb6": ("missing", HistGradientBoostingClassifier(max_iter=6, max_leaf_nodes=12, random_state=0)),
    "targets_rf8x5": ("targets", RandomForestRegressor(8, max_depth=5, random_state=0)),
    "labels_rf12x5": ("labels", RandomForestClassifier(12, max_depth=5, random_state=0)),
    "iso20": ("bc", IsolationForest(n_estimators=20, max_samples=64, random_state=0)),
    "vote3": (
        "wine",
        VotingClassifier(
            [
                ("a", RandomForestClassifier(5, max_depth=4, random_state=0)),
                ("b", ExtraTreesClassifier(6, max_depth=4, random_state=1)),
                ("c", DecisionTreeClassifier(max_depth=5, random_state=2)),
            ]
        ),
    ),
    "soft2": (
        "bc",
        VotingClassifier(
            [
                ("a", RandomForestClassifier(8, max_depth=4, random_state=3)),
                ("b", GradientBoostingClassifier(n_estimators=10, max_depth=2, random_state=4)),
            ],
            voting="soft",
        ),
    ),
    "moon_xgb": ("moon", _xgb(n_estimators=14, max_depth=4)),
    "moon_rf": ("moon", RandomForestClassifier(8, max_depth=6, random_state=0)),
    "friedman_gb": ("friedman", GradientBoostingRegressor(n_estimators=25, max_depth=3, random_state=0)),
    "friedman_rf": ("friedman", RandomForestRegressor(7, max_depth=5, random_state=0)),
    "made3_et9": ("made3", ExtraTreesClassifier(9, max_depth=6, random_state=0)),
    "vote_made4": (
        "made4",
        VotingClassifier(
            [
                ("a", ExtraTreesClassifier(5, max_depth=5, random_state=5)),
                ("b", RandomForestClassifier(4, max_depth=5, random_state=6)),
            ],
            weights=[2, 1],
        ),
    ),
    "soft_iris": (
        "iris",
        VotingClassifier(
            [
                ("a", ExtraTreesClassifier(6, max_depth=3, random_state=5)),
                ("b", GradientBoostingClassifier(n_estimators=4, max_depth=2, random_state=6)),
            ],
            voting="soft",
        ),
    ),
    "median_diabetes": ("diabetes", AdaBoostRegressor(n_estimators=6, random_state=0)),
    "median_few": ("few", AdaBoostRegressor(DecisionTreeRegressor(max_depth=2), n_estimators=9, random_state=1)),
    "sets_lgb": (
        "sets",
        lightgbm.LGBMClassifier(n_estimators=8, num_leaves=8, min_data_per_group=5, verbose=-1, n_jobs=1),
    ),
    "sets_hgb": (
        "sets",
        HistGradientBoostingClassifier(max_iter=6, max_leaf_nodes=10, categorical_features=[0, 1, 2], random_state=0),
    ),
    "digits_tree8": ("digits", DecisionTreeClassifier(max_depth=8, random_state=0)),
    "targets_tree6": ("targets", DecisionTreeRegressor(max_depth=6, random_state=0)),
    "labels_tree4": ("labels", DecisionTreeClassifier(max_depth=4, random_state=0)),
    "bc_ada15": ("bc", AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=15, random_state=0)),
    "few_rf15x7": ("few", RandomForestClassifier(15, max_depth=7, random_state=0)),
    "few_tree5": ("few", DecisionTreeClassifier(max_depth=5, random_state=0)),
    "wine_tree": ("wine", DecisionTreeClassifier(max_depth=3, random_state=0)),
    "diabetes_tree7": ("diabetes", DecisionTreeRegressor(max_depth=7, random_state=0)),
    "diabetes_gb30x2": ("diabetes", GradientBoostingRegressor(n_estimators=30, max_depth=2, random_state=0)),
    "bc_stumps30": ("bc", GradientBoostingClassifier(n_estimators=30, max_depth=1, random_state=0)),
    "made2_lgb15": ("made2", lightgbm.LGBMClassifier(n_estimators=15, num_leaves=8, verbose=-1, n_jobs=1)),
    "made7_xgb10x3": ("made7", _xgb(n_estimators=10, max_depth=3)),
    "flat_rf3": ("flat", RandomForestClassifier(3, random_state=0)),
    "flat_tree": ("flat", DecisionTreeClassifier(random_state=0)),
    "level_rf4": ("level", RandomForestRegressor(4, random_state=0)),
    "levels_rf2": ("levels", RandomForestRegressor(2, random_state=0)),
    "rules_bc": ("bc", RandomForestClassifier(6, max_depth=4, random_state=0)),
    "rules_made2": ("made2", RandomForestClassifier(6, max_depth=4, random_state=0)),
    "digits_rf60x7": ("digits", RandomForestClassifier(60, max_depth=7, random_state=0)),
}


def subjects() -> Iterator[Subject]:
    """Each model at -O1, then each at another level."""
    for level in (1, 2, 0):
        for number, name in enumerate(MODELS):
            if level == 1 or (number % 2 == 0) is (level == 0):
                yield from subject(name, level)


def subject(name: str, level: int) -> Iterator[Subject]:
    """A model at a level, if it is not too large."""
    of, model = MODELS[name]
    X, y = data(of)
    model.fit(X, y, **({"categorical_feature": [*range(CATEGORIES[of])]} if of in CATEGORIES and "lgb" in name else {}))
    rules = name.startswith("rules")
    how: dict[str, Any] = (
        {"passes": "quantize,extract-rules{tolerance=0.2}", "held_out": 0.3} if rules else {"level": level}
    )
    forest = replace(forestc.quantize(model, X, y, **how), name="m")
    if sum(len(tree.inner) for tree in forest.trees) <= MOST_SPLITS:
        yield Subject(f"{name} -O{level}", of, forest, X)


def given_to(subject: Subject) -> Vectors:
    """Some rows, some random words, and inputs of long paths."""
    some = subject.rows[:: max(1, len(subject.rows) // ROWS)][:ROWS]
    parts = list(vectors(subject.forest, ArrayRows(some), RANDOM, boundary=0))
    parts.append(
        with_raw(subject.forest, costly_words(subject.forest, np.concatenate([p.words for p in parts])), "costly")
    )
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


@lru_cache(maxsize=64)
def header(forest: Forest, options: COptions) -> str:
    return next(iter(emit(forest, options).values()))


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
    text = header(subject.forest, options)
    key = hashlib.sha256(f"{cpu.name}{compiler.version}{text}".encode() + given.words.tobytes()).hexdigest()
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
    """A build: its model, what it asks for, and what it took. of_rows: the amounts of each input that was run."""

    model: str
    demand: Demand
    of_rows: dict[str, NDArray[np.float64]]
    mean: dict[str, float]
    flash: float
    stack: float
    taken: NDArray[np.float64]

    def equations(self, figure: str) -> list[tuple[dict[str, float], float]]:
        """Features and what they took; of the worst case, of the most expensive inputs."""
        if figure in ("flash", "stack"):
            return [(getattr(self.demand, figure), getattr(self, figure))]
        if figure == "mean":
            return [(self.mean, float(self.taken.mean()))]
        top = np.argsort(-self.taken, kind="stable")[:TOP]
        return [({name: float(own[k]) for name, own in self.of_rows.items()}, float(self.taken[k])) for k in top]

    def ratio(self, figure: str, costs: dict[str, float]) -> float:
        """What the build took to the sum of its features' costs, both without EXACT."""
        if figure == "worst":
            return float(self.taken.max()) / max(1e-9, self.demand.worst(costs))
        features, actual = self.equations(figure)[0]
        exact, rest = split_up(features, costs)
        return (actual - exact) / max(1e-9, rest)


def split_up(features: dict[str, float], costs: dict[str, float]) -> tuple[float, float]:
    """The costs of EXACT, and of the other features."""
    exact = sum(features.get(name, 0.0) for name in EXACT)
    return exact, sum(costs.get(name, 0.0) * amount for name, amount in features.items() if name not in EXACT)


@dataclass(frozen=True)
class Equations:
    """Equations of a figure of some builds: features by name (equations, names), the costs of EXACT, what was taken,
    and the build of each equation."""

    names: list[str]
    amounts: NDArray[np.float64]
    exact: NDArray[np.float64]
    taken: NDArray[np.float64]
    build: NDArray[np.int64]

    @classmethod
    def of(cls, samples: Sequence[Sample], figure: str, narrow: bool) -> Equations:
        """The equations of builds. narrow: on a processor of 8 bits."""
        found = [(place, *equation) for place, sample in enumerate(samples) for equation in sample.equations(figure)]
        build, rows, taken = zip(*found, strict=True)
        unused = EXACT if narrow or figure == "stack" else (*EXACT, *OF_BYTES)
        names = sorted({name for row in rows for name in nonzero(row) if name not in unused})
        amounts = np.array([[row.get(name, 0.0) for name in names] for row in rows])
        exact = np.array([split_up(row, {})[0] for row in rows])
        return cls(names, amounts, exact, np.array(taken), np.array(build))

    def fit(self, alike: Sequence[Sequence[str]], among: NDArray[np.bool_] | None = None) -> dict[str, float]:
        """Costs by feature, none negative, such that no build takes more than their sum, with the least sum of what is
        estimated beyond the builds, relative to these. alike: features that cost the same. among: equations."""
        among = np.ones(len(self.taken), dtype=bool) if among is None else among
        groups = [[self.names.index(name) for name in group if name in self.names] for group in alike]
        equal = [(own[0], other) for own in groups for other in own[1:]]
        E = np.zeros((len(equal), len(self.names)))
        E[np.arange(len(equal)), [first for first, _ in equal]] = 1
        E[np.arange(len(equal)), [other for _, other in equal]] = -1
        taken = self.taken[among]
        relative = self.amounts[among] / taken[:, None]
        least = (taken - self.exact[among]) / taken
        program = linprog(relative.sum(axis=0), -relative, -least, E if equal else None, [0] * len(equal) or None)
        return {
            name: round(float(cost) + 5e-5, 4) for name, cost in zip(self.names, program.x, strict=True) if cost > 5e-5
        }


def judged(
    samples: list[Sample], figure: str, equations: Equations, alike: Sequence[Sequence[str]]
) -> NDArray[np.float64]:
    """What each build took to its estimate from builds of other models. (builds,), NaN for builds with a feature that
    no other model has."""
    ratios = np.full(len(samples), np.nan)
    models = sorted({sample.model for sample in samples})
    fold = np.array([models.index(sample.model) % FOLDS for sample in samples])
    for left_out in range(FOLDS):
        among = fold[equations.build] != left_out
        if not among.any():
            continue
        unknown = ~(equations.amounts[among] != 0).any(axis=0)
        costs = equations.fit(alike, among)
        for place in np.flatnonzero(fold == left_out):
            if not (equations.amounts[equations.build == place][:, unknown] != 0).any():
                ratios[place] = samples[place].ratio(figure, costs)
    return ratios


def nonzero(features: dict[str, float]) -> Iterator[str]:
    return (name for name, amount in features.items() if amount)


def compilers(cpu: Cpu) -> Iterator[Compiler]:
    """Each compiler that `forestc measure` knows of a processor, and that is installed."""
    for kind in ("gcc", "ziglang") if cpu.target else ("gcc",):
        try:
            yield find_compiler(cpu, kind)
        except MissingToolError as error:
            print(error)


def sampled(
    subject: Subject, inputs: str, layout: str, cpus: Sequence[Cpu], cache: dict[str, Any]
) -> Iterator[tuple[tuple[str, str, str], Sample]]:
    """By processor, compiler and layout, the builds of a forest."""
    given, taken = given_to(subject), inputs_of(subject.forest, inputs)
    c = COptions(c_inputs=inputs, c_layout=layout, c_values="none", c_quantizer="none")  # type: ignore[arg-type]
    if layout != "branches" and (not adds(subject.forest) or not any(len(t.inner) for t in subject.forest.trees)):
        return
    try:
        demand = DEMANDS[layout](taken)
    except OptionError:
        return  # a forest that the layout does not hold
    words = given.words if inputs == "words" else encode(taken.forest, taken.fitted(given.raw))
    of_rows = demand.of_rows(nodes_reached(subject.forest, given.words), failing(taken.forest, words))
    mean = {name: float(own.mean()) for name, own in of_rows.items()}
    for cpu in cpus:
        for compiler in compilers(cpu) if taken.float_bytes < 8 or cpu.doubles else ():
            try:
                took = measured(subject, given, layout, c, cpu, compiler, cache)
            except ForestcError as error:
                print(f"{subject.name}, {layout}, {inputs}, {cpu.name}, {compiler.kind}: {error}"[:300], flush=True)
                continue
            model = subject.name.partition(" ")[0]
            yield (
                (cpu.name, compiler.kind, layout),
                Sample(model, demand, of_rows, mean, took["flash"], took["stack"], took["taken"]),
            )


def main() -> None:
    parser = arguments(str(__doc__))
    parser.add_argument("--cpu", default="cortex-m0plus,cortex-m4f,rv32imc,avr", metavar="NAMES")
    parser.add_argument("--cache", type=Path, metavar="FILE")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    end = time.monotonic() + 60 * options.minutes
    cache: dict[str, Any] = json.loads(options.cache.read_text()) if options.cache and options.cache.exists() else {}
    samples: dict[tuple[str, str, str], list[Sample]] = {}
    cpus = [CPUS[name] for name in options.cpu.split(",")]
    for number, subject in enumerate(subjects()):
        if time.monotonic() > end:
            break
        for layout in DEMANDS:
            for inputs in ("words", "float") if number % 5 == 2 and subject.data != "categories" else ("words",):
                for key, sample in sampled(subject, inputs, layout, cpus, cache):
                    samples.setdefault(key, []).append(sample)
        print(f"{subject.name}: {len(cache)} builds", flush=True)
        if options.cache:
            options.cache.write_text(json.dumps(cache))
    tools = {(cpu.name, compiler.kind): compiler.version for cpu in cpus for compiler in compilers(cpu)}
    table: dict[str, Any] = json.loads(FITTED.read_text())
    show("firmware: estimates and builds", fitted(samples, tools, table), options.json)
    if options.write:
        text = json.dumps(table, indent=1) + "\n"
        parsed(text)
        FITTED.write_text(text)


def fitted(
    samples: dict[tuple[str, str, str], list[Sample]], tools: dict[tuple[str, str], str], table: dict[str, Any]
) -> list[dict[str, Any]]:
    """Fits the costs of each processor, compiler and layout into the table, and returns how near they come."""
    rows = []
    for (cpu, kind, layout), own in samples.items():
        entry = table[cpu]["compilers"].setdefault(kind, {"tool": "", "layouts": {}})
        entry["tool"] = tools[cpu, kind]
        row: dict[str, Any] = {"cpu": cpu, "compiler": kind, "layout": layout, "builds": len(own)}
        figures = entry["layouts"][layout] = {}
        for figure in FIGURES:
            equations = Equations.of(own, figure, cpu == "avr")
            alike = ALIKE if layout in TABLES and figure == "worst" else ()
            costs, left_out = equations.fit(alike), judged(own, figure, equations, alike)
            ratios = np.concatenate([left_out[np.isfinite(left_out)], [sample.ratio(figure, costs) for sample in own]])
            most = max(1.0, float(np.nanquantile(left_out, SHARE)))
            ends = (float(np.quantile(ratios, 1 - SHARE)) / MARGIN, float(np.median(ratios)), most * MARGIN)
            figures[figure] = {
                "costs": {
                    **{
                        name: 0.0
                        for sample in own
                        for features, _ in sample.equations(figure)
                        for name in nonzero(features)
                    },
                    **costs,
                    **(dict.fromkeys(EXACT, 1.0) if figure == "flash" else {}),
                },
                "ratios": [round(max(1e-4, float(end)), 4) for end in ends],
            }
            row[f"{figure}_least_to_most"] = f"{ends[0]:.2f}-{ends[2]:.2f}"
            row[f"{figure}_over_%"] = round(100 * over(own, figure, costs, ends[2]), 1)
        rows.append(row)
    return rows


def over(samples: list[Sample], figure: str, costs: dict[str, float], most: float) -> float:
    """By which share the upper end is above what builds took, on average."""
    shares = []
    for sample in samples:
        features, actual = sample.equations(figure)[0]
        exact, rest = split_up(features, costs) if figure != "worst" else (0.0, sample.demand.worst(costs))
        shares.append((exact + most * rest) / actual - 1.0)
    return float(np.mean(shares))


if __name__ == "__main__":
    main()
