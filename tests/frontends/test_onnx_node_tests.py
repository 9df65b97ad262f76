"""ONNX's own published backend node tests of the tree operators: each passes or is refused by name.

    python tests/frontends/test_onnx_node_tests.py      # prints the table

The cases come from the installed onnx package, which makes them itself (`onnx.backend.test.case.node`).
"""

from __future__ import annotations

import importlib
import sys
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))  # for the script: the helpers

from onnx_models import answers

from forestc.errors import ModelError
from forestc.frontends import load
from forestc.rows.encode import evaluate

OPERATORS = ("TreeEnsembleClassifier", "TreeEnsembleRegressor", "TreeEnsemble")


@cache
def cases(everywhere: bool = False) -> dict[str, Any]:
    """The node tests with a tree operator, by name. They are in one module; to look for them everywhere the package
    makes all of its tests, which takes seconds."""
    from onnx.backend.test.case import node as package

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        importlib.import_module(f"{package.__name__}.ai_onnx_ml.tree_ensemble")  # which adds its own to the package's
        found = package.collect_testcases(None) if everywhere else package._NodeTestCases
    return {case.name: case for case in found if any(node.op_type in OPERATORS for node in case.model.graph.node)}


def outcome(case: Any) -> tuple[str, str]:
    """pass, refused or FAILED, and the details."""
    try:
        forest = load(case.model)
    except ModelError as error:
        return "refused", str(error)
    worst, rows = 0.0, 0
    for inputs, outputs in case.data_sets:
        found = evaluate(forest, inputs[0])
        shown = [found.decision, found.values] if len(outputs) == 2 else [found.values]
        for mine, theirs in zip(shown, outputs, strict=True):
            if theirs.dtype.kind != "f":
                if not np.array_equal(mine, theirs):
                    return "FAILED", f"classes {mine.tolist()}, wanted {theirs.tolist()}"
                continue
            worst = max(worst, float(np.max(np.abs(mine.reshape(theirs.shape) - theirs), initial=0)))
        rows += len(inputs[0])
    return ("pass" if worst == 0 else "FAILED"), f"{rows} rows, largest difference {worst:g}"


def table() -> str:
    """All cases with their outcome, one a line."""
    lines = []
    for name, case in sorted(cases(everywhere=True).items()):
        result, details = outcome(case)
        lines.append(f"{name:52} {result:8} {details}")
    return "\n".join(lines)


PUBLISHED = ("test_ai_onnx_ml_tree_ensemble_set_membership", "test_ai_onnx_ml_tree_ensemble_single_tree")


@pytest.mark.parametrize("everywhere", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_all_published_ones_are_here(everywhere):
    assert sorted(cases(everywhere)) == sorted(PUBLISHED)


@pytest.mark.parametrize("name", PUBLISHED)
def test_each_passes(name):  # or is refused by name: none has had to be so far
    result, details = outcome(cases()[name])
    assert result == "pass", details


@pytest.mark.parametrize("name", PUBLISHED)
def test_onnxruntime_says_the_same(name):
    case = cases()[name]
    rows = case.data_sets[0][0][0]
    assert np.array_equal(evaluate(load(case.model), rows).values, answers(case.model, rows)["Y"])


if __name__ == "__main__":
    print(table())
