"""Tests prune-exact: every result is confirmed on all cells with the plain evaluator, or by the other engine."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar

import numpy as np
import pytest
from models import trained
from random_forests import random_forest
from separation_program import separate_by_program
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingClassifier, RandomForestClassifier
from stump import stump
from xgboost import XGBClassifier

import forestc
from forestc.algorithms.separation.oracle import BoxEnsemble, Decider, separate
from forestc.errors import CheckError, ModelError, OptionError
from forestc.forest.builder import changed, changed_tree
from forestc.forest.evaluate import evaluate_words
from forestc.forest.numbers import Category, word_range
from forestc.forest.text import print_forest
from forestc.frontends import load
from forestc.passes import passes_from
from forestc.passes.base import PassResult
from forestc.passes.pipeline import run_passes
from forestc.passes.promises import Exact, SameDecisions
from forestc.passes.prune_exact.cells import cells_of, drawn
from forestc.passes.prune_exact.prune_exact import PruneExact
from forestc.rows.batches import ArrayRows

MOST_CELLS = 40_000


def words_of(forest, feature):
    """Returns a word of every kind that the forest can distinguish: the lowest, one on each cut, each code, missing."""
    own = forest.features[feature]
    span = word_range(own.number, own.missing)
    absent = [] if span.missing is None else [span.missing]
    if isinstance(own.number, Category):
        return [*range(span.low, span.high + 1), *absent]
    cuts = {span.low}
    for tree in forest.trees:
        for node in np.flatnonzero(tree.feature == feature).tolist():
            members = [tree.threshold[node]] if tree.set_index[node] < 0 else tree.sets[tree.set_index[node]]
            cuts |= {int(cut) for cut in members}
    return [*sorted(cut for cut in cuts if span.low <= cut <= span.high), *absent]


def all_inputs(forest):
    """Returns one row of words for each cell, or None if there are too many."""
    words = [words_of(forest, feature) for feature in range(len(forest.features))]
    if np.prod([len(own) for own in words], dtype=float) > MOST_CELLS:
        return None
    return np.array(list(itertools.product(*words)), dtype=np.int64).reshape(-1, len(words))


def wrong_inputs(before, after, inputs):
    """Returns how many inputs are decided differently."""
    return int((evaluate_words(before, inputs).index != evaluate_words(after, inputs).index).sum())


@cache
def small_forests():
    """Yields name, forest and all inputs of random integer forests, and of trained ones with few cells."""
    found = []
    for seed in range(400):
        forest = random_forest(seed, True, ["binary", "argmax", "vector"][seed % 3])
        inputs = all_inputs(forest)
        if inputs is not None and len(forest.trees) > 2 and len(inputs) > 30:
            found.append((f"random {seed}", forest, inputs))
        if len(found) == 30:
            break
    for data in (load_iris, load_wine, load_breast_cancer):
        X, y = data(return_X_y=True)
        for model in (
            RandomForestClassifier(7, max_depth=3, random_state=0),
            ExtraTreesClassifier(7, max_depth=3, random_state=1),
            GradientBoostingClassifier(n_estimators=6, max_depth=2, random_state=0),
            XGBClassifier(n_estimators=8, max_depth=2, random_state=0),
        ):
            model.fit(X[:, :3], y)
            forest, _ = run_passes(
                load(model), passes_from("simplify,round-leaves{leaf_bits=4,change=1}"), ArrayRows(X[:, :3])
            )
            inputs = all_inputs(forest)
            assert inputs is not None
            found.append((f"{data.__name__} {type(model).__name__}", forest, inputs))
    return found


def compared(before, after, engine):
    """Compares both complete forests with an engine: same or differs."""
    cells = cells_of(before)

    def ensemble(forest):
        # All conditions of the pruned forest are also the model's, so both share their cells.
        number = {condition: place for place, condition in enumerate(before.conditions)}
        left = tuple(cells.left[number[condition]] for condition in forest.conditions)
        own = [drawn(forest, replace(cells, left=left), index, {}).boxes for index in range(len(forest.trees))]
        zero = replace(own[0], value=np.zeros_like(own[0].value))
        return BoxEnsemble((*own, *[zero] * (len(before.trees) - len(own))), forest.bias)

    decision = before.decision
    decider = Decider(decision.threshold if decision.kind == "threshold" else None, decision.ties == "last")
    found = engine(ensemble(before), ensemble(after), decider, cells.box, 10**12)
    if found.cells is not None:  # Both engines give a single input, in words.
        assert wrong_inputs(before, after, cells.words_of(found.cells[np.newaxis])) == 1
    return found.state


def test_every_result_is_confirmed_on_all_cells():
    pruned = removed = 0
    for number, (name, forest, inputs) in enumerate(small_forests()):
        result = PruneExact(seed=number).run(forest, None)
        assert wrong_inputs(forest, result.forest, inputs) == 0, name
        figures = result.report
        assert figures["proof"]["state"] == "proved" and figures["proof"]["undecided"] == 0, name
        assert figures["nodes"] == [forest.n_nodes, result.forest.n_nodes]
        if result.promises == (Exact(),):
            assert result.forest is forest
        pruned += result.forest.n_nodes < forest.n_nodes
        removed += len(result.forest.trees) < len(forest.trees)
    assert len(small_forests()) > 40 and pruned > 30 and removed > 15


@pytest.mark.parametrize("kind", ["xgboost", "forest"])
def test_larger_results_are_proved_by_the_other_engine(kind):
    X, y = load_wine(return_X_y=True) if kind == "xgboost" else load_iris(return_X_y=True)
    forest = RandomForestClassifier(10, max_depth=6, random_state=0)
    model = XGBClassifier(n_estimators=6, max_depth=3) if kind == "xgboost" else forest
    forest, _ = run_passes(load(model.fit(X, y)), passes_from("simplify,round-leaves"), ArrayRows(X))
    result = PruneExact().run(forest, ArrayRows(X))
    assert result.forest.n_nodes < forest.n_nodes
    assert compared(forest, result.forest, separate_by_program) == "same"


@pytest.mark.parametrize(
    ("some", "most"),
    [
        pytest.param(slice(0, 30, 3), 20, id="random"),
        pytest.param(slice(0, None), 400, marks=pytest.mark.slow, id="all"),
    ],
)
def test_planted_wrong_prunings_are_caught_by_both_engines(some, most):
    planted = 0
    for name, forest, inputs in small_forests()[some]:
        random = np.random.default_rng(planted)
        for index, tree in enumerate(forest.trees):
            values = tree.values.copy()
            values[random.integers(len(values))] += int(random.integers(1, 6))
            dropped = forest.trees[:index] + forest.trees[index + 1 :]
            for wrong in (
                changed(
                    forest, trees=(*forest.trees[:index], changed_tree(tree, values=values), *forest.trees[index + 1 :])
                ),
                changed(forest, trees=dropped),
            ):
                if not wrong_inputs(forest, wrong, inputs):
                    continue
                planted += 1
                for engine in (separate, separate_by_program):
                    assert compared(forest, wrong, engine) == "differs", name
    assert planted > most


@dataclass
class Wrong:
    """A pass that may break its promise."""

    name: ClassVar[str] = "wrong"

    def run(self, forest, rows, scorer=None):
        return PassResult(self.after, (self.promise,))


def wrong_pass(after, promise):
    """Returns a pass with the result `after`, which is no option of the pass."""
    step = Wrong()
    step.after, step.promise = after, promise
    return step


def test_the_pipeline_checks_the_promise_by_itself():
    caught = 0
    for _, forest, inputs in small_forests()[::3]:
        wrong = changed(forest, trees=forest.trees[:-1])
        if wrong_inputs(forest, wrong, inputs) > 0.02 * len(inputs):
            with pytest.raises(CheckError, match="promised to keep all decisions"):
                run_passes(forest, [wrong_pass(wrong, SameDecisions("proved"))], None)
            caught += 1
    assert caught > 7


def test_words_and_cells_are_one_another_s():
    for _, forest, _ in small_forests()[::7]:
        cells = cells_of(forest)
        low, past = cells.box
        for cell in (low, past - 1, (low + past) // 2):
            assert np.array_equal(cells.of_words(cells.words_of(cell[np.newaxis])), cell[np.newaxis])


def test_that_no_tree_can_go_is_reported_as_proved():
    result = PruneExact().run(stump("uint2", 1), None)
    assert result.promises == (Exact(),) and result.report["trees"] == [1, 1]
    proof = result.report["proof"]
    assert (proof["state"], proof["changes"], proof["undecided"]) == ("proved", 0, 0)


def test_limits_are_reported_and_what_was_proved_stays():
    X, y = load_breast_cancer(return_X_y=True)
    forest, _ = run_passes(
        load(RandomForestClassifier(10, max_depth=6, random_state=0).fit(X, y)), passes_from("none"), ArrayRows(X)
    )
    short = PruneExact(effort=1).run(forest, ArrayRows(X))
    output = short.report["proof"]
    assert output["state"] == "effort reached" and output["undecided"] + output["not_examined"] > 0
    again = PruneExact(effort=1).run(forest, ArrayRows(X))
    assert print_forest(again.forest) == print_forest(short.forest) and again.report == short.report
    long = PruneExact(effort=200).run(forest, ArrayRows(X))
    assert long.forest.n_nodes <= short.forest.n_nodes
    assert "effort reached" in SameDecisions("effort reached").text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("effort=0", "effort=0; use millions of steps"),
        ("seed=-1", "seed=-1; use a whole number"),
        ("within=ranges", "no longer has the option 'within'; remove it"),
        ("margin=0.1", "no longer has the option 'margin'; use prune-splits"),
        ("trees=false", "no longer has the option 'trees'; remove it"),
        ("nodes=false", "no longer has the option 'nodes'; remove it"),
        ("time_limit=60", "no longer has the option 'time_limit'; use effort"),
    ],
)
def test_options_are_refused(options, message):
    with pytest.raises(OptionError, match=message):
        passes_from(f"prune-exact{{{options}}}")


def test_models_are_refused():
    float_forest = random_forest(1, False, "binary")
    with pytest.raises(ModelError, match="works on integer forests; put quantize-inputs,round-leaves before it"):
        PruneExact().run(float_forest, None)
    for kind in ("regression", "vote", "each"):
        with pytest.raises(OptionError, match="decides on one class"):
            PruneExact().refuse(random_forest(3, True, kind), None, None)
    forest = random_forest(1, True, "binary")
    smallest = replace(forest, aggregate=replace(forest.aggregate, kind="min"))
    with pytest.raises(OptionError, match="this takes the min"):
        PruneExact().refuse(smallest, None, None)
    huge = changed(forest, bias=np.array([1 << 45]))
    with pytest.raises(ModelError, match="too large; use fewer leaf_bits"):
        PruneExact().run(huge, None)
    many = random_forest(2, True, "argmax")
    on_values = replace(many, decision=replace(many.decision, on="values"))
    with pytest.raises(ModelError, match="values after its link"):
        PruneExact().run(on_values, None)


def test_a_model_is_refused_before_any_pass_runs(tmp_path):
    model, X, _ = trained("forest-regression")
    with pytest.raises(OptionError, match="prune-exact needs a model that decides"):
        forestc.compile(model, X, tmp_path / "out", passes="round-leaves,prune-exact")


def test_compiled_folder(tmp_path):
    X, y = load_iris(return_X_y=True)
    model = XGBClassifier(n_estimators=8, max_depth=3, random_state=0).fit(X, y)
    done = forestc.compile(model, X, tmp_path / "out", label=y, passes="simplify,round-leaves,prune-exact,simplify")
    figures = done.figures["passes"][3]
    assert figures["proof"]["state"] == "proved" and figures["change"] == 0
    assert figures["trees"][1] < figures["trees"][0]
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["guarantees"]["prune-exact"] == "exact (decisions; proved)"
    report = (tmp_path / "out" / "report.md").read_text()
    assert "every input is decided as before, which is proved" in report and "## exact pruning" in report
    checked = forestc.check(done.design, X, label=y, engines=["netlist"], prove=True)
    assert checked.ok and checked.agreement.agreement == done.agreement.agreement
