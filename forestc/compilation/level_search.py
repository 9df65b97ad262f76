"""Plans a compilation: chooses its passes, and the rows on which forests are scored."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from forestc.backends.base import Gives
from forestc.backends.table import gives_only
from forestc.compilation.layouts import is_measured
from forestc.compilation.request import Request
from forestc.costs.devices import DEVICES
from forestc.errors import ForestcError, OptionError, RowsError, opt, said
from forestc.firmware.layouts import least_flash
from forestc.forest.ir import Forest
from forestc.frontends import read_estimator
from forestc.options.compile import CompileOptions
from forestc.options.shared import Progress, quiet
from forestc.passes.base import Pass, PassResult
from forestc.passes.options import DEFAULT_TOLERANCE
from forestc.passes.pipeline import Step, run_passes
from forestc.passes.scorer import Loss, Scorer
from forestc.rows.batches import Rows, RowSelection, count_rows
from forestc.rows.given import rows_from, share_of
from forestc.rows.groups import groups_of, weighted
from forestc.rows.ranges import have_rows
from forestc.rows.table import label_columns
from forestc.search.cross_validation import Fold, Folds
from forestc.search.levels import (
    DEFAULT_EFFORT,
    DEFAULT_LEVEL,
    SEARCHING,
    LevelPlan,
    SearchTerms,
    plan,
    searched,
    searches,
)
from forestc.search.portfolio import Stop
from forestc.search.settle import settled
from forestc.search.sizes import size_of
from forestc.system.deadline import LateError, before
from forestc.toolchain.firmware import CPUS, find_compiler

MOST_COMPARED = 20_000  # rows compared at most, to find held-out rows among the given ones


@dataclass(frozen=True)
class PlannedRun:
    """A list of passes and the rows on which to run them."""

    plan: LevelPlan
    fit: Rows  # rows that passes may use
    held_out: Rows | None = None  # rows that score forests; None without such rows
    share: float | None = None  # share of the given rows that is held out; None if other rows are
    copy: Forest | None = None  # a copy of the model, trained on the rows in `fit`, that replaces it
    evidence: tuple[Loss, Loss] | None = None  # cross-validated losses of the model and the final forest
    results: Sequence[PassResult] | None = None  # result of each pass, if known
    done: tuple[Forest, list[Step]] | None = None  # final forest and steps, if known

    def run(
        self,
        source: Forest,
        progress: Progress = quiet,
        given: Sequence[PassResult] | None = None,
    ) -> tuple[Forest, list[Step]]:
        """Runs the plan's passes and returns (final forest, steps). given: results of these passes from an earlier run,
        used if the plan holds none. Raises OptionError for a wrong number of results."""
        if self.done is not None:
            return self.done
        source = self.copy or source
        results = self.results if self.plan.chosen is None else self.plan.chosen.results
        results = given if results is None else results
        if results is not None and len(results) != len(self.plan.passes):
            raise OptionError(
                f"{len(results)} results of {len(self.plan.passes)} passes", where="results", do="give one of each pass"
            )
        return run_passes(source, self.plan.passes, self.fit, self.held_out, progress, self.evidence, results, settled)


def check_rows_that_score(request: Request) -> None:
    """Raises OptionError if a level would have to train a model again that can't be trained."""
    options = request.options
    if request.level not in SEARCHING or request.named is not None or options.scores is not None:
        return
    if options.rows is None or options.label is None or options.held_out is not None:
        return
    if read_estimator(options.model, trust_pickle=options.trust_pickle) is None:
        model = options.model
        raise OptionError(
            f"-O{request.level} has no rows to score on, as a model of trees alone, or with a frozen part, can't be "
            "trained again",
            where=str(model) if isinstance(model, str | Path) else f"model of type {type(model).__name__}",
            do=f"give rows that it was not trained on: {opt.held_out:FILE}",
        )


def planned_run(source: Forest, rows: Rows, request: Request) -> PlannedRun:
    """Plans the requested level, or the passes that the user named. source: the model."""
    stop, options = request.stop, request.options
    split = _split(rows, options, source)
    fit, held_out = split.fit, split.held_out
    if stop is None or stop.seconds == math.inf or not have_rows(rows):
        return _planned(source, split, request, stop)
    begin = time.monotonic()
    default = plan(None, DEFAULT_LEVEL, fit, scores=options.scores)
    results = _results(source, default.passes, fit, None)
    ran = time.monotonic()
    done = run_passes(source, default.passes, fit, held_out, options.progress, None, results)
    until = begin + stop.seconds - (time.monotonic() - ran)  # leaves time for the checks of the result
    try:
        if time.monotonic() < until:
            return _planned(source, split, request, replace(stop, until=until), results)
        why = f"-O{DEFAULT_LEVEL} alone takes longer"
    except LateError:
        why = "it was over before any smaller design was scored"
    note = f"-O{request.level} is -O{DEFAULT_LEVEL} here: {opt.effort:{stop.seconds:g}s} is too short: {why}"
    share = share_of(options.held_out)
    return PlannedRun(replace(default, notes=(said(note),)), fit, held_out, share, results=results, done=done)


@dataclass(frozen=True)
class _Split:
    """The given rows, and what scores designs."""

    rows: Rows  # all given rows
    fit: Rows  # those that passes may use
    held_out: Rows | None
    groups: NDArray[np.int64] | None  # (given rows,) number of each row's group
    held_out_groups: NDArray[np.int64] | None


def _split(rows: Rows, options: CompileOptions, source: Forest) -> _Split:
    """Raises OptionError for an impossible share or pair, and RowsError for groups that do not fit."""
    held_out, label = options.held_out, options.label
    groups, share = groups_of(options.groups, options.rows), share_of(held_out)
    if groups is not None and len(groups) != (count := count_rows(rows)):
        raise RowsError(f"{len(groups):,} groups of {count:,} rows", where=opt.groups, do="give one for each row")
    if held_out is None:
        return _Split(rows, rows, None, groups, None)
    if share is not None:
        if not 0 < share <= 0.5:
            raise OptionError(
                f"a share of {share:g}",
                where=opt.held_out,
                do="set a share above 0 and up to 0.5 aside, or give a file",
            )
        every = round(1 / share)
        fit, aside = (RowSelection(rows, every, held, groups) for held in (False, True))
        return _Split(rows, fit, aside, groups, None if groups is None else groups[aside.chosen(0, len(groups))])
    if isinstance(held_out, tuple):
        if len(held_out) != 2:
            raise OptionError(
                f"held_out is a tuple of {len(held_out)}", where=opt.held_out, do="give rows, or a pair (rows, labels)"
            )
        held_out, label = held_out
    elif label is not None and label_columns(label, held_out) is None:
        raise OptionError(
            "label holds labels of the rows, and held_out has none",
            where=opt.held_out,
            do="give a pair (rows, labels), or leave label out",
        )
    column, weights = (name if isinstance(name, str) else None for name in (options.groups, options.weights))
    others = weighted(rows_from(held_out, source, label, (column, weights)), weights, held_out)
    return _Split(rows, rows, others, groups, groups_of(column, held_out))


def _results(source: Forest, passes: Sequence[Pass], rows: Rows, scorer: Scorer | None) -> list[PassResult]:
    results: list[PassResult] = []
    for step in passes:
        results.append(settled(step, results[-1].forest if results else source, rows, scorer))
    return results


def _planned(
    source: Forest, split: _Split, request: Request, stop: Stop | None, first: Sequence[PassResult] = ()
) -> PlannedRun:
    """Plans as `planned_run` does. Raises LateError if time ends before a forest is scored."""
    rows, fit, held_out = split.rows, split.fit, split.held_out
    until = math.inf if stop is None else stop.until
    options, named, level = request.options, request.named, request.level
    share = share_of(options.held_out)
    if named is not None or not searches(level, rows, options.scores):
        planned = plan(named, level, fit, scores=options.scores)
        if named is None and share is not None:
            aside = f"{opt.held_out:{options.held_out}} sets none of them aside"
            note = f"-O{planned.level} judges nothing here and keeps all given rows: {aside}"
            return PlannedRun(replace(planned, notes=(*planned.notes, said(note))), rows)
        if split.groups is not None and held_out is None:
            note = f"the passes take all rows alike: {opt.groups} is of use where rows are held out"
            planned = replace(planned, notes=(*planned.notes, said(note)))
        results = None
        if until < math.inf:
            scorer = None if held_out is None else Scorer(source, held_out)
            results = before(until, lambda: _results(source, planned.passes, fit, scorer))
        return PlannedRun(planned, fit, held_out, share, results=results)
    limit = DEFAULT_TOLERANCE if request.tolerance is None else request.tolerance
    terms = SearchTerms(limit, stop or Stop(DEFAULT_EFFORT), options.keep, options.sure, options.seed)
    try:
        folds = _folds(source, split, request, terms)
    except ForestcError as error:
        planned = plan(None, DEFAULT_LEVEL, fit, scores=options.scores)
        note = f"-O{level} is -O{DEFAULT_LEVEL} here: {error.what}; give other rows to score on: {opt.held_out:FILE}"
        return PlannedRun(replace(planned, notes=(said(note),)), fit)
    size = size_of(request.targets, options.device, options.cpu, request.lowering)
    own = folds.folds[0]
    replaced = folds.lacking is not None
    base = own.model if replaced else source
    found = searched(
        level, base, own.fit if replaced else fit, folds, size, terms, first if base is source else (),
        options.progress,
    )  # fmt: skip
    # With a time limit designs are not measured, because synthesis takes minutes.
    if until == math.inf and (measured_size := _measured_size(request)) is not None:
        from forestc.search.finalists import measured_finalists

        found = measured_finalists(found, measured_size, options.progress)
    plain, chosen = found.trials[0], found.chosen
    assert chosen is not None
    if replaced and chosen is plain:  # The model itself takes the place of its copy.
        return PlannedRun(replace(found, chosen=None, evidence=None, notes=found.notes), rows)
    found = replace(found, notes=(*folds.notes, *found.notes))
    if replaced:
        return PlannedRun(found, own.fit, own.scorer.held_out, folds.share, base)
    evidence = None
    if held_out is None:
        loss = replace(chosen.loss, measure=f"{chosen.loss.measure}, cross-validated")
        evidence = Loss(loss.accuracy + loss.lost, 0.0, 0.0, loss.rows, loss.measure), loss
    return PlannedRun(found, fit, held_out, share, evidence=evidence)


def _folds(source: Forest, split: _Split, request: Request, terms: SearchTerms) -> Folds:
    """Returns the folds that score designs. Raises ForestcError if the model can't be trained again."""
    options, fit, held_out = request.options, split.fit, split.held_out
    if held_out is not None:
        options.progress("looking for held-out rows among the given ones")
        share = share_of(options.held_out)
        notes = _shared_rows_note(fit, held_out) if share is None else [said(_SET_ASIDE)]
        own = Fold(source, fit, Scorer(source, held_out, split.held_out_groups))
        return Folds((own,), "held-out rows", share=share, notes=tuple(notes))
    from forestc.search.folds import folds_of  # imports trainers, which no other level needs

    options.progress("training the model again on parts of the rows, to score on the others")
    spared = terms.tolerance if terms.keep is None else None  # What is kept is kept of the model on all rows.
    folds = before(
        terms.stop.until,
        lambda: folds_of(
            options.model, source, split.rows, spared, groups=split.groups,
            trust_pickle=options.trust_pickle, iterations=options.iterations,
        ),
    )  # fmt: skip
    return folds if folds.lacking is not None else replace(folds, how=f"cross-validation: {folds.how}")


def _measured_size(request: Request) -> Callable[[Forest], float] | None:
    """Returns a function that measures a forest's size with the user's tools; None if no tool was asked for."""
    options = request.options
    if options.device is not None and options.device in DEVICES and not options.no_synth:
        from forestc.search.finalists import synthesized_luts

        return partial(synthesized_luts, device=options.device, lowering=request.lowering, native=options.native)
    if gives_only(request.targets, Gives.HEADER) and is_measured(options):
        cpu = CPUS[options.cpu]
        return partial(least_flash, options=options, cpu=cpu, compiler=find_compiler(cpu))
    return None


_SET_ASIDE = (
    "passes are scored on a share of the given rows; if the model was trained on them, it looks better there than on "
    f"others, and designs are larger than they need to be: without {opt.held_out} it is trained again on parts of the "
    "rows"
)


def _shared_rows_note(fit: Rows, held_out: Rows) -> list[str]:
    """Returns a list with a note if held-out rows are also given ones; otherwise empty."""
    others = _some(held_out)
    shared = count_shared(_some(fit), others)
    if not shared:
        return []
    return [
        f"{shared} of {len(others)} held-out rows are among the given ones; if the model was trained on these, it "
        "looks better than it is, and a design scored on them may lose more on other rows"
    ]


def count_shared(X: NDArray[np.float64], others: NDArray[np.float64]) -> int:
    seen = {row.tobytes() for row in np.ascontiguousarray(X)}
    return sum(row.tobytes() in seen for row in np.ascontiguousarray(others))


def _some(rows: Rows) -> NDArray[np.float64]:
    parts, room = [], MOST_COMPARED
    for batch in rows.batches():
        parts.append(batch.X[: max(0, room)])
        room -= len(batch.X)
    return np.ascontiguousarray(np.concatenate(parts))
