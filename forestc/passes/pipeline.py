"""Runs passes and holds each to its promise: the forest is verified and the guarantee checked after each.

| guarantee     | how it is checked here                                                        |
|---------------|-------------------------------------------------------------------------------|
| exact         | scores and decisions before and after, on the rows and on boundary inputs     |
| exact-on-data | decisions before and after, on the rows                                       |
| approximate   | the change measured on the rows; refused past the pass's tolerance            |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.errors import CheckError
from forestc.forest.boundary import boundary_inputs
from forestc.forest.evaluate import Evaluation, encode, evaluate, evaluate_words
from forestc.forest.ir import Forest
from forestc.forest.rows import Rows
from forestc.forest.verify import verify
from forestc.passes.base import Guarantee, Pass, PassResult, print_pass

MOST_BOUNDARY_INPUTS = 50_000


@dataclass(frozen=True)
class Step:
    """One pass as it ran: its spelling, promise, figures, and what the check measured."""

    name: str
    guarantee: Guarantee
    report: dict[str, Any]
    inputs_checked: int
    change: float


def run_passes(
    forest: Forest,
    passes: Sequence[Pass],
    rows: Rows | None,
    progress: Callable[[str], None] = lambda _: None,
) -> tuple[Forest, list[Step]]:
    """The forest after all passes, and what each did. Raises CheckError for a broken promise."""
    steps = []
    for step in passes:
        name = print_pass(step)
        progress(name)
        before = forest
        result = step.run(before, rows)
        verify(result.forest)
        checked, change = _check(name, before, result, rows)
        told = before.provenance
        forest = replace(result.forest, provenance=replace(told, passes=(*told.passes, name)))
        steps.append(Step(name, result.guarantee, result.report, checked, change))
    return forest, steps


def _check(name: str, before: Forest, result: PassResult, rows: Rows | None) -> tuple[int, float]:
    """Inputs compared and the change found: share of decisions, or error over the range of scores."""
    after, exact = result.forest, result.guarantee == "exact"
    inputs = changed = 0
    error, low, high = 0.0, np.inf, -np.inf
    for old, new in _on_rows(before, after, rows):
        inputs += len(old.index)
        if exact:
            _compare_exactly(name, old, new)
        changed += int((old.index != new.index).sum())
        if not before.classes:
            old_scores = old.scores * (before.scale or 1.0)
            error = max(error, float(np.abs(new.scores * (after.scale or 1.0) - old_scores).max(initial=0.0)))
            low, high = min(low, float(old_scores.min())), max(high, float(old_scores.max()))
    if exact:
        for old, new in _on_boundary(before, after, rows):
            inputs += len(old.index)
            _compare_exactly(name, old, new)
        return inputs, 0.0
    if not inputs:
        return 0, 0.0
    change = changed / inputs if before.classes else error / ((high - low) or 1.0)
    what = "of the decisions" if before.classes else "of the range of scores, at worst"
    if result.guarantee == "exact-on-data" and changed:
        raise CheckError(
            f"{name} promised to change no decision and changed {changed} of {inputs}", do="report this bug"
        )
    if result.guarantee == "approximate" and change > result.tolerance:
        raise CheckError(
            f"{name} changes {change:.2%} {what}; the tolerance is {result.tolerance:.2%}",
            do="give it more bits or raise its tolerance",
        )
    return inputs, change


def _compare_exactly(name: str, old: Evaluation, new: Evaluation) -> None:
    same = (old.scores == new.scores).all(axis=1) & (old.index == new.index)
    if not same.all():
        row = int(np.flatnonzero(~same)[0])
        raise CheckError(
            f"{name} promised to change nothing and changed a score",
            where=f"from {old.scores[row].tolist()} to {new.scores[row].tolist()}",
            do="report this bug",
        )


def _on_rows(before: Forest, after: Forest, rows: Rows | None) -> Iterator[tuple[Evaluation, Evaluation]]:
    for batch in rows.batches() if rows is not None else ():
        yield evaluate(before, batch.X), evaluate(after, batch.X)


def _on_boundary(before: Forest, after: Forest, rows: Rows | None) -> Iterator[tuple[Evaluation, Evaluation]]:
    base = encode(before, _some_rows(before, rows))
    place = {feature.column: index for index, feature in enumerate(before.features)}
    kept = [place[feature.column] for feature in after.features]
    for inputs in boundary_inputs(before, base, most=MOST_BOUNDARY_INPUTS):
        yield evaluate_words(before, inputs), evaluate_words(after, inputs[:, kept])


def _some_rows(forest: Forest, rows: Rows | None) -> NDArray[np.float64]:
    for batch in rows.batches() if rows is not None else ():
        return batch.X[:1024]
    return np.zeros((1, forest.columns))
