"""Tests what `--outputs` makes of every library's models: its own numbers of leaves, and its own margins."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from contract.kind import hard_rows
from contract.kinds import BY_MODULE, KINDS
from models import trained
from thinned import thinned

import forestc
from forestc.errors import OptionError
from forestc.forest.outputs import OUTPUTS, leaves_of, margins_of
from forestc.lowering.trees import Outputs
from forestc.netlist.ports import PortKind
from forestc.passes import PASSES
from forestc.passes.base import parse_passes
from forestc.passes.pipeline import run_passes
from forestc.rows.encode import evaluate
from forestc.rows.ranges import Ranges
from forestc.search.levels import EXACT

# Of each module two models run always.
SOME = [case for names in BY_MODULE.values() for case in thinned(sorted(names), keep=2)]


def exactly(forest):
    """Returns the integer forest of -O0, and the bound of its error."""
    made, steps = run_passes(forest, parse_passes(EXACT, PASSES), Ranges(), None)
    (rounded,) = [step.report for step in steps if "score_bound" in step.report]
    return made, rounded["score_bound"]


@pytest.mark.each_case
@pytest.mark.parametrize("name", SOME)
def test_leaves_and_margins_are_those_of_the_library(name):
    model = KINDS[name]()
    forest = forestc.load(model.source)
    rows = hard_rows(forest, model, 300)
    if model.leaves is not None:
        made, _ = exactly(leaves_of(forest))
        assert np.array_equal(evaluate(made, rows).scores, model.leaves(rows).reshape(len(rows), -1))
    read = margins_of(forest)
    assert (read is forest) or not read.decides
    if model.scores is not None and forest.adds and read is not forest:
        made, bound = exactly(read)
        theirs = np.asarray(model.scores(rows), dtype=np.float64).reshape(len(rows), -1)
        ours = evaluate(made, rows).values
        assert ours.shape == theirs.shape
        assert np.abs(ours - theirs).max() <= bound + 1e-6 * np.abs(theirs).max()


def compiled(tmp_path, **more):
    model, X, y = trained("forest-text-labels")
    return model, X, forestc.compile(model, X, tmp_path / "d", label=y, name="m", **more).design


def test_a_folder_predicts_what_apply_gives(tmp_path):
    model, X, design = compiled(tmp_path, outputs="leaves")
    assert np.array_equal(design.predict(X), model.apply(X))
    assert {entry["scale"] for entry in design.manifest["outputs"]} == {1.0}


def test_a_folder_predicts_margins_of_all_classes(tmp_path):
    model, X, design = compiled(tmp_path, outputs="margins", level=0)
    assert np.allclose(design.predict(X), model.predict_proba(X), atol=1e-4)
    assert any(", ".join(model.classes_) in note for note in design.model.provenance.notes)
    with pytest.raises(OptionError, match=r"label=: no label judges.* margins"):
        forestc.check(design, X, label=model.predict(X))


def test_the_two_best_classes_and_their_distance(tmp_path):
    model, X, design = compiled(tmp_path, outputs="top2", level=0)
    labels, distance = design.top2(X)
    shares = np.sort(model.predict_proba(X), axis=1)
    assert np.array_equal(labels[:, 0], model.predict(X))
    assert (labels[:, 0] != labels[:, 1]).all()
    assert np.allclose(distance, shares[:, -1] - shares[:, -2], atol=1e-4)
    best = model.predict_proba(X)[np.arange(len(X)), np.searchsorted(model.classes_, labels[:, 1])]
    assert np.allclose(best, shares[:, -2])
    names = [entry["name"] for entry in design.manifest["outputs"]]
    assert names == ["label", "second", "distance"]
    scales = [entry["scale"] for entry in design.manifest["outputs"]]
    assert scales == [1, 1, design.forest.scale]


def test_every_name_of_outputs_has_its_words():
    assert set(get_args(Outputs)) == {"auto", *OUTPUTS}
    assert {kind for words in OUTPUTS.values() for kind in words.kinds} <= set(get_args(PortKind))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"outputs": "leaves", "passes": "prune-trees,round-leaves"}, "outputs=: prune-trees.*passes="),
        ({"outputs": "leaves", "level": 2}, "outputs=: -O2.*-O1"),
        ({"outputs": "margins", "held_out": 0.2}, "outputs=: held_out=.*without"),
        ({"outputs": "top2", "targets": "engine"}, "outputs=: engine.*out of targets="),
        ({"outputs": "leafs"}, "outputs=: 'leafs'.*did you mean 'leaves'"),
    ],
)
def test_what_keeps_neither_leaves_nor_margins_is_refused(more, message, tmp_path):
    with pytest.raises(OptionError, match=message):
        compiled(tmp_path, **more)
