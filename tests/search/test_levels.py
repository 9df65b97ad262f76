"""Tests levels: their lists of passes, what each level keeps, and its behaviour if a promise cannot be kept."""

from __future__ import annotations

import json
import math
import threading
import time

import numpy as np
import pytest
from models import trained
from settled_passes import run_passes
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor, VotingClassifier
from sklearn.frozen import FrozenEstimator
from typer.testing import CliRunner

import forestc
from forestc import load
from forestc.cli import app
from forestc.errors import CheckError, OptionError
from forestc.forest.text import print_forest
from forestc.papers import ThresholdSharing
from forestc.passes import PASSES
from forestc.passes.base import parse_passes, print_pass
from forestc.passes.promises import EveryPath, Within
from forestc.passes.prune_splits.prune_splits import PruneSplits
from forestc.passes.quantize_inputs.quantize_inputs import QuantizeInputs
from forestc.passes.round_leaves.round_leaves import RoundLeaves
from forestc.passes.scorer import Scorer
from forestc.report.tables import level_tables
from forestc.rows.batches import ArrayRows
from forestc.rows.encode import evaluate
from forestc.rows.ranges import Ranges, made_rows
from forestc.search import levels
from forestc.search.cross_validation import Fold, Folds
from forestc.search.levels import LEVELS, SearchTerms, level_number, plan, searched
from forestc.search.sizes import Size


def compiled(kind, out, rows=True, **options):
    model, X, y = trained(kind)
    return forestc.compile(model, X if rows else None, out, label=y if rows else None, name="m", targets="c", **options)


def few_rounds():
    """Returns a small booster with its rows and labels, for tests that do not depend on its size."""
    model, X, y = trained("xgboost-binary")
    X, y = X[::2, :10], y[::2]
    return clone(model).set_params(n_estimators=5, max_depth=3).fit(X, y), X, y


@pytest.mark.parametrize("kind", ["forest-binary", "forest-text-labels"])
def test_each_level_keeps_what_it_says(kind):
    model, X, y = trained(kind)
    model = clone(model).set_params(n_estimators=8).fit(X[::2], y[::2])
    forest, held_out = load(model), ArrayRows(X[1::2], y[1::2])
    sizes = []
    for level in range(len(LEVELS)):
        quantized = forestc.quantize(
            model, X[::2], y[::2], level=level, held_out=(X[1::2], y[1::2]) if level > 1 else None
        )
        sizes.append(len(quantized.conditions.comparators))
        before, after = evaluate(forest, X[::2]), evaluate(quantized, X[::2])
        if level == 0:
            far = made_rows(forest, Ranges(), (quantized,)).X
            assert (evaluate(forest, far).index == evaluate(quantized, far).index).mean() > 0.9995
        if level <= 1:
            planned = plan(None, level, ArrayRows(X[::2]))
            kept, _ = run_passes(forest, planned.passes[:-1], ArrayRows(X[::2]))  # simplify joins equal leaves.
            assert (before.leaves == evaluate(kept, X[::2]).leaves).all()
        if level <= 1:
            assert (before.index == after.index).all()
        else:
            assert Scorer(forest, held_out).of(quantized).within(0.01)
    assert sizes[0] > sizes[1] >= sizes[2] and sizes[1] > sizes[3]


@pytest.mark.parametrize("keep", ["decisions", "paths"])
def test_what_is_kept_of_given_rows_beside_the_accuracy(keep, tmp_path):
    model, X, y = few_rounds()
    forest, asked = load(model), {"held_out": (X[1::2], y[1::2]), "level": 2, "tolerance": 0.05}
    done = forestc.compile(model, X[::2], tmp_path / "a", label=y[::2], keep=keep, targets="c", **asked)
    before, after = evaluate(forest, X[::2]), evaluate(done.design.forest, X[::2])
    assert done.figures["level"]["keeps"].startswith(f"every {keep[:-1]} of the given rows")
    assert Scorer(forest, ArrayRows(X[1::2], y[1::2])).of(done.design.forest).within(0.05)
    assert not any("--keep" in note for note in done.figures["notes"])
    assert (before.index == after.index).all()
    assert (done.figures["level"]["tried"] > 3) == (keep == "decisions")  # Only -O1 keeps all paths.


def test_a_level_that_keeps_paths_takes_no_pass_that_does_not(tmp_path, monkeypatch):
    """The level's promise is what all its passes promise together."""
    model, X, y = few_rounds()
    monkeypatch.setattr(levels, "PATHS", "quantize-inputs,fit-leaves{leaf_bits=2}")
    with pytest.raises(CheckError, match="keep"):
        forestc.compile(
            model, X[::2], tmp_path / "a", label=y[::2], keep="paths", targets="c", held_out=(X[1::2], y[1::2]), level=2
        )


def test_a_kept_promise_needs_a_level_that_searches(tmp_path):
    with pytest.raises(OptionError, match="-O: a keep needs -O2 or -O3; add -O3"):
        compiled("xgboost-binary", tmp_path / "a", keep="paths")
    with pytest.raises(OptionError, match="known: decisions, paths"):
        compiled("xgboost-binary", tmp_path / "a", keep="all", level=2)


def test_no_level_is_larger_than_the_one_before(tmp_path):
    model, X, y = few_rounds()
    held_out = (X[1::2], y[1::2])
    tables = [
        forestc.compile(
            model, X[::2], tmp_path / f"{level}", label=y[::2], level=level, held_out=held_out, tolerance=0.03,
            targets="c",
        ).figures["level"]["table"]
        for level in (2, 3)
    ]  # fmt: skip
    first, second = ({trial["family"]: trial for trial in table} for table in tables)
    plain = first["paths kept"]["size"]
    taken = [next(trial for trial in table.values() if trial["chosen"])["size"] for table in (first, second)]
    assert taken[1] <= taken[0] <= plain and taken[1] < plain
    assert {family: trial["accuracy"] for family, trial in first.items()}.items() <= {
        family: trial["accuracy"] for family, trial in second.items()
    }.items()


def test_the_default_is_the_first_level_and_named_passes_override(tmp_path):
    plain = compiled("xgboost-binary", tmp_path / "a")
    output = {"level": "O1", "keeps": LEVELS[1].keeps, "passes": LEVELS[1].passes}
    assert plain.figures["level"] == plain.design.manifest["made"]["level"] == output
    promised = plain.design.manifest["guarantees"]
    assert promised["quantize-inputs"] == "exact-on-data (paths)"
    assert promised["round-leaves{change=auto}"] == "exact-on-data"
    assert f"O1: {output['passes']}" in (tmp_path / "a/report.md").read_text().replace("\\", "")
    named = compiled("xgboost-binary", tmp_path / "b", level=2, passes="none")
    assert "the passes that were named run instead of those of -O2" in named.figures["notes"]
    assert named.figures["level"] is None and [step.name for step in named.steps] == ["quantize-inputs", "round-leaves"]


def test_spellings_of_a_level():
    assert [level_number(said) for said in (None, 0, "1", "O2", "-O3")] == [None, 0, 1, 2, 3]
    for said in (4, -1, "fast", True):
        with pytest.raises(OptionError, match=r"level .*; use 0 to 3"):
            level_number(said)


def test_exact_looks_at_no_rows():
    model, X, _ = trained("forest-missing")
    forest = load(model)
    passes = QuantizeInputs(exact=True), RoundLeaves(exact=True)
    one, other = (passes[0].run(forest, rows) for rows in (ArrayRows(X[:5]), Ranges()))
    assert all(
        np.array_equal(a.threshold, b.threshold) for a, b in zip(one.forest.trees, other.forest.trees, strict=True)
    )
    assert isinstance(one.promises[0], EveryPath) and one.report == other.report
    for step in run_passes(forest, passes, ArrayRows(X[:5]))[1]:
        assert step.inputs_checked > 4000  # Besides the five given rows, rows made near the thresholds are checked.
    for kind in (QuantizeInputs, RoundLeaves):
        with pytest.raises(OptionError, match="exact=true uses no rows"):
            kind(exact=True, tolerance=0.1)
    with pytest.raises(OptionError, match="exact=true does not use"):
        RoundLeaves(exact=True, scores=0.1).run(one.forest, ArrayRows(X))


def test_a_path_that_only_made_rows_take_is_found():
    """The promise exact is checked on generated rows as well, since the words of few rows do not cover all values."""

    class Lying(QuantizeInputs):
        def run(self, forest, rows, scorer=None):
            narrow = QuantizeInputs().run(forest, rows)
            return type(narrow)(narrow.forest, (EveryPath(True, 10.0),), narrow.report)

    model, X, _ = trained("forest-binary")
    with pytest.raises(CheckError, match="promised to keep all paths"):
        run_passes(load(model), [Lying()], ArrayRows(X))


@pytest.mark.parametrize("targets", [1, 2])
def test_regressions_are_pruned_within_the_tolerance(targets):
    _, X, y = trained("forest-regression")
    y = np.stack([y, X[:, 0]], axis=1)[:, :targets].squeeze()
    forest = load(RandomForestRegressor(6, max_depth=4, random_state=0).fit(X[::2], y[::2]))
    rows, held_out = ArrayRows(X[::2], y[::2]), ArrayRows(X[1::2], y[1::2])
    folds = Folds((Fold(forest, rows, Scorer(forest, held_out)),), "held-out rows")
    size = Size(lambda after: float(after.n_nodes), "nodes", "lut6")
    planned = searched(3, forest, rows, folds, size, SearchTerms(0.1))
    assert planned.chosen is not None and planned.chosen.good
    small, steps = run_passes(forest, planned.passes, rows, held_out)
    assert any(step.promises[0] == Within(0.1) for step in steps) and small.n_nodes < forest.n_nodes / 2
    assert small.n_nodes == planned.chosen.size


@pytest.mark.parametrize("kind", ["forest-regression", "votes"])
def test_models_that_pruning_does_not_take_are_searched(kind):
    if kind == "votes":
        _, X, y = trained("forest-binary")
        members = [(f"m{k}", clone(trained("tree-binary")[0]).set_params(random_state=k)) for k in range(3)]
        model = VotingClassifier(members, voting="soft").fit(X[::2], y[::2])
    else:
        model, X, y = trained(kind)
        model = clone(model).fit(X[::2], np.stack([y, X[:, 0]], axis=1)[::2])
        y = np.stack([y, X[:, 0]], axis=1)
    forest, rows, held_out = load(model), ArrayRows(X[::2], y[::2]), ArrayRows(X[1::2], y[1::2])
    folds = Folds((Fold(forest, rows, Scorer(forest, held_out)),), "held-out rows")
    size = Size(lambda after: float(sum(int(tree.values.max()) for tree in after.trees)), "units", "lut6")
    planned = searched(2, forest, rows, folds, size, SearchTerms(0.1))
    assert any(trial.family != "paths kept" and trial.good for trial in planned.trials)
    assert planned.chosen is not None and planned.chosen.good
    run_passes(forest, planned.passes, rows, held_out)  # A broken promise raises an error here.


def test_scores_are_kept_by_the_level_below():
    _, X, y = trained("forest-binary")
    planned = plan(None, 2, ArrayRows(X, y), scores=0.1)
    assert planned.level == 1 and planned.notes == ("-O2 is -O1 here: what it tries keeps no scores",)
    assert any(step.name == "round-leaves" and step.scores == 0.1 for step in planned.passes)


def test_without_other_rows_the_model_is_trained_again_on_folds(tmp_path):
    done = compiled("forest-text-labels", tmp_path / "a", level=3, tolerance=0.05)
    made = done.design.manifest["made"]
    assert made["held_out"] is None and made["level"]["judged_on"].startswith("cross-validation: models trained again")
    scored = [step["held_out"] for step in done.figures["passes"] if step["held_out"]]
    assert scored and scored[-1]["lost_in_all"] + scored[-1]["standard_error"] <= 0.05
    (taken,) = (trial for trial in made["level"]["table"] if trial["chosen"])
    assert taken["good"] and taken["passes"] == made["level"]["passes"]
    assert "settings, scored on cross" in (tmp_path / "a/report.md").read_text().replace("\\", "")


@pytest.mark.slow
def test_the_model_itself_is_no_judge_of_rows_that_it_knows(tmp_path):
    """If a model is perfect on its training rows, an ensemble of equal accuracy on other rows is still taken."""
    random = np.random.default_rng(0)
    X = random.normal(size=(600, 5))
    y = ((X[:, 0] > 0) ^ (random.random(600) < 0.2)).astype(int)
    model = RandomForestClassifier(10, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.98
    small = forestc.quantize(model, X, y, level=3)
    assert small.n_nodes < load(model).n_nodes / 50
    fresh = random.normal(size=(2000, 5))
    truth = (fresh[:, 0] > 0).astype(int)
    assert (evaluate(small, fresh).index == truth).mean() > (model.predict(fresh) == truth).mean()


@pytest.mark.parametrize("level", [2, 3])
def test_a_file_of_trees_needs_held_out_rows(tmp_path, level):
    model, X, y = few_rounds()
    model.save_model(tmp_path / "m.json")
    for subject in (tmp_path / "m.json", model.get_booster()):
        with pytest.raises(OptionError, match="held_out=FILE"):
            forestc.compile(subject, X, tmp_path / "a", label=y, level=level, targets="c")
    done = forestc.compile(tmp_path / "m.json", X, tmp_path / "a", level=level, targets="c")
    assert "agreement" in done.figures["level"]["judged_on"]


def test_what_is_frozen_is_not_trained_again(tmp_path):
    _, X, y = few_rounds()
    forest = RandomForestClassifier(3, max_depth=3, random_state=0).fit(X, y)
    model = ThresholdSharing(FrozenEstimator(forest)).fit(X, y)
    with pytest.raises(OptionError, match=r"ThresholdSharing: .* frozen part, can't be trained again.*held_out=FILE"):
        forestc.compile(model, X, tmp_path / "a", label=y, level=2, targets="c")


def overlapping():
    """Trains a model that is perfect on its rows, although a fifth of their labels are noise."""
    random = np.random.default_rng(0)
    X = random.normal(size=(120, 4))
    y = ((X[:, 0] > 0) ^ (random.random(120) < 0.2)).astype(int)
    return RandomForestClassifier(6, random_state=0).fit(X, y), X, y


def test_a_level_that_judges_nothing_keeps_all_given_rows(tmp_path):
    model, X, y = overlapping()
    for level in (0, 1, None):
        done = forestc.compile(model, X, tmp_path / f"{level}", label=y, held_out=0.3, level=level, targets="c")
        assert done.figures["agreement"] == 1.0 and done.figures["rows"] == len(X)
        assert any("keeps all given rows: held_out=0.3 sets none" in n for n in done.figures["notes"])
        assert done.design.manifest["made"]["held_out"] is None
    whole = forestc.compile(model, X, tmp_path / "whole", label=y, targets="c")
    assert print_forest(whole.design.forest) == print_forest(done.design.forest)


@pytest.mark.parametrize("asked", [{"level": 2}, {"level": 3}, {"passes": LEVELS[1].passes}])
def test_given_rows_that_were_set_aside_are_counted(asked, tmp_path):
    model, X, y = overlapping()
    done = forestc.compile(model, X, tmp_path / "a", label=y, held_out=0.25, targets="c", **asked)
    aside = np.arange(len(X)) % 4 == 3
    before, after = (evaluate(forest, X).index for forest in (load(model), done.design.forest))
    changed = int((before != after)[aside].sum())
    note = next(note for note in done.figures["notes"] if "were set aside" in note)
    assert note.startswith("30 of the 120 given rows were set aside for scoring.") and "the other 90" in note
    assert f"of the rows set aside {changed} {'is' if changed == 1 else 'are'} decided unlike the model" in note
    level, steps = done.figures["level"], done.design.manifest["made"]["steps"]
    assert level is None or note in level["keeps"]
    assert all(note in step["meaning"] for step in steps if "given rows" in step["meaning"])
    assert note.split(".")[0] in (tmp_path / "a/report.md").read_text()


def test_held_out_rows_that_are_given_ones_are_noted(tmp_path):
    model, X, y = few_rounds()
    done = forestc.compile(model, X, tmp_path / "a", label=y, held_out=(X[:50], y[:50]), level=2, targets="c")
    assert any(note.startswith("50 of 50 held-out rows are among the given ones") for note in done.figures["notes"])


def test_c_after_a_search_has_the_layout_that_was_searched_for(tmp_path):
    model, X, y = trained("forest-text-labels")
    made = {
        layout: forestc.compile(model, X, tmp_path / layout, label=y, level=2, targets="c", c_layout=layout, name="m")
        for layout in ("auto", "smallest")
    }
    headers = [done.design.path("c").read_text(encoding="utf-8") for done in made.values()]
    assert headers[0] == headers[1] and made["auto"].figures["flash"]["bytes"] == made["auto"].figures["size"]["after"]


def test_what_nothing_smaller_keeps_is_left_as_it_is(tmp_path):
    model, X, y = trained("forest-text-labels")
    few = forestc.compile(  # Without labels every changed decision counts as lost.
        clone(model).fit(X[::3], y[::3]), X[::3], tmp_path / "b",
        held_out=np.random.default_rng(0).uniform(0, 8, (500, 4)), level=3, tolerance=0, name="m", targets="c",
    )  # fmt: skip
    assert (
        "-O3 is -O1 here: nothing smaller loses at most 0 of the agreement with the model once"
        in few.figures["warnings"][-1]
    )
    assert few.figures["level"]["passes"] == LEVELS[1].passes


@pytest.mark.parametrize("effort", ["0", "4", "fast", "-1s", "s"])
def test_efforts_that_are_none(effort, tmp_path):
    with pytest.raises(OptionError, match="use 1, 2 or 3, or a number of seconds"):
        compiled("xgboost-binary", tmp_path / "a", level=3, effort=effort)
    with pytest.raises(OptionError, match="an effort needs -O2 or -O3"):
        compiled("xgboost-binary", tmp_path / "a", level=1, effort=1)


def test_a_loss_is_shown_by_a_search_on_other_rows(tmp_path):
    with pytest.raises(OptionError, match="sure=True needs -O2 or -O3"):
        compiled("xgboost-binary", tmp_path / "a", level=1, sure=True)
    with pytest.raises(OptionError, match="not trained on; add held_out=FILE, or remove sure=True"):
        compiled("xgboost-binary", tmp_path / "a", level=2, sure=True)


def test_the_same_search_takes_the_same_design():
    model, X, y = few_rounds()
    first, second = (forestc.quantize(model, X[::2], y[::2], level=3, held_out=(X[1::2], y[1::2])) for _ in range(2))
    assert print_forest(first) == print_forest(second)


def test_without_rows_only_the_lowest_can_be_kept(tmp_path):
    done = compiled("xgboost-binary", tmp_path / "a", rows=False)
    assert done.figures["level"]["level"] == "O0" and not any("-O" in note for note in done.figures["notes"])
    done = compiled("xgboost-binary", tmp_path / "a", rows=False, level=2)
    assert "-O2 needs rows, and none are given: -O0 is used" in done.figures["notes"]
    with pytest.raises(OptionError, match="a tolerance needs -O2 or -O3"):
        compiled("xgboost-binary", tmp_path / "b", tolerance=0.1)


@pytest.mark.parametrize(
    ("spelt", "level", "command"),
    [
        (["-O0"], "O0", "-O 0"),
        (["-O", "1"], "O1", "-O 1"),
        (["-O3", "--tolerance", "0.1", "--held-out", "0.3"], "O3", "-O 3 --tolerance 0.1"),
    ],
)
def test_the_command_line(tmp_path, spelt, level, command):
    model, X, y = few_rounds()
    model.save_model(tmp_path / "m.json")
    names = [*(f"c{k}" for k in range(X.shape[1])), "y"]
    table = np.column_stack([X, y])
    np.savetxt(tmp_path / "rows.csv", table, delimiter=",", header=",".join(names), comments="")
    base = ["compile", str(tmp_path / "m.json"), "--rows", str(tmp_path / "rows.csv"), "--label", "y", "--target", "c"]
    done = CliRunner().invoke(app, [*base, *spelt, "--json", "-o", str(tmp_path / "out")])
    assert json.loads(done.stdout)["level"]["level"] == level
    made = json.loads((tmp_path / "out/manifest.json").read_text())["made"]
    assert command in made["command"] and made["level"]["passes"].startswith("simplify,")


def test_passes_lists_the_levels():
    listed = json.loads(CliRunner().invoke(app, ["passes", "--json"]).stdout)
    assert [level["level"] for level in listed["levels"]] == ["-O0", "-O1 (default)", "-O2", "-O3"]
    assert "-O1 (default)" in CliRunner().invoke(app, ["passes", "--wide"], env={"COLUMNS": "400"}).stdout


@pytest.mark.slow
def test_the_seconds_of_an_effort_hold_inside_settings(tmp_path, monkeypatch):
    """A pass that does not end is stopped at its time, and the best result so far is taken; it is -O1 if nothing else
    was scored."""
    model, X, y = few_rounds()
    found = PruneSplits.ladder
    waits = threading.Event()

    def slow(self, *arguments):
        waits.wait(60)
        return found(self, *arguments)

    monkeypatch.setattr(PruneSplits, "ladder", slow)
    begin = time.monotonic()
    asked = {"label": y[::2], "held_out": (X[1::2], y[1::2]), "level": 3, "targets": "c"}
    done = forestc.compile(model, X[::2], tmp_path / "a", effort="6s", **asked)
    assert time.monotonic() - begin < 12
    assert done.figures["level"]["level"] == "O3" and done.figures["level"]["tried"] > 1
    assert any("its time ended the search" in note for note in done.figures["notes"])
    one = forestc.compile(model, X[::2], tmp_path / "b", effort="0.001s", **asked)
    assert one.figures["level"]["level"] == "O1"
    assert one.figures["warnings"][-1] == "-O3 is -O1 here: effort=0.001s is too short: -O1 alone takes longer"
    assert one.design.manifest["made"]["held_out"]["rows"] == len(X[1::2])
    waits.set()


def test_a_tolerance_of_more_than_half_is_meant_as_points(tmp_path):
    for given in ({"level": 3, "tolerance": 1}, {"passes": "round-leaves,prune-splits{tolerance=1}"}):
        with pytest.raises(OptionError, match="use a share up to 0.5: 0.01"):  # noqa: RUF043
            compiled("xgboost-binary", tmp_path / "a", **given)
    step = PruneSplits(tolerance=math.inf)
    assert parse_passes(print_pass(step), PASSES) == [step]


def test_a_chosen_design_says_what_it_loses_and_its_table_says_yes_and_no(tmp_path):
    model, X, y = few_rounds()
    fit, held_out = (X[::2], y[::2]), (X[1::2], y[1::2])
    made = {"label": fit[1], "held_out": held_out, "level": 3, "tolerance": "5%", "effort": 1, "targets": "c"}
    figures = forestc.compile(model, fit[0], tmp_path / "a", **made).figures
    evidence = figures["level"]["evidence"]
    (low, high), word = evidence["interval"], evidence["word"]
    assert (
        low < evidence["lost"] < high and evidence["lost"] <= 0.05 and word == ("shown" if high <= 0.05 else "measured")
    )
    assert any(note.startswith(f"-O3, {word}: loses {100 * evidence['lost']:.2f} points") for note in figures["notes"])
    table = level_tables(figures["level"], lambda title, heads, rows: (title, rows))
    ((title, rows),) = table
    assert "standard errors must be within 5 points" in title
    assert [row[-1] for row in rows] == ["yes" if trial["good"] else "no" for trial in figures["level"]["table"]]


def test_r_squared_is_no_per_cent():
    trial = {"family": "as it is", "size": 80.0, "accuracy": 0.3663, "lost": 0.0011, "standard_error": 0.0445}
    trial |= {"errors_added": 1.5, "good": False, "chosen": True, "measure": "R squared"}
    level = {"level": "O2", "tried": 1, "judged_on": "rows", "tolerance": 0.01, "unit": "bytes", "table": [trial]}
    ((title, heads, (row,)),) = level_tables(level, lambda *parts: parts)
    assert row[2:4] == ("0.3663 of 0.3674", "+0.0011 ± 0.0445")
    assert "within 0.01," in title and "points" not in title and not any("points" in head for head in heads)
