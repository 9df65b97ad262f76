"""Implements `activity`: how often comparators are 1 and change, and how likely leaves and labels are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from forestc.commands.source import design_of, input_model_of
from forestc.errors import OptionError, opt
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
    """Computes how often comparators of a compiled design are 1 and change, and how likely its leaves and labels are.

    Returns
    -------
    dict
        The figures of `forestc activity --json`. `comparators` begins with the comparator of most changes. `labels`
        holds probabilities and standard errors of classes; it is empty for a regression or several targets. The
        standard errors leave out the input model's own error. `trees` holds for each tree the number of leaves, of
        leaves of probability 0 (`never`), the smallest other probability (`rarest`) and the mean number of comparisons
        of a row.

    Raises
    ------
    OptionError
        If both or neither of `inputs` and `rows` are given.
    RowsError
        If the input model or the rows have other columns.
    ForestcError
        If the folder can't be read.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> import forestc
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    >>> compiled = forestc.compile(model, X, "iris", label=y)
    >>> figures = forestc.activity("iris", rows=X)
    >>> [round(label["probability"], 2) for label in figures["labels"]]
    [0.33, 0.32, 0.35]
    """
    inputs, rows = options.inputs, options.rows
    if inputs is None and rows is None:
        raise OptionError(
            "no rows are given to count on", where=opt.rows, do=f"give {opt.inputs:FILE} or {opt.rows:FILE}"
        )
    if inputs is not None and rows is not None:
        raise OptionError(
            "rows and inputs are both given",
            where=f"{opt.rows}, {opt.inputs}",
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
    """Returns the threshold in raw units; None for sets and infinite values."""
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
