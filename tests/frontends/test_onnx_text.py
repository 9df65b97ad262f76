"""Tests text inputs of ONNX models, by converters and by hand, against onnxruntime."""

from __future__ import annotations

import random as chance
import warnings

import numpy as np
import pandas as pd
import pytest
from mutations import mutated_bytes, reads_whole
from onnx import helper
from onnx_models import (
    DOUBLE,
    FLOAT,
    INT64,
    ML,
    MODES,
    STRING,
    around,
    bare,
    lists5,
    model,
    node,
    random_trees,
    refused,
    session,
    trees_node,
)
from onnx_models import answers as told_by
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder, OrdinalEncoder, StandardScaler

import forestc
from forestc import load
from forestc.errors import RowsError
from forestc.forest.numbers import Category
from forestc.forest.text import parse_forest, print_forest
from forestc.frontends.onnx.reader import read_bytes
from forestc.rows.encode import evaluate
from forestc.rows.given import rows_from

COLORS = ["red", "green", "dark red", "m\u00e4uve \U0001f7e3", "3", "03", "1e3", " red"]
SIZES = ["s", "m", "red", "3"]
UNKNOWN = ["unseen", "Red", "", "3.0", "m\u00e4uve", "xl", "_Unused", "-1"]


def frame(seed, n=400, unknown=UNKNOWN, missing=None):
    random = np.random.default_rng(seed)

    def column(names):
        drawn = random.choice([*names, *unknown], n, p=_share(len(names), len(unknown)))
        return pd.Series(drawn, dtype=object).mask(random.random(n) < (0.1 if missing is not None else 0), missing)

    return pd.DataFrame(
        {
            "color": column(COLORS),
            "w": random.normal(size=n).astype(np.float32),
            "size": column(SIZES),
            "v": random.integers(0, 5, n).astype(np.float32),
        }
    )


def _share(known, unknown):
    return [(0.75 if unknown else 1) / known] * known + [0.25 / max(unknown, 1)] * unknown


def target(X):
    return (X.color.isin(["red", "3", "dark red"]) ^ X["size"].isin(["s", "3"]) ^ (X.w > X.v / 2 - 1)).astype(int)


def converted(steps, X, model=None, passed=None, apart=True):
    """Trains a pipeline on the frame and converts it to ONNX. apart: each column is an input."""
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType

    columns = ColumnTransformer(
        [("text", steps, ["color", "size"] if apart else [0, 2])],
        remainder=passed or ("passthrough" if apart else "drop"),
    )
    whole = make_pipeline(columns, RandomForestClassifier(8, random_state=0) if model is None else model)
    types = [
        (name, (FloatTensorType if X[name].dtype == np.float32 else StringTensorType)([None, 1])) for name in X.columns
    ]
    if not apart:
        X = X.astype({"v": int, "w": str}).astype(str)
        types = [("rows", StringTensorType([None, 4]))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = whole.fit(X if apart else X.to_numpy(), target(X.astype({"w": float, "v": float})))
        return to_onnx(fitted, initial_types=types, options=None if hasattr(model, "init") else {"zipmap": False})


def agrees(source, rows):
    """Loads the model, compares its decisions and sums with onnxruntime's bit for bit, and returns the forest. rows: a
    data frame of the inputs side by side."""
    forest = load(source)
    forest = parse_forest(print_forest(forest))
    table = rows.to_numpy(dtype=object)
    found, output, sums = evaluate(forest, rows), told_by(source, table), told_by(bare(source), table)
    (scores,) = sums.values()
    expected = scores[:, 1:] if found.scores.shape[1] == 1 and scores.shape[-1] == 2 else scores
    assert np.array_equal(found.scores.astype(expected.dtype), expected.reshape(len(rows), -1))
    if "label" in output:
        assert np.array_equal(found.decision, output["label"])
    assert np.array_equal(evaluate(forest, table).leaves, found.leaves)
    assert len(np.unique(found.leaves, axis=0)) > 2
    return forest


ENCODERS = {
    "one-hot": lambda: OneHotEncoder(handle_unknown="ignore"),
    "dropped": lambda: OneHotEncoder(handle_unknown="ignore", drop="first", sparse_output=False),
    "rare": lambda: OneHotEncoder(handle_unknown="ignore", min_frequency=60),
    "one-hot-scaled": lambda: make_pipeline(OneHotEncoder(handle_unknown="ignore"), MaxAbsScaler()),
    "ordinal": OrdinalEncoder,
    "ordinal-unknown": lambda: OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
    "ordinal-nan": lambda: OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=99, dtype=np.int64),
    "ordinal-scaled": lambda: make_pipeline(OrdinalEncoder(), StandardScaler()),
    "filled": lambda: make_pipeline(
        SimpleImputer(missing_values="", strategy="constant", fill_value="red"), OneHotEncoder(handle_unknown="ignore")
    ),
    "filled-new": lambda: make_pipeline(
        SimpleImputer(missing_values="3", strategy="constant", fill_value="nothing"), OrdinalEncoder()
    ),
}


@pytest.mark.parametrize("kind", sorted(ENCODERS))
def test_what_skl2onnx_writes(kind):
    source = converted(ENCODERS[kind](), frame(0, unknown=[""] if kind == "filled" else []))
    forest = agrees(source, frame(1))
    assert [feature.name for feature in forest.features] == ["color", "w", "size", "v"]
    color = forest.features[0]
    assert set(COLORS) <= set(color.labels) and color.number == Category(len(color.labels))


@pytest.mark.parametrize("kind", ["one-hot", "ordinal"])
def test_one_input_of_several_columns_of_text(kind):
    source = converted(ENCODERS[kind](), frame(0, unknown=[]), apart=False)
    forest = agrees(source, frame(1))
    assert [feature.column for feature in forest.features] == [0, 2] and not forest.features[0].named


def test_scaled_numbers_beside_text_and_a_regression_agree_with_onnxruntime():
    passed = make_pipeline(StandardScaler())
    booster = GradientBoostingRegressor(n_estimators=12, random_state=0)
    agrees(converted(ENCODERS["one-hot"](), frame(0, unknown=[]), booster, passed), frame(1))


def test_an_input_of_integers_that_are_encoded():
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import Int64TensorType

    X = np.random.default_rng(0).integers(-3, 5, (400, 2))
    fitted = make_pipeline(OneHotEncoder(handle_unknown="ignore"), RandomForestClassifier(5, random_state=0))
    made = to_onnx(fitted.fit(X, (X[:, 0] == -2) ^ (X[:, 1] > 2)), initial_types=[("rows", Int64TensorType([None, 2]))])
    rows = np.stack(np.meshgrid(np.arange(-9, 12), np.arange(-9, 12)), axis=-1).reshape(-1, 2)
    assert np.array_equal(evaluate(load(made), rows).decision, session(made).run(None, {"rows": rows})[0])


def test_unknown_texts_that_onnxruntime_refuses_are_all_zeros():
    source = converted(OneHotEncoder(), frame(0, unknown=[]))
    agrees(source, frame(1, unknown=[]))
    (first, second) = (n for n in source.graph.node if n.op_type == "OneHotEncoder")
    rows = frame(2)
    output = evaluate(load(source), rows)
    for encoder in (first, second):
        (zeros,) = (a for a in encoder.attribute if a.name == "zeros")
        assert zeros.i == 0
        zeros.i = 1
    assert np.array_equal(output.leaves, evaluate(load(source), rows).leaves)
    agrees(source, rows)


@pytest.mark.parametrize("known", [[], [np.nan], [None]])
@pytest.mark.parametrize("kind", ["one-hot", "ordinal-unknown"])
def test_missing_texts_are_spelled_as_the_graph_spells_them(kind, known, tmp_path):
    X = frame(0, unknown=[])
    for marker in known:
        X.loc[::9, "color"] = marker
    source = converted(ENCODERS[kind](), X)
    labels = load(source).features[0].labels
    assert [spelling for spelling in ("nan", "None") if spelling in labels] == [str(marker) for marker in known]
    for marker in known or (np.nan, None, pd.NA):
        rows = frame(1, unknown=["unseen", "Red"])
        rows.loc[::5, "color"] = marker
        forest = agrees(source, rows)
        rows.to_csv(tmp_path / "rows.csv", index=False)
        rows.to_parquet(tmp_path / "rows.parquet")
        expected = evaluate(forest, rows).decision
        for name in ("rows.csv", "rows.parquet"):
            found = [evaluate(forest, batch.X).decision for batch in rows_from(tmp_path / name, forest).batches()]
            assert np.array_equal(np.concatenate(found), expected)


def test_two_spellings_of_a_missing_text():
    source = by_hand(hot("rows", "codes", cats_strings=["nan", "None", "red"]), flat("codes", 9))
    agrees(source, texts(3))
    with pytest.raises(RowsError, match="a value is missing"):
        evaluate(load(source), texts(3).mask(texts(3) == "red", None))


TEXTS = ["red", "green", "3", "", "nan", "None", "unseen", "m\u00e4uve"]


def texts(columns, n=500, seed=0):
    return pd.DataFrame(np.random.default_rng(seed).choice(TEXTS, (n, columns)).astype(object)).add_prefix("x")


def hot(source, target, **more):
    return node("OneHotEncoder", [source], [target], **more)


def encoder(source, target, **more):
    return node("LabelEncoder", [source], [target], **more)


def flat(source, width, target="X"):
    shape = helper.make_tensor("shape", INT64, [2], [-1, width])
    return [
        helper.make_node("Constant", [], ["shape " + target], value=shape),
        node("Reshape", [source, "shape " + target], [target]),
    ]


def to_float(source, target="X", kind=FLOAT):
    return node("Cast", [source], [target], to=kind)


def by_hand(
    *nodes, features=9, constants=None, inputs=(("rows", STRING, 3),), values=(0.0, 1.0, 2.0, -1.0, 0.5), **more
):
    """Puts random trees behind nodes that turn the texts `rows` (three columns) into X."""
    flattened = [one for some in nodes for one in (some if isinstance(some, list) else [some])]
    modes = [mode for mode in MODES if mode != "BRANCH_MEMBER"]
    trees = random_trees(np.random.default_rng(3), 12, 2, modes, 3, features, values=values)
    own = trees_node("X", "scores", trees, 2)
    return model([*flattened, own], list(inputs), [("scores", FLOAT)], constants, **more)


I64 = {"keys_strings": ["red", "3", ""], "values_int64s": [2, -1, 1]}
GRAPHS = {
    "split": lambda: by_hand(
        node("Split", ["rows", "sizes"], ["a", "b"], axis=1),
        [encoder("a", "A", **I64), encoder("b", "B", **I64, default_int64=1)],
        [node("Concat", ["B", "A", "B"], ["ints"], axis=-1), to_float("ints")],
        features=5,
        constants={"sizes": np.array([1, 2])},
    ),
    "split-evenly": lambda: by_hand(
        node("Split", ["rows"], ["a", "b"], axis=-1, num_outputs=2),
        [hot("b", "B", cats_strings=["3", "red"]), *flat("B", 2)],
        features=2,
    ),
    "split-12": lambda: by_hand(
        node("Split", ["rows"], ["a", "b"], axis=1, split=[2, 1]),
        [encoder("a", "A", **I64), to_float("A")],
        features=2,
        opset=12,
    ),
    "a-single-column": lambda: by_hand(
        [node("Gather", ["rows", "one"], ["a"], axis=1), encoder("a", "A", **I64)],
        [node("Unsqueeze", ["A", "axes"], ["B"]), to_float("B")],
        features=1,
        constants={"one": np.array(1), "axes": np.array([1])},
    ),
    "a-flat-column": lambda: by_hand(
        [node("ArrayFeatureExtractor", ["rows", "two"], ["a"]), node("Reshape", ["a", "flat"], ["b"])],
        hot("b", "X", cats_strings=["green", "m\u00e4uve", ""]),
        features=3,
        constants={"two": np.array(2), "flat": np.array([-1])},
    ),
    "squeezed": lambda: by_hand(
        [node("Gather", ["rows", "one"], ["a"], axis=-1), hot("a", "b", cats_strings=["green", "3"])],
        [node("Gather", ["b", "kept"], ["c"], axis=2), node("Squeeze", ["c", "axes"], ["X"])],
        features=3,
        constants={"one": np.array([1]), "axes": np.array([1]), "kept": np.array([1, 0, 1])},
    ),
    "wide-one-hot": lambda: by_hand(hot("rows", "a", cats_strings=TEXTS[:3]), node("Flatten", ["a"], ["X"])),
    "first-version": lambda: by_hand(
        encoder("rows", "a", classes_strings=["red", "green", ""], default_int64=7), to_float("a"), features=3, ml=1
    ),
    "tensors": lambda: by_hand(
        encoder(
            "rows",
            "a",
            keys_tensor=helper.make_tensor("k", STRING, [2], [b"red", b"3"]),
            values_tensor=helper.make_tensor("v", DOUBLE, [2], [0.5, 2.0]),
            default_tensor=helper.make_tensor("d", DOUBLE, [1], [-1.0]),
        ),
        to_float("a"),
        features=3,
        ml=4,
    ),
    "doubles": lambda: by_hand(
        encoder(
            "rows",
            "X",
            keys_tensor=helper.make_tensor("k", STRING, [3], [b"red", b"3", "m\u00e4uve".encode()]),
            values_tensor=helper.make_tensor("v", DOUBLE, [3], [0.1, float(np.float32(0.1)), 1 + 2.0**-40]),
            default_tensor=helper.make_tensor("d", DOUBLE, [1], [-0.1]),
        ),
        features=3,
        ml=4,
        values=(0.1, 1.0, -0.1),
    ),
    "text-to-text": lambda: by_hand(
        encoder("rows", "a", keys_strings=["red", "3", "green"], values_strings=["3", "warm", "red"]),
        encoder("a", "b", keys_strings=["3", "_Unused", "warm"], values_floats=[1.0, 2.0, np.nan], default_float=0.5),
        node("Identity", ["b"], ["X"]),
        features=3,
    ),
    "one-hot-of-codes": lambda: by_hand(
        encoder("rows", "a", **I64), hot("a", "b", cats_int64s=[2, 5, -1]), flat("b", 9)
    ),
    "equal-and-where": lambda: by_hand(
        [node("Equal", ["rows", "each"], ["is"]), node("Where", ["is", "fill", "rows"], ["filled"])],
        [node("Where", ["is", "rows", "red"], ["kept"]), hot("kept", "k", cats_strings=["green", "red"])],
        [encoder("filled", "f", **I64), to_float("f", "F"), to_float("is", "I")],
        [*flat("k", 6, "K"), node("Concat", ["F", "I", "K"], ["X"], axis=1)],
        features=12,
        constants={"each": np.array([["", "3", "red"]]), "fill": np.array("red"), "red": np.array(["green"])},
        opset=19,
    ),
    "truth-values": lambda: by_hand(
        [encoder("rows", "a", **I64, default_int64=0), node("Cast", ["a"], ["b"], to=9), to_float("b")], features=3
    ),
    "sums": lambda: by_hand(
        [node("Gather", ["rows", "one"], ["a"], axis=1), hot("a", "b", cats_strings=["green", "3", "red", ""])],
        [node("Split", ["b", "sizes"], ["c", "d"], axis=-1), node("ReduceSum", ["d", "last"], ["e"], keepdims=1)],
        [node("Concat", ["e", "c", "d"], ["f"], axis=2), *flat("f", 5)],
        features=5,
        constants={"one": np.array([2]), "sizes": np.array([1, 3]), "last": np.array([-1])},
    ),
    "steps-after": lambda: by_hand(
        encoder("rows", "a", keys_strings=["red", "3", "green"], values_floats=[-1.0, 0.3, 7.0], default_float=np.nan),
        node("Imputer", ["a"], ["b"], imputed_value_floats=[0.1, 2.0, -3.0], replaced_value_float=np.nan),
        node("Scaler", ["b"], ["c"], offset=[0.1] * 3, scale=[-0.7, 3.0, 1e-3]),
        node("Clip", ["c", "least"], ["d"]),
        node("Sub", ["most", "d"], ["X"]),
        features=3,
        constants={"least": np.float32(-0.5), "most": np.array([1, 0.5, 0.3], dtype=np.float32)},
        values=(0.0, -2.1, 0.6299999952316284, 0.5, 1e-3),
    ),
    "beside-numbers": lambda: by_hand(
        [hot("rows", "a", cats_strings=["3", "green"]), *flat("a", 6, "A"), to_float("n", "N")],
        node("Concat", ["A", "N"], ["X"], axis=1),
        features=8,
        inputs=(("rows", STRING, 3), ("n", INT64, 2)),
    ),
    "members": lambda: model(
        [
            encoder("rows", "a", keys_strings=TEXTS[:5], values_floats=[0.0, 7.25, 29.5, 1.0, np.nan]),
            helper.make_node(
                "TreeEnsemble", ["a"], ["scores"], name="trees", domain=ML,
                **lists5(random_trees(np.random.default_rng(3), 12, 1, MODES), FLOAT), n_targets=1,
            ),
        ],
        [("rows", STRING, 3)],
        [("scores", FLOAT)],
        ml=5,
        opset=21,
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", sorted(GRAPHS))
def test_graphs_by_hand(kind):
    rows = texts(3)
    if kind == "beside-numbers":
        rows = rows.assign(n=np.arange(len(rows)) % 3, m=np.arange(len(rows)) % 5 - 1)
    forest = agrees(GRAPHS[kind](), rows)
    assert any(isinstance(feature.number, Category) for feature in forest.features)


A_OR_NOT = hot("rows", "a", cats_strings=["a"])


def one(operator, **more):
    return lambda: by_hand(node(operator, ["rows"], ["a"], **more), flat("a", 6), features=6)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (one("OneHotEncoder", cats_strings=["red", "red"]), "names a category twice: 'red'; "),
        (one("OneHotEncoder"), "needs cats_strings only, for its input"),
        (one("OneHotEncoder", cats_int64s=[1, 2]), "needs cats_strings only, for its input"),
        (one("OneHotEncoder", cats_strings=["a"], cats_int64s=[1]), "needs cats_strings only, for its input"),
        (one("OneHotEncoder", cats_strings=[b"\xff"]), "attribute 'cats_strings' holds text that is not UTF-8"),
        (one("LabelEncoder", keys_strings=["a"], values_int64s=[1, 2]), "has 1 keys and 2 values"),
        (one("LabelEncoder", keys_strings=["a", "a"], values_int64s=[1, 2]), "has a key twice: 'a'"),
        (one("LabelEncoder", values_int64s=[1, 2]), "has no lists of keys"),
        (one("LabelEncoder", keys_strings=["a"], values_int64s=[1], values_floats=[1.0]), "has 2 lists of values"),
        (one("LabelEncoder", keys_int64s=[1], values_int64s=[1]), "its keys are int64, and its input text"),
        (one("LabelEncoder", keys_strings=["a"], values_int64s=[1 << 60]), "makes integers beyond 2^53"),
        (one("LabelEncoder", classes_strings=["a"]), "attribute 'classes_strings' is not known"),
        (one("StringNormalizer", case_change_action="LOWER"), "operator 'StringNormalizer' is not folded"),
        (one("TfIdfVectorizer", mode="TF"), "operator 'TfIdfVectorizer' is not folded"),
        (one("Scaler", offset=[0.0], scale=[1.0]), "operator 'Scaler' on text is not read"),
        (one("Cast", to=FLOAT), "operator 'Cast' is not folded into its columns exactly"),
        (lambda: around([node("Identity", ["rows"], ["X"])], inputs=[("rows", STRING, 3)]), "its input is text; "),
        (lambda: by_hand(hot("rows", "X", cats_strings=["a"])), "its input is not a table of rows and columns"),
        (
            lambda: by_hand(A_OR_NOT, node("Scaler", ["a"], ["X"], offset=[0.0], scale=[1.0])),
            "its input is not a table of rows and columns; ",
        ),
        (
            lambda: by_hand(A_OR_NOT, flat("a", 3, "b"), node("ReduceSum", ["b", "k"], ["X"]), constants={"k": [1]}),
            "adds columns encoded from several columns of text",
        ),
        (
            lambda: by_hand(
                [node("Equal", ["rows", "a"], ["is"]), node("Gather", ["rows", "turned"], ["other"], axis=1)],
                [node("Where", ["is", "a", "other"], ["c"]), hot("c", "d", cats_strings=["a"]), *flat("d", 3)],
                constants={"a": np.array(["a"]), "turned": np.array([2, 1, 0])},
                features=3,
            ),
            "chooses by one column of text between values of another",
        ),
        (
            lambda: by_hand(node("Split", ["rows", "s"], ["a", "X"], axis=1), constants={"s": np.array([1, 1])}),
            "splits 3 columns into 2 parts of [1, 1]",
        ),
        (lambda: by_hand(hot("rows", "X", cats_int64s=[1]), inputs=(("rows", FLOAT, 3),)), "its input is float32"),
        (
            lambda: by_hand(node("Cast", ["rows"], ["X"], to=INT64), inputs=(("rows", FLOAT, 3),)),
            "floats that are cast to integers",
        ),
        (
            lambda: by_hand(hot("rows", "a", cats_strings=[*map(str, range(70_000))]), flat("a", 210_000), features=8),
            "the graph knows 70000 texts of column 0; ",
        ),
    ],
)
def test_damaged_and_inexact_graphs_are_refused_by_one_line(make, message):
    source = make()
    for added in source.graph.node:
        added.domain = "" if added.op_type in ("StringNormalizer", "TfIdfVectorizer") else added.domain
    refused(source, message.removesuffix("; "))


def test_mutated_bytes():
    source = chance.Random(5)
    for data in (GRAPHS["equal-and-where"]().SerializeToString(), GRAPHS["sums"]().SerializeToString()):
        good = sum(reads_whole(read_bytes, mutated_bytes(data, source)) for _ in range(150))
        assert 0 < good < 150


def test_such_a_design_is_compiled_and_checked(tmp_path):
    X = frame(0, unknown=[])
    source = converted(ENCODERS["one-hot"](), X, RandomForestClassifier(4, max_depth=5, random_state=0))
    (tmp_path / "m.onnx").write_bytes(source.SerializeToString())
    rows = frame(1, 300).assign(target=target(frame(1, 300)))
    done = forestc.compile(tmp_path / "m.onnx", rows, tmp_path / "out", label="target")
    output = {feature["name"]: feature for feature in done.design.manifest["features"]}
    assert output["color"]["labels"] == sorted(COLORS)
    assert forestc.check(done.design, rows, label="target", engines=("netlist", "c")).ok
    output = session(source).run(None, {name: rows[[name]].to_numpy() for name in frame(0)})[0]
    assert np.array_equal(done.design.predict(rows.drop(columns="target")), output)
