"""What Python shows of a result: the command line's tables, and a short repr."""

import json
import re

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

import forestc
from forestc.cli.program import main
from forestc.errors import OptionError
from forestc.report.tables import compile_tables
from forestc.report.widths import as_text

X = np.arange(40, dtype=np.float32).reshape(20, 2)
y = (X[:, 0] > 20).astype(int)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    model = DecisionTreeClassifier(max_depth=2).fit(X, y)
    return forestc.compile(model, X, tmp_path_factory.mktemp("made") / "out", label=y, targets="c", cpu="avr")


def test_print_shows_the_tables_of_the_command_line(compiled):
    assert str(compiled) == compiled.summary() == as_text(compile_tables(compiled.figures), 80)
    assert "agreement with the model" in str(compiled)
    assert max(map(len, compiled.summary(50).splitlines())) <= 50
    assert repr(compiled).startswith("<Compiled ")


def test_figures_are_json_with_a_short_repr(compiled):
    assert json.loads(json.dumps(compiled.figures)) == dict(compiled.figures)
    assert len(repr(compiled.figures)) < 400 and "1 comparators" in repr(compiled.figures)


def test_c_alone_has_no_latency_and_no_ports(compiled):
    assert "latency" not in str(compiled) and "port bits" not in str(compiled)
    both = dict(compiled.figures) | {"targets": ["c", "verilog"], "latency_cycles": 0}
    assert "latency" in as_text(compile_tables(both)) and "port bits" in as_text(compile_tables(both), 100)


def test_labels_in_the_place_of_the_folder():
    with pytest.raises(OptionError, match=r"out is a ndarray, not a folder; labels are label=: compile\(model, X"):
        forestc.compile(DecisionTreeClassifier().fit(X, y), X, y)


def test_wide_prints_all_columns(compiled, capfd, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    shown = []
    for more in ([], ["--wide"]):
        with pytest.raises(SystemExit):
            main(["inspect", str(compiled.design.folder), *more])
        shown.append(capfd.readouterr().out)
    assert "--wide shows all" in shown[0] and not re.search(r"┃.*highest", shown[0])
    assert "--wide shows all" not in shown[1] and re.search(r"┃.*lowest threshold.*highest", shown[1])
