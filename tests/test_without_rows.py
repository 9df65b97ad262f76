"""Tests compile without rows: formats from thresholds and ranges, exact for every input within the ranges."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest
from contract.kind import hard_rows
from contract.kinds import KINDS
from models import trained
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier, VotingClassifier, VotingRegressor
from sklearn.tree import DecisionTreeClassifier
from thinned import only
from typer.testing import CliRunner

import forestc
from forestc.cli import app
from forestc.commands.compile import quantize
from forestc.errors import ForestcError, OptionError, RowsError
from forestc.forest.numbers import FLOAT32, FLOAT64, Fixed, Ordered
from forestc.passes import passes_from
from forestc.passes.pipeline import run_passes
from forestc.rows.encode import evaluate
from forestc.rows.range_files import ranges_from
from forestc.rows.ranges import Ranges, ValueRange, made_rows

FOUR = "feature,smallest,largest,step,missing\na,0,10,,no\nb,0.1,10,0.1,no\nc,0,10,,\nd,0,25,1,no\n"


@cache
def iris(depth=None):
    _, X, y = trained("forest-text-labels")
    return RandomForestClassifier(10, max_depth=depth, random_state=0).fit(X, y)


@pytest.mark.parametrize(
    "kind",
    [
        "sklearn-forest-text", "sklearn-boosting-text", "sklearn-hist-categories",
        pytest.param("sklearn-voting-hard-multi", marks=pytest.mark.long),
        "xgboost-categories", "lightgbm-text-mixed", "onnx-skl-forest-double", "onnx-lgb-categories",
        "pipeline-voting", "sklearn-voting-regression",
    ],
)  # fmt: skip
def test_every_input_takes_the_models_own_path(kind):
    kind = KINDS[kind]()
    model = forestc.load(kind.source, trust_pickle=True)
    quantized, (_, step) = run_passes(model, passes_from("none"), Ranges())
    rows = np.concatenate([hard_rows(model, kind, 4000).astype(np.float64), made_rows(model, Ranges()).X])
    expected, got = evaluate(model, rows), evaluate(quantized, rows)
    assert (expected.leaves == got.leaves).all()
    changed = expected.index != got.index
    if step.report["leaves"] == "exact":
        assert step.promise == "exact" and not changed.any()
    elif step.report["score_bound"] is not None and expected.scores.shape == got.scores.shape:
        assert np.abs(got.scores * quantized.scale - expected.scores).max() <= step.report["score_bound"]
    assert changed.mean() < 1e-3


def test_votes_of_trees_are_exact():
    _, X, y = trained("forest-text-labels")
    trees = [(f"t{k}", DecisionTreeClassifier(max_features=1, random_state=k)) for k in range(3)]
    model = forestc.load(VotingClassifier(trees, voting="hard").fit(X, y))
    _, (_, step) = run_passes(model, passes_from("none"), Ranges())
    assert (step.report["leaves"], step.report["score_bound"], step.promise) == ("exact", 0.0, "exact")


def alike(agreement, share):
    """Returns True if at least this share of rows is decided as the model does, or no value is a thousandth off."""
    return agreement.largest_difference < 1e-3 if agreement.agreement is None else agreement.agreement >= share


@pytest.mark.parametrize("kind", only(["forest-missing", "xgboost-missing", "tree-regression"], 1, 2))
def test_engines_and_check_without_rows(kind, tmp_path):
    model, X, y = trained(kind)
    done = forestc.compile(model, None, tmp_path / "out", name="m")
    result = forestc.check(tmp_path / "out", engines=["netlist", "c"], random_rows=500)
    assert result.ok and result.vectors["rows"] == done.agreement.rows > 4000
    assert result.agreement == done.agreement and alike(done.agreement, 0.9995)
    assert done.design.last_check()["rows"] == "generated rows"
    assert done.figures["measured"]["measured_on"] == "generated"
    assert "on the generated rows" in (tmp_path / "out/report.md").read_text()
    assert f"{done.agreement.rows:,} generated rows" in done.summary(200)
    assert alike(forestc.check(done.design, X, label=y, engines=["netlist"], random_rows=0).agreement, 1)
    assert forestc.inspect(done.design.folder)["compiled"]["targets"] == ["c", "verilog"]


def test_trees_grown_to_the_end_are_decided_exactly(tmp_path):
    done = forestc.compile(iris(), None, tmp_path / "out", name="m")
    assert done.agreement.agreement == 1 and done.agreement.model is None
    assert done.steps[2].promise == "exact" and done.steps[2].report["leaf_bits"] == 1
    assert "no rows and no ranges" in done.figures["notes"][0] and "exact" in done.figures["notes"][-1]
    report = (tmp_path / "out/report.md").read_text()
    assert "the model's own thresholds" in report and "leaves hold the model's own values" in report


def test_two_classes_tie_as_the_model_does():
    # With an even number of pure trees, ties of 2 to 2 go to the first class.
    X = np.arange(16.0)[:, np.newaxis]
    model = RandomForestClassifier(4, random_state=3).fit(X, np.arange(16) // 2 % 2)
    rows = np.linspace(-1, 17, 5000)[:, np.newaxis]
    assert (quantize(model).decision.kind, len(np.unique(evaluate(quantize(model), rows).scores))) == ("threshold", 5)
    assert (evaluate(quantize(model), rows).index == model.predict(rows)).all()


def test_ranges_make_words_small_and_stay_exact(tmp_path):
    path = tmp_path / "ranges.csv"
    path.write_text(FOUR)
    for model in (iris(), iris(3), HistGradientBoostingClassifier(max_iter=5).fit(*trained("forest-text-labels")[1:])):
        done = forestc.compile(model, None, tmp_path / "out", ranges=path, name="m", targets="c")
        output = done.design.manifest["made"]
        assert output["rows"]["file"] == "ranges.csv" and output["rows"]["ranges"]["d"]["step"] == 1
        numbers = {f.name: f.number for f in done.design.forest.features}
        assert numbers["d"].fraction == 0 and numbers["d"].bits <= 5 and numbers["b"].bits < numbers["a"].bits
        assert "in the ranges" in done.steps[2].promise
        random = np.random.default_rng(0)
        X = random.random((20000, 4)) * 10
        X[:, 1], X[:, 3] = 0.1 + random.integers(0, 100, 20000) * 0.1, random.integers(0, 26, 20000)
        expected, got = evaluate(done.design.model, X), evaluate(done.design.forest, X)
        assert (expected.index == got.index).mean() > 0.9995 and forestc.check(done.design, engines=["c"]).ok
        assert done.design.forest.features[0].missing is False


def test_a_check_counts_rows_that_the_ranges_do_not_hold(tmp_path):
    ranges = {"a": (0, 10), "b": {"smallest": 0.1, "step": 0.1}, "c": (0, 10), "d": (0, 25)}
    design = forestc.compile(iris(), None, tmp_path / "out", ranges=ranges, targets="c").design
    X = np.tile([1.0, 0.1 + 3 * 0.1, 2.0, 1.0], (20, 1))
    assert not forestc.check(design, X, engines=["c"], record=False).notes
    X[4:, 1], X[2, 0] = 0.25, -1
    (note,) = forestc.check(design, X, engines=["c"], record=False).notes
    assert note.startswith("17 of 20 rows are outside the ranges") and "feature 'a' is -1 in row 2" in note


def test_the_command_line(tmp_path):
    model, _, _ = trained("xgboost-binary")
    model.save_model(tmp_path / "m.json")
    run = CliRunner().invoke
    done = run(app, ["compile", str(tmp_path / "m.json"), "-o", str(tmp_path / "out"), "--target", "c", "--json"])
    figures = json.loads(done.stdout)
    assert figures["notes"][0].startswith("no rows and no ranges") and figures["agreement"] == 1
    made = json.loads((tmp_path / "out/manifest.json").read_text())["made"]
    assert made["command"] == "forestc compile m.json --target c -o DIR" and made["rows"]["ranges"] == {}
    assert json.loads(run(app, ["check", str(tmp_path / "out"), "--json"]).stdout)["differences"]["c"] == 0
    (tmp_path / "r.json").write_text(json.dumps({str(index): [0, 5000] for index in range(30)}))
    arguments = ["compile", str(tmp_path / "m.json"), "--ranges", str(tmp_path / "r.json"), "-o", str(tmp_path / "two")]
    assert run(app, [*arguments, "--target", "c"]).exit_code == 0
    made = json.loads((tmp_path / "two/manifest.json").read_text())["made"]
    assert made["command"] == "forestc compile m.json --ranges r.json --target c -o DIR"
    assert made["options"]["ranges"] == "r.json"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name,smallest\n", r"r\.csv, line 1: has no column 'feature'"),
        ("feature,smalest,largest\n", "line 1: unknown column or key 'smalest'"),
        (FOUR + "a,0,1,,\n", r"r\.csv, line 6: the feature 'a' appears twice"),
        (FOUR.replace("c,0,10,,", "c,10,0,,"), "line 4: 'c': smallest 10 is above largest 0"),
        (FOUR.replace("c,0,10,,", "c,nan,0,,"), "line 4: 'c': smallest is NaN"),
        (FOUR.replace("c,0,10,,", "c,zero,0,,"), r"r\.csv, line 4: 'c': smallest is not a number \('zero'\)"),
        (FOUR.replace("c,0,10,,", "c,0,10,-1,"), "line 4: 'c': step -1"),
        (FOUR.replace("c,0,10,,", "c,0,10,0,"), "line 4: 'c': step 0"),
        (FOUR.replace("c,0,10,,", "c,0,10,,perhaps"), "line 4: 'c': missing is 'perhaps'"),
        (FOUR.replace("c,0,10,,", "c,0,10"), "line 4: has 3 fields, and the header 5"),
        (FOUR.replace("c,0,10,,\n", ""), "holds 3 features, and the model takes 4"),
        ("", "holds no ranges"),
    ],
)
def test_ranges_that_are_refused(tmp_path, text, said):
    path = tmp_path / "r.csv"
    path.write_text(text)
    with pytest.raises(RowsError, match=said):
        ranges_from(path, forestc.load(iris()))


def test_names_that_are_unknown_or_left_out(tmp_path):
    import pandas

    _, X, y = trained("forest-text-labels")
    named = RandomForestClassifier(10, random_state=0).fit(pandas.DataFrame(X, columns=["age", "b", "c", "d"]), y)
    model, some = forestc.load(named), {"b": (0, 1), "c": (0, 1), "d": (0, 1)}
    with pytest.raises(RowsError, match="the ranges: the model reads no feature 'aeg'"):
        ranges_from({**some, "aeg": (0, 1)}, model)
    with pytest.raises(RowsError, match="'age' is missing"):
        ranges_from(some, model)
    with pytest.raises(RowsError, match="'b' has no smallest and largest value"):
        ranges_from({**some, "b": 3}, model)
    (tmp_path / "r.json").write_text('{"age": [0, 1],\n "b": }')
    with pytest.raises(RowsError, match=r"line 2: is not readable JSON"):
        ranges_from(tmp_path / "r.json", model)
    (tmp_path / "r.json").write_text('{"age": [0, 1], "age": [0, 1]}')
    with pytest.raises(RowsError, match="'age' appears twice"):
        ranges_from(tmp_path / "r.json", model)
    with pytest.raises(RowsError, match="there is no such file"):
        ranges_from(tmp_path / "none.json", model)
    boosted = forestc.load(trained("boosting-binary")[0])
    with pytest.raises(RowsError, match="takes no missing values here"):
        ranges_from({str(i): {"missing": True} for i in range(30)}, boosted)
    categories = KINDS["xgboost-categories"]()
    forest = forestc.load(categories.source)
    with pytest.raises(RowsError, match="is a category"):
        ranges_from({str(column): (0, 3) for column in range(forest.columns)}, forest)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"passes": "simplify,share-thresholds"},
            "pass share-thresholds: needs rows: they say how far thresholds may move",
        ),
        (
            {"passes": "round-leaves,prune-splits{keep=decisions}"},
            "pass prune-splits: needs rows: they say which splits are needed",
        ),
        ({"passes": "fit-leaves{leaf_bits=2}"}, "pass fit-leaves: needs rows to fit leaves to"),
        ({"scores": 0.01}, "leaf bits that keep scores are chosen on rows"),
        ({"label": [1]}, "label=: this needs rows, and none are given"),
        ({"held_out": 0.2}, "held_out=: this needs rows, and none are given"),
        (
            {"passes": "quantize-inputs{input_bits=6}"},
            "no fixed-point format of 6 bits keeps every value of 'x0' on",
        ),
        ({"passes": 'quantize-inputs{formats={"x2":"uint8"}}'}, "uint8 does not keep every value of 'x2' on its side"),
    ],
)
def test_what_needs_rows_is_refused(tmp_path, monkeypatch, options, said):
    if "x" not in said[-5:]:
        monkeypatch.setattr("forestc.passes.simplify.Simplify.run", lambda *_: pytest.fail("a pass has run"))
    with pytest.raises(OptionError, match=said):
        forestc.compile(iris(), None, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_rows_and_ranges_are_not_both_given(tmp_path):
    model, X, _ = trained("forest-text-labels")
    with pytest.raises(OptionError, match="ranges=: rows= are given, too"):
        forestc.compile(model, X, tmp_path / "out", ranges={"0": (0, 1)})
    forestc.compile(model, X, tmp_path / "out", name="m", targets="c")
    with pytest.raises(ForestcError, match="no rows are given to check on"):
        forestc.check(tmp_path / "out")


def test_ranges_of_the_given_rows(tmp_path):
    random = np.random.default_rng(0)
    X = np.column_stack([random.integers(-3, 12, (500, 2)), random.normal(size=(500, 2))]).astype(np.float32)
    y = (X.sum(axis=1) > 8).astype(int)
    model, given = RandomForestClassifier(10, max_depth=4, random_state=0).fit(X, y), {"label": y, "targets": "c"}
    plain = forestc.compile(model, X, tmp_path / "plain", level=0, **given)
    done = forestc.compile(model, X, tmp_path / "out", level=0, ranges="rows", **given)
    bits = [[feature.number.bits for feature in made.design.forest.features] for made in (plain, done)]
    (note,) = [note for note in plain.figures["notes"] if "whole numbers" in note]
    assert (
        f"2 features hold whole numbers in the given rows: ranges=rows makes their words, together {sum(bits[0][:2])} "
        f"bits, {sum(bits[1][:2])}" == note
    )
    assert max(bits[1][:2]) <= 5 and not any("whole numbers" in note for note in done.figures["notes"])
    made = done.design.manifest["made"]
    assert made["options"]["ranges"] == "rows" and made["rows"]["shape"] == [500, 4]
    assert made["rows"]["ranges"]["x0"] == {"smallest": -3, "largest": 11, "step": 1, "missing": False}
    assert made["rows"]["ranges"]["x2"]["step"] == 0 and "in the ranges" in done.steps[2].promise
    assert made["accuracy"]["given"]["rows"] == 500 and made["accuracy"]["given"]["agreement"] == 1
    assert forestc.check(done.design, engines=["c"]).ok
    assert "1 of 500 rows" in str(forestc.check(done.design, np.where(np.arange(500)[:, None] == 7, 12, X)).notes)
    for options, said in (({"rows": None}, "no rows are given"), ({"rows": X, "held_out": 0.2}, "stand for the rows")):
        with pytest.raises(OptionError, match=said):
            forestc.compile(model, out=tmp_path / "not", ranges="rows", **options)


def test_formats_by_hand_and_options():
    hand = {f"x{i}": {"smallest": 0, "largest": 200, "whole": True, "missing": False} for i in range(4)}
    model = iris()
    forest = quantize(model, ranges=hand, passes='quantize-inputs{formats={"x0":"uint8"}}')
    assert forest.features[0].number == Fixed(8)
    assert all(f.number == Ordered(32) for f in quantize(model, passes="quantize-inputs{input=ordered}").features)
    assert not any(
        f.missing for f in quantize(model, passes="simplify,quantize-inputs{missing=never},simplify").features
    )
    assert quantize(iris(3), passes="round-leaves{leaf_bits=4}").scale > quantize(iris(3)).scale


@pytest.mark.parametrize("raw", [FLOAT32, FLOAT64])
def test_thresholds_of_stepped_values_keep_their_sides(raw):
    values = ValueRange(-1.0, 2.0, 0.1)
    grid = np.array([-1.0 + n * 0.1 for n in range(31)])
    grid = grid.astype(np.float32).astype(np.float64) if raw == FLOAT32 else grid
    thresholds = np.concatenate([grid[1:], np.nextafter(grid[1:-1], 9), grid[1:] - 0.03])
    thresholds = thresholds.astype(np.float32).astype(np.float64) if raw == FLOAT32 else thresholds
    low, high = values.around(thresholds, raw)
    for t, below, above in zip(thresholds, low, high, strict=True):
        assert below < t and above > below
        assert grid[grid < t].max() <= below and grid[grid >= t].min(initial=np.inf) >= above


def test_a_model_that_asks_nothing_and_one_of_huge_numbers():
    X = 1.7e308 * np.linspace(-1, 1, 40)[:, np.newaxis]
    assert evaluate(quantize(DecisionTreeClassifier().fit(np.zeros((4, 2)), [1, 1, 0, 1])), np.ones((3, 2))).index.all()
    model = HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=2).fit(X, np.arange(40) % 3 > 0)
    rows = np.concatenate([X, [[np.inf], [-np.inf], [0.0], [np.nan], [5e-324]]])
    assert (evaluate(quantize(model), rows).index == (model.predict(rows) == True)).all()  # noqa: E712


def test_a_vote_of_a_regression_that_starts_from_a_bias():
    _, X, y = trained("forest-regression")
    members = [("a", trained("boosting-regression")[0]), ("b", trained("tree-regression")[0])]
    model = VotingRegressor(members).fit(X, y)
    spread = float(np.ptp(model.predict(X)))
    assert np.abs(evaluate(quantize(model, X), X).values[:, 0] - model.predict(X)).max() < 0.01 * spread


def test_what_a_simulator_left_does_not_keep_a_folder_from_being_replaced(tmp_path):
    out = tmp_path / "out"
    done = forestc.compile(iris(), None, out, targets="vhdl", name="signal")
    assert any("named 'm_signal'" in note for note in done.figures["notes"])
    (out / "vhdl" / "work-obj93.cf").write_text("of GHDL")
    forestc.compile(iris(), None, out, targets="vhdl")
    (out / "vhdl" / "notes.txt").write_text("of the user")
    with pytest.raises(forestc.ForestcError, match=r"holds 'vhdl/notes.txt', which forestc did not write"):
        forestc.compile(iris(), None, out, targets="vhdl")


@pytest.mark.parametrize(("least", "span"), [(2**24 - 4, 16), (0, 2**40), (2**55, 2**20)])
def test_steps_may_be_finer_than_the_type_of_the_column(least, span, tmp_path):
    X = least + np.random.default_rng(0).integers(0, span, (300, 2)).astype(float)
    model = RandomForestClassifier(3, max_depth=3, random_state=0).fit(X, X[:, 0] > X[:, 1])
    done = forestc.compile(model, X, tmp_path / "a", ranges="rows", targets="c", level=0)
    assert (done.design.predict(X) == model.predict(X)).all()
