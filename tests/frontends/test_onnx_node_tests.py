"""Tests forestc on ONNX's own published node tests of the tree operators, from the installed package."""

from __future__ import annotations

import importlib
import warnings

import numpy as np
import pytest
from onnx_models import answers

from forestc.frontends import load
from forestc.rows.encode import evaluate

PUBLISHED = ("test_ai_onnx_ml_tree_ensemble_set_membership", "test_ai_onnx_ml_tree_ensemble_single_tree")


@pytest.fixture(scope="module")
def published():
    """Returns the node tests with a tree operator, by name. They are in one module, which adds them to the
    package's."""
    from onnx.backend.test.case import node as package

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        importlib.import_module(f"{package.__name__}.ai_onnx_ml.tree_ensemble")
    cases = package._NodeTestCases
    return {case.name: case for case in cases if any("TreeEnsemble" in node.op_type for node in case.model.graph.node)}


def test_each_says_what_is_published_and_what_onnxruntime_says(published):
    assert sorted(published) == sorted(PUBLISHED)
    for case in published.values():
        for (rows,), (expected,) in case.data_sets:
            found = evaluate(load(case.model), rows).values
            assert np.array_equal(found, expected) and np.array_equal(found, answers(case.model, rows)["Y"])
