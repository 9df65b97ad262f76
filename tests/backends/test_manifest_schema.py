"""Tests the JSON Schema of the manifest: every kind of folder holds to it, and it leaves nothing open."""

from __future__ import annotations

import copy
import json
from typing import get_args

import jsonschema
import pytest
from models import trained
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from thinned import only

import forestc
from forestc.backends.c.options import CLayout
from forestc.fields.options import recorded
from forestc.manifest.content import FORMAT, schema
from forestc.options.compile import CompileOptions

VALIDATOR = jsonschema.Draft202012Validator(schema())
STREAM = forestc.StreamOptions(tdata_bits=64, user_bits=4, registers=True, align=16)


def classes(folder):
    _, X, y = trained("forest-multi")
    model = RandomForestClassifier(3, max_depth=3, random_state=0).fit(X, y)
    return forestc.compile(model, X, folder, label=y, held_out=0.2, targets="verilog,c,hls,amaranth", level=1)


def several_targets(folder):
    _, X, y = trained("forest-multi")
    model = RandomForestClassifier(3, max_depth=3, random_state=0).fit(X, [(k % 2, k // 4) for k in y])
    return forestc.compile(model, X, folder, targets="verilog", passes="none")


def a_stream(folder):
    model, X, y = trained("forest-missing")
    return forestc.compile(model, X, folder, label=y, latency=2, outputs="both", stream=STREAM)


def a_value(folder):
    model, X, y = trained("tree-regression")
    return forestc.compile(model, X, folder, label=y, targets="c", scores=0.01, c_values="float")


def without_rows(folder):
    model, X, _ = trained("tree-binary")
    ranges = {f"x{column}": {"smallest": 0, "missing": False} for column in range(X.shape[1])}
    return forestc.compile(model, None, folder, ranges={"x0": (0, 30), **ranges}, targets="verilog")


def from_files(folder):
    source, rows = folder.parent / "model.forest", folder.parent / "rows.csv"
    model, X, y = trained("tree-binary")
    source.write_text(forestc.forest.text.print_forest(forestc.load(model)))
    lines = [",".join(map(repr, [*row, int(label)])) for row, label in zip(X.tolist(), y, strict=True)]
    names = [f"c{column}" for column in range(X.shape[1])]
    rows.write_text("\n".join([",".join([*names, "truth"]), *lines]))
    return forestc.compile(source, rows, folder, label="truth", targets="verilog", device="lut6")


def searched(folder):
    model, X, y = trained("xgboost-binary")
    X, y = X[::4, :6], y[::4]
    model = clone(model).set_params(n_estimators=3, max_depth=2).fit(X, y)
    return forestc.compile(model, X, folder, label=y, targets="c", level=3, effort="1", tolerance=0.02)


@pytest.mark.parametrize(
    "make", only([classes, several_targets, a_stream, a_value, without_rows, from_files, searched], 0, 1, 2, 3, 4, 5)
)
def test_every_kind_of_folder_holds_to_it(make, tmp_path):
    make(tmp_path / "out")
    assert not list(VALIDATOR.iter_errors(json.loads((tmp_path / "out" / "manifest.json").read_text())))


def objects(part, path=""):
    """Yields every description of an object with fields, and its path."""
    if isinstance(part, dict):
        if "properties" in part:
            yield path, part
        for key, inner in part.items():
            yield from objects(inner, f"{path}/{key}")
    elif isinstance(part, list):
        for index, inner in enumerate(part):
            yield from objects(inner, f"{path}/{index}")


def test_it_describes_every_field_and_lets_no_other_in():
    jsonschema.Draft202012Validator.check_schema(schema())
    assert schema()["properties"]["format"]["const"] == FORMAT
    for path, part in objects(schema()):
        assert part["additionalProperties"] is False, path
        assert set(part["required"]) <= set(part["properties"]), path
        for name, field in part["properties"].items():
            assert {"description", "properties"} & set(field), f"{path}: {name}"


def test_it_knows_the_layouts_of_c():
    assert any(
        part["properties"].get("layout", {}).get("enum") == [*get_args(CLayout)] for _, part in objects(schema())
    )


def test_it_knows_the_options_of_compile():
    made = schema()["properties"]["made"]["properties"]["options"]
    known = [flag.key for flag in recorded(CompileOptions(None, None, None))]
    assert list(made["properties"]) == known == made["required"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda output: output.pop("files"), "'files' is a required property"),
        (lambda output: output.update(core="m"), "'ports' is a dependency of 'core'"),
        (lambda output: output.update(more=1), "'more' was unexpected"),
        (lambda output: output["features"][0].update(bits="5"), "'5' is not of type 'integer'"),
        (lambda output: output["features"][0].pop("raw"), "'raw' is a required property"),
        (lambda output: output["sha256"]["files"].update({"c/x.h": "0"}), "'0' does not match"),
    ],
)
def test_what_does_not_hold_to_it_is_reported(change, said, tmp_path):
    a_value(tmp_path / "out")
    output = json.loads((tmp_path / "out" / "manifest.json").read_text())
    other = copy.deepcopy(output)
    change(other)
    with pytest.raises(jsonschema.ValidationError, match=said):
        VALIDATOR.validate(other)
