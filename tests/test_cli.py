"""Tests the command line as people use it: its files, messages and exit status."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from models import trained

import forestc
from forestc.cli import main
from forestc.passes import PASSES

EXAMPLES = Path(__file__).parents[1] / "examples" / "models"


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """Makes a folder with a model and its rows, as a user would have them."""
    folder = tmp_path_factory.mktemp("work")
    model, X, y = trained("xgboost-binary")
    names = [f"f{i}" for i in range(30)]
    booster = model.get_booster().copy()
    booster.feature_names = names
    booster.save_model(folder / "ill.json")
    pd.DataFrame(X, columns=names).assign(target=y).to_csv(folder / "rows.csv", index=False)
    pd.DataFrame(X[:40], columns=names).assign(target=y[:40]).to_parquet(folder / "few.parquet")
    return folder


def test_from_model_to_checked_folder(run, work):
    status, out, err = run(
        "compile", "ill.json", "--rows", "rows.csv", "--label", "target", "--target", "verilog,c", "-o", "out",
        "--latency", "2", "--json",
    )  # fmt: skip
    assert (status, err) == (0, "")
    output = json.loads(out)
    assert out.count("\n") == 1
    keys = "out targets passes distinct_conditions comparator_bits latency_cycles accuracy agreement seconds"
    assert set(keys.split()) <= set(output)
    assert output["agreement"] == 1.0 and output["latency_cycles"] == 2
    written = {str(path.relative_to(work / "out")) for path in (work / "out").rglob("*") if path.is_file()}
    assert written == {
        "manifest.json", "model.forest", "quantized.forest", "report.md", "c/ill.h", "verilog/ill.v",
        "verilog/ill_tb.v", "verilog/vectors.txt", "verilog/ill_registered.v", "verilog/vivado.tcl",
        "verilog/quartus.tcl", "verilog/yosys.ys", "verilog/ill.xdc", "verilog/ill.sdc", "verilog/ill.core",
        "verilog/ill_pkg.vhd", "verilog/ill_pkg.sv", "verilog/ill.vho", "verilog/ill.veo",
    }  # fmt: skip
    output = json.loads((work / "out" / "manifest.json").read_text())
    keys = "name core files ports features outputs latency_cycles classes passes guarantees hash"
    assert set(keys.split()) <= set(output)
    assert set(output["features"][0]) >= {"name", "offset", "bits", "fraction", "signed"}
    assert set(output["outputs"][0]) >= {"name", "offset", "bits", "signed", "scale"}

    status, out, _ = run("check", "out", "--rows", "rows.csv", "--label", "target", "--engines", "netlist,c", "--json")
    output = json.loads(out)
    assert status == 0
    assert {"rows", "differences", "agreement", "accuracy", "proved"} <= set(output)
    assert output["differences"] == {"netlist": 0, "c": 0}
    assert output["rows"] == 569

    status, out, _ = run("simulate", "out", "--rows", "few.parquet", "--label", "target", "--vcd", "w.vcd", "--json")
    output = json.loads(out)
    assert (status, output["differences"], output["rows"], output["latency_cycles"]) == (0, 0, 40, 2)
    assert (work / "w.vcd").read_text().startswith("$")


def test_the_same_input_gives_the_same_bytes(run, work):
    for out in ("once", "twice"):
        assert run("compile", "ill.json", "--rows", "rows.csv", "-o", out)[0] == 0
    for path in (work / "once").rglob("*"):
        if path.is_file():
            assert path.read_bytes() == (work / "twice" / path.relative_to(work / "once")).read_bytes()
    assert str(work) not in "".join(p.read_text() for p in (work / "once").rglob("*") if p.is_file())


def test_tables_for_people(run):
    status, out, _ = run("inspect", "ill.json")
    assert status == 0 and "distinct conditions" in out
    status, out, _ = run("compile", "ill.json", "--rows", "rows.csv", "--label", "target", "-o", "tables", "--verbose")
    words = " ".join(out.replace("│", " ").split())
    assert status == 0 and "comparators" in words and "exact" in words and "share-thres" in words
    status, out, _ = run("check", "tables", "--rows", "few.parquet", "--engines", "c")
    assert status == 0 and "differences" in out and "bit for bit" in out


def test_inspect_and_print(run):
    status, out, _ = run("inspect", "ill.json", "--json")
    output = json.loads(out)
    keys = (
        "source trees nodes leaves depth features features_used distinct_conditions outputs classes missing categorical"
    )
    assert set(keys.split()) <= set(output)
    assert (status, output["trees"], output["features"], output["classes"]) == (0, 20, 30, [0, 1])
    status, out, _ = run("print", "ill.json")
    assert status == 0 and out.startswith('forest "ill"\n') and out.count("tree outputs 0") == 20
    Path("ill.forest").write_text(out)
    assert run("print", "ill.forest")[1] == out


def test_skops_model_of_the_examples(run):
    status, out, _ = run("inspect", EXAMPLES / "digits.skops", "--json")
    assert status == 0 and json.loads(out)["classes"] == list(range(10))


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["compile", "no.json", "--rows", "rows.csv", "-o", "x"], 1, "no.json: there is no such file"),
        (["compile", "ill.json", "--rows", "no.csv", "-o", "x"], 1, "no.csv: there is no such file"),
        (["compile", "ill.json", "--rows", "rows.csv", "--label", "targt", "-o", "x"], 1, "there is no column 'targt'"),
        (["compile", "ill.json", "--rows", "rows.csv", "-o", "rows.csv"], 1, "rows.csv: is a file"),
        (["compile", "ill.json", "--rows", "rows.csv", "-o", "."], 1, "which forestc did not write"),
        (["compile", "ill.json", "--rows", "rows.csv", "-o", "/proc/x"], 1, "can't be written"),
        (["compile", "ill.json", "-o", "x", "--c", "types=f0=float,layout=nodes"], 2, "write types= last"),
        (
            ["compile", "ill.json", "-o", "x", "--c", "types=f0=float,project=cmake"],
            2,
            "types= in a --c of its own",
        ),
        (["compile", "ill.json", "--rows", "rows.csv", "-o", "x", "--target", "chisel"], 2, "unknown target 'chisel'"),
        (["compile", "ill.json", "--rows", "rows.csv", "-o", "x", "--latency", "2", "--reset", "sink"], 2, "'sink' is"),
        (
            ["compile", "ill.json", "--rows", "rows.csv", "-o", "x", "--unseen", "drop"],
            2,
            "'drop' is unknown",
        ),
        (["compile", "ill.json", "--rows", "rows.csv", "-o", "x", "-p", "simplfy"], 2, "unknown pass 'simplfy'"),
        (["compile", "ill.json", "--rows", "rows.csv", "-o", "x", "--latency", "-1"], 2, "latency -1"),
        (["compile", "ill.json", "--rows", "rows.csv", "-o", "x", "--axi-lite"], 2, "add --stream"),
        (
            ["compile", "ill.json", "--rows", "rows.csv", "-o", "x", "--stream", "--tdata", "12"],
            2,
            "--tdata; 12 bits; use a multiple of 8",
        ),
        (
            ["compile", "ill.json", "--rows", "rows.csv", "-o", "x", "--stream", "--target", "c"],
            2,
            "add the target verilog",
        ),
        (
            ["compile", "ill.json", "--rows", "rows.csv", "-o", "x", "-p", "round-leaves{leaf_bits=1,change=0}"],
            3,
            "is allowed",
        ),
        (["compile", "ill.json", "--rows", "rows.csv"], 2, "/ '--out'; see forestc compile --help"),
        (["compile", "ill.json", "-o", "x", "--label", "y"], 2, "--label; give --rows"),
        (["compile", "ill.json", "-o", "x", "--ranges", "rows.csv"], 1, "line 1; write a CSV file with"),
        (["compyle"], 2, "No such command 'compyle'. Did you mean 'compile'; see forestc --help"),
        (["check", "out", "--sed", "1"], 2, "see forestc check --help"),
        (["passes", "simplfy"], 2, "unknown pass 'simplfy'; did you mean 'simplify'? known: simplify"),
        (["check", "ill.json", "--rows", "rows.csv"], 1, "has no readable manifest.json"),
        (
            ["inspect", "rows.csv"],
            1,
            "rows.csv: the file is a file of rows",
        ),
        (["inspect", "broken.json"], 1, "not readable JSON"),
        (["inspect", "short.ubj"], 1, "not a readable UBJSON model"),
        (["inspect", "m.pkl"], 1, "--trust-pickle"),
        (["inspect", "il.json"], 1, "il.json: there is no such file; did you mean 'ill.json'?"),
        (
            ["compile", "ill.json", "--rows", "row.csv", "-o", "x"],
            1,
            "row.csv: there is no such file; did you mean 'rows.csv'?",
        ),
    ],
)
def test_mistakes_get_one_clear_line_and_leave_nothing(run, work, arguments, status, message):
    text = (work / "ill.json").read_text()
    (work / "broken.json").write_text(text[: len(text) // 2])
    (work / "short.ubj").write_bytes(b"{L\x00\x00\x00\x00\x00\x00\x00\x07learn")
    (work / "m.pkl").touch()
    before = sorted(path.name for path in work.iterdir())
    found, out, err = run(*arguments)
    assert (found, out) == (status, "")
    assert all(part in err for part in message.split("; "))
    assert err.startswith("forestc: ") and err.count("\n") == 1
    assert "Traceback" not in err
    found, out, as_json = run(*arguments, "--json")
    assert (found, out, as_json.count("\n")) == (status, "", 1)
    output = json.loads(as_json)["error"]
    assert list(output) == ["kind", "what", "where", "do", "status"] and output["status"] == status
    assert all(" ".join(output[part].split()) in err for part in ("what", "where", "do"))
    assert output["kind"].endswith("Error")
    assert sorted(path.name for path in work.iterdir()) == before


def test_nan_where_the_model_takes_none(run, work):
    import skops.io

    model, X, y = trained("boosting-binary")
    skops.io.dump(model, work / "boost.skops")
    X = X.copy()
    X[7, 3] = np.nan
    np.savez(work / "nan.npz", X=X, y=y)
    status, _, err = run("compile", "boost.skops", "--rows", "nan.npz", "--label", "y", "-o", "nan")
    assert status == 1
    assert "row 7, feature 'x3': a value is missing" in err
    assert not (work / "nan").exists()


C_AND_STREAM = [
    ("--c-layout nodes --c-values q15", "--c layout=nodes,values=q15"),
    ("--cpu pico --flash 64k --ram 2k", "--c cpu=pico,flash=64k,ram=2k"),
    ("--c-inputs raw --c-types f0=float,*=double", "--c inputs=raw --c types=f0=float,*=double"),
    ("--c-project cmake,zephyr --cpu pico", "--c cpu=pico,project=cmake,zephyr"),
    ("--stream --tdata 64 --align 8 --axi-lite", "--stream tdata=64,align=8,axi-lite"),
    ("--stream --tuser 4", "--stream=tuser=4,axi_lite=false"),
    ("--stream", "--stream --rows rows.csv"),
]


@pytest.mark.parametrize(("flags", "keys"), C_AND_STREAM)
def test_keys_set_what_their_flags_set(run, work, flags, keys):
    """Sets options of C and of the stream, each alone or as keys of one flag; a stream without keys may stand before
    the model."""
    for words, out in ((flags, "flags"), (keys, "keys")):
        rows = [] if "--rows" in words else ["--rows", "rows.csv"]
        assert run("compile", *words.split(), *rows, "-o", out, "ill.json", "-p", "simplify,round-leaves")[0] == 0
    made = [json.loads((work / out / "manifest.json").read_text())["made"] for out in ("flags", "keys")]
    assert made[0] == made[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            "--c layouts=nodes",
            "--c; 'layouts'; did you mean 'layout'? known: inputs, ",
        ),
        ("--c layout=nodes,layout=masks", "--c layout; given twice; give it once"),
        ("--c layout=nodes --c-layout masks", "--c layout; given twice; give it once"),
        ("--c layout", "no value; write --c layout=VALUE"),
        (
            "--stream tdat=8",
            "--stream; 'tdat'; did you mean 'tdata'? known: tdata, tuser",
        ),
        ("--stream tdata=wide", "--stream; give a whole number"),
        ("--stream axi-lite=2", "--stream; give true or false"),
        ("--stream tdata=12", "--tdata; 12 bits; use a multiple of 8"),
    ],
)
def test_other_keys_and_values_are_refused(run, words, message):
    status, out, err = run("compile", "ill.json", "--rows", "rows.csv", "-o", "x", *words.split())
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert all(part in err for part in message.split("; "))


def test_the_help_of_compile_fits_two_screens(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    status, out, _ = run("compile", "--help")
    assert status == 0 and out.count("\n") <= 100 and "--c KEY=VALUE,..." in out and "--c-layout" not in out
    status, out, _ = run("compile", "--help", "c")
    assert status == 0 and "layout=..." in out and "instructions=..." in out and out.count("\n") < 40
    status, out, _ = run("compile", "--help", "stream")
    assert status == 0 and "axi-lite  " in out and "axi-lite=" not in out


def test_a_failed_check_has_status_3(run, work):
    assert run("compile", "ill.json", "--rows", "rows.csv", "--c-layout", "branches", "-o", "wrong")[0] == 0
    header = work / "wrong" / "c" / "ill.h"
    header.write_text(header.read_text().replace("? 1u : 0u);", "? 2u : 0u);"))
    status, out, err = run("check", "wrong", "--rows", "rows.csv", "--engines", "netlist,c", "--json")
    assert status == 3
    assert json.loads(out)["differences"]["c"] > 0
    output = json.loads(err)["error"]
    assert (output["kind"], output["status"]) == ("CheckError", 3) and output["where"].startswith("c: rows vector")
    assert output["what"] == "c differs from the quantized forest" and output["do"].startswith("compile again")


def test_a_failing_tool_has_status_4(run, work):
    assert run("compile", "ill.json", "--rows", "rows.csv", "-o", "tool")[0] == 0
    (work / "tool" / "c" / "ill.h").write_text("nonsense")
    status, _, err = run("check", "tool", "--rows", "rows.csv", "--engines", "c")
    assert status == 4 and "ended with exit status 1" in err


def test_debug_shows_the_traceback(work, monkeypatch):
    from forestc.errors import ModelError

    monkeypatch.chdir(work)
    with pytest.raises(ModelError):
        main(["--debug", "inspect", "no.json"])


def test_an_interrupted_write_leaves_the_old_folder(run, work, monkeypatch):
    assert run("compile", "ill.json", "--rows", "rows.csv", "-o", "keep")[0] == 0
    before = (work / "keep" / "manifest.json").read_text()
    real = Path.write_bytes

    def full(self, *args, **kwargs):
        if self.name == "report.md":
            raise OSError(28, "No space left on device")
        return real(self, *args, **kwargs)

    monkeypatch.setattr(Path, "write_bytes", full)
    status, _, err = run("compile", "ill.json", "--rows", "rows.csv", "-o", "keep", "--latency", "3")
    assert status == 1 and "can't be written (No space left on device)" in err
    assert (work / "keep" / "manifest.json").read_text() == before
    assert not [path for path in work.iterdir() if path.name.startswith(".")]


def test_errors_of_the_system_are_reported_as_json_too(run, work, monkeypatch):
    def full(*_, **__):
        raise MemoryError

    monkeypatch.setattr("forestc.frontends.load", full)
    status, out, err = run("inspect", "ill.json", "--json")
    output = {"kind": "MemoryError", "what": "MemoryError", "where": "", "do": "--debug shows where", "status": 1}
    assert (status, out, json.loads(err)) == (1, "", {"error": output})
    assert run("inspect", "ill.json")[2] == "forestc: MemoryError; --debug shows where\n"


def test_passes_are_listed_with_promises_and_options(run):
    status, out, _ = run("passes", "--json")
    listed = json.loads(out)["passes"]
    assert status == 0 and [output["name"] for output in listed] == list(PASSES)
    for brief in listed:
        status, out, _ = run("passes", brief["name"], "--json")
        output = json.loads(out)
        assert status == 0 and {key: output[key] for key in brief} == brief
        assert output["for"].endswith(".") and output["promises"].startswith(("exact", "approximate"))
        kind = PASSES[brief["name"]]
        assert [option["name"] for option in output["options"]] == [field.name for field in fields(kind)]
        assert [option["default"] for option in output["options"]] == [field.default for field in fields(kind)]
        others = [f"{end} {option['name']}: " for option in output["options"] for end in ".;"]
        for option in output["options"]:
            assert option["type"] and option["meaning"] and "\n" not in option["meaning"]
            assert not any(other in option["meaning"] for other in others)  # no entry runs into the next one
        status, out, _ = run("passes", brief["name"])
        assert status == 0 and all(option["name"] in out for option in output["options"])
    assert "promises" in run("passes")[1]


def test_version_and_completion(run):
    assert run("--version") == (0, f"forestc {forestc.__version__}\n", "")
    word = {"_FORESTC_COMPLETE": "complete_bash", "COMP_WORDS": "forestc comp", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "forestc"], capture_output=True, text=True, check=True, env={**os.environ, **word}
    )
    assert done.stdout.split() == ["compile"]
    word = {"_FORESTC_COMPLETE": "complete_bash", "COMP_WORDS": "forestc compile --lat", "COMP_CWORD": "2"}
    done = subprocess.run(
        [sys.executable, "-m", "forestc"], capture_output=True, text=True, check=True, env={**os.environ, **word}
    )
    assert done.stdout.split() == ["--latency"]


def test_as_a_program():
    done = subprocess.run([sys.executable, "-m", "forestc", "--help"], capture_output=True, text=True, check=True)
    for command in ("inspect", "print", "compile", "check", "simulate", "model-inputs", "activity", "report"):
        assert command in done.stdout


def test_a_folder_with_anything_of_the_user_s_is_left_alone(run, work):
    assert run("compile", "ill.json", "--rows", "rows.csv", "-o", "mine")[0] == 0
    assert run("compile", "ill.json", "--rows", "rows.csv", "-o", "mine", "--latency", "1")[0] == 0
    manifest = work / "mine" / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"format": 99}))
    status, _, err = run("inspect", "mine")
    assert status == 1 and "another version of forestc" in err and "compile again" in err
    for name in ("check.json", "measured.json"):
        (work / "mine" / name).write_text('{"format": 99}')
    assert run("compile", "ill.json", "--rows", "rows.csv", "-o", "mine")[0] == 0
    (work / "mine" / "notes.txt").write_text("keep me")
    (work / "app").mkdir()
    (work / "app" / "manifest.json").write_text("{}")
    for out, name in (("mine", "notes.txt"), ("app", "manifest.json")):
        status, _, err = run("compile", "ill.json", "--rows", "rows.csv", "-o", out)
        assert status == 1 and f"holds '{name}', which forestc did not write" in err
    assert (work / "mine" / "notes.txt").read_text() == "keep me"


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["check", "odd", "--rows", "rows.csv", "--seed", "-1"], 2),
        (["simulate", "odd", "--rows", "rows.csv", "--vcd", "."], 1),
        (["simulate", "odd", "--rows", "few.parquet", "--vcd", "w" * 300], 1),
        (["compile", "ill.json", "--rows", "x" * 300 + ".csv", "-o", "y"], 1),
        (["compile", "ill.json", "--rows", "rows.csv", "-o", "y" * 300], 1),
        (["compile", "ill.json", "--rows", "rows.csv", "-o", "y", "--target", ""], 2),
    ],
)
def test_odd_arguments_get_one_line(run, work, arguments, status):
    if not (work / "odd").exists():
        assert run("compile", "ill.json", "--rows", "rows.csv", "-o", "odd")[0] == 0
    found, _, err = run(*arguments)
    assert found == status
    assert err.startswith("forestc: ") and err.count("\n") == 1
