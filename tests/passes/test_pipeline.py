"""The pipeline takes no promise on trust: passes that break theirs are caught."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from models import trained

from forestc import load
from forestc.errors import CheckError
from forestc.forest.builder import changed_tree
from forestc.forest.rows import ArrayRows
from forestc.passes.base import PassResult
from forestc.passes.pipeline import run_passes


@dataclass(frozen=True)
class Liar:
    guarantee: str
    shift: float
    keeps: str = "decisions"
    shown: int | None = None
    name: ClassVar[str] = "liar"

    def run(self, forest, rows):
        first = forest.trees[0]
        threshold = first.threshold.copy()
        threshold[0] = np.float32(threshold[0] + self.shift)
        drawn = None if self.shown is None else np.full((len(forest.trees), len(rows.X)), self.shown, dtype=np.uint8)
        trees = (changed_tree(first, threshold=threshold), *forest.trees[1:])
        return PassResult(replace(forest, trees=trees), self.guarantee, keeps=self.keeps, drawn=drawn)


@pytest.fixture
def job():
    model, X, _ = trained("tree-binary")
    return load(model), ArrayRows(X)


def test_a_moved_threshold_is_not_exact_even_where_no_row_sees_it(job):
    forest, rows = job
    x = rows.X[:, forest.features[forest.trees[0].feature[0]].column].astype(np.float32)
    gap = np.sort(x[x >= forest.trees[0].threshold[0]])[0] - forest.trees[0].threshold[0]
    assert gap > 0
    liar = Liar("exact", float(gap) / 2)
    with pytest.raises(CheckError, match=r"liar.* promised to change nothing and changed a score"):
        run_passes(forest, [liar], rows)
    run_passes(forest, [replace(liar, guarantee="exact-on-data")], rows)


def test_a_changed_decision_is_not_exact_on_data(job):
    forest, rows = job
    with pytest.raises(CheckError, match="promised to change no decision and changed"):
        run_passes(forest, [Liar("exact-on-data", 30.0)], rows)
    with pytest.raises(CheckError, match="of the decisions; the tolerance is"):
        run_passes(forest, [Liar("approximate", 30.0)], rows)


def test_what_ran_is_written_down(job):
    forest, rows = job
    from forestc.passes import passes_from

    result, steps = run_passes(forest, passes_from("simplify,quantize{leaf_bits=4}"), rows)
    assert result.provenance.passes == ("simplify", "quantize{leaf_bits=4}")
    assert [step.guarantee for step in steps] == ["exact", "exact-on-data"]
    assert all(step.inputs_checked >= len(rows.X) for step in steps)


def test_a_changed_path_is_found_where_no_decision_changes(job):
    """Leaf by leaf: the first row and tree are named."""
    forest, rows = job
    with pytest.raises(CheckError, match=r"promised to change no path and changed \d+.*row \d+, tree 0: from leaf"):
        run_passes(forest, [Liar("exact-on-data", 0.5, "paths")], rows)
    with pytest.raises(CheckError, match="promised to change no path"):
        run_passes(forest, [Liar("exact-on-data", 0.5, "paths", 1)], rows)
    _, (step,) = run_passes(forest, [Liar("exact-on-data", 0.5, "paths", 0)], rows)
    assert step.keeps == "paths of each tree's own rows"
