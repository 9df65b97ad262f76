"""How far the quantized forest agrees with the model it came from, on given rows."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from forestc.forest.evaluate import Evaluation, score_range
from forestc.forest.ir import Forest
from forestc.passes.quick_evaluation import evaluate_quickly
from forestc.rows.accuracy import GENERATED, Accuracy, answers_of
from forestc.rows.batches import Batch, Rows
from forestc.rows.encode import encode

CLOSE = 0.01  # error of a score, as a share of the range of scores, up to which a regression agrees


@dataclass(frozen=True)
class Agreement:
    """rows: number of rows compared. agreement: share of rows with the same decision; for regression, share of rows
    whose scores are all within 1 % of the range of the model's scores. model, compiled: accuracy, or for regression R
    squared; None without labels. largest_error: of a score, in the model's units; None for classification. foreign:
    rows with a label that is no class of the model, which count as decided wrongly."""

    rows: int
    agreement: float
    model: float | None
    compiled: float | None
    largest_error: float | None
    foreign: int = 0

    @property
    def measure(self) -> str:
        """What `model` and `compiled` are."""
        return "accuracy" if self.largest_error is None else "R squared"

    @property
    def notes(self) -> tuple[str, ...]:
        """What users should know about the labels."""
        if not self.foreign:
            return ()
        what = f"{self.foreign:,} of {self.rows:,} rows have a label that is no class of the model"
        return (f"{what}: they count as decided wrongly",)


def agreement(model: Forest, compiled: Forest, rows: Rows) -> Agreement:
    """Compares two forests on rows. Goes through them once, for regression twice."""
    same, worst, labeled, foreign = 0, 0.0, False, 0
    regression = not model.decides
    close = CLOSE * _spread(model, rows) if regression else 0.0
    accuracy = Accuracy(model.decides), Accuracy(model.decides)
    count = 0
    for batch in rows.batches():
        answers = before, after = _answers(model, batch), _answers(compiled, batch)
        count += len(before.index)
        if regression:
            error = np.abs(after.scores * float(compiled.scale or 1.0) - before.scores).max(axis=1)
            same += int((error <= close).sum())
            worst = max(worst, float(error.max(initial=0.0)))
        else:
            rows_same = before.index.reshape(len(batch.X), -1) == after.index.reshape(len(batch.X), -1)
            same += int(rows_same.all(axis=1).sum())
        if batch.truth is not None:
            labeled = True
            foreign += 0 if regression else int((batch.truth.reshape(len(batch.X), -1) < 0).any(axis=1).sum())
            for measured, forest, answer in zip(accuracy, (model, compiled), answers, strict=True):
                measured.add(answers_of(forest, answer), batch.truth)
    if not count:
        return Agreement(0, 1.0, None, None, None)
    shares = [measured.share if labeled else None for measured in accuracy]
    return Agreement(count, same / count, shares[0], shares[1], worst if regression else None, foreign)


def _answers(forest: Forest, batch: Batch) -> Evaluation:
    return evaluate_quickly(forest, encode(forest, batch.X))


def _spread(model: Forest, rows: Rows) -> float:
    low, high = np.inf, -np.inf
    for batch in rows.batches():
        scores = _answers(model, batch).scores
        low, high = min(low, float(scores.min())), max(high, float(scores.max()))
    return score_range(low, high)


def accuracy_record(
    forest: Forest, given: Agreement, held_out: Agreement | None, shared: bool, generated: bool
) -> dict[str, Any]:
    """Accuracies, and the rows they were measured on. shared: the held-out rows are a share of the given rows. made:
    the rows were generated, as none were given."""
    return {
        "measure": "accuracy" if forest.decides else "R squared",
        "measured_on": GENERATED if generated else "fitted_and_held_out" if shared else "fitted",
        "given": asdict(given),
        "held_out": None if held_out is None else asdict(held_out),
    }


def set_aside(forest: Forest, agreed: Agreement, held_out: Agreement) -> str:
    """A note for users: given rows that were set aside to judge, and what promises about given rows miss of them.
    agreed, held_out: on all given rows, and on those set aside."""
    changed, aside = round((1 - held_out.agreement) * held_out.rows), held_out.rows
    what = "decided unlike the model" if forest.decides else "given another value, by over 1 % of the range"
    return (
        f"{aside:,} of the {agreed.rows:,} given rows were set aside to judge. What is kept of the given rows is kept "
        f"of the other {agreed.rows - aside:,}; of those set aside {changed:,} {'is' if changed == 1 else 'are'} {what}"
    )
