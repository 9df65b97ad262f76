from __future__ import annotations

import numpy as np
import pytest
import skops.io
from models import BINARY, REGRESSION
from sklearn.compose import TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.ensemble._forest import ForestRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsOneClassifier
from sklearn.multioutput import ClassifierChain
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, KBinsDiscretizer, Normalizer, OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from forestc import load
from forestc.errors import ModelError
from forestc.frontends.shared.exact import next_above
from forestc.rows.encode import evaluate


def test_a_damaged_pickle_is_refused(tmp_path):
    (tmp_path / "bad.pkl").write_bytes(b"\x80\x05junk")
    with pytest.raises(ModelError, match="not a readable pickle"):
        load(tmp_path / "bad.pkl", trust_pickle=True)


def test_skops_files_with_unsafe_types_are_refused(tmp_path):
    model = RandomForestClassifier(2).fit(*BINARY(return_X_y=True))
    model.surprise = _Surprise()
    skops.io.dump(model, tmp_path / "m.skops")
    with pytest.raises(ModelError, match=r"does not trust: .*_Surprise"):
        load(tmp_path / "m.skops")
    (tmp_path / "bad.skops").write_bytes(b"PK\x03\x04 not a zip")
    with pytest.raises(ModelError, match="not a readable skops file"):
        load(tmp_path / "bad.skops")


TREE = DecisionTreeClassifier()


class _Surprise:
    pass


class MyForest(RandomForestClassifier):
    def predict(self, X):
        return super().predict(X)[::-1]


class MyRegression(ForestRegressor):
    def __init__(self, n_estimators=2, criterion="squared_error"):
        super().__init__(DecisionTreeRegressor(), n_estimators)
        self.criterion = criterion


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda X, y: RandomForestClassifier(2), "not fitted"),
        (lambda X, y: StackingClassifier([("a", TREE)]).fit(X, y), "StackingClassifier is not read"),
        (lambda X, y: LogisticRegression().fit(X[:, :2], y), "LogisticRegression is not read"),
        (
            lambda X, y: AdaBoostClassifier(RandomForestClassifier(2), n_estimators=2).fit(X, y),
            "estimator 0 is a RandomForestClassifier",
        ),
        (lambda X, y: BaggingClassifier(GaussianNB(), 2).fit(X, y), "member 0.*: GaussianNB is not read"),
        (lambda X, y: OneVsOneClassifier(TREE).fit(X, y), "OneVsOneClassifier is not read: .*train"),
        (lambda X, y: ClassifierChain(TREE).fit(X, np.stack([y, 1 - y], 1)), "ClassifierChain is not read: .*Multi"),
        (
            lambda X, y: TransformedTargetRegressor(DecisionTreeRegressor(), func=np.log1p, inverse_func=np.expm1).fit(
                X, y
            ),
            "TransformedTargetRegressor is not read: .*regressor_",
        ),
        (
            lambda X, y: VotingClassifier([("a", TREE), ("b", GaussianNB())]).fit(X, y),
            "VotingClassifier, member 1.*: GaussianNB is not read",
        ),
        (lambda X, y: make_pipeline(PCA(2), TREE).fit(X, y), "step 'pca': PCA can't be folded"),
        (lambda X, y: make_pipeline(Normalizer(), TREE).fit(X, y), "Normalizer can't be folded"),
        (lambda X, y: make_pipeline(FunctionTransformer(np.log1p), TREE).fit(X, y), "Transformer with a function"),
        (lambda X, y: make_pipeline(KBinsDiscretizer(3, encode="onehot"), TREE).fit(X, y), "with encode='onehot'"),
        (lambda X, y: MyForest(2).fit(X, y), "MyForest: predicts otherwise than its parent RandomForestClassifier"),
        (lambda X, y: MyRegression().fit(X, y), "MyRegression is not read"),
        (
            lambda X, y: GradientBoostingClassifier(n_estimators=2, init=RandomForestClassifier(2)).fit(X, y),
            "initial estimator RandomForestClassifier is not a sum of trees",
        ),
        (lambda X, y: object(), "objects of type object are not read"),
    ],
)
def test_what_is_not_read_exactly_is_refused_by_name(model, message):
    with pytest.raises(ModelError, match=message):
        load(model(*BINARY(return_X_y=True)))


def test_a_model_of_one_class_says_that_class():
    X, y = BINARY(return_X_y=True)
    for model in (DecisionTreeClassifier(), RandomForestClassifier(3), BaggingClassifier(n_estimators=2)):
        forest = load(model.fit(X, np.full(len(y), 7)))
        assert evaluate(forest, X).decision.tolist() == [7] * len(X)


def test_an_initial_estimator_of_boosting_may_be_a_prior():
    X, y = BINARY(return_X_y=True)
    model = GradientBoostingClassifier(n_estimators=4, init=DummyClassifier(strategy="prior")).fit(X, y)
    assert np.array_equal(evaluate(load(model), X).scores[:, 0], model.decision_function(X))


def test_thresholds_become_strict_without_moving_a_float32():
    X, y = REGRESSION(return_X_y=True)
    tree = RandomForestRegressor(1, random_state=0).fit(X, y).estimators_[0].tree_
    old = np.concatenate([tree.threshold, [0.0, -0.0, 1e-46, -1e-46, 3.5e38, -3.5e38, np.inf, 1.0, 0.1]])
    new = next_above(old, 32)
    with np.errstate(over="ignore"):
        near = old.astype(np.float32)
    for step in (near, np.nextafter(near, np.float32(np.inf)), np.nextafter(near, np.float32(-np.inf))):
        finite = np.isfinite(step)
        assert np.array_equal((step.astype(np.float64) <= old)[finite], (step.astype(np.float64) < new)[finite])


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(ModelError, match="there is no such file"):
        load(tmp_path / "model.json")
    with pytest.raises(ModelError, match="there is no such file"):
        load(tmp_path / ("x" * 300))
    (tmp_path / "modle.json").touch()
    with pytest.raises(ModelError, match=r"did you mean '.*modle.json'"):
        load(tmp_path / "model.json")


def test_files_that_unpack_to_far_more_than_a_model_are_refused(tmp_path):
    import zipfile

    with zipfile.ZipFile(tmp_path / "bomb.skops", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("schema.json", "{}")
        archive.writestr("zeros.npy", bytes(200 << 20))
    with pytest.raises(ModelError, match=r"the file unpacks to 2.* bytes, far more than a model of its size"):
        load(tmp_path / "bomb.skops")


def test_codes_of_a_column_that_was_changed_before_are_refused():
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    model = make_pipeline(StandardScaler(), codes, DecisionTreeClassifier(random_state=0))
    model.fit(np.arange(30.0).reshape(10, 3), [0, 1] * 5)
    with pytest.raises(ModelError, match="values of a column that was changed before"):
        load(model)
