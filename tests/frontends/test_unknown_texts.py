"""Tests unknown texts in columns whose numbers an encoder knows, in each form of rows, models and designs."""

from __future__ import annotations

import pickle
import runpy

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier, VotingClassifier
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder

import forestc
from forestc.errors import RowsError
from forestc.forest.text import parse_forest, print_forest
from forestc.rows.encode import evaluate

CATEGORIES = {
    "whole": [1, 2, 3, 7], "fractions": [0.5, 5.5, 6.25, 100.0], "small": [1e-9, 2e-9, -3e-9], "negative": [-8, -5, -1],
    "booleans": [False, True],
}  # fmt: skip
ENCODERS = {
    "one-hot": OneHotEncoder(handle_unknown="ignore"),
    "grouped": OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=2),
    "codes": OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
    "codes or NaN": OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan),
}
IMPUTERS = {
    "none": (), "selected": (VarianceThreshold(),), "often": (SimpleImputer(strategy="most_frequent"),),
    "indicated": (SimpleImputer(strategy="most_frequent", add_indicator=True),),
    "text": (SimpleImputer(strategy="constant", fill_value="missing"),),
}  # fmt: skip


def frame(values, seed, count=300):
    random = np.random.default_rng(seed)
    drawn = [values[int(index)] for index in random.integers(0, len(values), count)]
    return pd.DataFrame({"n": pd.Series(drawn, dtype=object), "v": random.normal(size=count).round(3)})


def fitted(steps, categories, last=None, missing=(), names=("n", "v")):
    last = RandomForestClassifier(5, random_state=0) if last is None else last
    rows = frame([*categories, *missing], 0)
    labels = (rows.n.isin(categories[::2]) ^ (rows.v > 0.5)).astype(int)
    rows = rows[list(names)]
    columns = make_column_transformer((make_pipeline(*steps), ["n"]), remainder="passthrough")
    return make_pipeline(columns, last).fit(rows, labels), rows, labels


def hard(categories, missing):
    """Returns rows on the categories, one step beside them, with unknown numbers and texts, and missing values."""
    numbers = [float(category) for category in categories]
    beside = [np.nextafter(number, number + step) for number in numbers for step in (-1, 1)]
    return frame([*categories, *beside, 64.0, -1e300, "unknown", "2", "", *missing], 1, 600)


@pytest.mark.parametrize("imputer", IMPUTERS)
@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("categories", CATEGORIES)
def test_frames_and_arrays_are_decided_as_the_library_decides(categories, encoder, imputer):
    imputes = imputer in ("often", "indicated")
    steps = (*IMPUTERS[imputer], ENCODERS[encoder])
    model, *_ = fitted(steps, CATEGORIES[categories], missing=(np.nan,) * imputes)
    absent = () if imputer == "selected" else (np.nan,) if imputes else (np.nan, None)
    rows, forest = hard(CATEGORIES[categories], absent), forestc.load(model)
    expected = model.predict(rows)
    for known in (forest, parse_forest(print_forest(forest)), pickle.loads(pickle.dumps(forest))):
        assert np.array_equal(evaluate(known, rows).decision, expected)
        assert np.array_equal(evaluate(known, rows.to_numpy(dtype=object)).decision, expected)


@pytest.mark.parametrize("level", [0, 1])
@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("categories", CATEGORIES)
def test_designs_read_texts_that_no_given_row_holds(categories, encoder, level, tmp_path):
    # Other columns keep their paths on given rows only, so rows of level 1 hold no other.
    names = ["n", "v"] if level == 0 else ["n"]
    model, rows, labels = fitted((ENCODERS[encoder],), CATEGORIES[categories], names=names)
    made = forestc.compile(
        model, rows, tmp_path / "out", level=level, targets=["c", "verilog"], stream=forestc.StreamOptions()
    )
    later = frame([*CATEGORIES[categories], "unknown", "2"], 1)[names]
    design = forestc.open_design(tmp_path / "out")
    for estimator in (made.design, design):
        assert np.array_equal(estimator.predict(later), model.predict(later))
        assert estimator.score(later, labels) == model.score(later, labels)
    quantize = runpy.run_path(str(design.path("words")))["quantize"]
    assert [quantize(row) for row in later.to_numpy(dtype=object).tolist()] == design.quantize(later).tolist()
    unknown = design.manifest["features"][0]["unknown"]
    assert unknown == made.design.model.features[0].unknown not in CATEGORIES[categories]


@pytest.mark.parametrize("encoder", ENCODERS)
def test_files_of_rows_and_models(encoder, tmp_path):
    model, _, labels = fitted((ENCODERS[encoder],), CATEGORIES["fractions"])
    later = frame([*CATEGORIES["fractions"], 6.0, "unknown", "?"], 2).assign(label=labels)
    later.to_csv(tmp_path / "rows.csv", index=False)
    skops.io.dump(model, tmp_path / "model.skops")
    (tmp_path / "model.pkl").write_bytes(pickle.dumps(model))
    for file, trusted in (("model.skops", False), ("model.pkl", True)):
        made = forestc.compile(
            tmp_path / file, tmp_path / "rows.csv", tmp_path / "out", label="label", level=0, targets="c",
            trust_pickle=trusted,
        )  # fmt: skip
        assert made.figures["accuracy"]["compiled"] == model.score(later[["n", "v"]], labels)
        assert any(f"{later.n.isin(['unknown', '?']).sum()} values of column 'n'" in n for n in made.figures["notes"])
        found = forestc.check(tmp_path / "out", tmp_path / "rows.csv", label="label", engines=["c"])
        assert found.ok and found.agreement.agreement == 1.0
    with pytest.raises(RowsError, match="no category"):
        forestc.compile(model, later, tmp_path / "out", label="label", unseen="error")


def test_members_that_know_other_numbers_share_one_unknown():
    rows = frame([0.5, 3.0], 0)
    labels = (rows.v > 0) ^ (rows.n == 3.0)
    members = []
    for name, known in (("few", [0.5]), ("many", [0.5, 3.0, 64.0])):
        columns = make_column_transformer((OneHotEncoder(categories=[known], handle_unknown="ignore"), ["n"]),
                                          remainder="passthrough")  # fmt: skip
        members.append((name, make_pipeline(columns, RandomForestClassifier(3, random_state=0))))
    model = VotingClassifier(members).fit(rows, labels)
    later = frame([0.5, 3.0, 64.0, "text"], 1)
    assert np.array_equal(evaluate(forestc.load(model), later).decision, model.predict(later))


@pytest.mark.parametrize(
    "steps",
    [
        (OneHotEncoder(),),
        (OrdinalEncoder(),),
        (SimpleImputer(strategy="median"), ENCODERS["one-hot"]),
        (FunctionTransformer(validate=True), ENCODERS["one-hot"]),
        (make_union(ENCODERS["codes"], FunctionTransformer()),),
        (FunctionTransformer(),),
    ],
    ids=repr,
)
def test_what_the_library_refuses_is_refused_by_name(steps, tmp_path):
    model, *_ = fitted(steps, CATEGORIES["whole"], HistGradientBoostingClassifier(max_iter=5, random_state=0))
    forest, later = forestc.load(model), frame([1, 2, 3, 7, "unknown"], 1)
    with pytest.raises(ValueError, match="unknown"):
        model.predict(later)
    with pytest.raises(RowsError, match="'n'"):
        evaluate(forest, later)
    later.to_csv(tmp_path / "rows.csv", index=False)
    with pytest.raises(RowsError, match="'n'"):
        forestc.compile(forest, tmp_path / "rows.csv", tmp_path / "out")
