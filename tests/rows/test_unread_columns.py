"""Columns that no condition reads never cause a refusal for their values; and missing values that no row has."""

from __future__ import annotations

import lightgbm
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.tree import DecisionTreeClassifier

import forestc
from forestc.errors import OptionError, RowsError
from forestc.rows.columns import with_categories
from forestc.rows.given import open_file
from forestc.rows.table import in_memory

QUIET = {"n_estimators": 1, "num_leaves": 3, "min_child_samples": 5, "verbose": -1}


@pytest.fixture(scope="module")
def packets():
    """A model that reads two of four columns, the frame that it was trained on, and labels."""
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "proto": pd.Categorical(random.choice(["tcp", "udp"], 400)),
            "flag": pd.Categorical(random.choice(["S0", "SF"], 400)),
            "bytes": random.integers(0, 9, 400),
            "land": random.integers(0, 2, 400),
        }
    )
    y = ((frame.proto == "tcp") & (frame.bytes > 4)).astype(int).to_numpy()
    return lightgbm.LGBMClassifier(**QUIET).fit(frame, y), frame, y


def forms(frame, folder):
    frame.to_csv(folder / "rows.csv", index=False)
    frame.to_parquet(folder / "rows.parquet")
    return frame, pa.Table.from_pandas(frame), str(folder / "rows.csv"), str(folder / "rows.parquet")


def placed_by(forest, rows):
    table = open_file(rows, "y") if isinstance(rows, str) else in_memory(rows)
    return with_categories(forest, [name for name in table.names if name != "y"], table.texts())


def test_rows_say_whose_the_lists_of_categories_are(tmp_path, packets):
    model, frame, y = packets
    forest = forestc.load(model)
    assert len(forest.categories) == 2 and not any(feature.labels for feature in forest.features)
    for rows in forms(frame.assign(y=y), tmp_path):
        placed = placed_by(forest, rows)
        assert [feature.labels for feature in placed.features] == [("tcp", "udp"), ()]
    design = forestc.compile(model, frame, tmp_path / "o", label=y, targets="c").design
    assert np.array_equal(design.predict(frame), model.predict(frame))
    assert forestc.check(design, frame, label=y, engines=["c"]).ok


def test_lists_are_not_given_to_columns_that_may_be_others(packets):
    model, frame, _ = packets
    forest = forestc.load(model)
    crossed = frame.rename(columns={"flag": "proto", "proto": "flag"})[["proto", "flag", "bytes", "land"]]
    assert not placed_by(forest, crossed).features[0].labels
    swapped = frame[["bytes", "proto", "flag", "land"]]  # in another order each column of categories tells its own
    assert placed_by(forest, swapped).features[0].labels == ("tcp", "udp")
    renamed = frame.assign(proto=pd.Categorical(np.where(frame.proto == "tcp", "a", "b")))
    assert not placed_by(forest, renamed).features[0].labels
    with pytest.raises(RowsError, match="not numbers"):
        forestc.quantize(model, renamed)


def test_numbers_that_are_categories_of_an_unread_column(tmp_path):
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "proto": pd.Categorical(random.choice(["tcp", "udp"], 400)),
            "bytes": random.normal(size=400) * 9,
            "port": pd.Categorical(random.choice([10, 20, 80], 400)),
        }
    )
    y = ((frame.proto == "tcp") & (frame.bytes > 4)).astype(int).to_numpy()
    model = lightgbm.LGBMClassifier(**QUIET).fit(frame, y)
    design = forestc.compile(model, frame, tmp_path / "o", label=y, targets="c").design
    assert np.array_equal(design.predict(frame), model.predict(frame))


def test_texts_in_unread_columns_of_an_array_of_objects():
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = DecisionTreeClassifier(max_depth=1, random_state=0).fit(X, X[:, 1] > 0)
    rows = X.astype(object)
    rows[:, [0, 2]] = "text"
    forest = forestc.load(model)
    assert np.array_equal(forestc.evaluate(forest, rows).decision, model.predict(X))
    rows[:, 1] = "text"
    with pytest.raises(RowsError, match=r"feature 'x1': .*not numbers"):
        forestc.evaluate(forest, rows)


@pytest.mark.parametrize("level", [0, 1])
def test_missing_values_that_no_row_has(tmp_path, packets, level):
    model, frame, y = packets
    others = frame.assign(proto=pd.Categorical(["icmp", *frame.proto[1:]]), bytes=frame.bytes.astype(float))
    others.loc[3, "bytes"] = np.nan
    options = {"label": y, "targets": "c", "level": level}
    if level:  # at level 0 no row is looked at, and all that the model takes is accepted
        plain = forestc.compile(model, frame, tmp_path / "plain", **options).design
        with pytest.raises(RowsError, match="missing=always"):
            forestc.check(plain, others, label=y)
    design = forestc.compile(model, frame, tmp_path / "o", missing="always", **options).design
    assert all(feature.missing for feature in design.forest.features)
    assert forestc.check(design, others, label=y, engines=["c"]).agreement.agreement == 1
    assert np.array_equal(design.predict(others), model.predict(others))
    assert design.manifest["made"]["options"]["missing"] == "always"


def test_missing_values_in_rows_from_outside_a_model_that_takes_none():
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = GradientBoostingClassifier(n_estimators=1).fit(X, X[:, 1] > 0)
    with pytest.raises(OptionError, match="takes no missing values"):
        forestc.quantize(model, X, missing="always")
    with pytest.raises(OptionError, match="use auto or always"):
        forestc.quantize(model, X, missing="sometimes")
