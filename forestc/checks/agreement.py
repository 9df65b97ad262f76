"""How far the quantised forest agrees with the model it came from, on given rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forestc.forest.evaluate import evaluate, score_range
from forestc.forest.ir import Forest
from forestc.forest.rows import Rows

CLOSE = 0.01


@dataclass(frozen=True)
class Agreement:
    """rows: compared. agreement: share of rows with the same decision; for regression, within 1 % of the
    range of the model's scores, all of them. model, compiled: accuracy, or for regression R squared; None without
    labels, and for several outputs, which one label does not judge.
    largest_error: of the scores, in the model's units; None for classification."""

    rows: int
    agreement: float
    model: float | None
    compiled: float | None
    largest_error: float | None


def agreement(model: Forest, compiled: Forest, rows: Rows) -> Agreement:
    """One pass over the rows; regression makes a second for the range."""
    count = same = right_before = right_after = 0
    labelled = False
    regression = not model.decides
    close = CLOSE * _spread(model, rows) if regression else 0.0
    worst = 0.0
    truth_sum = truth_square = error_before = error_after = 0.0
    for batch in rows.batches():
        before, after = evaluate(model, batch.X), evaluate(compiled, batch.X)
        count += len(before.index)
        if regression:
            error = np.abs(after.scores * float(compiled.scale or 1.0) - before.scores).max(axis=1)
            same += int((error <= close).sum())
            worst = max(worst, float(error.max(initial=0.0)))
        else:
            rows_same = before.index.reshape(len(batch.X), -1) == after.index.reshape(len(batch.X), -1)
            same += int(rows_same.all(axis=1).sum())
        if batch.truth is None or len(model.targets) > 1 or (regression and model.n_outputs > 1):
            continue
        labelled = True
        if regression:
            truth = batch.truth.astype(np.float64)
            truth_sum += float(truth.sum())
            truth_square += float((truth * truth).sum())
            error_before += float(((before.values[:, 0] - truth) ** 2).sum())
            error_after += float(((after.values[:, 0] - truth) ** 2).sum())
        else:
            right_before += int((before.index == batch.truth).sum())
            right_after += int((after.index == batch.truth).sum())
    if not count:
        return Agreement(0, 1.0, None, None, None)
    if regression:
        total = truth_square - truth_sum**2 / count
        squared = [1 - error / total if labelled and total > 0 else None for error in (error_before, error_after)]
        return Agreement(count, same / count, squared[0], squared[1], worst)
    model_right, compiled_right = (right_before / count, right_after / count) if labelled else (None, None)
    return Agreement(count, same / count, model_right, compiled_right, None)


def _spread(model: Forest, rows: Rows) -> float:
    low, high = np.inf, -np.inf
    for batch in rows.batches():
        scores = evaluate(model, batch.X).scores
        low, high = min(low, float(scores.min())), max(high, float(scores.max()))
    return score_range(low, high)
