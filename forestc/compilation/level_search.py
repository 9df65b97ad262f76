"""Levels that search, for `compile` and for exploration: on which rows they judge, what a forest's size is, and which
of the smallest designs synthesis finds the smallest."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from forestc.algorithms.deadline import LateError, before
from forestc.compilation.request import Request
from forestc.errors import ForestcError, OptionError
from forestc.forest.ir import Forest
from forestc.passes.base import Pass, PassResult
from forestc.passes.judge import Judge, Loss
from forestc.passes.options import DEFAULT_TOLERANCE
from forestc.passes.pipeline import Step, run_passes
from forestc.rows.batches import Rows
from forestc.rows.given import share_of, split_rows
from forestc.rows.ranges import have_rows
from forestc.search.cross_validation import Fold, Folds
from forestc.search.levels import DEFAULT_EFFORT, DEFAULT_LEVEL, SEARCHING, Plan, SearchTerms, plan, searched, searches
from forestc.search.portfolio import Stop
from forestc.search.settle import settled
from forestc.search.sizes import size_of

MOST_COMPARED = 20_000  # rows that are looked for among the held-out ones


@dataclass(frozen=True)
class Ground:
    """What the passes of a plan run on. fit: the rows that they see. held_out: rows that they are judged on; None where
    there are none, or folds are judged. given: held-out rows as the user gave them, or the share set aside. evidence:
    the losses of the model itself and of what the plan makes, where folds were judged. results: what the passes make;
    done: that, checked; None where it is not known yet."""

    plan: Plan
    fit: Rows
    held_out: Rows | None
    given: Any
    evidence: tuple[Loss, Loss] | None = None
    results: Sequence[PassResult] | None = None
    done: tuple[Forest, list[Step]] | None = None

    def run(
        self,
        source: Forest,
        progress: Callable[[str], None] = lambda _: None,
        given: Sequence[PassResult] | None = None,
    ) -> tuple[Forest, list[Step]]:
        """`run_passes` with the passes of the plan. given: what they make, if the caller knows. Raises OptionError
        if it is of other passes."""
        if self.done is not None:
            return self.done
        results = self.results if self.plan.chosen is None else self.plan.chosen.results
        results = given if results is None else results
        if results is not None and len(results) != len(self.plan.passes):
            raise OptionError(f"{len(results)} results of {len(self.plan.passes)} passes", do="give one of each pass")
        return run_passes(source, self.plan.passes, self.fit, self.held_out, progress, self.evidence, results, settled)


def ground_of(source: Forest, rows: Rows, wanted: Request) -> Ground:
    """The plan of the wanted level, or of the passes that the user named. source: the forest of the wanted model.
    Raises ForestcError."""
    stop = wanted.stop
    if stop is None or stop.seconds == math.inf or not have_rows(rows):
        return _ground(source, rows, wanted, stop)
    begin, options = time.monotonic(), wanted.options
    fit, held_out = split_rows(rows, options.held_out, source, options.label)
    planned = plan(None, DEFAULT_LEVEL, fit, scores=options.scores)
    results = _made(source, planned.passes, fit, None)
    made = time.monotonic()
    done = run_passes(source, planned.passes, fit, held_out, options.progress, None, results)
    until = begin + stop.seconds - (time.monotonic() - made)  # what is found is to be checked, too
    try:
        if time.monotonic() < until:
            return _ground(source, rows, wanted, replace(stop, until=until), results)
        why = f"-O{DEFAULT_LEVEL} alone takes longer"
    except LateError:
        why = "that was over before any smaller design was judged"
    note = f"-O{wanted.level} is -O{DEFAULT_LEVEL} here: --effort gives {stop.seconds:g} s, and {why}"
    return Ground(replace(planned, notes=(note,)), fit, held_out, options.held_out, None, results, done)


def _made(source: Forest, passes: Sequence[Pass], rows: Rows, judge: Judge | None) -> list[PassResult]:
    """What each of the passes makes."""
    results: list[PassResult] = []
    for step in passes:
        results.append(settled(step, results[-1].forest if results else source, rows, judge))
    return results


def _ground(source: Forest, rows: Rows, wanted: Request, stop: Stop | None, first: Sequence[PassResult] = ()) -> Ground:
    """The same, without the seconds of an effort. first: what the passes of -O1 make, if it is known. Raises LateError
    if the time of `stop` is over before anything is judged."""
    until = math.inf if stop is None else stop.until
    options, progress = wanted.options, wanted.options.progress
    named, level, label, given = wanted.named, wanted.level, options.label, options.held_out
    fit, held_out = split_rows(rows, given, source, label)
    if named is not None or not searches(level, rows, options.scores):
        planned = plan(named, level, fit, scores=options.scores)
        if named is None and share_of(given) is not None:
            note = _NONE_ASIDE.format(level=planned.level, share=given)
            return Ground(replace(planned, notes=(*planned.notes, note)), rows, None, None)
        results = None
        if until < math.inf:
            judge = None if held_out is None else Judge(source, held_out)
            results = before(until, lambda: _made(source, planned.passes, fit, judge))
        return Ground(planned, fit, held_out, given, results=results)
    notes = []
    if held_out is not None:
        progress("looking for held-out rows among the given ones")
        notes = _known(fit, held_out) if share_of(given) is None else [_SET_ASIDE]
        folds = Folds((Fold(source, fit, Judge(source, held_out)),), "held-out rows")
    else:
        from forestc.search.folds import folds_of  # trainers, which no other level needs

        progress("training the model again on parts of the rows, to judge on the others")
        try:
            trained = before(until, lambda: folds_of(options.model, source, rows, trust_pickle=options.trust_pickle))
        except ForestcError as error:
            planned = plan(None, DEFAULT_LEVEL, fit, scores=options.scores)
            note = f"-O{level} is -O{DEFAULT_LEVEL} here: {error.what}; give other rows to judge on: --held-out FILE"
            return Ground(replace(planned, notes=(note,)), fit, None, None)
        folds = replace(trained, how=f"cross-validation: {trained.how}")
    size = size_of(wanted.targets, options.device, options.cpu, wanted.lowering)
    limit = DEFAULT_TOLERANCE if wanted.tolerance is None else wanted.tolerance
    terms = SearchTerms(limit, stop or Stop(DEFAULT_EFFORT), options.keep, options.seed)
    best_plan = searched(level, source, fit, folds, size, terms, first, progress)
    device = options.device if not options.no_synth and until == math.inf else None  # synthesis takes minutes
    if device is not None:
        from forestc.search.finalists import synthesized

        best_plan = synthesized(best_plan, device, wanted.lowering, native=options.native, progress=progress)
    assert best_plan.chosen is not None
    loss = best_plan.chosen.loss
    loss = replace(loss, measure=f"{loss.measure}, cross-validated")
    evidence = None
    if held_out is None:
        evidence = Loss(loss.accuracy + loss.lost, 0.0, 0.0, loss.rows, loss.measure), loss
    if level == SEARCHING[0] and options.keep is None:
        notes = [*notes, _KEPT_BEFORE]
    if held_out is not None and tuple(best_plan.passes) != tuple(best_plan.trials[0].passes):
        notes = [*notes, _CHOSEN.format(settings=len(best_plan.trials))]
    return Ground(replace(best_plan, notes=(*notes, *best_plan.notes)), fit, held_out, given, evidence)


_KEPT_BEFORE = "-O2 keeps accuracy on other rows; with --keep decisions also every decision of the given rows"
_NONE_ASIDE = "-O{level} judges nothing here and keeps all given rows: --held-out {share} sets none of them aside"
_CHOSEN = "chosen among {settings} settings on the held-out rows, where it looks better than it is: check it on others"
_SET_ASIDE = (
    "passes are judged on a share of the given rows; if the model was trained on them, it looks better there than on "
    "others, and designs are larger than they need to be: without --held-out it is trained again on parts of the rows"
)


def _known(fit: Rows, held_out: Rows) -> list[str]:
    """A note if some held-out rows are among the given ones."""
    seen = {row.tobytes() for row in _some(fit)}
    others = _some(held_out)
    shared = sum(row.tobytes() in seen for row in others)
    if not shared:
        return []
    return [
        f"{shared} of {len(others)} held-out rows are among the given ones; if the model was trained on these, it "
        "looks better than it is, and what is judged on them may lose more on other rows"
    ]


def _some(rows: Rows) -> np.ndarray[Any, Any]:
    parts, room = [], MOST_COMPARED
    for batch in rows.batches():
        parts.append(batch.X[: max(0, room)])
        room -= len(batch.X)
    return np.ascontiguousarray(np.concatenate(parts))
