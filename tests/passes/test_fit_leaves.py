from __future__ import annotations

import pytest
from models import trained
from settled_passes import run_passes
from sklearn.base import clone
from thinned import thinned

import forestc
from forestc import load
from forestc.errors import ModelError, OptionError
from forestc.passes.fit_leaves import fit_leaves
from forestc.passes.fit_leaves.fit_leaves import FitLeaves
from forestc.passes.quantize_inputs.quantize_inputs import QuantizeInputs
from forestc.passes.scorer import Scorer
from forestc.rows.batches import ArrayRows, FitAndHeldOut
from forestc.search.settle import settled

WORDS = QuantizeInputs()


@pytest.mark.parametrize(
    "kind", thinned(["xgboost-binary", "xgboost-multi", "forest-binary", "forest-multi", "boosting-binary"], keep=1)
)
def test_fitted_leaves_need_a_bit_or_two(kind, tmp_path):
    """Trains and fits on half of the rows, and tests on the other half; the compiled design equals the fitted
    forest."""
    model, X, y = trained(kind)
    trees = {"n_estimators": 20} if kind == "forest-multi" else {}  # With fewer trees each vote counts too much.
    model = clone(model).set_params(**trees).fit(X[::2], y[::2])
    fitted, rounded = (
        forestc.compile(
            model, X[::2], tmp_path / step[:3], label=y[::2], held_out=(X[1::2], y[1::2]),
            passes=f"simplify,{step},simplify",
        )
        for step in ("fit-leaves{leaf_bits=1,tolerance=0.1}", "round-leaves{leaf_bits=1,change=1}")
    )  # fmt: skip
    one, other = (of.figures["passes"][2] for of in (fitted, rounded))
    assert one["guarantee"] == "approximate" and one["leaf_bits"] == 1
    assert not one["chosen_on_held_out"]  # There was no choice to make on held-out rows.
    assert one["held_out"]["lost"] <= min(0.1, other["held_out"]["lost"] + 0.01)
    assert max(int(tree.values.max()) for tree in fitted.design.forest.trees) <= 1
    engines = ("netlist", "c") if kind.endswith("binary") else ("netlist",)
    assert forestc.check(fitted.design, X, engines=engines).ok


def test_fitting_finds_the_bits_that_are_enough():
    model, X, y = trained("xgboost-multi")
    forest = load(clone(model).fit(X[::2], y[::2]))
    rows = FitAndHeldOut(ArrayRows(X[::2], y[::2]), ArrayRows(X[1::2], y[1::2]))
    tight, loose = (run_passes(forest, [WORDS, FitLeaves(tolerance=most)], *rows)[1][1] for most in (0.02, 0.3))
    assert tight.held_out["lost"] <= 0.02 and loose.report["leaf_bits"] == 1 <= tight.report["leaf_bits"] <= 4
    # Without labels the leaves are fitted to the model.
    plain = FitAndHeldOut(ArrayRows(X[::2]), ArrayRows(X[1::2]))
    _, (_, output) = run_passes(forest, [WORDS, FitLeaves(leaf_bits=2, tolerance=0.1)], *plain)
    assert output.held_out["measure"] == "agreement with the model" and output.held_out["lost"] < 0.1


def test_fewer_rows_to_fit_on_where_there_are_too_many(monkeypatch):
    model, X, y = trained("xgboost-binary")
    forest = load(model)
    monkeypatch.setattr(fit_leaves, "MOST_LEAVES", 20 * 100)
    for size in (len(X), 33):
        rows = ArrayRows(X, y, size)
        result = settled(FitLeaves(2, 0.1), WORDS.run(forest, rows).forest, rows, Scorer(forest, ArrayRows(X, y)))
        assert result.report["rows"] == -(-len(X) // -(-len(X) * 20 // 2000))


def test_what_can_not_be_fitted():
    model, X, y = trained("xgboost-binary")
    forest, rows = load(model), ArrayRows(X, y)
    with pytest.raises(OptionError, match="fit-leaves: needs held-out rows"):
        settled(FitLeaves(), WORDS.run(forest, rows).forest, rows)
    with pytest.raises(ModelError, match="fit-leaves: works on words; put quantize-inputs before it"):
        FitLeaves(leaf_bits=1).run(forest, rows, Scorer(forest, rows))
    with pytest.raises(OptionError, match="fit-leaves: needs rows to fit leaves to"):
        FitLeaves(leaf_bits=1).run(QuantizeInputs(input="ordered").run(forest, None).forest, None)
    numbers, X, y = trained("xgboost-regression")
    forest, rows = load(numbers), ArrayRows(X, y)
    with pytest.raises(OptionError, match="fit-leaves: needs a model that decides on one class"):
        settled(FitLeaves(), WORDS.run(forest, rows).forest, rows, Scorer(forest, rows))
