"""Tests the estimator of rules: scikit-learn's checks, tables of every kind, limits, and the compiled rules."""

import time

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.utils.estimator_checks import parametrize_with_checks

import forestc
from forestc.errors import ModelError, OptionError
from forestc.papers import BooleanRuleClassifier
from forestc.papers.rules.boolean_rules_table import condition_bits, conditions_of, table_columns

FAILS = {
    "check_class_weight_classifiers": "the least loss still spends conditions on classes of tiny weight, which do not "
    "generalize as the data are noise",
}


@pytest.mark.filterwarnings("ignore")  # as scikit-learn's own tests
@parametrize_with_checks([BooleanRuleClassifier(complexity=5, max_iter=2)], expected_failed_checks=lambda _: FAILS)
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


def frame(rows=300):
    random = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "age": random.integers(18, 90, rows).astype(float),
            "kind": random.choice(["a", "b", "c"], rows),
            "height": random.normal(170, 10, rows),
        }
    )
    table.loc[::7, "age"] = np.nan
    table.loc[::11, "kind"] = None
    y = np.where((table.age.isna() & (table.kind == "b")) | (table.kind.isna() & (table.height > 170)), "yes", "no")
    return table, y


@pytest.mark.parametrize("form", ["dnf", "cnf"])
def test_numbers_text_and_missing_values(form, tmp_path):
    X, y = frame()
    model = BooleanRuleClassifier(form=form, complexity=8, random_state=0).fit(X, y)
    assert model.loss_ >= model.bound_ >= 0 and model.score(X, y) > (0.98 if form == "dnf" else 0.94)
    text = model.export_text()
    assert "is missing" in text and text.endswith("ELSE no\n")
    unseen = pd.DataFrame({"age": [30.0, np.nan], "kind": ["unseen", "b"], "height": [100.0, np.nan]})
    rows = pd.concat([X, unseen], ignore_index=True)
    read = forestc.evaluate(forestc.load(model), rows)
    assert np.array_equal(model.classes_[read.index], model.predict(rows))
    forestc.compile(model, X, tmp_path / "out", targets=("c",))
    assert forestc.check(tmp_path / "out", X).ok


@pytest.mark.parametrize("form", ["dnf", "cnf"])
def test_several_classes_compile_to_the_same_decisions(form, tmp_path):
    X, y = load_iris(return_X_y=True)
    y = np.array(["setosa", "versicolor", "virginica"])[y]
    model = BooleanRuleClassifier(form=form, complexity=4, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.93
    forest = forestc.load(model)
    assert np.array_equal(model.classes_[forestc.evaluate(forest, X).index], model.predict(X))
    assert forest.classes == tuple(model.classes_)
    forestc.compile(model, X, tmp_path / "out", targets=("verilog",))
    assert forestc.check(tmp_path / "out", X).ok


def test_objects_text_and_picture_say_the_same():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    model = BooleanRuleClassifier(complexity=6, max_iter=3, random_state=0).fit(X, y == 0)
    (rule,) = model.rules_
    assert rule.label and model.complexity_ == sum(1 + len(clause) for clause in rule.clauses) <= 6
    holds = np.zeros(len(X), dtype=bool)
    for clause in rule.clauses:
        holds |= np.logical_and.reduce([condition.holds(X[condition.name].to_numpy()) for condition in clause])
        assert all(str(condition) in model.export_text() for condition in clause)
        assert all(f'"{condition}" -> ' in model.export_graphviz() for condition in clause)
    assert np.array_equal(holds, model.predict(X))
    assert model.export_text() == f"{rule}\nELSE False\n" and model.default_ == False  # noqa: E712


@pytest.mark.slow
def test_two_fits_are_equal_and_a_warm_start_is_no_worse():
    X, y = (part[:250] for part in load_breast_cancer(return_X_y=True))
    one, two = (BooleanRuleClassifier(max_iter=2, random_state=3).fit(X, y) for _ in range(2))
    assert one.rules_ == two.rules_ and one.bound_ == two.bound_
    again = one.set_params(warm_start=True, complexity=12, max_iter=1, random_state=4).fit(X, y)
    assert again.loss_ <= two.loss_


def test_a_warm_start_with_other_classes_begins_anew():
    X, y = load_iris(return_X_y=True)
    model = BooleanRuleClassifier(complexity=2, max_iter=1, warm_start=True, random_state=0)
    for labels, classes in ((np.ones(150), 1), (y == 0, 2), (y, 3), (y == 2, 2)):
        assert len(model.fit(X, labels).classes_) == classes and model.score(X, labels) > 0.9


def test_callbacks_interrupts_and_verbose(capsys):
    X, y = load_breast_cancer(return_X_y=True)
    seen = []

    def callback(incumbent, bound, gap):
        seen.append((incumbent, bound, gap))
        if len(seen) == 4:
            raise KeyboardInterrupt

    model = BooleanRuleClassifier(callback=callback, verbose=1, random_state=0).fit(X, y)
    assert model.interrupted_ and len(seen) == 4 and model.bound_ <= model.loss_ < 212
    assert all(0 <= bound <= incumbent and gap <= 1 for incumbent, bound, gap in seen)
    assert capsys.readouterr().out.startswith("[BooleanRuleClassifier] round 1: ")


@pytest.mark.parametrize("seconds", [0.5, 2])
def test_a_time_limit_holds(seconds):
    random = np.random.default_rng(0)
    X, y = random.normal(size=(5000, 12)), random.random(5000) < 0.3
    BooleanRuleClassifier(time_limit=0.1).fit(X[:50], y[:50])  # compiles functions
    begin = time.process_time()
    BooleanRuleClassifier(complexity=30, time_limit=seconds, random_state=0).fit(X, y)
    assert time.process_time() - begin < seconds + 1


def test_weights_count_as_copies_and_sparse_rows_as_dense():
    X, y = load_iris(return_X_y=True)
    y = y == 1
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    given = BooleanRuleClassifier(complexity=4, random_state=0).fit(X, y, weight)
    copied = BooleanRuleClassifier(complexity=4, random_state=0).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert given.rules_ == copied.rules_ and given.loss_ == copied.loss_
    assert np.array_equal(given.predict(csr_array(X)), given.predict(X))


def test_conditions_of_a_table():
    columns = table_columns(np.array([[1.0, "a", "x"], [2.0, "b", "x"], [None, "a", "x"], [4.0, None, "x"]], object))
    conditions = conditions_of(columns, ["n", "t", "c"], np.ones(4), 2)
    assert list(map(str, conditions)) == [
        "n <= 3", "n > 3", "n is missing", "n is not missing",
        "t = a", "t != a", "t = b", "t != b", "t is missing", "t is not missing",
    ]  # fmt: skip
    bits = condition_bits(conditions, columns).astype(int)
    assert bits[:, :5].tolist() == [[1, 0, 0, 1, 1], [1, 0, 0, 1, 0], [0, 0, 1, 0, 1], [0, 1, 0, 1, 0]]


def test_odd_tables_and_options():
    X, y = load_iris(return_X_y=True)
    alone = BooleanRuleClassifier().fit(X, np.ones(150))
    assert alone.rules_ == [] and (alone.predict(X) == 1).all() and alone.loss_ == 0
    with pytest.raises(ModelError, match="one class"):
        alone.as_forest()
    for form in ("dnf", "cnf"):
        constant = BooleanRuleClassifier(form=form).fit(np.zeros((150, 2)), y > 0)
        assert len(set(constant.predict(np.zeros((5, 2))))) == 1
    for wrong in ({"max_iter": 0}, {"time_limit": -1.0}, {"complexity": 0}, {"form": "xor"}, {"quantiles": 1}):
        with pytest.raises(OptionError) as raised:
            BooleanRuleClassifier(**wrong).fit(X, y)
        assert raised.value.do
