"""Tests that the pipeline trusts no promise: passes that break theirs are caught."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from models import trained
from sklearn.metrics import r2_score

from forestc import load
from forestc.errors import CheckError, OptionError
from forestc.forest.builder import changed_tree
from forestc.passes.base import PassResult
from forestc.passes.pipeline import run_passes
from forestc.passes.promises import (
    CHECKS,
    EveryPath,
    Exact,
    FewChanges,
    KeepsDecisions,
    KeepsPaths,
    PromiseCheck,
    ScoresWithin,
    Within,
)
from forestc.passes.scorer import ERRORS, Scorer
from forestc.rows.batches import ArrayRows
from forestc.rows.encode import evaluate
from forestc.rows.ranges import Ranges, ValueRange


@dataclass(frozen=True)
class Moved:
    """A pass that moves the first tree's first threshold."""

    by: float
    name: ClassVar[str] = "moved"

    def run(self, forest, rows, scorer=None):
        first = forest.trees[0]
        threshold = first.threshold.copy()
        threshold[0] = np.float32(threshold[0] + self.by)
        return self.promising(forest, changed_tree(first, threshold=threshold))

    def promising(self, forest, first):
        return PassResult(replace(forest, trees=(first, *forest.trees[1:])), (self.promise,))


@dataclass(frozen=True)
class Raised(Moved):
    """A pass that adds to every leaf of the first tree. No path changes."""

    name: ClassVar[str] = "raised"

    def run(self, forest, rows, scorer=None):
        first = forest.trees[0]
        return self.promising(forest, changed_tree(first, values=first.values + self.by))


@dataclass(frozen=True)
class Biased(Moved):
    """A pass that adds to the bias alone. All trees stay the same objects."""

    name: ClassVar[str] = "biased"

    def run(self, forest, rows, scorer=None):
        return PassResult(replace(forest, bias=forest.bias + self.by), (self.promise,))


def lying(promise, by, kind=Moved):
    """Returns a pass with a promise that may be wrong. The promise is no option of the pass."""
    step = kind(by)
    object.__setattr__(step, "promise", promise)
    return step


@pytest.fixture
def job():
    model, X, _ = trained("tree-binary")
    return load(model), ArrayRows(X)


def test_a_moved_threshold_is_not_exact_even_where_no_row_sees_it(job):
    forest, rows = job
    x = rows.X[:, forest.features[forest.trees[0].feature[0]].column].astype(np.float32)
    gap = np.sort(x[x >= forest.trees[0].threshold[0]])[0] - forest.trees[0].threshold[0]
    assert gap > 0
    liar = lying(Exact(), float(gap) / 2)
    with pytest.raises(CheckError, match=r"moved.* promised to keep all scores and changed one"):
        run_passes(forest, [liar], rows)
    run_passes(forest, [lying(KeepsDecisions(), liar.by)], rows)


def test_a_changed_bias_is_not_exact_though_all_trees_are_the_same(job):
    forest, rows = job
    with pytest.raises(CheckError, match="promised to keep all scores and changed one"):
        run_passes(forest, [lying(Exact(), 0.5, Biased)], rows)


def test_a_pass_that_changes_nothing_is_checked_on_as_many_inputs(job):
    forest, rows = job
    nothing, copied = Raised(0.0), Moved(0.0)
    object.__setattr__(nothing, "run", lambda *_: PassResult(forest, (Exact(),)))
    object.__setattr__(copied, "promise", Exact())
    steps = run_passes(forest, [nothing, copied], rows)[1]
    assert steps[0].inputs_checked == steps[1].inputs_checked > 0


def test_a_changed_decision_is_not_exact_on_data(job):
    forest, rows = job
    with pytest.raises(CheckError, match="promised to keep all decisions and changed"):
        run_passes(forest, [lying(KeepsDecisions(), 30.0)], rows)
    with pytest.raises(CheckError, match=r"of the decisions on the given rows; 0\.00% is allowed"):
        run_passes(forest, [lying(FewChanges(0.0), 30.0)], rows)


def test_what_ran_is_written_down(job):
    forest, rows = job
    from forestc.passes import passes_from

    result, steps = run_passes(forest, passes_from("simplify,round-leaves{leaf_bits=4}"), rows)
    assert result.provenance.passes == ("simplify", "quantize-inputs", "round-leaves{leaf_bits=4}")
    assert [step.guarantee for step in steps] == ["exact", "exact-on-data", "exact-on-data"]
    assert all(step.inputs_checked >= len(rows.X) for step in steps)


def test_what_passes_promise_together_is_checked_at_the_end(job, monkeypatch):
    forest, rows = job
    monkeypatch.setitem(CHECKS, KeepsDecisions, PromiseCheck)  # The pass by itself is trusted.
    with pytest.raises(CheckError, match="at most 0 decisions"):
        run_passes(forest, [lying(KeepsDecisions(), 30.0)], rows)
    run_passes(forest, [lying(KeepsDecisions(), 30.0), lying(FewChanges(1.0), 0.0)], rows)


def test_a_changed_path_is_found_where_no_decision_changes(job):
    """Paths are compared leaf by leaf: the error names the first row and tree."""
    forest, rows = job
    with pytest.raises(CheckError, match=r"promised to keep all paths and changed \d+.*row \d+ and tree 0 from leaf"):
        run_passes(forest, [lying(KeepsPaths(), 0.5)], rows)


def test_a_path_of_a_later_batch_is_named_by_its_row(job):
    forest, rows = job
    x = rows.X[:, forest.features[forest.trees[0].feature[0]].column].astype(np.float32)
    moved = (x >= forest.trees[0].threshold[0]) & (x < np.float32(forest.trees[0].threshold[0] + 30.0))
    X = np.concatenate([rows.X[~moved], rows.X[moved][:1]])
    with pytest.raises(CheckError, match=f"changed 1, of row {len(X) - 1} and tree 0"):
        run_passes(forest, [lying(KeepsPaths(), 30.0)], ArrayRows(X, size=50))


def test_every_path_holds_decisions_and_scores_to_their_bound(job):
    forest, rows = job
    with pytest.raises(CheckError, match="promised to keep all paths"):
        run_passes(forest, [lying(EveryPath(True, 1.0), 30.0)], rows)
    _, (same,) = run_passes(forest, [lying(EveryPath(True, 0.5, Ranges({0: ValueRange()})), 0.0)], rows)
    assert same.promise == "exact (paths, in the ranges), scores within 0.5"
    model, X, _ = trained("tree-regression")
    run_passes(load(model), [lying(EveryPath(True, 2.1), 2.0, Raised)], ArrayRows(X))
    for promise in (EveryPath(True, 1.9), ScoresWithin(1e-9)):
        with pytest.raises(CheckError, match=r"scores within 1\.9 for every input|changes scores by"):
            run_passes(load(model), [lying(promise, 2.0, Raised)], ArrayRows(X))
    low, high = (float(of(model.predict(X))) for of in (np.min, np.max))
    share = 2.0 / (high - low)
    with pytest.raises(CheckError, match="of the range of scores, at worst"):
        run_passes(load(model), [lying(FewChanges(share * 0.99), 2.0, Raised)], ArrayRows(X))
    run_passes(load(model), [lying(FewChanges(share * 1.01), 2.0, Raised)], ArrayRows(X))


def test_a_loss_counts_with_its_standard_errors_and_against_the_model(job):
    """A moved threshold changes some decisions on held-out rows; a second pass that changes nothing has the
    same loss."""
    forest, rows = job
    liar, y = lying(Within(1.0), 30.0), evaluate(forest, rows.X).index
    held_out = ArrayRows(rows.X, y, size=100)
    _, (output,) = run_passes(forest, [liar], rows, held_out)
    lost, error = output.held_out["lost_in_all"], output.held_out["standard_error"]
    moved = evaluate(liar.run(forest, rows).forest, rows.X).index != y
    assert lost == pytest.approx(moved.mean()) and error == pytest.approx(moved.std(ddof=1) / len(y) ** 0.5)
    enough = lost + ERRORS * error
    run_passes(forest, [lying(Within(enough * 1.001), 30.0)], rows, held_out)
    for tolerance in (enough * 0.999, lost):
        with pytest.raises(CheckError, match="is lost on 569 held-out rows"):
            run_passes(forest, [lying(Within(tolerance), 30.0)], rows, held_out)
    with pytest.raises(CheckError, match="is lost on 569 held-out rows"):
        run_passes(forest, [liar, lying(Within(lost), 0.0)], rows, held_out)
    with pytest.raises(CheckError, match="is scored on held-out rows, and there are none"):
        run_passes(forest, [liar], rows)


def test_of_a_regression_r_squared_is_judged():
    model, X, y = trained("tree-regression")
    forest = load(model)
    _, (output,) = run_passes(forest, [lying(Within(1.0), 5.0, Raised)], ArrayRows(X), ArrayRows(X, y, size=77))
    before, after = (r2_score(y, model.predict(X) + by) for by in (0.0, 5.0))
    each = (y - model.predict(X) - 5.0) ** 2 - (y - model.predict(X)) ** 2
    assert output.held_out["measure"] == "R squared"
    assert (output.held_out["before"], output.held_out["after"]) == pytest.approx((before, after))
    assert output.held_out["lost_in_all"] == pytest.approx(before - after)
    assert output.held_out["standard_error"] == pytest.approx(
        each.std(ddof=1) * len(y) ** 0.5 / ((y - y.mean()) ** 2).sum()
    )
    with pytest.raises(OptionError, match="the held-out rows all have the same label"):
        Scorer(forest, ArrayRows(X, np.ones(len(X)))).of(forest)
    with pytest.raises(OptionError, match="no rows are held out"):
        Scorer(forest, ArrayRows(X[:0])).of(forest)
    assert Scorer(forest, ArrayRows(X)).of(forest).measure == "agreement with the model"
