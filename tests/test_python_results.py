"""Tests the display of results in Python: the command line's tables, and a short repr."""

import json
import re

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

import forestc
from forestc.errors import OptionError
from forestc.report.compiled import compile_tables
from forestc.report.tables import table
from forestc.report.widths import as_text

X = np.arange(40, dtype=np.float32).reshape(20, 2)
y = (X[:, 0] > 20).astype(int)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    model = DecisionTreeClassifier(max_depth=2).fit(X, y)
    return forestc.compile(model, X, tmp_path_factory.mktemp("made") / "out", label=y, targets="c", cpu="avr")


def test_print_shows_the_tables_of_the_command_line(compiled):
    assert str(compiled) == compiled.summary() == as_text(compile_tables(compiled.figures), 80)
    assert "agreement with the model" in compiled.summary(100)
    assert max(map(len, compiled.summary(50).splitlines())) <= 50
    assert repr(compiled).startswith("<Compiled ")


@pytest.mark.parametrize("command", ["compile", "check", "inspect"])
def test_answers_are_short_and_stage_times_and_the_worst_case_are_asked_for(
    command, compiled, run, tmp_path, monkeypatch
):
    monkeypatch.setenv("COLUMNS", "100")
    folder, rows = compiled.design.folder, tmp_path / "rows.csv"
    np.savetxt(rows, np.column_stack([X, y]), delimiter=",", header="a,b,label", comments="", fmt="%g")
    words = {
        "compile": [folder / "model.forest", "--rows", rows, "--label", "label", "-o", tmp_path / "out"],
        "check": [folder, "--rows", rows, "--label", "label"],
        "inspect": [folder],
    }
    short, full = (run(command, *words[command], *more)[1] for more in ([], ["--verbose"]))
    assert len(short.splitlines()) <= {"compile": 16, "check": 14, "inspect": 20}[command] and len(short) <= 1400
    assert "seconds" not in short and len(full) > len(short)
    assert ("seconds" in full) == (command != "inspect")
    assert not re.search("parts|combine|aggregate", short)


def test_a_measured_design_shows_its_worst_case_at_any_width(compiled):
    layout = {"flash": 7, "ram": 8, "mean": 9, "most": 12_345, "bound": 67_890}
    measured = {"cpu": "avr", "entry": "f", "tool": "cc", "layout": "nodes", "layouts": {"nodes": layout}}
    figures = dict(compiled.figures) | {"firmware": measured}
    for width, verbose in ((60, False), (60, True), (200, True)):
        assert "67,890" in as_text(compile_tables(figures, verbose=verbose), width)


def test_figures_are_json_with_a_short_repr(compiled):
    assert json.loads(json.dumps(compiled.figures)) == dict(compiled.figures)
    assert len(repr(compiled.figures)) < 400 and "1 comparators" in repr(compiled.figures)


def test_c_alone_has_no_latency_and_no_ports(compiled):
    assert "latency" not in str(compiled) and "port bits" not in str(compiled)
    both = dict(compiled.figures) | {"targets": ["c", "verilog"], "latency_cycles": 2}
    assert "latency" in as_text(compile_tables(both))
    assert "port bits" in as_text(compile_tables(both, verbose=True), 100)


def test_labels_in_the_place_of_the_folder():
    with pytest.raises(OptionError, match=r"out is a ndarray, not a folder.*out"):
        forestc.compile(DecisionTreeClassifier().fit(X, y), X, y)


def test_wide_prints_all_columns(compiled, run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    shown = []
    for more in ([], ["--wide"]):
        shown.append(run("inspect", compiled.design.folder, "--verbose", *more)[1])
    assert "--wide shows all" in shown[0] and not re.search(r"┃.*highest", shown[0])
    assert "--wide shows all" not in shown[1] and re.search(r"┃.*lowest threshold.*highest", shown[1])


def test_a_check_prints_accuracy_and_what_is_wrong(compiled):
    result = forestc.check(compiled.design, X, label=y, engines=["c"], record=False)
    text, html = str(result), result._repr_html_()
    for part in ("100.00 %, model 100.00 %", "agreement with the model"):
        assert part in text and part in html
    assert text.splitlines()[-1].startswith("ok") and repr(result).startswith("<CheckResult ok")


def test_a_notebook_shows_accuracy_luts_clock_and_latency(tmp_path):
    model = DecisionTreeClassifier(max_depth=2).fit(X, y)
    design = forestc.compile(model, X, tmp_path / "out", label=y, targets="verilog", latency=1).design
    html = design._repr_html_()
    for part in ("accuracy", "100.00 %", "LUTs on", "Fmax on", " MHz", "1 cycle ("):
        assert part in html
    assert "1 cycles" not in html and "1 bits" not in html


def test_figures_of_a_command_print_as_its_table(tmp_path):
    engine = forestc.make_engine(trees=2, nodes=64, features=4, classes=2, walkers=1, out=tmp_path / "engine")
    image = forestc.make_image(DecisionTreeClassifier(max_depth=2).fit(X, y), X, engine=tmp_path / "engine")
    for figures, head in ((engine, "engine in"), (image, "image of")):
        assert head in str(figures) and "│" in str(figures) and json.loads(json.dumps(figures)) == dict(figures)


def test_numbers_stay_whole_in_narrow_tables():
    parts = [table("t", ("a", "ports"), [("x" * 20, "1,102 to 720")])]
    assert "1,102 to 720" in as_text(parts, 40)


def test_an_option_that_is_given_twice_is_refused(run):
    status, _, err = run("compile m.json -o a --out b")
    assert status == 2 and "-o: is given twice" in err
