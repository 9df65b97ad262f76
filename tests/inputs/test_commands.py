"""Tests forestc model-inputs and --inputs on the command line."""

import hashlib
import json
import shutil
from dataclasses import replace

import jsonschema
import numpy as np
import pytest
from input_models import MIXED, mixed_rows

import forestc
from forestc.backends import c
from forestc.commands.learn_inputs import how_long
from forestc.errors import ForestcError
from forestc.forest.text import print_forest
from forestc.inputs.text import printed
from forestc.manifest.content import schema


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    folder = tmp_path_factory.mktemp("work")
    (folder / "mixed.forest").write_text(print_forest(MIXED))
    np.save(folder / "rows.npy", mixed_rows(600, 1))
    forestc.compile(folder / "mixed.forest", folder / "rows.npy", folder / "out", outputs="both")
    return folder


@pytest.fixture(scope="module")
def inputs(work):
    model, _ = forestc.model_inputs(work / "mixed.forest", work / "rows.npy", samples=1)
    path = work / "inputs.bn"
    path.write_text(printed(model))
    return path


def test_a_model_and_a_folder_give_inputs(run, work):
    for source in ("mixed.forest", "out"):
        status, out, err = run(
            "model-inputs",
            source,
            "--rows",
            "rows.npy",
            "-o",
            "made.bn",
            "--samples",
            "1",
            "--least-count",
            "3",
            "--json",
        )
        assert (status, err) == (0, "")
        output = json.loads(out)
        assert output["rows"] == 600 and output["treewidth"] <= 4 and output["least_count"] == 3
        assert output["held_out_log_likelihood"]["model"] > output["held_out_log_likelihood"]["independent"]
        assert output["bytes"] == (work / "made.bn").stat().st_size
        assert forestc.read_inputs(work / "made.bn").rows_seen == 600
    status, out, err = run("model-inputs", "out", "--rows", "rows.npy", "-o", "made.bn", "--samples", "1")
    assert "searching for a network in 1 runs (--samples)" in err
    assert how_long("out", "rows.npy", seconds=7.0) == "searching for a network for 7 s (--time)"
    assert status == 0 and "counts and ranges" in out and "log-likelihood" in out


def test_simulate_draws_rows(run, inputs):
    status, out, _ = run("simulate", "out", "--inputs", inputs, "--count", "70", "--json")
    output = json.loads(out)
    assert (status, output["rows"], output["differences"]) == (0, 70, 0)


def test_activity_of_an_input_model_and_of_rows(run, inputs):
    output = {}
    for source in (("--inputs", inputs, "--count", "500"), ("--rows", "rows.npy")):
        status, out, err = run("activity", "out", *source, "--json")
        assert (status, err) == (0, "")
        output[source[0]] = figures = json.loads(out)
        rates = [each["toggle_rate"] for each in figures["comparators"]]
        assert rates == sorted(rates, reverse=True) and sum(rates) == pytest.approx(figures["toggles_per_row"])
        status, out, _ = run("activity", "out", *source)
        assert status == 0 and f"the 20 of {len(rates)} comparators" in out and "comparisons of a row" in out
        assert ("standard error of drawing" in out) == (source[0] == "--inputs")
        shown = [each["comparator"] in out for each in figures["comparators"]]
        assert all(shown[:20]) and not all(shown)
    assert (output["--inputs"]["rows"], output["--rows"]["rows"]) == (500, 600)
    moved = [each["threshold"] for each in output["--inputs"]["comparators"] if not each["exact"]]
    # -O1 moved some thresholds, so the rates come from the model.
    assert 0 < len(moved) - moved.count(None) < len(rates)
    assert "forestc model-inputs DIR" in output["--inputs"]["notes"][0] and output["--rows"]["notes"] == []
    assert "leave out the input model's own error" in output["--inputs"]["notes"][1]
    assert not any(each["exact"] for each in output["--rows"]["comparators"])


def test_activity_used_wrongly(run, inputs, work):
    status, _, err = run("activity", "out", "--inputs", inputs, "--rows", "rows.npy")
    assert status == 2 and "remove --inputs" in err
    status, _, err = run("activity", "out")
    assert status == 2 and "give --inputs FILE or --rows FILE" in err
    other = print_forest(forestc.load(work / "mixed.forest")).replace('feature "size"', 'feature "width"')
    (work / "other.forest").write_text(other)
    forestc.compile(work / "other.forest", work / "rows.npy", work / "other", targets="c")
    status, _, err = run("activity", "other", "--inputs", inputs)
    assert status == 1 and "'width'" in err
    with pytest.raises(ForestcError, match="rows and inputs are both given"):
        forestc.activity(work / "out", inputs=inputs, rows=work / "rows.npy")
    for nothing in ({"rows": np.zeros((0, 5))}, {"inputs": inputs, "count": 0}):
        with pytest.raises(ForestcError, match="there are no rows"):
            forestc.activity(work / "out", **nothing)


def test_check_reaches_every_leaf_and_says_so(run, inputs):
    status, out, err = run(
        "check", "out", "--inputs", inputs, "--count", "100", "--random", "10", "--engines", "c", "--json"
    )
    output = json.loads(out)
    assert (status, err) == (0, "")
    assert output["differences"] == {"c": 0} and output["agreement"] is None and output["rows"] == 0
    assert output["vectors"]["inputs"] == output["inputs"]["rows"] > output["inputs"]["drawn"] == 100
    leaves = output["coverage"]["inputs"]["leaves"]
    assert leaves["reached"] + leaves["unreachable"] == leaves["all"]
    assert output["inputs"]["leaves_reached_by_drawn"] < leaves["reached"]
    record = json.loads((inputs.parent / "out" / "check.json").read_text())
    assert record["inputs"]["sha256"] == hashlib.sha256(inputs.read_bytes()).hexdigest()
    status, out, _ = run("check", "out", "--inputs", inputs, "--rows", "rows.npy", "--engines", "netlist")
    assert status == 0 and "reached by the vectors" in out and "agreement with the model" in out
    status, out, _ = run("check", "out", "--rows", "rows.npy", "--engines", "netlist", "--json")
    output = json.loads(out)
    assert output["inputs"] is None and set(output["coverage"]) == {"rows", "boundary", "random", "all"}


def test_a_changed_leaf_is_found_however_rare(work, inputs, tmp_path):
    """Compares C of a forest with one changed leaf to the forest itself: each of the rarest leaves is found."""
    design = forestc.open_design(work / "out")
    drawn = forestc.read_inputs(inputs).drawn_for(design.model, 3000, 0, (design.forest,)).X
    leaves = forestc.evaluate(design.forest, drawn).leaves
    rare = []
    for index, tree in enumerate(design.forest.trees):
        visits = np.array([(leaves[:, index] == tree.ids[node]).sum() for node in np.flatnonzero(tree.left == -1)])
        rare += [(visits[place], index, place) for place in range(len(visits))]
    for _, index, place in sorted(rare)[:3]:
        trees = list(design.forest.trees)
        values = trees[index].values.copy()
        row = trees[index].leaf[np.flatnonzero(trees[index].left == -1)[place]]
        values[row] = values[row] - 1 if values[row, 0] else values[row] + 1
        trees[index] = replace(trees[index], values=values)
        mutant = replace(design.forest, trees=tuple(trees))
        folder = tmp_path / f"{index}-{place}"
        shutil.copytree(work / "out", folder)
        text = next(iter(c.emit(mutant, design.c_options).values()))
        (folder / design.manifest["files"]["c"]).write_text(text)
        found = forestc.check(folder, inputs=inputs, count=50, random_rows=0, engines=["c"], record=False)
        assert found.engines["c"].first.startswith("inputs vector")  # Vectors of the input model run first.


def test_compile_orders_branches_by_the_model_and_records_it(run, inputs, work):
    """A source without covers gets the covers of the drawn rows; files differ only in the order of branches."""
    asked = ("compile", "mixed.forest", "--rows", "rows.npy", "--target", "c", "--c-layout", "branches")
    for out, more in (("plain", ()), ("ordered", ("--inputs", "inputs.bn"))):
        status, _, err = run(*asked, *more, "-o", out)
        assert (status, err) == (0, "")
    plain, ordered = (forestc.open_design(work / out) for out in ("plain", "ordered"))
    assert plain.manifest["guarantees"] == ordered.manifest["guarantees"]
    made = ordered.manifest["made"]
    assert made["inputs"] == {"file": "inputs.bn", "sha256": hashlib.sha256(inputs.read_bytes()).hexdigest()}
    assert made["options"]["inputs"] == "inputs.bn" and "--inputs inputs.bn" in made["command"]
    assert "inputs" not in plain.manifest["made"] and plain.forest.trees[0].cover is None
    jsonschema.validate(json.loads((work / "ordered" / "manifest.json").read_text()), schema())
    rows = mixed_rows(4000, 9)
    leaves = forestc.evaluate(ordered.forest, rows).leaves
    for index, tree in enumerate(ordered.forest.trees):
        share = tree.cover / tree.cover[0]
        for node in np.flatnonzero(tree.left == -1):
            assert share[node] == pytest.approx((leaves[:, index] == tree.ids[node]).mean(), abs=0.1)
    assert (work / "plain/c/mixed.h").read_text() != (work / "ordered/c/mixed.h").read_text()
    status, out, _ = run("check", "ordered", "--inputs", "inputs.bn", "--count", "50", "--engines", "c", "--json")
    assert status == 0 and json.loads(out)["differences"] == {"c": 0}


def test_measure_tells_what_is_expected_beside_the_mean_of_the_rows(run, inputs, work):
    asked = ("measure", "out", "--cpu", "cortex-m0plus", "--entry", "predict", "--json", "--most", "100")
    status, out, _ = run(*asked, "--rows", "rows.npy")
    assert status == 0
    alone = json.loads(out)
    both = json.loads(run(*asked, "--rows", "rows.npy", "--inputs", inputs)[1])
    drawn = json.loads(run(*asked, "--inputs", inputs)[1])
    assert alone["expected"] is None and both["instructions"]["mean"] == alone["instructions"]["mean"]
    assert both["expected"] == drawn["expected"] == drawn["instructions"]["mean"] != alone["instructions"]["mean"]
    assert both["vectors"] == alone["vectors"] and not both["differences"]


def test_wrong_use(run, inputs, work):
    status, _, err = run("simulate", "out", "--inputs", inputs, "--rows", "rows.npy")
    assert status == 2 and "--rows and --inputs are both given" in err and "remove --inputs to take the rows" in err
    assert run("simulate", "out")[0] == 2
    status, _, err = run("simulate", "out", "--inputs", "rows.npy")
    assert status == 1 and "can't be read" in err
    status, _, err = run("simulate", "out", "--inputs", "none.bn")
    assert status == 1 and "none.bn" in err
    assert run("model-inputs", "out", "--rows", "rows.npy", "-o", "no/such/folder.bn", "--samples", "1")[0] == 1
    with pytest.raises(ForestcError, match="not the text of an input model"):
        (work / "empty.bn").write_text("")
        forestc.read_inputs(work / "empty.bn")
