"""Tests a design of C alone: no netlist is made, and no message mentions hardware."""

from __future__ import annotations

import json

import jsonschema
import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier

import forestc
from forestc.commands import compile as compiling
from forestc.errors import ForestcError
from forestc.manifest.content import schema


@pytest.fixture
def design(tmp_path, monkeypatch):
    def refused(*_):
        raise AssertionError("C needs no netlist")

    X, y = load_iris(return_X_y=True)
    model = RandomForestClassifier(3, max_depth=3, random_state=0).fit(X, y)
    monkeypatch.setattr(compiling, "lower", refused)
    done = forestc.compile(model, X, tmp_path / "out", label=y, targets="c", name="m")
    assert (done.figures["cells"], done.figures["latency_cycles"]) == (None, None)
    return done.design


def test_its_manifest_says_nothing_of_hardware(design):
    manifest = json.loads((design.folder / "manifest.json").read_text())
    jsonschema.validate(manifest, schema())
    assert not {"core", "ports", "latency_cycles", "initiation_interval"} & set(manifest)
    assert all("offset" not in field for field in [*manifest["features"], *manifest["outputs"]])
    assert "latency" not in (design.folder / "report.md").read_text().split("## how it was made")[0]


def test_its_header_alone_is_checked(design):
    result = forestc.check(design, np.zeros((1, design.model.columns)), random_rows=10)
    assert result.ok
    assert list(result.engines) == ["c"]


def test_what_needs_hardware_names_the_target(design):
    for use in (lambda: design.netlist, lambda: forestc.simulate(design, [[0.0] * design.model.columns])):
        with pytest.raises(ForestcError, match=r"no core of hardware.*targets=verilog"):
            use()
    with pytest.raises(ForestcError, match="targets=verilog"):
        design.pack(design.quantize([[0.0] * design.model.columns]))
