"""Tests report.md and the manifest's `made`: how a folder was made, and its figures with their rows."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from markdown_it import MarkdownIt
from models import trained
from sklearn.ensemble import RandomForestClassifier

import forestc
from forestc.errors import ToolError
from forestc.report.tables import filled
from forestc.search.levels import PATHS
from forestc.toolchain.packaged import find_command

HOSTILE = [
    "mean_radius", "a|b", "<img src=x onerror=alert(1)>", "`code`", "``", "**bold**", "_low_", "~~gone~~",
    "[text](http://example.org)", "![i](x)", "http://example.org", "www.example.org", "me@example.org", "&lt;", "a\\",
    "a\\|b", "# head", "one\ntwo", ":tada:", "$x^2$", "-", " ", "<!--", "\x1b[31m", "| --- |", "ends in `",
]  # fmt: skip


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    folder = tmp_path_factory.mktemp("work")
    model, X, y = trained("xgboost-binary")
    model.get_booster().save_model(folder / "ill_1.json")
    frame = pd.DataFrame(X).assign(target=y)
    frame[:400].to_csv(folder / "train.csv", index=False)
    frame[400:].to_csv(folder / "test.csv", index=False)
    return folder


def made_of(folder):
    return json.loads((folder / "manifest.json").read_text())["made"]


def tables(text):
    """Parses Markdown; returns the tables' cells as a reader sees them, and all kinds of tokens."""
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)
    rows, kinds = [], set()
    for before, token in pairwise(tokens):
        kinds |= {token.type} | {child.type for child in token.children or []}
        if before.type == "tr_open":
            rows.append([])
        if before.type in ("td_open", "th_open"):
            rows[-1].append("".join(child.content for child in token.children))
    return rows, kinds


def test_a_folder_tells_how_to_make_it_again(run, work):
    command = [
        "compile", str(work / "ill_1.json"), "--rows", str(work / "train.csv"), "--label", "target", "--held-out",
        str(work / "test.csv"), "-p", "round-leaves{leaf_bits=6}", "--target", "c", "--name", "a 'b'", "-o", "a",
    ]  # fmt: skip
    assert run(*command)[0] == 0
    made = made_of(work / "a")
    again = shlex.split(made["command"])
    assert again[0] == "forestc" and again[-2:] == ["-o", "DIR"]
    assert run(*again[1:-1], "b")[0] == 0
    for path in (work / "a").rglob("*.*"):
        text = path.read_bytes()
        assert text == (work / "b" / path.relative_to(work / "a")).read_bytes()
        assert str(work).encode() not in text
    report = (work / "a/report.md").read_text()
    assert f"\n    {made['command']}\n" in report
    for file, output in (("ill_1.json", made["model"]), ("train.csv", made["rows"]), ("test.csv", made["held_out"])):
        expected = hashlib.sha256((work / file).read_bytes()).hexdigest()
        assert (output["file"], output["sha256"]) == (file, expected)
        assert [expected] == [row[2] for row in tables(report)[0] if row[1] == file and len(row) == 3]
    assert made["versions"]["forestc"] == forestc.__version__ and made["versions"]["numpy"] == np.__version__
    assert "xgboost" in made["versions"] and "measured on the rows the passes were fitted on." in report
    given, held_out = made["accuracy"]["given"], made["accuracy"]["held_out"]
    result = forestc.check(work / "a", work / "test.csv", label="target", engines=["c"], random_rows=1)
    assert (held_out["rows"], held_out["compiled"]) == (169, result.agreement.compiled)
    assert (given["rows"], made["rows"]["rows"], held_out["agreement"]) == (400, 400, result.agreement.agreement)
    shown = ["accuracy of the compiled forest", *(f"{100 * on['compiled']:.2f} %" for on in (given, held_out))]
    assert shown in tables(report)[0]


def test_rows_in_memory_are_reported_by_shape_and_hash(work):
    model, X, y = trained("xgboost-binary")
    done = forestc.compile(model, X, work / "array", label=y, held_out=0.25, passes=PATHS, targets="c")
    made = made_of(work / "array")
    assert made["command"] is None and made["options"]["label"] == "given in Python"
    assert made["rows"]["shape"] == [569, 30] and "file" not in made["rows"]
    assert made["rows"]["sha256"] == hashlib.sha256(np.asarray(X, dtype="<f8").tobytes()).hexdigest()
    assert made["rows"]["labels_sha256"] == hashlib.sha256(np.asarray(y, dtype="<i8").tobytes()).hexdigest()
    assert made["model"]["class"] == "xgboost.sklearn.XGBClassifier"
    assert made["held_out"] == {"share": 0.25, "rows": 142}
    assert made["accuracy"]["measured_on"] == "fitted_and_held_out"
    assert done.figures["measured"] == made["accuracy"]
    forestc.compile(model, X[:, ::-1][:, ::-1] + 0, work / "same", label=y, held_out=0.25, passes=PATHS, targets="c")
    assert (work / "same/manifest.json").read_bytes() == (work / "array/manifest.json").read_bytes()
    other = X.copy()
    other[0, 0] += 1
    forestc.compile(model, other, work / "other", label=y, held_out=0.25, passes=PATHS, targets="c")
    assert made_of(work / "other")["rows"]["sha256"] != made["rows"]["sha256"]


def test_names_are_shown_as_they_are_and_are_no_markup(tmp_path):
    y = np.arange(200) % 2
    X = np.random.default_rng(0).normal(size=(200, len(HOSTILE))) + 0.3 * y[:, None]
    frame = pd.DataFrame(X, columns=HOSTILE)
    model = RandomForestClassifier(30, random_state=0).fit(frame, y)
    done = forestc.compile(model, frame, tmp_path / "out", label=y, targets="c", name="<b>|`x`_")
    text = (tmp_path / "out/report.md").read_text()
    rows, kinds = tables(text)
    start = next(index for index, row in enumerate(rows) if row[0] == "feature")
    names = ["".join(c if c.isprintable() else "\ufffd" for c in f.name).strip() for f in done.design.forest.features]
    assert len(names) == len(HOSTILE)
    assert [row[0] for row in rows[start + 1 : start + 1 + len(names)]] == names
    assert {len(row) for row in rows[start : start + 1 + len(names)]} == {4}
    allowed = "heading paragraph table thead tbody tr th td"
    assert kinds <= {"inline", "text", "text_special", "code_inline", "code_block", "softbreak"} | {
        f"{tag}_{end}" for tag in allowed.split() for end in ("open", "close")
    }
    assert "mean_radius" in text and "http\\://" in text and "www\\." in text and "me\\@" in text


def test_columns_that_hold_nothing_are_left_out():
    head, rows = filled(("a", "b", "c", "d"), [("", "-", "1", ""), ("", "", "", "-")])
    assert (list(head), rows) == (["a", "c"], [["", "1"], ["", ""]])
    assert list(filled(("a", "b"), [])[0]) == ["a", "b"]


def test_what_synthesis_found_is_in_the_report_or_nothing_of_it(work, monkeypatch):
    if find_command("yosys") is None:
        assert not os.environ.get("FORESTC_REQUIRE_TOOLS")
        pytest.skip("yosys is not installed")
    model, X, y = trained("tree-binary")
    done = forestc.compile(model, X, work / "lut6", label=y, targets="verilog", device="lut6")
    report = (work / "lut6/report.md").read_text()
    found = done.figures["synthesis"]
    assert f"| LUTs | {found['lut']} (estimated" in report and found["tools"][0] in report
    assert made_of(work / "lut6")["synthesis"]["lut"] == found["lut"]
    assert "seconds" not in made_of(work / "lut6")["synthesis"]
    assert done.design.changed_files() == () and forestc.open_design(work / "lut6").changed_files() == ()
    assert "| `manifest.json` |" not in report

    def failing(*_, **__):
        raise ToolError("ended with exit status 1", where="yosys")

    monkeypatch.setattr("forestc.commands.compile.synthesis_figures", failing)
    with pytest.raises(ToolError):
        forestc.compile(model, X, work / "lut6", label=y, targets="verilog", device="lut6", latency=1)
    design = forestc.open_design(work / "lut6")
    assert design.netlist.latency == 1 and design.changed_files() == ()
    assert "synthesis on" not in (work / "lut6/report.md").read_text() and "synthesis" not in design.manifest["made"]
