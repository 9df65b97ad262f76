"""Measures how well the quantized forest agrees with its model, on given rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from forestc.errors import opt, said
from forestc.forest.evaluate import Evaluation
from forestc.forest.ir import Forest
from forestc.passes.quick_evaluation import evaluate_rows
from forestc.rows.accuracy import GENERATED, Accuracy, answers_of
from forestc.rows.batches import Batch, Rows


@dataclass(frozen=True)
class Agreement:
    """How well a compiled forest agrees with its model on rows."""

    rows: int
    agreement: float | None  # share of equal decisions; None for a regression
    model: float | None  # accuracy or R squared; None without labels
    compiled: float | None  # accuracy or R squared; None without labels
    rms_difference: float | None = None  # of the values, in the target's units; None for classification
    largest_difference: float | None = None  # likewise
    foreign: int = 0  # number of rows with a label unknown to the model

    @property
    def measure(self) -> str:
        return "R squared" if self.agreement is None else "accuracy"

    def __str__(self) -> str:
        if self.agreement is not None:
            return f"agreement {self.agreement:.4f}"
        return f"largest difference {self.largest_difference:.4g}"

    @property
    def notes(self) -> tuple[str, ...]:
        if not self.foreign:
            return ()
        what = f"{self.foreign:,} of {self.rows:,} rows have a label that is no class of the model"
        return (f"{what}: they count as decided wrongly",)

    def doubts(self, model: Forest) -> tuple[str, ...]:
        """Returns a note if the model decides clearly fewer rows rightly than a guess among its classes would."""
        guess = 1 / math.prod(max(1, len(part.classes)) for part in model.targets)
        if not model.decides or self.model is None or self.model + 1 / math.sqrt(self.rows) > guess:
            return ()
        what = f"the model decides {share(self.model)} of the rows rightly, a guess among its classes {share(guess)}"
        return (said(f"{what}: check {opt.label}, the scale of the inputs, and the order of {opt.classes}"),)


def agreement(model: Forest, compiled: Forest, rows: Rows) -> Agreement:
    """Compares two forests on rows."""
    same, squares, worst, values, labeled, foreign = 0, 0.0, 0.0, 0, False, 0
    regression = not model.decides
    accuracy = Accuracy(model.decides), Accuracy(model.decides)
    count = 0
    for batch in rows.batches():
        evaluated = _answers(model, batch), _answers(compiled, batch)
        answers = before, after = answers_of(model, evaluated[0]), answers_of(compiled, evaluated[1])
        count += len(batch.X)
        if regression:
            apart = np.abs(after.astype(np.float64) - before)
            squares, values = squares + float((apart * apart).sum()), values + apart.size
            worst = max(worst, float(apart.max(initial=0.0)))
        else:
            rows_same = before.reshape(len(batch.X), -1) == after.reshape(len(batch.X), -1)
            same += int(rows_same.all(axis=1).sum())
        if batch.truth is not None:
            labeled = True
            foreign += 0 if regression else int((batch.truth.reshape(len(batch.X), -1) < 0).any(axis=1).sum())
            for measured, answer in zip(accuracy, answers, strict=True):
                measured.add(answer, batch)
    shares = [measured.share if labeled else None for measured in accuracy]
    if regression:
        return Agreement(count, None, shares[0], shares[1], math.sqrt(squares / max(1, values)), worst)
    return Agreement(count, same / count if count else 1.0, shares[0], shares[1], foreign=foreign)


def _answers(forest: Forest, batch: Batch) -> Evaluation:
    return evaluate_rows(forest, batch.X)


def share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.2f} %"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def quality(
    measure: str, figures: Mapping[str, Any], model: str = ", model", compiled: str = ", compiled"
) -> dict[str, str]:
    """Returns the figures of an Agreement as texts, by their names: shares of rows, or R squared and differences of a
    regression in the target's units. model, compiled: suffixes of the measure's name."""
    text = share if measure == "accuracy" else _number
    texts = {measure + model: text(figures["model"]), measure + compiled: text(figures["compiled"])}
    if measure == "accuracy":
        return texts | {"agreement with the model": share(figures["agreement"])}
    names = {
        "rms_difference": "RMS difference from the model",
        "largest_difference": "largest difference from the model",
    }
    return texts | {name: _number(figures[key]) for key, name in names.items()}


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


def set_aside(agreed: Agreement, held_out: Agreement) -> str:
    """Returns a note for users on the rows that were held out."""
    aside = held_out.rows
    if held_out.agreement is None:
        what = f"the values of the rows set aside differ from the model's by at most {held_out.largest_difference:.4g}"
    else:
        changed = round((1 - held_out.agreement) * aside)
        what = f"of the rows set aside {changed:,} {'is' if changed == 1 else 'are'} decided unlike the model"
    return (
        f"{aside:,} of the {agreed.rows:,} given rows were set aside for scoring. Promises about given rows hold for "
        f"the other {agreed.rows - aside:,}; {what}"
    )
