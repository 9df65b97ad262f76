"""Implements `activity`: how often comparators are 1 and change, and how likely leaves and labels are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from forestc.commands.source import design_of, input_model_of
from forestc.errors import OptionError
from forestc.forest.conditions import Below, Test
from forestc.forest.ir import LEAF, Forest
from forestc.forest.numbers import NumberType, word_value
from forestc.inputs.activity import ForestActivity, counted_activity
from forestc.inputs.activity import activity as activity_under
from forestc.options.commands import ActivityOptions
from forestc.options.fields import takes
from forestc.passes.extract_rules.rules_text import literal_text
from forestc.report.tables import Shown, activity_tables
from forestc.rows.files import rows_from


@takes(ActivityOptions)
def activity(options: ActivityOptions) -> Shown:
    """How often each comparator of a compiled design is 1 and changes, and how likely its leaves and labels are.

    design: a Design or its folder. inputs: an input model, or its file: probabilities are exact where the thresholds
    are cuts of the model, and else counted on `count` rows drawn with `seed`; rows are independent, so that a
    comparator toggles at 2 p (1 - p). rows, label: instead, rows as for `compile`, on which all is counted, toggles in
    their order.

    Returns the figures of `forestc activity --json`. `comparators`: those that toggle most first, one for each
    direction of missing values. `labels`: empty for a regression or several targets; standard errors are those of
    independent rows of this number, and leave out how far an input model is from the rows it was learnt on. `trees`:
    the leaves, how many have probability 0 (`never`), the probability of the rarest other one, and the comparisons of
    a row, which are the inner nodes that it is expected to visit. Raises OptionError unless one of inputs and rows is
    given, RowsError for an input model of other columns, ForestcError.
    """
    inputs, rows = options.inputs, options.rows
    if inputs is None and rows is None:
        raise OptionError("no rows are given to count on", where="--rows", do="give --inputs FILE or --rows FILE")
    if inputs is not None and rows is not None:
        raise OptionError(
            "rows and inputs are both given",
            where="--rows, --inputs",
            do="remove inputs to count on the rows, or rows to ask the model",
        )
    design = design_of(options.design)
    options.progress("asking the input model" if rows is None else "counting on the rows")
    if inputs is None:
        activity = counted_activity(design.forest, rows_from(rows, design.model, options.label))
    else:
        inputs = input_model_of(inputs)
        activity = activity_under(inputs, design.model, design.forest, options.count, options.seed)
    comparators, trees = _comparators(design.forest, activity), _trees(design.forest, activity)
    figures = {
        "source": "rows" if inputs is None else "inputs",
        "rows": activity.count,
        "toggles_per_row": float(activity.toggles.sum()),
        "comparisons_per_row": sum(tree["comparisons"] for tree in trees),
        "labels": [
            {"label": label, "probability": p, "standard_error": error}
            for label, p, error in zip(
                design.forest.classes, activity.labels.tolist(), activity.label_errors.tolist(), strict=False
            )
        ],
        "comparators": comparators,
        "trees": trees,
        "notes": [] if inputs is None else _notes(comparators, bool(len(activity.labels))),
    }
    return Shown(figures, partial(activity_tables, str(design.manifest["name"])))


def _comparators(forest: Forest, activity: ForestActivity) -> list[dict[str, Any]]:
    figures = []
    for index, condition in enumerate(forest.conditions):
        feature, test = forest.features[condition.feature], condition.test
        figures.append(
            {
                "comparator": literal_text(forest, condition),
                "feature": feature.name,
                "threshold": _raw(test, feature.number),
                "probability": float(activity.conditions[index]),
                "exact": bool(activity.exact_conditions[index]),
                "toggle_rate": float(activity.toggles[index]),
            }
        )
    return sorted(figures, key=lambda comparator: -comparator["toggle_rate"])


def _trees(forest: Forest, activity: ForestActivity) -> list[dict[str, Any]]:
    figures, comparisons = [], activity.comparisons(forest).tolist()
    for index, tree in enumerate(forest.trees):
        leaf = tree.left == LEAF
        shares = activity.leaves[index][leaf]
        figures.append(
            {
                "tree": index,
                "leaves": len(shares),
                "exact_leaves": int(activity.exact_leaves[index][leaf].sum()),
                "never": int((shares <= 0).sum()),
                "rarest": float(shares[shares > 0].min()),
                "comparisons": comparisons[index],
            }
        )
    return figures


def _raw(test: Test, number: NumberType) -> float | None:
    """Returns the threshold in units of raw rows; None for a set, or for a threshold above every number."""
    value = word_value(int(test.threshold), number) if isinstance(test, Below) else np.inf
    return value if np.isfinite(value) else None


def _notes(comparators: Sequence[Mapping[str, Any]], labels: bool) -> list[str]:
    notes = []
    counted = sum(comparator["threshold"] is not None and not comparator["exact"] for comparator in comparators)
    if counted:
        notes.append(
            f"the input model does not know the thresholds of {counted:,} of {len(comparators):,} comparators, which "
            "are counted: learn it for the folder, forestc model-inputs DIR"
        )
    if labels:
        notes.append(
            "standard errors of labels are those of drawing rows, and leave out the input model's own error: labels of "
            "real rows may differ by more"
        )
    return notes
