"""Runs the stages of a trial in a worker process: training, passes, estimate, score, synthesis and check."""

from __future__ import annotations

import math
import shutil
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

from forestc.backends.c.rough import rough_costs
from forestc.compilation.record import command_line
from forestc.compilation.request import Request
from forestc.costs.devices import family_of
from forestc.costs.estimate import estimate
from forestc.errors import MissingToolError, OptionError, opt
from forestc.exploration.material import ALL, Material, test_rows
from forestc.exploration.space import LEVEL, PASSES_TAKEN, TIMED, passes_of, spelt
from forestc.exploration.study import DESIGN, TRIALS, Goal, Rung, Score, Trial
from forestc.forest.ir import Forest
from forestc.forest.text import print_forest
from forestc.frontends import load
from forestc.lowering.trees import LoweringOptions, lower
from forestc.manifest.design import open_design
from forestc.options.compile import CompileOptions
from forestc.passes import PASSES
from forestc.passes.base import Pass, PassResult, parse_passes, print_pass
from forestc.passes.scorer import RowErrors, Scorer, joined, row_errors
from forestc.rows.given import share_of
from forestc.search.cross_validation import Fold, Folds
from forestc.search.levels import DEFAULT_LEVEL, SearchTerms, plan, searched, searches
from forestc.search.memory import FOLDER as RESULTS_FOLDER
from forestc.search.memory import Passes, Ran, ResultStore
from forestc.search.portfolio import Stop
from forestc.search.sizes import size_of
from forestc.system.deadline import LateError

Stage: TypeAlias = Rung | Literal["finish"]
MODEL = "model.forest"  # names the file of a trained model in its trial's folder
CACHED = 48  # entries per fold in a worker's cache
MOST_STAGES = 8  # limits the latency, in cycles, to which registers are added for speed
MORE_STAGES = 3  # limits the cycles of latency added to a placed design
PROVED = 3000  # nodes; a larger design on the front is simulated but not proved
BEHIND = 2.0  # stops scoring this many standard errors below a rival of no higher cost

T = TypeVar("T")


@dataclass(frozen=True)
class Job:
    """One stage of a trial for a worker."""

    stage: Stage
    trial: Trial
    rivals: tuple[tuple[tuple[float, ...], float], ...] = ()  # (costs, accuracy) of trials on the front
    address: tuple[str, str, int] | None = None  # study's folder, database's address, and Optuna's id of the trial
    seconds: float = math.inf  # time limit for the search of a level


@dataclass(frozen=True)
class Commands:
    """The functions of `forestc.commands` that trials call. They are passed in, because this package may not import
    them."""

    compile: Callable[..., Any]
    check: Callable[..., Any]
    synth: Callable[..., Any]
    measure: Callable[..., Any]


@dataclass
class Bench:
    """The data and the commands of one worker, with a cache for results that trials share."""

    material: Material
    commands: Commands
    _cache: OrderedDict[Any, Any] = field(default_factory=OrderedDict)

    def run(self, job: Job) -> Trial:
        clock = _Seconds(dict(job.trial.seconds))
        trial = _STAGES[job.stage](self, job, clock)
        return replace(trial, seconds=clock.found)

    def _once(self, key: object, make: Callable[[], T]) -> T:
        if key not in self._cache:
            self._cache[key] = make()
            while len(self._cache) > CACHED * len(self.material.folds):
                self._cache.popitem(last=False)
        self._cache.move_to_end(key)
        cached: T = self._cache[key]
        return cached

    @property
    def first(self) -> int:
        """The fold whose model is compiled: 0, or `ALL` if models are trained and cross-validated."""
        return ALL if self.material.crossed and self.material.forest is None else 0

    # --- the estimate

    def estimated(self, job: Job, clock: _Seconds) -> Trial:
        options, fold = dict(job.trial.options), self.first
        with clock.of("train"):
            if callable(self.material.request.train):
                options = self._by_function(job, options)
            model = self.model(job.trial.number, options, fold)
        with clock.of("passes"):
            if LEVEL in options and PASSES_TAKEN not in options:
                options |= self._taken(options, model, fold, job.seconds)
            forest = self.passed(options, model, fold)
        with clock.of("estimate"):
            figures, chosen = self.figures(options, forest)
        with clock.of("judge"):
            score = self.score(job, options, forest, figures)
        trial = replace(job.trial, options={**options, **chosen}, figures={"estimate": figures}, validation=score)
        return replace(trial, state="complete", command=self.command(trial))

    def _by_function(self, job: Job, options: dict[str, Any]) -> dict[str, Any]:
        from forestc.exploration.sampling import trial_of

        assert callable(self.material.request.train) and job.address is not None
        trial = trial_of(*job.address)
        model = self.material.named(load(self.material.request.train(trial)))
        self._once(("model", job.trial.number), lambda: model)
        path = self.material.folder / TRIALS / f"{job.trial.number:04d}" / MODEL
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(print_forest(model), encoding="utf-8")
        return {**trial.params, **options}

    def model(self, number: int, options: Mapping[str, Any], fold: int) -> Forest:
        material = self.material
        if material.forest is not None:
            return material.forest
        if callable(material.request.train):
            return self._once(("model", number), lambda: load(material.folder / TRIALS / f"{number:04d}" / MODEL))
        training = material.training(options)
        key = ("model", fold, tuple(sorted(training.items(), key=repr)))
        return self._once(key, lambda: material.train(options, fold))

    def passed(self, options: Mapping[str, Any], model: Forest, fold: int) -> Forest:
        results = self.results(options, model, fold)
        return results[-1].forest if results else model

    def results(self, options: Mapping[str, Any], model: Forest, fold: int) -> list[PassResult]:
        passes = self._passes(model, fold)
        before, results = Ran.of(model), list[PassResult]()
        for step in self.steps(options, model, fold):
            key = ("passed", passes.content, before.text_hash, print_pass(step))
            result, before = self._once(key, lambda step=step, before=before: passes.run(step, before))  # type: ignore[misc]
            results.append(result)
        return results

    def _passes(self, model: Forest, fold: int) -> Passes:
        def passes() -> Passes:
            rows, held_out = self.material.fit_and_held_out(fold)
            return Passes(ResultStore(self.material.folder / RESULTS_FOLDER), rows, Scorer(model, held_out))

        # The scorer in the cache keeps the model alive, so its id stays unique.
        return self._once(("rows", max(fold, 0), id(model)), passes)

    def steps(self, options: Mapping[str, Any], model: Forest, fold: int) -> Sequence[Pass]:
        if PASSES_TAKEN in options:
            return parse_passes(str(options[PASSES_TAKEN]), PASSES)
        if LEVEL not in options:
            return passes_of(options, self.material.request)
        passes = self._passes(model, fold)
        return plan(None, int(options[LEVEL]), passes.rows).passes

    def _taken(self, options: Mapping[str, Any], model: Forest, fold: int, seconds: float) -> dict[str, str]:
        """Returns {PASSES_TAKEN: a level's passes as text}; empty if `compile` chooses the same passes by itself."""
        level, passes, request = int(options[LEVEL]), self._passes(model, fold), self.material.request
        if searches(level, passes.rows, None):
            lowering = LoweringOptions(family=family_of(request.device or ""))
            size = size_of(request.targets.split(","), request.device, request.cpu or "", lowering)
            folds = Folds((Fold(model, passes.rows, passes.scorer),), "validation rows")
            terms = SearchTerms(stop=Stop(1, seconds, time.monotonic() + seconds))
            first = self.results({LEVEL: DEFAULT_LEVEL}, model, fold)
            try:
                taken = searched(level, model, passes.rows, folds, size, terms, first).passes
            except LateError:
                what = f"-O{level} scored nothing in {seconds:.0f} s, its share of the time"
                raise OptionError(what, where=opt.seconds, do=f"give more {opt.seconds}") from None
        elif share_of(self.material.held_out) is None:
            return {}
        # Without search, `compile` gives a level all rows but holds some out for listed passes.
        else:
            taken = tuple(self.steps(options, model, fold))
        return {PASSES_TAKEN: ",".join(map(print_pass, taken))}

    def figures(self, options: Mapping[str, Any], forest: Forest) -> tuple[dict[str, float], dict[str, Any]]:
        """Returns two dictionaries: estimated figures, and the options chosen for limits and goals (latency and C
        layout)."""
        request, figures, chosen = self.material.request, dict[str, float](), dict[str, Any]()
        if request.device:
            estimates, latency = self._of_device(forest, options.get("latency"))
            figures |= {name: float(value) for name, value in estimates.items() if value is not None}
            if latency:
                chosen["latency"] = latency
        if request.cpu:
            layouts = rough_costs(forest, request.cpu)
            requested = options.get("c_layout")
            if requested is not None and requested not in layouts:
                raise OptionError(
                    f"{requested} does not hold the forest", where=opt.c_layout, do="give another layout, or auto"
                )
            costs = {name: {key: round(cost) for key, cost in vars(own).items()} for name, own in layouts.items()}
            best = requested or min(costs, key=lambda name: self._cost(costs[name]))
            figures |= costs[best]
            chosen["c_layout"] = best
        return figures, chosen

    def _cost(self, figures: Mapping[str, float]) -> tuple[float, ...]:
        """Returns a sort key for C layouts: number of broken limits, figure of the first goal, flash."""
        request = self.material.request
        broken = sum(not limit.holds(figures[limit.figure]) for limit in request.limits if limit.figure in figures)
        first = next((goal.figure for goal in request.goals if goal.figure in figures), "flash")
        return (broken, figures[first], figures["flash"])

    def _of_device(self, forest: Forest, latency: int | None) -> tuple[dict[str, Any], int]:
        request = self.material.request
        assert request.device is not None
        required = max((limit.value for limit in request.limits if limit.figure == "fmax_mhz"), default=0.0)
        best: tuple[dict[str, Any], int] | None = None
        for stages in range(MOST_STAGES + 1) if latency is None and required else (latency or 0,):
            netlist = lower(forest, LoweringOptions(stages, "auto", family_of(request.device)))
            figures = estimate(netlist, request.device)
            selected = {name: figures[name] for name in ("lut", "ff", "latency_cycles", "fmax_mhz")}
            if best is None or (selected["fmax_mhz"] or 0) > (best[0]["fmax_mhz"] or 0):
                best = selected, stages
            if (selected["fmax_mhz"] or 0) >= required:
                break
        assert best is not None
        return best

    # --- the score

    def score(self, job: Job, options: Mapping[str, Any], forest: Forest, figures: Mapping[str, float]) -> Score:
        """Returns the score on the validation rows of the folds. It stops early if a rival that costs no more is
        clearly better."""
        material, parts, models = self.material, list[RowErrors](), list[RowErrors]()
        costs = costs_of(material.request.goals, figures)
        rivals = [accuracy for other, accuracy in job.rivals if all(a <= b for a, b in zip(other, costs, strict=True))]
        score = Score(0.0, 0.0, 0)
        for fold, split in enumerate(material.folds):
            if material.crossed:
                forest = self.passed(options, self.model(job.trial.number, options, fold), fold)
            rows = material.rows(split.validation)
            parts.append(row_errors(forest, rows))
            score = _score(joined(parts))
            if (given := material.forest) is not None:
                models.append(self._once(("judged", fold), partial(row_errors, given, rows)))
                loss = joined(models).loss(joined(parts).errors)
                score = replace(score, lost=loss.lost, lost_error=loss.error)
            if score.value + BEHIND * score.standard_error < max(rivals, default=-math.inf):
                break
        return score

    # --- folders

    def command(self, trial: Trial) -> str:
        """Returns the command line that compiles the trial; "" if the rows or the model are Python objects."""
        request = self.material.request
        model = request.model if self.material.forest is not None else MODEL
        options = CompileOptions(model, request.rows, None, **self.keywords(trial))
        return command_line(Request.of(options)) or ""

    def keywords(self, trial: Trial) -> dict[str, Any]:
        request = self.material.request
        same = ("label", "targets", "classes", "rows_are_sampled", "missing", "iterations")
        keywords = {name: getattr(request, name) for name in same} | {"held_out": self.material.held_out}
        if request.device and trial.options.get("latency"):
            keywords |= {"device": request.device, "no_synth": True}
        keywords["trust_pickle"] = request.trust_pickle and request.model is not None
        return keywords | spelt(trial.options, request)

    def design(self, trial: Trial, clock: _Seconds | None = None) -> Path:
        clock = clock or _Seconds({})
        material = self.material
        home = material.folder / TRIALS / f"{trial.number:04d}"
        folder = home / DESIGN
        if (folder / "manifest.json").exists():
            return folder
        model: Any = material.request.model
        with clock.of("compile"):
            forest = self.model(trial.number, trial.options, self.first)
            if material.forest is None:
                model = home / MODEL
                if not callable(material.request.train):
                    home.mkdir(parents=True, exist_ok=True)
                    model.write_text(print_forest(forest), encoding="utf-8")
            results = self.results(trial.options, forest, self.first)
            self.commands.compile(model, material.request.rows, folder, **self.keywords(trial), results=results)
        return folder

    def built(self, job: Job, clock: _Seconds) -> Trial:
        """Returns the trial with figures of synthesis or, in the stage "placed", of place and route. A placed design
        that is too slow gets more latency."""
        request = self.material.request
        assert request.device is not None
        trial, route = job.trial, job.stage == "placed"
        for more in range(MORE_STAGES + 1):
            folder = self.design(trial, clock)
            with clock.of(job.stage):
                report = self.commands.synth(
                    folder, request.device, native=request.native, try_anyway=True, route=route
                )
            if not route or more == MORE_STAGES or not self._too_slow(report["fmax_mhz"]):
                break
            shutil.rmtree(folder)
            clock.found.pop("check", None)
            trial = replace(trial, options={**trial.options, "latency": int(trial.options.get("latency", 0)) + 1})
        names = ("lut", "ff", "latency_cycles") + ("fmax_mhz",) * route
        figures = {name: float(report[name]) for name in names if report[name] is not None}
        return replace(trial, figures={**trial.figures, job.stage: figures}, has_design=True)

    def _too_slow(self, fmax: float | None) -> bool:
        request = self.material.request
        chosen = {goal.figure for goal in request.goals} & TIMED
        limits = [limit for limit in request.limits if limit.figure in TIMED]
        return not chosen and any(limit.figure == "fmax_mhz" and not limit.holds(fmax) for limit in limits)

    def measured(self, job: Job, clock: _Seconds) -> Trial:
        request = self.material.request
        assert request.cpu is not None
        folder = self.design(job.trial, clock)
        rows = self.material.validation_rows
        with clock.of("measured"):
            entry = "predict" if open_design(folder).forest.decides else "scores"
            report = self.commands.measure(folder, request.cpu, rows, entries=[entry])
        taken = report["cycles"] or report["instructions"]
        figures = {"flash": float(report["flash"]), "ram": float(report["ram"] + (report["stack"] or 0))}
        if taken is not None:
            figures |= {"instructions": float(taken["max_of_all"]), "mean_instructions": float(taken["mean"])}
        return replace(job.trial, figures={**job.trial.figures, "measured": figures}, has_design=True)

    def finished(self, job: Job, clock: _Seconds) -> Trial:
        """Compiles and checks a trial of the front, and scores it on test rows if there are any. Raises CheckError if
        the check fails."""
        request = self.material.request
        design = open_design(self.design(job.trial, clock))
        with clock.of("check"):
            prove = request.prove and bool(request.device) and design.forest.n_nodes <= PROVED
            rows = self.material.validation_rows
            result = None
            if prove:
                with suppress(MissingToolError):
                    result = self.commands.check(design, rows, prove=True, native=request.native)
            result = result or self.commands.check(design, rows)
        problem = result.problem()
        if problem is not None:
            raise problem
        trial = replace(job.trial, has_design=True, command=str(design.manifest["made"]["command"] or ""))
        if request.test is None:
            return trial
        with clock.of("test"):
            errors = row_errors(design.forest, test_rows(request.test, request.label, design.model))
            return replace(trial, test=_score(errors))


_STAGES: dict[Stage, Callable[[Bench, Job, _Seconds], Trial]] = {
    "estimate": Bench.estimated,
    "synthesis": Bench.built,
    "placed": Bench.built,
    "measured": Bench.measured,
    "finish": Bench.finished,
}


def costs_of(goals: Sequence[Goal], figures: Mapping[str, float]) -> tuple[float, ...]:
    """Returns the costs of all goals but accuracy: smaller is better, infinity for an unknown figure."""
    return tuple(goal.cost(figures.get(goal.figure)) for goal in goals if goal.figure != "accuracy")


def _score(errors: RowErrors) -> Score:
    return Score(errors.accuracy, errors.standard_error, len(errors.errors), measure=errors.measure)


@dataclass
class _Seconds:
    found: dict[str, float]

    @contextmanager
    def of(self, stage: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.found[stage] = round(self.found.get(stage, 0.0) + time.perf_counter() - start, 3)
