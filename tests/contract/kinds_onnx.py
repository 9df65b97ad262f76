"""Makes ONNX models, by skl2onnx, onnxmltools and by hand, and compares with onnxruntime on one thread."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import lightgbm
import numpy as np
import onnx
import onnx_models
import xgboost
from contract.kind import Trained
from onnx import TensorProto, helper
from onnx_models import DOUBLE, FLOAT, ML, MODES, answers, bare, lists5, model, random_trees
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeRegressor

from forestc import load

BINARY = load_breast_cancer(return_X_y=True)
MULTI = load_iris(return_X_y=True)
REGRESSION = load_diabetes(return_X_y=True)
TEXT = (MULTI[0], np.array(["setosa", 'versi "color"', "virginica"])[MULTI[1]])
ODD = (BINARY[0], BINARY[1] * 7 - 3)
TWO = (REGRESSION[0], np.column_stack([REGRESSION[1], REGRESSION[0][:, 2]]))
SMALL = {"n_estimators": 12, "random_state": 0}
LIGHT = {"n_estimators": 12, "n_jobs": 1, "verbose": -1}


def with_missing(data: Any) -> Any:
    X, y = data
    return np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X), y


def with_zeros(data: Any) -> Any:
    X, y = data
    return np.where(np.random.default_rng(1).random(X.shape) < 0.2, 0.0, X), y


def against(source: onnx.ModelProto, X: Any, dtype: Any = np.float32, folded: bool = False, **more: Any) -> Trained:
    """Returns an ONNX model with its answers for the contract. The decision is its output of integers or text,
    otherwise the other output. The scores are the sums of the tree operator; if later nodes change the sums (`folded`),
    they are the output."""
    whole = (TensorProto.INT64, TensorProto.STRING)
    labels = [o.name for o in source.graph.output if o.type.tensor_type.elem_type in whole]

    def decision(rows: Any) -> Any:
        found = answers(source, rows)
        return found[labels[0]].ravel() if labels else next(iter(found.values()))

    def scores(rows: Any) -> Any:
        found = answers(source if folded else bare(source), rows)
        (sums,) = (value for name, value in found.items() if name not in labels)
        single = load(source).n_outputs == 1
        return sums[:, 1:] if single and sums.ndim == 2 and sums.shape[1] == 2 else sums

    return Trained(source, X, decision, scores, dtype=dtype, **more)


def skl(estimator: Any, data: Any, **more: Any) -> Callable[[], Trained]:
    def train() -> Trained:
        from skl2onnx import to_onnx
        from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType

        X, y = data
        double = more.pop("double", False)
        dtype = np.float64 if double else np.float32
        types = [("rows", (DoubleTensorType if double else FloatTensorType)([None, X.shape[1]]))]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            options = more.pop("options", None)
            made = to_onnx(estimator.fit(X.astype(dtype), y), initial_types=types, options=options)
        return against(made, X, dtype, **more)

    return train


def by_column() -> Trained:
    """Trains a pipeline, and converts it to a model with one input for each column, one of them of integers."""
    import pandas
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import FloatTensorType

    X, y = REGRESSION
    frame = pandas.DataFrame(X[:, :4], columns=list("abcd"))
    columns = ColumnTransformer([("s", StandardScaler(), ["c", "a"]), ("p", "passthrough", ["c", "d"])])
    pipeline = make_pipeline(columns, DecisionTreeRegressor(max_depth=6, random_state=0)).fit(frame, y)
    made = to_onnx(pipeline, initial_types=[(name, FloatTensorType([None, 1])) for name in "abcd"])
    return against(made, X[:, :4])


def tools(estimator: Any, data: Any, fit: dict[str, Any] | None = None, **more: Any) -> Callable[[], Trained]:
    """Returns a function that converts an XGBoost or LightGBM estimator with onnxmltools."""

    def train() -> Trained:
        from onnxmltools import convert_lightgbm, convert_xgboost
        from onnxmltools.convert.common.data_types import FloatTensorType

        X, y = data
        fitted = estimator.fit(X, y, **(fit or {}))
        convert = convert_xgboost if "xgboost" in type(estimator).__module__ else convert_lightgbm
        made = convert(fitted, initial_types=[("rows", FloatTensorType([None, X.shape[1]]))])
        return against(made, X, **more)

    return train


def categories() -> Any:
    random = np.random.default_rng(0)
    X = np.column_stack([random.integers(0, 40, 1500), random.random(1500), random.integers(0, 6, 1500)])
    return X, (np.isin(X[:, 0], [1, 4, 7, 9, 33, 35]) ^ np.isin(X[:, 2], [2, 5])).astype(int)


def text(encoder: Any) -> Callable[[], Trained]:
    """Returns a function that trains a pipeline with two columns of text beside one of numbers. The contract's rows
    hold codes of the names that the forest knows; onnxruntime gets the names."""

    def train() -> Trained:
        import pandas
        from skl2onnx import to_onnx
        from skl2onnx.common.data_types import FloatTensorType, StringTensorType

        codes, y = categories()
        frame = pandas.DataFrame({"a": codes[:, 0].astype(int).astype(str), "b": codes[:, 1].astype(np.float32)})
        frame["c"] = np.array(["red", "m\u00e4uve", "", "4", "nan", "dark red"])[codes[:, 2].astype(int)]
        columns = ColumnTransformer([("codes", encoder, ["a", "c"])], remainder="passthrough")
        pipeline = make_pipeline(columns, RandomForestClassifier(4, max_depth=9, random_state=0)).fit(frame, y)
        types = [(name, (FloatTensorType if name == "b" else StringTensorType)([None, 1])) for name in "abc"]
        made = to_onnx(pipeline, initial_types=types, options={"zipmap": False})
        labels = {feature.column: feature.labels for feature in load(made).features if feature.labels}

        def named(rows: Any) -> Any:
            output = rows.astype(object)
            for column, names in labels.items():
                known = {float(code): name for code, name in enumerate(names)}
                output[:, column] = [known.get(code, code if code != code else "unseen") for code in rows[:, column]]
            return output

        source = against(made, codes)
        return replace(
            source,
            decision=lambda rows: source.decision(named(rows)),
            scores=lambda rows: source.scores(named(rows)) if source.scores else None,
        )

    return train


def by_hand(build: Callable[[np.random.Generator], onnx.ModelProto], dtype: Any = np.float32, **more: Any) -> Any:
    def make() -> Trained:
        random = np.random.default_rng(7)
        made = build(random)
        return against(made, onnx_models.random_rows(random, 500, 3, dtype), dtype, **more)

    return make


def graph5(nodes: list[Any], outputs: list[Any], constants: dict[str, Any], targets: int, kind: int = FLOAT) -> Any:
    """Makes a TreeEnsemble with nodes before and after it: columns `rows` to `X`, scores from `sums` on."""

    def build(random: np.random.Generator) -> onnx.ModelProto:
        trees = random_trees(random, 15, targets, MODES, votes="tree", values=(-1.0, 0.0, 0.5, 2.0))
        attributes = lists5(trees, kind) | {"n_targets": targets}
        own = helper.make_node("TreeEnsemble", ["X"], ["sums"], domain=ML, **attributes)
        before = next((place + 1 for place, node in enumerate(nodes) if "X" in node.output), 0)
        start = "rows" if before else "X"
        return model([*nodes[:before], own, *nodes[before:]], [(start, kind, 3)], outputs, constants, ml=5, opset=21)

    return build


# LINK_ULPS are units in the last place for exp and softmax: onnxruntime approximates exp by a polynomial, and adds
# float32 in another order.
LINK_ULPS = 8

KINDS: dict[str, Callable[[], Trained]] = {
    "onnx-one-hot-numbers": skl(
        make_pipeline(
            ColumnTransformer([("h", OneHotEncoder(handle_unknown="ignore"), [2, 0])], remainder="passthrough"),
            RandomForestClassifier(**SMALL),
        ),
        categories(),
    ),
    "onnx-one-hot-rounded": skl(
        make_pipeline(
            ColumnTransformer([("h", OneHotEncoder(handle_unknown="ignore", drop="first"), [0, 2])]),
            StandardScaler(with_mean=False),
            RandomForestClassifier(**SMALL),
        ),
        categories(),
    ),
    "onnx-skl-tree-binary": skl(DecisionTreeClassifier(random_state=0), BINARY),
    "onnx-skl-tree-multi": skl(DecisionTreeClassifier(random_state=0), MULTI, options={"zipmap": False}),
    "onnx-skl-tree-odd-labels": skl(DecisionTreeClassifier(max_depth=3), ODD, options={"zipmap": "columns"}),
    "onnx-skl-tree-regression": skl(DecisionTreeRegressor(random_state=0), REGRESSION),
    "onnx-skl-extra-tree": skl(ExtraTreeRegressor(random_state=0), REGRESSION),
    "onnx-skl-forest-binary": skl(RandomForestClassifier(**SMALL), BINARY),
    "onnx-skl-forest-text": skl(RandomForestClassifier(**SMALL), TEXT),
    "onnx-skl-forest-missing": skl(RandomForestClassifier(**SMALL), with_missing(MULTI)),
    "onnx-skl-forest-two-targets": skl(RandomForestRegressor(**SMALL), TWO),
    "onnx-skl-forest-double": skl(RandomForestClassifier(**SMALL), BINARY, double=True),
    "onnx-skl-extra-trees": skl(ExtraTreesClassifier(**SMALL), MULTI),
    "onnx-skl-extra-trees-regression": skl(ExtraTreesRegressor(**SMALL), REGRESSION),
    "onnx-skl-boosting-binary": skl(GradientBoostingClassifier(**SMALL), BINARY),
    "onnx-skl-boosting-exponential": skl(GradientBoostingClassifier(loss="exponential", **SMALL), BINARY),
    "onnx-skl-boosting-multi": skl(GradientBoostingClassifier(**SMALL), MULTI),
    "onnx-skl-boosting-raw": skl(GradientBoostingClassifier(**SMALL), MULTI, options={"raw_scores": True}),
    "onnx-skl-boosting-regression": skl(GradientBoostingRegressor(**SMALL), REGRESSION),
    "onnx-skl-hist-binary": skl(HistGradientBoostingClassifier(max_iter=12), with_missing(BINARY)),
    "onnx-skl-hist-multi": skl(HistGradientBoostingClassifier(max_iter=12), TEXT),
    "onnx-skl-hist-regression": skl(HistGradientBoostingRegressor(max_iter=12), with_missing(REGRESSION)),
    "onnx-skl-standard": skl(make_pipeline(StandardScaler(), RandomForestClassifier(**SMALL)), BINARY),
    "onnx-skl-robust": skl(make_pipeline(RobustScaler(), DecisionTreeRegressor(random_state=0)), REGRESSION),
    "onnx-skl-min-max": skl(make_pipeline(MinMaxScaler((3, -2)[::-1]), RandomForestRegressor(**SMALL)), REGRESSION),
    "onnx-skl-min-max-clip": skl(make_pipeline(MinMaxScaler(clip=True), DecisionTreeRegressor()), REGRESSION),
    "onnx-skl-max-abs": skl(make_pipeline(MaxAbsScaler(), ExtraTreesClassifier(**SMALL)), MULTI),
    "onnx-skl-imputer": skl(make_pipeline(SimpleImputer(), RandomForestClassifier(**SMALL)), with_missing(BINARY)),
    "onnx-skl-imputer-zero": skl(
        make_pipeline(SimpleImputer(missing_values=0.0), StandardScaler(), DecisionTreeRegressor(random_state=0)),
        with_zeros(REGRESSION),
    ),
    "onnx-skl-columns": skl(
        make_pipeline(
            ColumnTransformer([("a", StandardScaler(), [4, 0]), ("b", SimpleImputer(), [5, 7, 0])]),
            ExtraTreesRegressor(**SMALL),
        ),
        with_missing(REGRESSION),
    ),
    "onnx-skl-by-column": by_column,
    "onnx-xgb-binary": tools(xgboost.XGBClassifier(n_estimators=12, max_depth=4), with_missing(BINARY)),
    "onnx-xgb-multi": tools(xgboost.XGBClassifier(n_estimators=8, max_depth=4), MULTI),
    "onnx-xgb-regression": tools(xgboost.XGBRegressor(n_estimators=12, max_depth=4), with_missing(REGRESSION)),
    "onnx-xgb-forest": tools(xgboost.XGBRFClassifier(n_estimators=12, max_depth=4), BINARY),
    "onnx-lgb-binary": tools(lightgbm.LGBMClassifier(**LIGHT), with_missing(BINARY)),
    "onnx-lgb-multi": tools(lightgbm.LGBMClassifier(**LIGHT), MULTI),
    "onnx-lgb-regression": tools(lightgbm.LGBMRegressor(**LIGHT), with_missing(REGRESSION)),
    "onnx-lgb-poisson": tools(
        lightgbm.LGBMRegressor(objective="poisson", **LIGHT), REGRESSION, value_ulps=LINK_ULPS
    ),
    "onnx-lgb-categories": tools(
        lightgbm.LGBMClassifier(
            min_data_per_group=1, cat_smooth=1, max_cat_to_onehot=1, max_cat_threshold=8, **LIGHT
        ),
        categories(),
        {"categorical_feature": [0, 2]},
    ),
    "onnx-5-labels": by_hand(
        graph5(
            [
                helper.make_node("Add", ["sums", "base"], ["scores"]),
                helper.make_node("ArgMax", ["scores"], ["index"], axis=1, keepdims=0, select_last_index=1),
                helper.make_node("Gather", ["names", "index"], ["label"]),
            ],
            [("label", TensorProto.STRING), ("scores", FLOAT)],
            {"base": np.array([[0.5, -0.25, 0.125]], dtype=np.float32), "names": np.array(["a", "b", "c"])},
            3,
        ),
        folded=True,
    ),
    "onnx-5-steps": by_hand(
        graph5(
            [
                helper.make_node("Sub", ["one", "rows"], ["turned"]),
                helper.make_node("Clip", ["turned", "", "most"], ["clipped"]),
                helper.make_node("Div", ["clipped", "by"], ["X"]),
                helper.make_node("Div", ["sums", "trees"], ["mean"]),
                helper.make_node("Reshape", ["mean", "flat"], ["scores"]),
            ],
            [("scores", FLOAT)],
            {
                "one": np.float32(1),
                "most": np.float32(2.5),
                "by": np.array([3, -0.1, 1e-3], dtype=np.float32),
                "trees": np.array([15], dtype=np.float32),
                "flat": np.array([-1]),
            },
            1,
        ),
        folded=True,
    ),
    "onnx-text-one-hot": text(OneHotEncoder(handle_unknown="ignore")),
    "onnx-text-ordinal": text(
        make_pipeline(OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), StandardScaler())
    ),
    "onnx-5-narrowed": by_hand(
        lambda random: model(
            [
                helper.make_node("Cast", ["rows"], ["X"], to=FLOAT),
                helper.make_node(
                    "TreeEnsemble", ["X"], ["sums"], domain=ML,
                    **lists5(random_trees(random, 9, 1, MODES), FLOAT), n_targets=1,
                ),
            ],
            [("rows", DOUBLE, 3)],
            [("sums", FLOAT)],
            ml=5,
            opset=21,
        ),
        np.float64,
    ),
}  # fmt: skip
FILES: dict[str, Callable[[], bytes]] = {"onnx": lambda: onnx_models.regressor(onnx_models.TREES).SerializeToString()}
