"""Tests forestc model-inputs and activity on the command line."""

import json

import numpy as np
import pytest
from input_models import MIXED, mixed_rows

import forestc
from forestc.commands.learn_inputs import how_long
from forestc.errors import ForestcError
from forestc.forest.text import print_forest


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    folder = tmp_path_factory.mktemp("work")
    (folder / "mixed.forest").write_text(print_forest(MIXED))
    np.save(folder / "rows.npy", mixed_rows(600, 1))
    forestc.compile(folder / "mixed.forest", folder / "rows.npy", folder / "out", outputs="both")
    return folder


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


def test_activity_of_rows(run, work):
    status, out, err = run("activity", "out", "--rows", "rows.npy", "--json")
    figures = json.loads(out)
    rates = [each["toggle_rate"] for each in figures["comparators"]]
    assert (status, err, figures["rows"]) == (0, "", 600)
    assert rates == sorted(rates, reverse=True) and sum(rates) == pytest.approx(figures["toggles_per_row"])
    assert run("activity", "out")[0] == 2 and run("simulate", "out")[0] == 2
    with pytest.raises(ForestcError, match="there are no rows"):
        forestc.activity(work / "out", rows=np.zeros((0, 5)))


def test_wrong_use(run, work):
    assert run("model-inputs", "out", "--rows", "rows.npy", "-o", "no/such/folder.bn", "--samples", "1")[0] == 1
    with pytest.raises(ForestcError, match="not the text of an input model"):
        (work / "empty.bn").write_text("")
        forestc.read_inputs(work / "empty.bn")
