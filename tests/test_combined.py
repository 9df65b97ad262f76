"""Tests means of probabilities by curves, and weighted medians: they are compiled and proved, and no planted
error is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from lightgbm import LGBMClassifier
from random_forests import random_forest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from thinned import only, thinned
from xgboost import XGBClassifier

import forestc
from forestc import load
from forestc.backends.vectors import expected, random_words
from forestc.checks.proof import prove_netlist
from forestc.errors import ForestcError, ModelError
from forestc.forest.builder import changed
from forestc.forest.ir import Link
from forestc.lowering.trees import LoweringOptions, lower_with_witness
from forestc.netlist.ir import Compare, Less, Mux
from forestc.rows.encode import evaluate
from hw_sim import evaluate as simulate

COMBINED = ["average", "median", "means"]


def outputs_of(kind):
    return "scores" if kind == "median" else "both"


@pytest.mark.parametrize("kind", COMBINED)
def test_no_planted_error_is_proved(kind, need_tool):
    """Changes a threshold by one, or exchanges the arms of a multiplexer: it is refuted, or the results are
    the same."""
    need_tool("bitwuzla")
    wrong = 0
    for seed in range(2):
        forest, random = random_forest(seed, True, kind), np.random.default_rng(seed)
        netlist, witness = lower_with_witness(forest, LoweringOptions(outputs=outputs_of(kind)))
        words = random_words(forest, np.zeros((1, len(forest.features)), dtype=np.int64), 3000, random)
        kinds = Less | Mux | Compare if kind == "means" else Less | Mux
        places = [net for net, cell in enumerate(netlist.cells) if isinstance(cell, kinds)]
        for net in random.choice(places, min(12, len(places)), replace=False).tolist():
            match cell := netlist.cells[net]:
                case Mux(select, a, b):
                    other = Mux(select, b, a)
                case Compare(a, b):
                    other = Compare(b, a)
                case _:
                    other = Less(cell.a, cell.threshold + 1)
            broken = replace(netlist, cells=(*netlist.cells[:net], other, *netlist.cells[net + 1 :]))
            try:
                proof = prove_netlist(forest, broken, witness)
            except ForestcError:
                continue  # The verifier rejects this netlist.
            same = np.array_equal(simulate(broken, words), expected(forest, netlist, words))
            assert same if proof.proved else proof.parts
            wrong += not same
    assert wrong >= 5


def test_weighted_medians_compile(tmp_path):
    rows, truth = load_diabetes(return_X_y=True)
    model = AdaBoostRegressor(DecisionTreeRegressor(max_depth=3), n_estimators=7, random_state=0).fit(rows, truth)
    done = forestc.compile(model, rows, tmp_path / "d", label=truth, name="m")
    assert forestc.check(done.design, rows, label=truth).ok
    error = np.abs(done.design.predict(rows) - model.predict(rows)).max()
    assert error <= 0.01 * np.ptp(model.predict(rows))


def boosted(**more):
    return GradientBoostingClassifier(n_estimators=4, max_depth=2, random_state=0, **more)


def few_trees(**more):
    return RandomForestClassifier(7, max_depth=4, random_state=0, **more)


def of_classes(members, **more):
    return VotingClassifier([(str(place), one) for place, one in enumerate(members)], voting="soft", **more)


MEANS = {
    "boosting-forest": (lambda: of_classes([boosted(), few_trees()]), load_digits),
    "three-libraries": (
        lambda: of_classes(
            [
                HistGradientBoostingClassifier(max_iter=5, max_leaf_nodes=5),
                XGBClassifier(n_estimators=5, max_depth=2),
                LGBMClassifier(n_estimators=5, num_leaves=4, verbose=-1),
            ]
        ),
        load_iris,
    ),
    "weighted": (
        lambda: of_classes(
            [boosted(), ExtraTreesClassifier(5, max_depth=4, random_state=0), DecisionTreeClassifier(max_depth=3)],
            weights=[2, 0.5, 0.3],
        ),
        load_wine,
    ),
    "two-classes-softmax": (
        lambda: of_classes(
            [
                XGBClassifier(n_estimators=5, max_depth=2, objective="multi:softprob", num_class=2),
                few_trees(),
                boosted(),
            ]
        ),
        load_breast_cancer,
    ),
    "sigmoid": (lambda: CalibratedClassifierCV(few_trees(), cv=3), load_wine),
    "sigmoid-one": (lambda: CalibratedClassifierCV(boosted(), cv=3, ensemble=False), load_wine),
    "isotonic": (lambda: CalibratedClassifierCV(boosted(), method="isotonic", cv=3), load_wine),
    "isotonic-one": (lambda: CalibratedClassifierCV(few_trees(), method="isotonic", cv=3, ensemble=False), load_iris),
    "temperature": (lambda: CalibratedClassifierCV(boosted(), method="temperature", cv=2), load_iris),
    "two-classes": (
        lambda: of_classes([few_trees(), boosted(), HistGradientBoostingClassifier(max_iter=6)], weights=[2, 1, 0.3]),
        load_breast_cancer,
    ),
    "two-classes-sigmoid-ada": (
        lambda: CalibratedClassifierCV(AdaBoostClassifier(n_estimators=5, random_state=0), cv=3),
        load_breast_cancer,
    ),
    "two-classes-isotonic": (
        lambda: CalibratedClassifierCV(boosted(), method="isotonic", cv=3),
        load_breast_cancer,
    ),
    "calibrated-in-vote": (
        lambda: of_classes([CalibratedClassifierCV(few_trees(), cv=3, ensemble=False), boosted()]),
        load_iris,
    ),
}


@pytest.mark.parametrize(
    "kind",
    only(sorted(MEANS), 3, 5, 8, 9, 12),
)
def test_means_over_classes_compile_and_are_proved(kind, tmp_path):
    make, data = MEANS[kind]
    rows, truth = data(return_X_y=True)
    train, test = slice(0, None, 2), slice(1, None, 2)
    model = make().fit(rows[train], truth[train])
    wanted = {"label": truth[train], "targets": "verilog,c", "name": "m", "passes": "simplify,round-leaves,simplify"}
    done = forestc.compile(model, rows[train], tmp_path / "d", **wanted)
    assert done.agreement.agreement == 1.0
    result = forestc.check(done.design, rows[test], engines=["c", "netlist"], prove=True)
    assert result.ok and [part.name for part in result.proof.parts if part.asked != part.proved] == []
    compiled, own = (np.mean(each.predict(rows[test]) == truth[test]) for each in (done.design, model))
    assert compiled >= own - 0.02
    shown = done.design.predict_proba(rows[test])
    assert shown.sum(axis=1) == pytest.approx(1.0)
    if len(model.classes_) == 2:
        leaf_bits = next(step["leaf_bits"] for step in done.figures["passes"] if "leaf_bits" in step)
        assert np.abs(shown - model.predict_proba(rows[test])).max() < 2.0 ** (1 - leaf_bits)


@pytest.mark.parametrize(
    "kind", thinned(["boosting-forest", "weighted", "sigmoid", "sigmoid-one", "temperature", "two-classes"], keep=4)
)
def test_scores_keeps_the_probabilities_of_several_classes(kind, tmp_path):
    make, data = MEANS[kind]
    rows, truth = data(return_X_y=True)
    model = make().fit(rows, truth)
    done = forestc.compile(model, rows, tmp_path / "d", targets="c", name="m", scores=0.01)
    assert np.abs(done.design.predict_proba(rows) - model.predict_proba(rows)).max() <= 0.011  # the sum is just off 1
    values = evaluate(done.design.forest, rows).values
    assert np.abs(values - model.predict_proba(rows)).max() <= 0.01


def test_a_vote_of_one_softmax_is_that_softmax(tmp_path):
    rows, truth = load_iris(return_X_y=True)
    model = of_classes([boosted()]).fit(rows, truth)
    forest = forestc.quantize(load(model), rows)
    assert forest.single and forest.link.kind == "softmax"


def test_what_does_not_compile_is_refused_before_the_passes(tmp_path):
    rows, truth = load_iris(return_X_y=True)
    members = [("a", boosted()), ("b", few_trees())]
    forest = load(VotingClassifier(members, voting="soft").fit(rows, truth))
    turned = replace(forest.parts[0], link=Link("softmax", slope=-1.0))
    with pytest.raises(ModelError, match="part 0: a mean of values after a link softmax is read but not compiled"):
        forestc.compile(changed(forest, parts=(turned, forest.parts[1])), rows, tmp_path / "d")
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"curves": ((5, 3),)}, "a part's curve is missing, or does not ascend"),
        ({"curves": ()}, "a part's curve is missing"),
        ({"curves": ((1,) * 99,)}, "can't be combined by average over 2 classes"),
    ],
)
def test_damaged_curves_are_refused(change, said):
    forest = random_forest(1, True, "average")
    first, *rest = forest.parts
    with pytest.raises(ModelError, match=said):
        changed(forest, parts=(replace(first, **change), *rest))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"curves": ()}, "a part's curve is missing"),
        ({"curves": ((-5, -2, 3),)}, "cuts above 0"),
        ({"curves": ((-5, -2, 0),) * 3}, "3 curves of 3 scores after a softmax"),
        ({"link": Link("shares", each=(Link(),) * 2)}, "a link shares of 3 outputs has links of 2"),
        ({"link": Link("shares", each=(Link(), Link(), Link("softmax")))}, "a link softmax is not of a single output"),
        ({"link": Link("identity"), "curves": ((1, 2, 3), (4, 5, 6))}, "2 curves of 3 scores"),
        ({"link": Link("softmax", each=(Link(),) * 3)}, "a link softmax of 3 outputs has links of 3"),
    ],
)
def test_damaged_means_are_refused(change, said):
    forest = next(f for f in (random_forest(seed, True, "means") for seed in range(50)) if of_softmax(f))
    first, *rest = forest.parts
    with pytest.raises(ModelError, match=said):
        changed(forest, parts=(replace(first, **change), *rest))


def of_softmax(forest):
    first, *others = forest.parts
    return forest.combined and not others and (first.link.kind, first.width) == ("softmax", 3)
