"""Estimates of firmware compared with real builds, and the fit that produces forestc/costs/firmware.json.

Forests from a stump to 100 trees (forests, extra trees, boosting, votes, rules and single trees by scikit-learn,
XGBoost and LightGBM; up to 10 classes, regression, several targets, categories, missing values, nothing to split on;
-O0 to -O2; inputs as words, members of a struct, floats and raw integers) become C in each layout, are compiled for
each processor with -Os by GCC and by ziglang, where `forestc measure` knows both, and run in the emulator on rows,
random words and inputs of long paths. --cache FILE keeps the figures by the SHA-256 of the header, so that a run
continues where the last one ended (`--minutes N` ends it early). The costs of each compiler are then fitted such that
no build takes more, with the least excess. The upper ends, a factor and a constant term, hold all builds of the fit,
each also by costs that were fitted without its model. --write writes forestc/costs/firmware.json.
benchmarks/budgets.py judges it on other models.
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
# Features that cost something where a register holds one byte.
OF_BYTES = ("bytes", "add_bytes", "score_bytes", "added_bytes", "slot_bytes", "mask_width", "leaf_bytes")
FITTED = Path(__file__).parents[1] / "forestc" / "costs" / "firmware.json"
ROWS, RANDOM = 40, 40
FOLDS = 8  # of the models; more estimate each build from nearly all others, and take longer
TOP = 4  # inputs of each build that the worst case is fitted on, the most expensive; more make it looser
SHARE = 0.1  # of the builds that take less than the lower ends; upper ends hold all
QUANTILE = 0.9  # of builds, that the sums of costs hold; the upper ends hold all
FEW = {
    "flash": 40,
    "stack": 16,
    "mean": 12,
    "worst": 12,
}  # added to what builds took, where they are weighed: a few bytes matter less than a share
SAID = 16  # bytes of a build in which nothing is left but an answer: no row changes it, and nothing is learned from it
RARE = 6  # models; forests with a feature that fewer have, are held by a factor of their own
SCARCE = 1.5  # that factor times this: the most of so few is easily exceeded
# Whose costs differ most from forest to forest, however many have them.
ALWAYS_RARE = (
    "crowded", "slot_double", "double", "rank_double", "set", "codes", "median", "average", "vote", "level"
)  # fmt: skip
MARGIN = 1.02  # beyond these and all builds of the fit, for models of other kinds
# Of the worst case, features that cost the same: a forest of a kind that few of these are of is not estimated too low.
TABLES = ("nodes", "masks")
ALIKE = (("by_index", "by_split", "by_wide"), ("value", "rows", "bits", "pairs"), ("far", "long", "tree"))


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

    def parts(self, figure: str, costs: dict[str, float]) -> tuple[float, float]:
        """What the build took, and the sum of its features' costs, both without EXACT."""
        if figure == "worst":
            return float(self.taken.max()), max(1e-9, self.demand.worst(costs))
        features, actual = self.equations(figure)[0]
        exact, rest = split_up(features, costs)
        return actual - exact, max(1e-9, rest)

    def took(self, figure: str) -> float:
        return float(self.taken.max()) if figure == "worst" else self.equations(figure)[0][1]


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

    def fit(
        self, alike: Sequence[Sequence[str]], few: float, among: NDArray[np.bool_] | None = None
    ) -> dict[str, float]:
        """Costs by feature, none negative: the quantile QUANTILE of what builds took, relative to that. alike: features
        that cost the same. few: see FEW.
        among: equations."""
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
        above = np.hstack([-relative, -np.eye(many)])  # beyond the estimates
        excess = np.concatenate([(1 - QUANTILE) * relative.sum(axis=0), np.ones(many)])  # all, and beyond
        program = linprog(
            excess, above, -needed, np.hstack([E, np.zeros((len(equal), many))]) if equal else None,
            [0] * len(equal) or None,
        )  # fmt: skip
        return {
            name: round(float(cost) + 5e-5, 4)
            for name, cost in zip(self.names, program.x[:names], strict=True)
            if cost > 5e-5
        }


def judged(
    samples: list[Sample], figure: str, equations: Equations, alike: Sequence[Sequence[str]]
) -> NDArray[np.float64]:
    """What each build took, the sum of its features' costs as fitted on builds of other models, and all that it took
    (builds, 3): NaN for builds with a feature that no other model has."""
    parts = np.full((len(samples), 3), np.nan)
    models = sorted({sample.model for sample in samples})
    fold = np.array([models.index(sample.model) % FOLDS for sample in samples])
    for left_out in range(FOLDS):
        among = fold[equations.build] != left_out
        if not among.any():
            continue
        unknown = ~(equations.amounts[among] != 0).any(axis=0)
        costs = equations.fit(alike, FEW[figure], among)
        for place in np.flatnonzero(fold == left_out):
            if not (equations.amounts[equations.build == place][:, unknown] != 0).any():
                parts[place] = *samples[place].parts(figure, costs), samples[place].took(figure)
    return parts


def upper_end(parts: NDArray[np.float64], few: float) -> tuple[float, float]:
    """The constant term and the factor, at least 1, that hold all builds with the least relative excess."""
    took, rest, whole = parts.T
    weight = 1 / (whole + few)
    program = linprog(
        [float(weight.sum()), float((rest * weight).sum())], -np.stack([weight, rest * weight], axis=1), -took * weight,
        bounds=[(0, None), (1, None)],
    )  # fmt: skip
    return float(program.x[0]) * MARGIN, float(program.x[1]) * MARGIN


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
    subject: Subject, inputs: str, types: str, layout: str, cpus: Sequence[Cpu], cache: dict[str, Any]
) -> Iterator[tuple[tuple[str, str, str], Sample]]:
    """By processor, compiler and layout, the builds of a forest."""
    given, taken = given_to(subject), inputs_of(subject.forest, inputs, types)
    c = COptions(c_inputs=inputs, c_types=types, c_layout=layout, c_values="none", c_quantizer="none")  # type: ignore[arg-type]
    if layout != "branches" and (not subject.forest.adds or not any(len(t.inner) for t in subject.forest.trees)):
        return
    try:
        demand = LAYOUTS[layout].demand(taken)
    except OptionError:
        return  # a forest that the layout does not hold
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
    """Fits the costs of each processor, compiler and layout into the table, and returns how near they come."""
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
            costs, left_out = equations.fit(alike, FEW[figure]), judged(own, figure, equations, alike)
            within = np.array([(*sample.parts(figure, costs), sample.took(figure)) for sample in own])
            parts, seldom = np.concatenate([left_out, within]), np.tile(rare, 2)
            known = np.isfinite(parts).all(axis=1)
            plus, most = upper_end(parts[known & ~seldom], FEW[figure])
            ratios = parts[known, 0] / parts[known, 1]
            beyond = (parts[:, 0] - plus) / parts[:, 1]
            having = {name: np.array([name in sample.demand.names for sample in own] * 2) & known for name in few}
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
    """The costs of forests without a split, that hold all builds: of an answer, and of each score that is written."""
    answers = [sample.took(figure) for sample in samples if not sample.demand.flash["written"]]
    if not answers:
        return {}
    flat = max(answers)
    written = [(s.took(figure) - flat) / s.demand.flash["written"] for s in samples if s.demand.flash["written"]]
    return {"flat": flat, "written": round(max([0.0, *written]) + 5e-5, 4)}


def over(samples: list[Sample], figure: str, costs: dict[str, float], most: float, plus: float) -> float:
    """By which share the upper end is above what builds took, on average."""
    shares = []
    for sample in samples:
        actual, rest = sample.parts(figure, costs)
        shares.append((plus + most * rest - actual) / sample.took(figure))
    return float(np.mean(shares)) if shares else 0.0


if __name__ == "__main__":
    main()
