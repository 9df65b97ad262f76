from __future__ import annotations

import json
import math
import random
import re
import tracemalloc
from pathlib import Path

import lightgbm
import numpy as np
import pandas as pd
import pytest
from mutations import assert_refused, changed
from sklearn.datasets import load_breast_cancer
from steps import calls_of

from forestc import load
from forestc.errors import ModelError, RowsError
from forestc.forest.builder import MAX_DEPTH
from forestc.forest.numbers import FLOAT64, Category
from forestc.frontends import read_bytes
from forestc.frontends.lightgbm.reader import PAST_ZERO, ZERO, read_text
from forestc.rows.encode import evaluate
from forestc.rows.given import rows_from

CASES = Path(__file__).parents[1] / "cases" / "lightgbm"
QUIET = {"verbose": -1, "num_threads": 1, "num_leaves": 6, "min_data_in_leaf": 5}
ZERO_BOUND = 1.0000000180025095e-35  # holds 1e-35 as a float32
BINARY = load_breast_cancer(return_X_y=True)


def one_split(
    threshold: str = "1", kind: int = 10, leaves: str = "-1.5 2.5", objective: str = "", more: str = "", **tree: str
) -> bytes:
    """Writes a text model of one split. tree: replaces its lines."""
    lines = {
        "num_leaves": "2", "num_cat": "0", "split_feature": "0", "split_gain": "1", "threshold": threshold,
        "decision_type": str(kind), "left_child": "-1", "right_child": "-2", "leaf_value": leaves, "leaf_count": "1 1",
        "internal_count": "2", "is_linear": "0", "shrinkage": "1",
    } | tree  # fmt: skip
    body = "Tree=0\n" + "".join(f"{key}={value}\n" for key, value in lines.items()) + "\n\n"
    header = ["tree", "version=v4", "num_class=1", "num_tree_per_iteration=1", "label_index=0", "max_feature_idx=0"]
    header += [f"objective={objective}"] * bool(objective) + [more] * bool(more)
    header += ["feature_names=f0", "feature_infos=[0:1]", f"tree_sizes={len(body)}"]
    return ("\n".join(header) + f"\n\n{body}end of trees\n\npandas_categorical:null\n").encode()


def library(data: bytes) -> lightgbm.Booster:
    return lightgbm.Booster(model_str=data.decode())


@pytest.mark.parametrize("path", sorted([*CASES.glob("*.txt"), *CASES.glob("*.json")]), ids=lambda p: p.name)
def test_models_of_every_version_say_what_their_library_said(path):
    if path.stem in ("2.0_votes", "2.1_votes", "2.2_votes"):
        with pytest.raises(ModelError, match="a random forest of version 2 with objective binary"):
            load(path)
        return
    forest, output = load(path), np.load(path.with_suffix(".npz"))
    found = evaluate(forest, output["X"])
    assert np.array_equal(found.leaves, output["leaves"].reshape(found.leaves.shape))
    assert np.array_equal(found.scores, output["scores"] / forest.aggregate.divisor)
    assert np.allclose(found.values, output["values"], rtol=1e-15, atol=0)
    assert forest.provenance.source == "lightgbm"


HARD = [0.0, 5e-324, 1e-37, ZERO_BOUND, np.nextafter(ZERO_BOUND, 0), np.nextafter(ZERO_BOUND, 1), 1.0, 1e300]
HARD_ROWS = np.array([*HARD, *(-np.array(HARD)), *np.nextafter(HARD, np.inf), np.inf, -np.inf, np.nan])[:, np.newaxis]


@pytest.mark.parametrize("kind", [0, 2, 4, 6, 8, 10])
def test_every_missing_rule_at_every_threshold_near_zero(kind):
    for threshold in (*HARD, *(-np.array(HARD)), np.inf, -np.inf, np.finfo(float).max):
        data = one_split(repr(float(threshold)), kind)
        expected = library(data).predict(HARD_ROWS, pred_leaf=True)
        assert np.array_equal(evaluate(read_text(data, ""), HARD_ROWS).leaves, expected), threshold
    assert ZERO == -ZERO_BOUND and np.nextafter(PAST_ZERO, 0) == ZERO_BOUND


@pytest.mark.parametrize("words", ["5", "0", "2147483648", "1 0 1", "0 " * 2047 + "1", "3 " + "0 " * 2047 + "1"])
@pytest.mark.parametrize("kind", [1, 3, 5, 9])
def test_categories_are_truncated_and_unseen_ones_go_right(words, kind):
    words = words.strip()
    more = {"num_cat": "1", "cat_boundaries": f"0 {len(words.split())}", "cat_threshold": words}
    data = one_split("0", kind, **more)
    codes = np.array([*range(-3, 99), 65_504, 65_535, 65_536, 65_537, 1e6, 2**31 - 1, 2**31, 2**32, 2**53, 1e300])
    rows = np.array([*codes, *(codes + 0.5), *(codes - 0.25), -0.0, 1e-40, np.inf, -np.inf, np.nan])[:, np.newaxis]
    forest = read_text(data, "")
    assert np.array_equal(evaluate(forest, rows).leaves, library(data).predict(rows, pred_leaf=True))
    large = len(words.split()) > 2048
    assert (forest.features[0].number == FLOAT64) == large


def test_a_column_read_as_category_and_number_is_read_by_intervals(tmp_path):
    tree = one_split(
        "0 2.5", num_leaves="3", split_feature="0 0", split_gain="1 1", num_cat="1", decision_type="1 2",
        left_child="1 -1", right_child="-3 -2", leaf_value="1 2 3", leaf_count="1 1 1", internal_count="3 2",
        cat_boundaries="0 1", cat_threshold="29",
    )  # fmt: skip
    rows = np.array([*np.arange(-2, 7, 0.25), np.nan, np.inf])[:, np.newaxis]
    forest = read_text(tree, "")
    assert forest.features[0].number == FLOAT64
    assert np.array_equal(evaluate(forest, rows).leaves, library(tree).predict(rows, pred_leaf=True))


@pytest.mark.parametrize("slope", ["1", "0.7", "3.8124", "1.23457e-05", "0.123457", "2.5e+02"])
def test_class_1_starts_at_the_library_s_own_score(slope):
    forest = read_text(one_split(objective=f"binary sigmoid:{slope}"), "")
    at = forest.decision.threshold
    below = float(np.nextafter(at, -np.inf))
    data = one_split(leaves=f"{below!r} {at!r}", objective=f"binary sigmoid:{slope}")
    rows = np.array([[0.0], [2.0]])
    assert (library(data).predict(rows) > 0.5).tolist() == [False, True]
    assert evaluate(read_text(data, ""), rows).decision.tolist() == [0, 1]


def test_a_sigmoid_s_parameter_is_read_as_the_library_reads_it():
    digits = random.Random(0)
    rows = np.array([[0.0], [2.0]])
    for text in [f"{digits.uniform(0.1, 10):.6g}" for _ in range(100)] + ["3.8124", "1e-05", "123.456", "1.23457e+02"]:
        data = one_split(leaves="0.3 -0.7", objective=f"binary sigmoid:{text}")
        slope = read_text(data, "").link.slope
        assert library(data).predict(rows).tolist() == [1 / (1 + math.exp(-slope * s)) for s in (0.3, -0.7)]


def test_a_booster_in_training_knows_more_digits_of_its_sigmoid_than_its_text():
    X, y = BINARY
    params = {**QUIET, "objective": "binary", "sigmoid": 0.123456789}
    for kept, slope in ((True, 0.123456789), (False, 0.123457)):
        data = lightgbm.Dataset(X, label=y)
        model = lightgbm.train(params, data, 3, keep_training_booster=kept)
        found = evaluate(load(model), X)
        assert load(model).link.slope == slope
        assert np.allclose(found.values[:, 0], model.predict(X), rtol=1e-15, atol=0)


def test_text_categories_of_a_data_frame_become_labels(tmp_path):
    digits = np.random.default_rng(0)
    colors = ["red", "green", "blue", "gray"]
    frame = pd.DataFrame({"x": digits.normal(size=400), "color": pd.Categorical(digits.choice(colors, 400))})
    y = (frame["color"].isin(["red", "blue"]) ^ (frame["x"] > 0)).astype(int)
    model = lightgbm.LGBMClassifier(n_estimators=5, **QUIET).fit(frame, y)
    model.booster_.save_model(tmp_path / "m.txt")
    (tmp_path / "m.json").write_text(json.dumps(model.booster_.dump_model()))
    rows = frame.astype(object).to_numpy()
    rows[:40, 1] = "purple"
    rows[40:80, 1] = None
    known = pd.Series(rows[:, 1]).replace("purple", None).astype(pd.CategoricalDtype(sorted(colors)))
    asked = pd.DataFrame({"x": frame["x"], "color": known})
    for source in (model, tmp_path / "m.txt", tmp_path / "m.json"):
        forest = load(source)
        assert forest.features[1].labels == tuple(sorted(colors))
        assert forest.features[1].number == Category(4, "trunc")
        found = evaluate(forest, rows)
        assert np.array_equal(found.scores[:, 0], model.predict(asked, raw_score=True))
        assert np.array_equal(found.decision, model.predict(asked))


def test_ordered_categories_are_numbers_to_lightgbm():
    digits = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": pd.Categorical(digits.choice(list("SML"), 400), categories=list("SML"), ordered=True),
            "color": pd.Categorical(digits.choice(["red", "green"], 400)),
        }
    )
    y = (frame["color"] == "red") ^ (frame["size"] == "M")
    model = lightgbm.LGBMClassifier(n_estimators=5, **QUIET).fit(frame, y)
    forest = load(model)
    assert [feature.labels for feature in forest.features] == [(), ("green", "red")]
    codes = np.column_stack([frame[name].cat.codes for name in frame]).astype(float)
    for rows in (codes, frame.assign(size=frame["size"].cat.codes)):
        assert np.array_equal(evaluate(forest, rows).scores[:, 0], model.predict(frame, raw_score=True))
    with pytest.raises(RowsError, match="feature 'size'"):
        evaluate(forest, frame)


def test_where_no_column_can_be_known_rows_hold_codes():
    digits = np.random.default_rng(0)
    kinds = {name: pd.Categorical(digits.choice(["low", "high"], 400), ordered=name == "a") for name in "ab"}
    frame = pd.DataFrame(kinds).assign(c=digits.integers(0, 2, 400))
    y = ((frame.a == "low") ^ (frame.b == "low") ^ (frame.c == 1)).astype(int)
    model = lightgbm.LGBMClassifier(n_estimators=5, **QUIET).fit(frame, y)
    forest = load(model)
    assert not any(feature.labels for feature in forest.features)
    codes = frame.assign(a=frame.a.cat.codes, b=frame.b.cat.codes)
    assert np.array_equal(evaluate(forest, codes).scores[:, 0], model.predict(frame, raw_score=True))
    with pytest.raises(RowsError, match=r"feature '[ab]'"):
        evaluate(forest, frame)


def mixed_frame(texts, most=3, n=400):
    """Makes a column of categories, a column of integers, and one of floats; the first two decide the label."""
    digits = np.random.default_rng(0)
    kind = pd.Categorical(digits.choice(texts, n), categories=texts)
    frame = pd.DataFrame({"a": kind, "b": digits.integers(0, most, n), "z": digits.normal(size=n)})
    return frame, ((kind.codes == 1) ^ (frame.b % 3 == 1)).astype(int)


def sources_of(model, folder):
    model.booster_.save_model(folder / "m.txt")
    (folder / "m.json").write_text(json.dumps(model.booster_.dump_model()))
    return model, folder / "m.txt", folder / "m.json"


GROUPS = {"min_data_per_group": 2, "cat_smooth": 1, "max_cat_to_onehot": 1, "n_estimators": 10, **QUIET}


def decided(forest, rows):
    return np.concatenate([evaluate(forest, batch.X).decision for batch in rows_from(rows, forest).batches()])


@pytest.mark.parametrize(("listed", "most"), [(["b"], 9), (["b"], 3), (["a"], 3), ("auto", 9), (["a", "b"], 9)])
def test_named_categorical_columns_are_read_exactly_or_refused(listed, most, tmp_path):
    frame, y = mixed_frame(["red", "green", "blue"], most)
    model = lightgbm.LGBMClassifier(**GROUPS).fit(frame, y, categorical_feature=listed)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_parquet(tmp_path / "rows.parquet")
    codes = frame.assign(a=frame.a.cat.codes)
    wanted = model.predict(frame)
    for source in sources_of(model, tmp_path):
        forest = load(source)
        assert np.array_equal(evaluate(forest, codes).decision, wanted)
        for rows in (frame, tmp_path / "rows.csv", tmp_path / "rows.parquet"):
            if listed in (["a"], "auto", ["a", "b"]):
                assert np.array_equal(decided(forest, rows), wanted)
            # Either LightGBM takes the texts' codes for numbers, or the model does not tell which column has the texts.
            else:
                with pytest.raises(RowsError, match=r"column|feature 'a'"):
                    decided(forest, rows)


@pytest.mark.parametrize(("listed", "most"), [(["b"], 9), (["b"], 3), ("auto", 3)])
def test_categories_that_look_like_numbers_need_one_column(listed, most, tmp_path):
    frame, y = mixed_frame(["5", "7", "9"], most)
    model = lightgbm.LGBMClassifier(**GROUPS).fit(frame, y, categorical_feature=listed)
    for source in sources_of(model, tmp_path):
        with pytest.raises(ModelError, match=r"does not say which column .* has the categories \['5', '7', '9'\]"):
            load(source)
    model = lightgbm.LGBMClassifier(**GROUPS).fit(frame.assign(b=frame.b - 1), y)
    frame = frame.assign(b=frame.b - 1)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    for source in sources_of(model, tmp_path):
        for rows in (frame, tmp_path / "rows.csv"):
            assert np.array_equal(decided(load(source), rows), model.predict(frame))


def test_a_named_column_that_nothing_reads_leaves_rows_to_codes():
    digits = np.random.default_rng(0)
    words = {"a": ["red", "green", "blue"], "b": ["big", "small", "huge"]}
    texts = {name: pd.Categorical(digits.choice(known, 400)) for name, known in words.items()}
    frame = pd.DataFrame({"c": digits.integers(0, 3, 400)} | texts)
    y = (frame.a == "red").astype(int)
    model = lightgbm.LGBMClassifier(**GROUPS | {"n_estimators": 1}).fit(frame, y, categorical_feature=["c", "a"])
    assert [feature.name for feature in load(model).features] == ["a"]
    with pytest.raises(RowsError, match="feature 'a'"):
        evaluate(load(model), frame)
    codes = frame.assign(a=frame.a.cat.codes)
    assert np.array_equal(evaluate(load(model), codes).decision, model.predict(frame))
    auto = lightgbm.LGBMClassifier(**GROUPS).fit(frame[["a", "b"]], y)  # No other column may have had the categories.
    assert np.array_equal(evaluate(load(auto), frame).decision, auto.predict(frame[["a", "b"]]))


def test_own_objectives_give_scores():
    X, y = BINARY

    def objective(labels, scores):
        return scores - labels, np.ones_like(scores)

    model = lightgbm.LGBMClassifier(n_estimators=3, objective=objective, **QUIET).fit(X, y)
    assert load(model).classes == ()
    assert np.array_equal(evaluate(load(model), X).decision, model.predict(X))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: lightgbm.LGBMClassifier(), "not fitted"),
        (lambda: lightgbm.LGBMClassifier(pred_early_stop=True), "stops predictions early"),
        (lambda: lightgbm.LGBMClassifier(objective="regression"), "a classifier with a regression objective"),
        (lambda: lightgbm.LGBMRegressor(linear_tree=True), "tree 0: .*train without linear_tree"),
        (lambda: lightgbm.CVBooster(), "CVBooster is not read"),
    ],
)
def test_what_is_refused_of_live_models(make, message):
    model = make()
    if isinstance(model, lightgbm.LGBMModel) and message != "not fitted":
        model.set_params(n_estimators=3, **QUIET).fit(*BINARY)
    with pytest.raises(ModelError, match=message):
        load(model)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("tree\n", "trees\n", "not a LightGBM text model"),
        ("version=v4", "version=v5", "version 'v5' is not known"),
        ("num_class=1", "num_class=2", "objective none with num_class=2, num_tree_per_iteration=1"),
        ("num_class=1", "num_class=many", "num_class is not an integer: 'many'"),
        ("num_class=1\n", "", "has no num_class"),
        ("num_tree_per_iteration=1", "num_tree_per_iteration=2", "num_class=1, num_tree_per_iteration=2"),
        ("num_tree_per_iteration=1", "num_tree_per_iteration=99999999", "is 99999999, outside 1 to 65536"),
        ("label_index=0", "treatment=0", "a line 'treatment' is not known"),
        ("max_feature_idx=0", "max_feature_idx=5", "has 1 feature_names for 6 columns"),
        ("max_feature_idx=0", "max_feature_idx=999999999999", "outside -1 to"),
        ("feature_infos=[0:1]", "feature_infos=none none", "has 2 feature_infos for 1 columns"),
        ("label_index=0", "objective=guess", "objective 'guess' is not known"),
        ("label_index=0", "objective=binary sigmoid:-1", "the sigmoid's parameter is not a number: '-1'"),
        (
            "label_index=0",
            "objective=binary sigmoid:0",
            "the sigmoid's parameter is 0.0; m.txt; train with a sigmoid above 0",
        ),
        ("label_index=0", "objective=binary sigmoid:inf", "the sigmoid's parameter is not a number: 'inf'"),
        ("label_index=0", "objective=regression cubed", "objective regression with 'cubed', which is not known"),
        (
            "num_leaves=2",
            "num_leaves=2147483647",
            "has 1 numbers in threshold for num_leaves=2147483647; m.txt, tree 0",
        ),
        ("num_leaves=2", "num_leaves=0", "num_leaves is 0, outside 1 to"),
        ("num_leaves=2", "num_leaves=1", "has 2 numbers in leaf_value for num_leaves=1"),
        ("split_feature=0", "split_feature=7", "a condition reads column 7 of 1"),
        ("split_feature=0", "split_feature=-1", "a condition reads column -1 of 1"),
        ("split_feature=0", "split_feature=99999999999", "do not fit 32 bits"),
        ("threshold=1", "threshold=nan", "a threshold is NaN; m.txt, tree 0, node 0"),
        ("threshold=1", "threshold=one", "threshold holds something that is not a number"),
        ("threshold=1", "threshold=0x10", "threshold holds something that is not a number"),
        ("threshold=1", "threshold=1 2", "has 2 numbers in threshold for num_leaves=2"),
        ("threshold=1", "threshold=", "threshold holds something that is not a number"),
        ("threshold=1\n", "", "tree 0; it may be cut off"),
        ("decision_type=10", "decision_type=12", "decision_type 12 is not known"),
        ("decision_type=10", "decision_type=16", "decision_type 16 is not known"),
        ("decision_type=10", "decision_type=-128", "decision_type -128 is not known"),
        ("decision_type=10", "decision_type=9", "set 1.0 of 0"),
        ("left_child=-1", "left_child=0", "the root is a child of another node: a cycle"),
        ("left_child=-1", "left_child=-2", "has two parents"),
        ("left_child=-1", "left_child=5", "left child 5 is outside the 3 nodes"),
        ("left_child=-1", "left_child=-9", "is outside the 3 nodes"),
        ("left_child=-1", "left_child=1.5", "left_child holds something that is not a number"),
        ("left_child=-1", "left_child=-99999999999999999999", "do not fit 32 bits"),
        ("leaf_value=-1.5 2.5", "leaf_value=nan 1", "a leaf value is not finite"),
        ("leaf_value=-1.5 2.5", "leaf_value=1e999 1", "a leaf value is not finite"),
        ("leaf_count=1 1", "leaf_count=1 x", "leaf_count holds something that is not a number"),
        ("num_cat=0", "num_cat=1", "has categorical splits and no cat_boundaries or cat_threshold"),
        ("num_cat=0", "num_cat=-1", "num_cat is -1"),
        ("num_cat=0", "num_cat=1\ncat_boundaries=0 9\ncat_threshold=1", "do not divide 1 words into 1 sets"),
        ("num_cat=0", "num_cat=2\ncat_boundaries=0 2 1\ncat_threshold=1", "do not divide 1 words into 2 sets"),
        ("num_cat=0", "num_cat=1\ncat_boundaries=0 1\ncat_threshold=-1", "not a 32-bit word"),
        ("num_cat=0", "num_cat=1\ncat_boundaries=0 1\ncat_threshold=1.5", "holds something that is not a number"),
        ("num_cat=0", "num_treat=2", "a line 'num_treat' is not known"),
        ("is_linear=0", "is_linear=1", "has linear models for leaves"),
        ("end of trees", "beginning of trees", "the file ends early"),
        ("pandas_categorical:null", "pandas_categorical:[", "pandas_categorical is not readable JSON"),
        ("pandas_categorical:null", "pandas_categorical:" + "[" * 5000, "pandas_categorical is not readable JSON"),
        ("pandas_categorical:null", 'pandas_categorical:{"a":1}', "pandas_categorical is not a list of lists"),
        ("end of trees\n", "end of trees\n\nparameters:\n[seed: 1]\n", "the file ends early, in its parameters"),
    ],
)
def test_damage_is_named_with_its_place(before, after, message):
    text = one_split().decode()
    assert before in text
    changed = text.replace(before, after, 1)
    size = len(changed[changed.index("Tree=0") :].split("end of trees")[0].split("beginning")[0])
    changed = re.sub(r"tree_sizes=\d+", f"tree_sizes={size}", changed)
    assert_refused(read_text, changed.encode(), message, "m.txt")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("sizes", [True, False])
def test_empty_lines_are_read_where_the_library_reads_them(end, sizes, tmp_path):
    """Puts an empty line after each line up to the first tree: both read the file alike, or both refuse it."""
    text = lightgbm.train(QUIET, lightgbm.Dataset(*BINARY), 2).model_to_string()
    if not sizes or end != "\n":  # The sizes count the bytes of lines that end in a line feed.
        text = re.sub(r"tree_sizes=.*\n", "", text)
    lines = text.split("\n")
    expected, path = lightgbm.Booster(model_str=text).predict(BINARY[0]), tmp_path / "m.txt"
    for place in range(1, lines.index("Tree=0") + 1):
        for more in (1, 3):
            path.write_bytes(end.join([*lines[:place], *[""] * more, *lines[place:]]).encode())
            assert np.array_equal(lightgbm.Booster(model_file=path).predict(BINARY[0]), expected)
            assert np.array_equal(evaluate(load(path), BINARY[0]).values.ravel(), expected)
    path.write_bytes(("\n" + text).encode())
    with pytest.raises(lightgbm.basic.LightGBMError):
        lightgbm.Booster(model_file=path)
    with pytest.raises(ModelError):
        load(path)


@pytest.mark.parametrize("sizes", ["9", "100 100", "", "x", "99999999999999999999999", "-1", "1 " * 1000])
def test_lies_of_tree_sizes(sizes):
    two = one_split().decode()
    tree = two[two.index("Tree=0") : two.index("end of trees")]
    text = re.sub(r"tree_sizes=\d+", f"tree_sizes={sizes}", two).replace("end of trees", f"{tree}end of trees")
    with pytest.raises(ModelError, match="tree_sizes"):
        read_text(text.encode(), "m.txt")
    assert len(read_text(re.sub(r"tree_sizes=\d+\n", "", text.replace(f"={sizes}\n", "=1\n")).encode(), "").trees) == 2


@pytest.mark.parametrize("data", [b"", b"tree", b"tree\n", b"\0" * 100, b"tree\n" + b"\xff" * 100, b"binf\0\0\0"])
def test_files_of_something_else(data):
    for suffix in (".txt", ".model", ".lgb"):
        with pytest.raises(ModelError):
            read_bytes(data, f"m{suffix}")


DUMP = lightgbm.train({**QUIET, "objective": "binary"}, lightgbm.Dataset(*BINARY), 2).dump_model()
TREE = ("tree_info", 1, "tree_structure")


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("version",), "v9", "version 'v9' does not state its objective; m.json; save the text model instead"),
        (("average_output",), KeyError, "does not state its objective"),
        (("max_feature_idx",), 3, "has 30 feature_names, but max_feature_idx 3"),
        (("feature_names",), [1], "feature_names[0]"),
        (("num_class",), 7, "num_class=7"),
        (("tree_info",), [], "the forest has no trees"),
        (("tree_info",), 3, "tree_info; is not a list"),
        ((*TREE,), [], "a node has no 'leaf_index'"),
        ((*TREE, "split_index"), 5, "tree_info[1]; split_index does not number 0 to"),
        ((*TREE, "split_index"), "0", "split_index"),
        ((*TREE, "split_feature"), 30, "a condition reads column 30 of 30"),
        ((*TREE, "threshold"), "7", "threshold"),
        ((*TREE, "threshold"), float("nan"), "a threshold is NaN"),
        ((*TREE, "threshold"), None, "threshold"),
        ((*TREE, "threshold"), -1e300, "may have been a larger one; save the text model instead"),
        ((*TREE, "decision_type"), ">", "'>' is not known"),
        ((*TREE, "decision_type"), "==", "a threshold holds no categories"),
        ((*TREE, "default_left"), 1, "missing_type 'None' with default_left 1 is not known"),
        ((*TREE, "missing_type"), "Some", "missing_type 'Some'"),
        ((*TREE, "left_child"), KeyError, "has no 'left_child'"),
        ((*TREE, "left_child"), {}, "has no 'leaf_index'"),
        ((*TREE, "left_child"), {"leaf_index": 0, "leaf_value": 1, "leaf_count": 1, "leaf_const": 1}, "linear models"),
        ((*TREE, "left_child"), {"leaf_index": 2**70, "leaf_value": 1, "leaf_count": 1}, "is not an array"),
        ((*TREE, "left_child"), {"leaf_index": "0", "leaf_value": 1, "leaf_count": 1}, "a node's number is '0'"),
    ],
)
def test_damage_of_dumps_is_named_with_its_place(path, value, message):
    assert_refused(read_bytes, changed(DUMP, path, value), message)


@pytest.mark.parametrize("codes", ["1||x", "", "-1", "99999999999", "9" * 5000, "1||||2"])
def test_categories_of_dumps_that_are_none(codes):
    with pytest.raises(ModelError, match="categor"):
        read_bytes(changed(DUMP, TREE, lambda node: node | {"decision_type": "==", "threshold": codes}), "m.json")


def test_a_deep_dump_is_refused():
    text = '{"tree_info":[{"tree_structure":' + '{"left_child":' * 100_000
    with pytest.raises(ModelError, match="not readable JSON"):
        read_bytes(text.encode(), "m.json")


def test_promises_take_neither_memory_nor_steps():
    lies = ["num_leaves=2", "num_cat=0", "max_feature_idx=0", "num_class=1", "num_tree_per_iteration=1"]

    def read_all():
        for lie in lies:
            key = lie.partition("=")[0]
            with pytest.raises(ModelError):
                read_text(one_split().replace(lie.encode(), f"{key}=2147483647".encode()), "m.txt")

    tracemalloc.start()
    assert calls_of(read_all) < 1e5
    assert tracemalloc.get_traced_memory()[1] < 4 << 20
    tracemalloc.stop()


def test_many_small_trees_and_one_deep_one_are_read():
    tree = one_split().decode()
    body = tree[tree.index("Tree=0") : tree.index("end of trees")]
    many = re.sub(r"tree_sizes=\d+\n", "", tree.replace(body, body * 3000))
    assert len(read_text(many.encode(), "").trees) == 3000
    n = MAX_DEPTH + 10  # The tree is a chain, deeper than the limit.
    ones, leaves = " ".join(["1"] * (n + 1)), " ".join(str(~leaf) for leaf in range(1, n + 1))
    chain = one_split(
        " ".join(map(str, range(n))), leaves=ones, num_leaves=str(n + 1), split_feature=" ".join(["0"] * n),
        decision_type=" ".join(["2"] * n), left_child=" ".join(map(str, [*range(1, n), -1])), right_child=leaves,
        leaf_count=ones, internal_count=" ".join(["1"] * n),
    )  # fmt: skip
    with pytest.raises(ModelError, match=f"is deeper than {MAX_DEPTH} conditions"):
        read_text(chain, "m.txt")
