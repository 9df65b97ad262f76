"""Compares estimates of firmware with real builds, and fits the costs in forestc/costs/firmware.json.

The forests range from a stump to 100 trees: random forests, extra trees, boosting, votes, rules and single trees by
scikit-learn, XGBoost and LightGBM. They have up to 10 classes, regression, several targets, categories, missing values
or no split at all, -O0 to -O2, and inputs as words, struct members, floats and raw integers. Each becomes C in each
layout, is compiled for each processor with -Os by GCC and, where `forestc measure` knows it, by ziglang, and runs in
the emulator on rows, random words and inputs of long paths. --cache FILE stores the figures by the SHA-256 of the
header, so that a run continues where the last one ended (`--minutes N` ends it early). The costs of each compiler are
fitted to a quantile of its builds. The upper end of an estimate, a factor and a constant term, holds every build of the
fit, also with costs fitted without the build's model. --write writes forestc/costs/firmware.json. benchmarks/budgets.py
tests it on other models.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from firmware_models import Subject, builds
from numpy.typing import NDArray
from scipy.optimize import linprog
from tools import arguments, show

from forestc.backends.c import COptions, emit
from forestc.backends.c.demands import Demand
from forestc.backends.c.inputs import inputs_of
from forestc.backends.c.layouts import LAYOUTS
from forestc.checks.vectors import Vectors, vectors, with_raw
from forestc.costs.firmware import EXACT, FIGURES, parsed
from forestc.errors import ForestcError, MissingToolError, OptionError
from forestc.firmware import avr
from forestc.firmware.costly import costly_words
from forestc.firmware.emulator import Emulator
from forestc.firmware.entries import measured_entry
from forestc.firmware.image import read_image, static_stack
from forestc.forest.evaluate import leaf_nodes, missing_words
from forestc.forest.ir import Forest
from forestc.manifest.design import Design
from forestc.rows.batches import ArrayRows
from forestc.rows.encode import encode
from forestc.toolchain.firmware import CPUS, Compiler, Cpu, build, find_compiler
from forestc.toolchain.run import find

MEASURES = ("forestc/costs", "forestc/layouts", "forestc/backends/c", "forestc/firmware")
# OF_BYTES lists features that cost something only on a processor of 8 bits.
OF_BYTES = ("bytes", "add_bytes", "score_bytes", "added_bytes", "slot_bytes", "mask_width", "leaf_bytes")
FITTED = Path(__file__).parents[1] / "forestc" / "costs" / "firmware.json"
ROWS, RANDOM = 40, 40
# FOLDS is the number of folds of the models; more folds estimate each build from nearly all others, and take longer.
FOLDS = 8
TOP = 4  # inputs of each build, the most expensive ones, that the worst case is fitted on; more make the fit looser
SHARE = 0.1  # share of the builds that take less than the lower end of their estimate; the upper end holds all builds
QUANTILE = 0.9  # share of the builds that take at most the sum of their costs; the upper end holds all builds
FEW = {
    "flash": 40,
    "stack": 16,
    "mean": 12,
    "worst": 12,
}  # FEW is added to a build's figure before errors are weighed by it: a few bytes matter less than a share.
SAID = 16  # bytes of flash up to which a build holds a constant answer only; such builds are left out of the fit
RARE = 6  # makes a feature rare if fewer models have it; forests with a rare feature have an upper factor of their own
SCARCE = 1.5  # multiplies the factor of a rare feature, since the most of few builds is easily exceeded
# ALWAYS_RARE lists features with costs that differ most between forests; they are rare however many models have them.
ALWAYS_RARE = (
    "crowded", "slot_double", "double", "rank_double", "set", "codes", "median", "average", "vote", "level"
)  # fmt: skip
MARGIN = 1.02  # widens the upper end beyond all builds of the fit, for models of other kinds
# ALIKE groups features with equal costs in the worst case of layouts in TABLES. Otherwise a feature of few forests
# could be estimated too low.
TABLES = ("nodes", "masks")
ALIKE = (("by_index", "by_split", "by_wide"), ("value", "rows", "bits", "pairs"), ("far", "long", "tree"))


def given_to(subject: Subject) -> Vectors:
    """Returns the inputs that a forest is run on: some rows, some random words, and inputs of long paths."""
    some = subject.rows[:: max(1, len(subject.rows) // ROWS)][:ROWS]
    parts = list(vectors(subject.forest, ArrayRows(some), RANDOM, boundary=0))
    parts.append(
        with_raw(subject.forest, costly_words(subject.forest, np.concatenate([p.words for p in parts])), "costly")
    )
    return Vectors(np.concatenate([p.words for p in parts]), np.concatenate([p.raw for p in parts]), "rows")


def nodes_reached(forest: Forest, words: NDArray[np.int64]) -> NDArray[np.int64]:
    """Returns the leaf that each row of words reaches in each tree: (rows, trees)."""
    missing = missing_words(forest)
    return np.stack([leaf_nodes(forest, tree, words, missing) for tree in forest.trees], axis=1)


def failing(forest: Forest, words: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Returns whether each condition sends a row to the right: (rows, conditions)."""
    missing, absent = missing_words(forest)
    fails = np.zeros((len(words), len(forest.conditions)), dtype=bool)
    for index, condition in enumerate(forest.conditions):
        own = words[:, condition.feature]
        gone = (own == absent[condition.feature]) & missing[condition.feature]
        fails[:, index] = ~condition.sends_left(own, gone)
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
    """Builds a header and runs it, unless the cache has its figures. Returns flash, stack, and as `taken` the
    instructions (cycles on AVR) of each input."""
    text = header(subject.forest, options)
    key = hashlib.sha256(f"{cpu.name}{compiler.version}{text}".encode() + given.words.tobytes()).hexdigest()
    if key not in cache:
        manifest = {"options": {"c": options.c_record()}, "files": {"c": "m.h"}}
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            (folder / "m.h").write_text(text, encoding="utf-8")
            design = Design(folder, manifest, subject.forest, subject.forest)
            entry = measured_entry(design, cpu, "predict" if subject.forest.decides else "scores")
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
    """A build of a model and its measured figures. demand: the amounts of each feature of the costs. of_rows: these
    amounts for each input that was run. mean: their means. taken: instructions or cycles of each input."""

    model: str
    demand: Demand
    of_rows: dict[str, NDArray[np.float64]]
    mean: dict[str, float]
    flash: float
    stack: float
    taken: NDArray[np.float64]

    def equations(self, figure: str) -> list[tuple[dict[str, float], float]]:
        """Returns pairs of features and a measured figure. The worst case has a pair for each of the TOP most expensive
        inputs; other figures have one pair."""
        if figure in ("flash", "stack"):
            return [(getattr(self.demand, figure), getattr(self, figure))]
        if figure == "mean":
            return [(self.mean, float(self.taken.mean()))]
        top = np.argsort(-self.taken, kind="stable")[:TOP]
        return [({name: float(own[k]) for name, own in self.of_rows.items()}, float(self.taken[k])) for k in top]

    def parts(self, figure: str, costs: dict[str, float]) -> tuple[float, float]:
        """Returns the measured figure, and the sum of the features' costs, both without the features in EXACT."""
        if figure == "worst":
            return float(self.taken.max()), max(1e-9, self.demand.worst(costs))
        features, actual = self.equations(figure)[0]
        exact, rest = split_up(features, costs)
        return actual - exact, max(1e-9, rest)

    def took(self, figure: str) -> float:
        return float(self.taken.max()) if figure == "worst" else self.equations(figure)[0][1]


def split_up(features: dict[str, float], costs: dict[str, float]) -> tuple[float, float]:
    """Returns the sum of the features in EXACT, which cost 1 each, and the cost of the other features."""
    exact = sum(features.get(name, 0.0) for name in EXACT)
    return exact, sum(costs.get(name, 0.0) * amount for name, amount in features.items() if name not in EXACT)


@dataclass(frozen=True)
class Equations:
    """The equations of a figure over some builds. amounts: of features, (equations, names). exact: the costs of the
    features in EXACT. taken: the measured figures. build: the index of the build of each equation."""

    names: list[str]
    amounts: NDArray[np.float64]
    exact: NDArray[np.float64]
    taken: NDArray[np.float64]
    build: NDArray[np.int64]

    @classmethod
    def of(cls, samples: Sequence[Sample], figure: str, narrow: bool) -> Equations:
        """Collects the equations of builds. narrow: the processor has 8 bits."""
        found = [(index, *equation) for index, sample in enumerate(samples) for equation in sample.equations(figure)]
        build, rows, taken = zip(*found, strict=True)
        unused = EXACT if narrow or figure == "stack" else (*EXACT, *OF_BYTES)
        names = sorted({name for row in rows for name in nonzero(row) if name not in unused})
        amounts = np.array([[row.get(name, 0.0) for name in names] for row in rows])
        exact = np.array([split_up(row, {})[0] for row in rows])
        return cls(names, amounts, exact, np.array(taken), np.array(build))

    def fit(
        self, alike: Sequence[Sequence[str]], few: float, among: NDArray[np.bool_] | None = None
    ) -> dict[str, float]:
        """Fits non-negative costs by feature, by quantile regression: a share QUANTILE of the builds takes at most the
        sum of its costs. Errors are relative to the measured figures.

        alike: groups of features with equal costs.
        few: see FEW.
        among: the equations to fit; None for all.
        """
        among = np.ones(len(self.taken), dtype=bool) if among is None else among
        groups = [[self.names.index(name) for name in group if name in self.names] for group in alike]
        equal = [(own[0], other) for own in groups for other in own[1:]]
        E = np.zeros((len(equal), len(self.names)))
        E[np.arange(len(equal)), [first for first, _ in equal]] = 1
        E[np.arange(len(equal)), [other for _, other in equal]] = -1
        taken = self.taken[among]
        weight = 1 / (taken + few)
        relative, needed = self.amounts[among] * weight[:, None], (taken - self.exact[among]) * weight
        many, names = relative.shape
        # These variables hold the parts of measured figures beyond the estimates.
        above = np.hstack([-relative, -np.eye(many)])
        # The objective is the quantile loss: all estimates, and the parts beyond them.
        excess = np.concatenate([(1 - QUANTILE) * relative.sum(axis=0), np.ones(many)])
        program = linprog(
            excess, above, -needed, np.hstack([E, np.zeros((len(equal), many))]) if equal else None,
            [0] * len(equal) or None,
        )  # fmt: skip
        return {
            name: round(float(cost) + 5e-5, 4)
            for name, cost in zip(self.names, program.x[:names], strict=True)
            if cost > 5e-5
        }


def left_out_parts(
    samples: list[Sample], figure: str, equations: Equations, alike: Sequence[Sequence[str]]
) -> NDArray[np.float64]:
    """Estimates each build with costs fitted on builds of other models. Returns for each build the measured figure and
    the sum of the costs, both without EXACT, and the whole measured figure: (builds, 3). A build with a feature that no
    other model has is NaN."""
    parts = np.full((len(samples), 3), np.nan)
    models = sorted({sample.model for sample in samples})
    fold = np.array([models.index(sample.model) % FOLDS for sample in samples])
    for left_out in range(FOLDS):
        among = fold[equations.build] != left_out
        if not among.any():
            continue
        unknown = ~(equations.amounts[among] != 0).any(axis=0)
        costs = equations.fit(alike, FEW[figure], among)
        for index in np.flatnonzero(fold == left_out):
            if not (equations.amounts[equations.build == index][:, unknown] != 0).any():
                parts[index] = *samples[index].parts(figure, costs), samples[index].took(figure)
    return parts


def upper_end(parts: NDArray[np.float64], few: float) -> tuple[float, float]:
    """Returns the constant term and the factor, at least 1, that hold all builds with the least relative excess."""
    took, rest, total = parts.T
    weight = 1 / (total + few)
    program = linprog(
        [float(weight.sum()), float((rest * weight).sum())], -np.stack([weight, rest * weight], axis=1), -took * weight,
        bounds=[(0, None), (1, None)],
    )  # fmt: skip
    return float(program.x[0]) * MARGIN, float(program.x[1]) * MARGIN


def nonzero(features: dict[str, float]) -> Iterator[str]:
    return (name for name, amount in features.items() if amount)


def compilers(cpu: Cpu) -> Iterator[Compiler]:
    """Yields each installed compiler that `forestc measure` knows for a processor."""
    for kind in ("gcc", "ziglang") if cpu.target else ("gcc",):
        try:
            yield find_compiler(cpu, kind)
        except MissingToolError as error:
            print(error)


def sampled(
    subject: Subject, inputs: str, types: str, layout: str, cpus: Sequence[Cpu], cache: dict[str, Any]
) -> Iterator[tuple[tuple[str, str, str], Sample]]:
    """Builds and measures a forest in a layout. Yields (processor, compiler, layout) with each build."""
    given, taken = given_to(subject), inputs_of(subject.forest, inputs, types)
    c = COptions(c_inputs=inputs, c_types=types, c_layout=layout, c_values="none", c_quantizer="none")  # type: ignore[arg-type]
    if layout != "branches" and (not subject.forest.adds or not any(len(t.inner) for t in subject.forest.trees)):
        return
    try:
        demand = LAYOUTS[layout].demand(taken)
    except OptionError:
        return  # The layout does not hold the forest.
    words = encode(taken.forest, taken.fitted(given.raw)) if taken.raw else given.words
    of_rows = demand.of_rows(nodes_reached(taken.forest, words), failing(taken.forest, words))
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
    parser = arguments(__doc__, MEASURES, "cache")
    parser.add_argument("--cpu", default="cortex-m0plus,cortex-m4f,rv32imc,avr", metavar="NAMES")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if options.small:
        options.cpu = "avr"
    end = time.monotonic() + 60 * options.minutes
    cache: dict[str, Any] = json.loads(options.cache.read_text()) if options.cache and options.cache.exists() else {}
    samples: dict[tuple[str, str, str], list[Sample]] = {}
    cpus = [CPUS[name] for name in options.cpu.split(",")]
    for subject, inputs, types in islice(builds(), 2 if options.small else None):
        if time.monotonic() > end:
            break
        for layout in LAYOUTS:
            for key, sample in sampled(subject, inputs, types, layout, cpus, cache):
                samples.setdefault(key, []).append(sample)
        print(f"{subject.name}, {inputs}: {len(cache)} builds", flush=True)
        if options.cache:
            options.cache.write_text(json.dumps(cache))
    tools = {(cpu.name, compiler.kind): compiler.version for cpu in cpus for compiler in compilers(cpu)}
    table: dict[str, Any] = json.loads(FITTED.read_text())
    show("firmware: estimates and builds", fitted(samples, tools, table), options)
    if options.write:
        text = json.dumps(table, indent=1) + "\n"
        parsed(text)
        FITTED.write_text(text)


def fitted(
    samples: dict[tuple[str, str, str], list[Sample]], tools: dict[tuple[str, str], str], table: dict[str, Any]
) -> list[dict[str, Any]]:
    """Fits the costs of each processor, compiler and layout, and stores them in the table. Returns rows that show the
    errors."""
    rows = []
    for (cpu, kind, layout), every in samples.items():
        flat = [sample for sample in every if "flat" in sample.demand.flash]
        own = [sample for sample in every if sample.flash > SAID and "flat" not in sample.demand.flash]
        entry = table[cpu]["compilers"].setdefault(kind, {"tool": "", "layouts": {}})
        entry["tool"] = tools[cpu, kind]
        of_models: dict[str, set[str]] = {}
        for sample in own:
            for name in sample.demand.names:
                of_models.setdefault(name, set()).add(sample.model)
        few = {name for name, models in of_models.items() if len(models) < RARE or name in ALWAYS_RARE}
        rare = np.array([bool(few & sample.demand.names) for sample in own])
        row: dict[str, Any] = {
            "rare": int(rare.sum()), "cpu": cpu, "compiler": kind, "layout": layout, "builds": len(own),
        }  # fmt: skip
        figures = entry["layouts"][layout] = {}
        for figure in FIGURES:
            equations = Equations.of(own, figure, cpu == "avr")
            alike = ALIKE if layout in TABLES and figure == "worst" else ()
            costs, left_out = equations.fit(alike, FEW[figure]), left_out_parts(own, figure, equations, alike)
            within = np.array([(*sample.parts(figure, costs), sample.took(figure)) for sample in own])
            parts, seldom = np.concatenate([left_out, within]), np.tile(rare, 2)
            finite = np.isfinite(parts).all(axis=1)
            plus, most = upper_end(parts[finite & ~seldom], FEW[figure])
            ratios = parts[finite, 0] / parts[finite, 1]
            beyond = (parts[:, 0] - plus) / parts[:, 1]
            having = {name: np.array([name in sample.demand.names for sample in own] * 2) & finite for name in few}
            low, middle = np.quantile(ratios, (SHARE, 0.5)) if len(ratios) else (most, most)
            middle = min(most, float(middle))
            ends = (min(middle, float(low) / MARGIN), middle, most)
            every_name = {n for sample in own for features, _ in sample.equations(figure) for n in nonzero(features)}
            exact = dict.fromkeys(EXACT, 1.0) if figure == "flash" else {}
            factors = {
                name: max(most, MARGIN * float(beyond[having[name]].max(initial=0.0)))
                * (SCARCE if len(of_models[name]) < RARE else 1.0)
                for name in sorted(few)
            }
            figures[figure] = {
                "costs": {**dict.fromkeys(sorted(every_name), 0.0), **costs, **exact, **constant(flat, figure)},
                "ratios": [round(max(1e-4, float(end)), 4) for end in ends],
                "plus": round(plus, 2),
                "rare": {name: round(factor, 4) for name, factor in factors.items()},
            }
            row[f"{figure}_least_to_most"] = f"{ends[0]:.2f}-{ends[2]:.2f}+{plus:.0f}"
            plain = [sample for sample, seldom in zip(own, rare, strict=True) if not seldom]
            row[f"{figure}_over_%"] = round(100 * over(plain, figure, costs, most, plus), 1)
        rows.append(row)
    return rows


def constant(samples: list[Sample], figure: str) -> dict[str, float]:
    """Returns costs that hold all builds of forests without a split: of an answer, and of each written score."""
    answers = [sample.took(figure) for sample in samples if not sample.demand.flash["written"]]
    if not answers:
        return {}
    flat = max(answers)
    written = [(s.took(figure) - flat) / s.demand.flash["written"] for s in samples if s.demand.flash["written"]]
    return {"flat": flat, "written": round(max([0.0, *written]) + 5e-5, 4)}


def over(samples: list[Sample], figure: str, costs: dict[str, float], most: float, plus: float) -> float:
    """Returns the mean share by which the upper end exceeds the measured figures."""
    shares = []
    for sample in samples:
        actual, rest = sample.parts(figure, costs)
        shares.append((plus + most * rest - actual) / sample.took(figure))
    return float(np.mean(shares)) if shares else 0.0


if __name__ == "__main__":
    main()
