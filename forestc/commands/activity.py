"""Implements `activity`: how often comparators are 1 and change, and how likely leaves and labels are."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from forestc.checks.activity import ForestActivity, activity_on
from forestc.fields.options import takes
from forestc.forest.conditions import Below, Test
from forestc.forest.ir import LEAF, Forest
from forestc.forest.numbers import NumberType, word_value
from forestc.manifest.design import design_of
from forestc.options.commands import ActivityOptions
from forestc.passes.extract_rules.rules_text import literal_text
from forestc.report.tables import Shown, activity_tables
from forestc.rows.given import rows_from


@takes(ActivityOptions)
def activity(options: ActivityOptions) -> Shown:
    """Counts how often comparators of a compiled design are 1 and change, and how likely its leaves and labels are.

    Returns
    -------
    dict
        The figures of `forestc activity --json`. `comparators` begins with the comparator of most changes. `labels`
        holds probabilities and standard errors of classes; it is empty for a regression or several targets. `trees`
        holds for each tree the number of leaves, of leaves of probability 0 (`never`), the smallest other probability
        (`rarest`) and the mean number of comparisons of a row.

    Raises
    ------
    RowsError
        If the rows have other columns.
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
    >>> figures = forestc.activity("iris", X)
    >>> [round(label["probability"], 2) for label in figures["labels"]]
    [0.33, 0.32, 0.35]
    """
    design = design_of(options.design)
    options.progress("counting on the rows")
    activity = activity_on(design.forest, rows_from(options.rows, design.model, options.label))
    comparators, trees = _comparators(design.forest, activity), _trees(design.forest, activity)
    figures = {
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
    }
    return Shown(figures, partial(activity_tables, str(design.manifest["name"])))


def _comparators(forest: Forest, activity: ForestActivity) -> list[dict[str, Any]]:
    figures = [
        {
            "comparator": literal_text(forest, condition),
            "feature": forest.features[condition.feature].name,
            "threshold": _raw(condition.test, forest.features[condition.feature].number),
            "probability": float(activity.conditions[index]),
            "toggle_rate": float(activity.toggles[index]),
        }
        for index, condition in enumerate(forest.conditions)
    ]
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
