"""What onnxruntime makes of neighboring BRANCH_EQ nodes, and columns past all bounds."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_models import agree, change, regressor

from forestc import load
from forestc.errors import ModelError

ROWS = np.array([[0, 0, k] for k in range(6)], dtype=np.float32)


def chain(first, second, last, targets=2):
    return regressor([(2, "BRANCH_EQ", 3.0, first, (2, "BRANCH_EQ", 4.0, second, last))], targets)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([(0, 0.1), (1, 0.3)], [(0, 0.1), (1, 0.7)]),
        ([(0, 0.5)], [(1, 0.5)]),
        ([], [(0, 2.0)]),
    ],
)
def test_leaves_that_begin_alike_are_refused(first, second):
    with pytest.raises(ModelError, match="consecutive BRANCH_EQ nodes"):
        load(chain(first, second, [(0, 9.0), (1, 8.0)]))


def test_leaves_that_differ_or_are_the_same_are_read():
    agree(chain([(0, 0.1), (1, 0.3)], [(0, 0.2), (1, 0.7)], [(0, 9.0), (1, 8.0)]), ROWS)
    agree(chain([(0, 0.1), (1, 0.3)], [(0, 0.1), (1, 0.3)], [(0, 9.0), (1, 8.0)]), ROWS)


def test_a_column_past_all_bounds_is_refused():
    source = regressor([(0, "BRANCH_LEQ", 0.5, [(0, 1.0)], [(0, 2.0)])], columns=None)
    change(source, "nodes_featureids", lambda ids: [2**40, *ids[1:]])
    with pytest.raises(ModelError, match="reads column 1099511627776"):
        load(source)
