"""Runs passes, verifies the forest after each pass, and checks every promise. Accuracy is measured on held-out rows.

The promise Exact is also checked on inputs beside thresholds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forestc.errors import CheckError, located
from forestc.forest.boundary import boundary_inputs, random_words
from forestc.forest.evaluate import Evaluation, encode_numbers
from forestc.forest.ir import Forest
from forestc.forest.verify import verify
from forestc.passes.base import Pass, PassResult, Refusing, most_changed, print_pass, required
from forestc.passes.promises import A_BUG, Change, Exact, Guarantee, Promise, Within, promise_text
from forestc.passes.quick_evaluation import evaluate_quickly, evaluate_rows
from forestc.passes.scorer import Loss, Scorer
from forestc.rows.batches import Rows
from forestc.rows.ranges import Ranges, made_rows

Apply: TypeAlias = Callable[[Pass, Forest, Rows | None, Scorer | None], PassResult]

# About this many inputs beside thresholds test each promise about all inputs.
MOST_BOUNDARY_INPUTS = 20_000
SOME = 1024  # rows from which inputs beside thresholds are derived
RANDOM_INPUTS = 256  # adds this many random inputs, from which inputs beside thresholds are derived


@dataclass(frozen=True)
class Step:
    """One pass after it ran, with its promises and figures."""

    name: str  # the pass with its options
    promises: tuple[Promise, ...]
    report: dict[str, Any]  # figures of the pass and of the checks
    inputs_checked: int  # number of inputs on which promises were checked
    change: float  # share of changed decisions, or largest error over the score range
    held_out: dict[str, Any] | None = None  # accuracy on the held-out rows, if measured
    aside: str = ""  # a sentence about given rows that the promises do not cover

    def with_report(self, **figures: Any) -> Step:
        return replace(self, report={**self.report, **figures})

    @property
    def guarantee(self) -> Guarantee:
        return self.promises[0].guarantee

    @property
    def promise(self) -> str:
        return promise_text(self.promises)

    @property
    def meaning(self) -> str:
        meant = "; ".join(promise.meaning() for promise in self.promises)
        return f"{meant} ({self.aside})" if self.aside and "given rows" in meant else meant

    def figures(self) -> dict[str, Any]:
        measured = {"change": self.change, "held_out": self.held_out}
        return {"pass": self.name, "guarantee": self.promise, **measured, **self.report}


def run_passes(
    forest: Forest,
    passes: Sequence[Pass],
    rows: Rows | None,
    held_out: Rows | None = None,
    progress: Callable[[str], None] = lambda _: None,
    evidence: tuple[Loss, Loss] | None = None,
    results: Sequence[PassResult] | None = None,
    apply: Apply = lambda step, forest, rows, scorer: step.run(forest, rows, scorer),
) -> tuple[Forest, list[Step]]:
    """Runs the passes. Returns the final forest and a Step for each pass. Raises CheckError for a broken promise.
    evidence: cross-validated losses before and after the passes.
    results: the passes' results, if already known."""
    scorer = None if held_out is None else Scorer(forest, held_out)
    for step in passes:
        with located(f"pass {step.name}"):
            if isinstance(step, Refusing):
                step.refuse(forest, rows, scorer)
            if evidence is None and getattr(step, "needs_scorer", False):
                required(scorer, step)
    if scorer is not None:
        _ = scorer.accuracy  # This raises OptionError if the held-out rows can't score a forest.
    names = [print_pass(step) for step in passes]
    forests, outcomes = [forest], []
    for index, (name, step) in enumerate(zip(names, passes, strict=True)):
        progress(name)
        with located(f"pass {name}"):
            outcomes.append(results[index] if results else apply(step, forests[-1], rows, scorer))
            origin = forests[-1].provenance
            forests.append(replace(outcomes[-1].forest, provenance=replace(origin, passes=(*origin.passes, name))))
            verify(forests[-1])
    progress("checking the promises of the passes")
    runs = [_Ran(name, forests[: index + 2], r) for index, (name, r) in enumerate(zip(names, outcomes, strict=True))]
    whole = Change(forest, forests[-1])
    generated = isinstance(rows, Ranges)
    if isinstance(rows, Ranges):
        rows = made_rows(forest, rows, forests)
    some = np.zeros((1, forest.width))
    for number, batch in enumerate(rows.batches() if rows is not None else ()):
        some = some if number else batch.X[:SOME].copy()
        # Each forest is evaluated once: it is the result of one pass and the source of the next.
        evaluated = [evaluate_rows(forest, batch.X)]
        for run in runs:
            evaluated.append(evaluated[-1] if run.unchanged else evaluate_rows(run.after, batch.X))
        for index, run in enumerate(runs, 1):
            run.on_rows(evaluated, index, generated)
        whole.add(evaluated[0], evaluated[-1])
    for run in runs:
        run.on_boundary(some)
        if not generated:
            run.on_generated_rows()
    if scorer is not None:
        progress("measuring accuracy on held-out rows")
        losses = scorer.of_all(forests)
        for run, losses_here in zip(runs, pairwise(losses), strict=True):
            run.on_held_out(*losses_here)
    elif evidence is not None:
        changing = [run for run in runs if not run.exact]
        for run in [run for run in changing if run.scored] or changing[-1:]:
            run.on_held_out(*evidence)
    steps = [run.step() for run in runs]
    if forest.decides and whole.changed > (most := most_changed(outcomes)):
        raise CheckError(
            f"promise together to change at most {most} decisions of the given rows and change {whole.changed}",
            where="the passes",
            do=A_BUG,
        )
    return forests[-1], steps


def _halfway(forest: Forest) -> bool:
    return forest.on_words and not forest.quantized


class _Ran:
    """A pass that has run, with the checks of its promises."""

    def __init__(self, name: str, forests: Sequence[Forest], result: PassResult) -> None:
        *_, before, after = forests
        self.name, self.before, self.after, self.result = name, before, after, result
        # `floats` is the index of the last forest before this pass with only floats or only integers.
        self.floats = next(index for index in reversed(range(len(forests) - 1)) if not _halfway(forests[index]))
        self.checks = [
            promise.check(name, forests[self.floats] if promise.words_too else before, after)
            for promise in result.promises
        ]
        self.exact = any(isinstance(promise, Exact) for promise in result.promises)
        self.scored = any(isinstance(promise, Within) for promise in result.promises)
        self.change = Change(before, after)
        unlike = [f.name for f in fields(Forest) if getattr(before, f.name) is not getattr(after, f.name)]
        # If the pass changed nothing, one evaluation serves both forests.
        self.unchanged = unlike == ["provenance"]
        self.inputs = 0
        self.held_out: dict[str, Any] | None = None

    def on_rows(self, evaluated: Sequence[Evaluation], index: int, generated: bool) -> None:
        """Checks a batch of rows.
        evaluated: the batch's evaluation by each forest.
        index: index in `evaluated` of the forest after this pass.
        generated: True if the rows were generated from ranges."""
        old, new = evaluated[index - 1], evaluated[index]
        self.inputs += len(old.index)
        for check in self.checks:
            base = evaluated[self.floats] if check.promise.words_too else old
            (check.on_generated if generated else check.on_rows)(base, new)
        if not self.exact:
            self.change.add(old, new)

    def on_boundary(self, rows: NDArray[np.float64]) -> None:
        checks = [check for check in self.checks if check.every_input]
        if not checks:
            return
        base = encode_numbers(self.before, rows)
        if self.before.on_words:
            base = np.concatenate([base, random_words(self.before, len(base) + RANDOM_INPUTS)])
        index_of = {feature.column: index for index, feature in enumerate(self.before.features)}
        columns = [index_of[feature.column] for feature in self.after.features]
        for inputs in boundary_inputs(self.before, base, most=MOST_BOUNDARY_INPUTS):
            self.inputs += len(inputs)
            for check in checks:
                old = evaluate_quickly(self.before, inputs)
                check.on_inputs(old, old if self.unchanged else evaluate_quickly(self.after, inputs[:, columns]))

    def on_generated_rows(self) -> None:
        for check in self.checks:
            if check.in_ranges is not None:
                X = made_rows(self.before, check.in_ranges, (self.before, self.after)).X
                self.inputs += len(X)
                check.on_generated(*(evaluate_rows(forest, X) for forest in (self.before, self.after)))

    def on_held_out(self, before: Loss, after: Loss) -> None:
        if self.exact:
            return
        for check in self.checks:
            check.on_held_out(after)
        self.held_out = {
            "rows": after.rows,
            "measure": after.measure,
            "before": before.accuracy,
            "after": after.accuracy,
            "lost": before.accuracy - after.accuracy,
            "lost_in_all": after.lost,
            "standard_error": after.error,
        }

    def step(self) -> Step:
        conditions = [len(self.before.conditions.comparators), len(self.after.conditions.comparators)]
        report = {"distinct_conditions": conditions, **self.result.report}
        for check in self.checks:
            report |= check.verdict()
        return Step(self.name, self.result.promises, report, self.inputs, self.change.share, self.held_out)
