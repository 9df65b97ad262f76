"""A row without a label is refused with its number, also if labels are values."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeRegressor

from forestc import load
from forestc.errors import RowsError
from forestc.rows.given import rows_from

X = np.arange(20.0).reshape(10, 2)
Y = X[:, 0] / 4


@pytest.mark.parametrize("kind", ["list", "empty", "absent", "csv", "parquet", "text"])
def test_a_row_without_a_value_is_refused_with_its_number(kind, tmp_path):
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(y=Y)
    frame.loc[7, "y"] = None
    labels = {"list": None, "empty": " ", "absent": pd.NA, "text": "tall"}
    given, label = X, [*Y[:7], labels.get(kind), *Y[8:]]
    if kind == "csv":
        given, label = tmp_path / "rows.csv", "y"
        frame.to_csv(given, index=False)
    if kind == "parquet":
        given, label = tmp_path / "rows.parquet", "y"
        frame.to_parquet(given, index=False)
    said = "a label is not a number: 'tall'" if kind == "text" else "a label is missing"
    with pytest.raises(RowsError, match=f"row 7: {said}"):
        list(rows_from(given, load(DecisionTreeRegressor(max_depth=2).fit(X, Y)), label).batches())
