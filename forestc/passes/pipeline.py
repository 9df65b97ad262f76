"""Runs passes and holds each to its promise: the forest is verified and the guarantee checked after each.

| guarantee     | how it is checked here                                                        |
|---------------|-------------------------------------------------------------------------------|
| exact         | scores and decisions before and after, on the rows and on boundary inputs     |
| exact-on-data | decisions before and after, on the rows; or leaf by leaf, where paths are kept |
| approximate   | the change measured on the rows, or accuracy on rows held out; refused past the |
|               | pass's tolerance                                                              |
| scores within | with any of these: values after the link before and after, on the rows        |

Where ranges stand in place of rows, rows are made in them: on the model's thresholds, beside them, and random ones.

What a pass that may change decisions does to accuracy on held-out rows is measured too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.errors import CheckError, OptionError
from forestc.forest.accuracy import Accuracy, LargestError, answers_of, truth_of_batch
from forestc.forest.boundary import boundary_inputs
from forestc.forest.evaluate import Evaluation, encode, score_range
from forestc.forest.ir import Forest
from forestc.forest.made_rows import made_rows
from forestc.forest.ranges import Ranges
from forestc.forest.rows import Judged, Rows
from forestc.forest.verify import verify
from forestc.passes.base import Guarantee, Pass, PassResult, Refusing, print_pass
from forestc.passes.exact_leaves import bound_text
from forestc.passes.quick_evaluation import evaluate_quickly

MOST_BOUNDARY_INPUTS = 20_000


@dataclass(frozen=True)
class Step:
    """One pass as it ran: its spelling, promise, figures, and what the check measured.

    keeps: what of the rows an exact-on-data pass leaves alone, in words. change: share of decisions (of a regression
    error over the range of scores) that changed on the rows. held_out: {rows, measure, before, after, lost} on the
    rows held out, where there are some; measure is accuracy, R squared, or agreement with the model where there are no
    labels. scores: the largest error of values after the link that was allowed on the rows, and None where that was
    left open. bound: the largest error of a score for every input, where ranges stood in place of rows.
    """

    name: str
    guarantee: Guarantee
    report: dict[str, Any]
    inputs_checked: int
    change: float
    keeps: str = ""
    held_out: dict[str, Any] | None = None
    scores: float | None = None
    bound: float | None = None

    @property
    def promise(self) -> str:
        """The guarantee, where it is not that of decisions of what, and what is promised of scores."""
        told = f"{self.guarantee} ({self.keeps})" if self.keeps not in ("", "decisions") else self.guarantee
        if self.bound is not None and "paths" in self.keeps:
            return f"{told}, scores within {bound_text(self.bound)}"
        return told if self.scores is None else f"{told}, scores within {self.scores:g} on the rows"


def run_passes(
    forest: Forest,
    passes: Sequence[Pass],
    rows: Rows | None,
    progress: Callable[[str], None] = lambda _: None,
) -> tuple[Forest, list[Step]]:
    """The forest after all passes, and what each did. Raises CheckError for a broken promise."""
    for step in passes:
        if isinstance(step, Refusing):
            step.refuse(forest, rows)
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
    ranges = rows if isinstance(rows, Ranges) else None
    if ranges is not None:
        rows = made_rows(forest, ranges, forests)
    for batch in rows.batches() if rows is not None else ():
        # one evaluation of each forest serves the pass before it and the pass after it
        said = [evaluate_quickly(forest, encode(forest, batch.X)) for forest in forests]
        for watch, pair in zip(watches, pairwise(said), strict=True):
            watch.on_rows(*pair)
    for watch in watches:
        watch.on_boundary(rows)
    if isinstance(rows, Judged):
        progress("measuring accuracy on held-out rows")
        accuracy, measure = _held_out(forests, rows.held_out)
        for index, watch in enumerate(watches):
            watch.on_held_out(accuracy[index], accuracy[index + 1], measure)
    return forests[-1], [watch.step(ranges) for watch in watches]


def _held_out(forests: Sequence[Forest], rows: Rows) -> tuple[list[Accuracy], str]:
    """The accuracy of each forest, and what to call it; where there are no labels the first one's answers are the
    truth."""
    accuracy = [Accuracy(forest.decides) for forest in forests]
    labelled = False
    for batch in rows.batches():
        labelled |= batch.truth is not None
        answers = [answers_of(forest, evaluate_quickly(forest, encode(forest, batch.X))) for forest in forests]
        truth = truth_of_batch(batch, answers[0])
        for measured, said in zip(accuracy, answers, strict=True):
            measured.add(said, truth)
    if not accuracy[0].rows:
        raise OptionError("no rows are held out", do="give more rows, or --held-out FILE")
    if accuracy[0].share is None:
        raise OptionError("the held-out rows all have one label", do="hold out others")
    if not labelled:
        return accuracy, "agreement with the model"
    return accuracy, "accuracy" if forests[0].decides else "R squared"


class _Watch:
    """Holds one pass to its promise: counts and compares, then gives the change it found."""

    def __init__(self, name: str, before: Forest, after: Forest, result: PassResult) -> None:
        self.name, self.before, self.after, self.result = name, before, after, result
        self.exact = result.guarantee == "exact" and result.bound is None
        self.paths = result.bound is not None or (result.guarantee == "exact-on-data" and result.keeps == "paths")
        self.inputs = self.changed = 0
        self.error, self.low, self.high = 0.0, np.inf, -np.inf
        self.held_out: dict[str, Any] | None = None
        self.loss = 0.0
        self.values = LargestError(before, after)

    def on_rows(self, old: Evaluation, new: Evaluation) -> None:
        if self.paths:
            self._compare_paths(old, new)
        self.inputs += len(old.index)
        if self.exact:
            _compare_exactly(self.name, old, new)
        self.changed += int(_different(old, new).sum())
        if self.result.scores is not None:
            self.values.add(old.values, new.values)
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
                self.name, evaluate_quickly(self.before, inputs), evaluate_quickly(self.after, inputs[:, kept])
            )

    def _compare_paths(self, old: Evaluation, new: Evaluation) -> None:
        """Leaf by leaf: of all rows in all trees, or of the rows each tree was shown."""
        differs = old.leaves != new.leaves
        if self.result.drawn is not None:
            differs &= self.result.drawn[:, self.inputs : self.inputs + len(differs)].T > 0
        if differs.any():
            row, tree = (int(place[0]) for place in np.nonzero(differs))
            raise CheckError(
                f"{self.name} promised to change no path and changed {int(differs.sum())}",
                where=f"row {self.inputs + row}, tree {tree}: from leaf {old.leaves[row, tree]} to "
                f"{new.leaves[row, tree]}",
                do="report this bug",
            )

    def on_held_out(self, before: Accuracy, after: Accuracy, measure: str) -> None:
        if self.exact:
            return
        old, new = before.share, after.share
        if old is not None and new is not None:
            self.loss = old - new
        self.held_out = {"rows": before.rows, "measure": measure, "before": old, "after": new, "lost": self.loss}

    def step(self, ranges: Ranges | None = None) -> Step:
        """Raises CheckError for a change that was not promised. ranges: what stood in place of rows."""
        keeps = ""
        if self.result.bound is not None and ranges is not None:
            keeps = ", ".join(["paths"] * (self.result.keeps == "paths") + ["in the ranges"] * bool(ranges.columns))
        if self.result.guarantee == "exact-on-data":
            keeps = self.result.keeps if self.result.drawn is None else "paths of each tree's own rows"
        conditions = [len(self.before.conditions.comparators), len(self.after.conditions.comparators)]
        report = {"distinct_conditions": conditions, **self.result.report}
        change = self.verdict()
        if self.result.scores is not None:
            report["scores_error"] = self.values.share
            if self.values.share > self.result.scores:
                raise CheckError(
                    f"{self.name} changes scores by {self.values.share:.3g} at worst; allowed are "
                    f"{self.result.scores:g}",
                    do="allow more, or give it more leaf_bits, or input=ordered, which keeps all paths",
                )
        bound = self.result.bound if self.result.bound is not None and np.isfinite(self.result.bound) else None
        told = (self.name, self.result.guarantee, report, self.inputs, change, keeps, self.held_out)
        return Step(*told, self.result.scores, bound)

    def verdict(self) -> float:
        """The change on the rows: share of decisions, or error over the range of scores. Raises CheckError where it, or
        what was lost on the rows held out, is too large."""
        if self.exact or not self.inputs:
            return 0.0
        decisions = self.before.decides
        change = self.changed / self.inputs if decisions else self.error / score_range(self.low, self.high)
        bound = self.result.bound
        if bound is not None and (self.error > bound or (self.changed and self.result.keeps == "decisions")):
            raise CheckError(
                f"{self.name} promised scores within {bound:.3g} for every input and changed one by {self.error:.3g}, "
                f"and {self.changed} decisions",
                do="report this bug",
            )
        if self.result.guarantee == "approximate" and self.result.measure == "accuracy":
            if self.held_out is None or self.loss > self.result.tolerance:
                told = self.held_out or {"measure": "accuracy", "rows": 0}
                raise CheckError(
                    f"{self.name} loses {self.loss:.4f} of the {told['measure']} on {told['rows']} rows held out; the "
                    f"tolerance is {self.result.tolerance:.4f}",
                    do="allow less change, raise its tolerance, or hold out rows that the model was not trained on",
                )
            return change
        if self.result.guarantee == "exact-on-data" and self.changed and self.result.drawn is None:
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
