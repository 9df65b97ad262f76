"""Runs passes and holds each to its promise: the forest is verified and the guarantee checked after each.

| guarantee     | how it is checked here                                                        |
|---------------|-------------------------------------------------------------------------------|
| exact         | scores and decisions before and after, on the rows and on boundary inputs     |
| exact-on-data | decisions before and after, on the rows                                       |
| approximate   | the change measured on the rows; refused past the pass's tolerance            |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.errors import CheckError
from forestc.forest.boundary import boundary_inputs
from forestc.forest.evaluate import Evaluation, encode, evaluate, evaluate_words, score_range
from forestc.forest.ir import Forest
from forestc.forest.rows import Rows
from forestc.forest.verify import verify
from forestc.passes.base import Guarantee, Pass, PassResult, print_pass

MOST_BOUNDARY_INPUTS = 20_000


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
    names = [print_pass(step) for step in passes]
    forests, results = [forest], []
    for name, step in zip(names, passes, strict=True):
        progress(name)
        result = step.run(forests[-1], rows)
        told = forests[-1].provenance
        after = replace(result.forest, provenance=replace(told, passes=(*told.passes, name)))
        verify(after)
        forests.append(after)
        results.append(result)
    progress("checking what the passes promised")
    watches = [_Watch(n, *pair, r) for n, pair, r in zip(names, pairwise(forests), results, strict=True)]
    for batch in rows.batches() if rows is not None else ():
        # one evaluation of each forest serves the pass before it and the pass after it
        for watch, pair in zip(watches, pairwise([evaluate(f, batch.X) for f in forests]), strict=True):
            watch.on_rows(*pair)
    for watch in watches:
        watch.on_boundary(rows)
    steps = [
        Step(watch.name, watch.result.guarantee, watch.result.report, watch.inputs, watch.verdict())
        for watch in watches
    ]
    return forests[-1], steps


class _Watch:
    """Holds one pass to its promise: counts and compares, then gives the change it found."""

    def __init__(self, name: str, before: Forest, after: Forest, result: PassResult) -> None:
        self.name, self.before, self.after, self.result = name, before, after, result
        self.exact = result.guarantee == "exact"
        self.inputs = self.changed = 0
        self.error, self.low, self.high = 0.0, np.inf, -np.inf

    def on_rows(self, old: Evaluation, new: Evaluation) -> None:
        self.inputs += len(old.index)
        if self.exact:
            _compare_exactly(self.name, old, new)
        self.changed += int(_different(old, new).sum())
        if not self.before.decides:
            old_scores = old.scores * (self.before.scale or 1.0)
            error = np.abs(new.scores * (self.after.scale or 1.0) - old_scores)
            self.error = max(self.error, float(error.max(initial=0.0)))
            self.low, self.high = min(self.low, float(old_scores.min())), max(self.high, float(old_scores.max()))

    def on_boundary(self, rows: Rows | None) -> None:
        if not self.exact:
            return
        base = encode(self.before, _some_rows(self.before, rows))
        place = {feature.column: index for index, feature in enumerate(self.before.features)}
        kept = [place[feature.column] for feature in self.after.features]
        for inputs in boundary_inputs(self.before, base, most=MOST_BOUNDARY_INPUTS):
            self.inputs += len(inputs)
            _compare_exactly(
                self.name, evaluate_words(self.before, inputs), evaluate_words(self.after, inputs[:, kept])
            )

    def verdict(self) -> float:
        """The change: share of decisions, or error over the range of scores. Raises CheckError if too large."""
        if self.exact or not self.inputs:
            return 0.0
        decisions = self.before.decides
        change = self.changed / self.inputs if decisions else self.error / score_range(self.low, self.high)
        if self.result.guarantee == "exact-on-data" and self.changed:
            raise CheckError(
                f"{self.name} promised to change no decision and changed {self.changed} of {self.inputs}",
                do="report this bug",
            )
        if self.result.guarantee == "approximate" and change > self.result.tolerance:
            what = "of the decisions" if decisions else "of the range of scores, at worst"
            raise CheckError(
                f"{self.name} changes {change:.2%} {what}; the tolerance is {self.result.tolerance:.2%}",
                do="give it more bits or raise its tolerance",
            )
        return change


def _different(old: Evaluation, new: Evaluation) -> NDArray[np.bool_]:
    """Rows of which some target is decided otherwise."""
    rows = len(old.index)
    return np.asarray((old.index.reshape(rows, -1) != new.index.reshape(rows, -1)).any(axis=1))


def _compare_exactly(name: str, old: Evaluation, new: Evaluation) -> None:
    same = (old.scores == new.scores).all(axis=1) & ~_different(old, new)
    if not same.all():
        row = int(np.flatnonzero(~same)[0])
        raise CheckError(
            f"{name} promised to change nothing and changed a score",
            where=f"from {old.scores[row].tolist()} to {new.scores[row].tolist()}",
            do="report this bug",
        )


def _some_rows(forest: Forest, rows: Rows | None) -> NDArray[np.float64]:
    for batch in rows.batches() if rows is not None else ():
        return batch.X[:1024]
    return np.zeros((1, forest.columns))
