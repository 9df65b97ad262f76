"""Measures how well the quantized forest agrees with its model, on given rows."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from forestc.forest.evaluate import Evaluation, score_range
from forestc.forest.ir import Forest
from forestc.passes.quick_evaluation import evaluate_rows
from forestc.rows.accuracy import GENERATED, Accuracy, answers_of
from forestc.rows.batches import Batch, Rows

CLOSE = 0.01  # share of the range of scores that a regression may be off


@dataclass(frozen=True)
class Agreement:
    """How well a compiled forest agrees with its model on rows."""

    rows: int
    agreement: float  # share of equal decisions, or of scores within 1 % of range
    model: float | None  # accuracy or R squared; None without labels
    compiled: float | None  # accuracy or R squared; None without labels
    largest_error: float | None  # of a score, in the model's units; None for classification
    foreign: int = 0  # number of rows with a label unknown to the model

    @property
    def measure(self) -> str:
        return "accuracy" if self.largest_error is None else "R squared"

    @property
    def notes(self) -> tuple[str, ...]:
        if not self.foreign:
            return ()
        what = f"{self.foreign:,} of {self.rows:,} rows have a label that is no class of the model"
        return (f"{what}: they count as decided wrongly",)


def agreement(model: Forest, compiled: Forest, rows: Rows) -> Agreement:
    """Compares two forests on rows."""
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
    return evaluate_rows(forest, batch.X)


def _spread(model: Forest, rows: Rows) -> float:
    low, high = np.inf, -np.inf
    for batch in rows.batches():
        scores = _answers(model, batch).scores
        low, high = min(low, float(scores.min())), max(high, float(scores.max()))
    return score_range(low, high)


def accuracy_record(
    forest: Forest, given: Agreement, held_out: Agreement | None, shared: bool, generated: bool
) -> dict[str, Any]:
    """Returns the accuracy on the given and the held-out rows as a JSON object. shared: True if the given rows contain
    the held-out rows. generated: True if forestc drew the rows."""
    return {
        "measure": "accuracy" if forest.decides else "R squared",
        "measured_on": GENERATED if generated else "fitted_and_held_out" if shared else "fitted",
        "given": asdict(given),
        "held_out": None if held_out is None else asdict(held_out),
    }


def set_aside(forest: Forest, agreed: Agreement, held_out: Agreement) -> str:
    """Returns a note for users on the rows that were held out."""
    changed, aside = round((1 - held_out.agreement) * held_out.rows), held_out.rows
    what = "decided unlike the model" if forest.decides else "given another value, by over 1 % of the range"
    return (
        f"{aside:,} of the {agreed.rows:,} given rows were set aside for scoring. Promises about given rows hold for "
        f"the other {agreed.rows - aside:,}. Of the rows set aside {changed:,} {'is' if changed == 1 else 'are'} {what}"
    )
