"""Tests that check finds planted errors in the written files, damaged folders, and missing tools."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace

import numpy as np
import pytest
from models import trained
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor

import forestc
from forestc.backends import running
from forestc.backends.c import engine as c_engine
from forestc.backends.engine import walking
from forestc.backends.hls import engine as hls_engine
from forestc.backends.languages import engine as languages_engine
from forestc.backends.running import difference
from forestc.backends.stream.axi_stream import StreamOptions
from forestc.backends.table import RUNNERS, TARGETS, implied_roles
from forestc.checks.proof import Proof, ProofPart
from forestc.checks.result import CheckResult
from forestc.cli import main
from forestc.commands.check import check
from forestc.errors import CheckError, ForestcError, ModelError, OptionError, ToolError
from forestc.forest.text import print_forest
from forestc.manifest.content import sealed
from forestc.toolchain import verilator

# These engines are left out: the design has no stream and so no words; NVC runs the same as GHDL and is in no
# distribution.
LEFT_OUT = ("words", "nvc", "ghdl_stream", "nvc_stream")
ALL = [name for name, own in RUNNERS.items() if not own.asked and name not in LEFT_OUT]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    model, X, y = trained("xgboost-binary")
    model = clone(model).set_params(n_estimators=6).fit(X, y)  # small, as all engines compile it many times
    out = tmp_path_factory.mktemp("compiled") / "design"
    forestc.compile(model, X[:400], out, label=y[:400], latency=2, outputs="both", name="ill", targets=[*TARGETS])
    return out


@pytest.fixture
def folder(compiled, tmp_path):
    return shutil.copytree(compiled, tmp_path / "design")


def rows():
    _, X, y = trained("xgboost-binary")
    return X, y


def run(folder, engines=("netlist", "icarus", "c"), **more):
    X, y = rows()
    return check(folder, X, label=y, engines=list(engines), **{"random_rows": 1000, **more})


def test_everything_agrees(folder, need_tool):
    need_tool("iverilog")
    need_tool("verilator")
    result = run(folder, engines=ALL)
    assert result.ok
    assert set(result.engines) == set(ALL)
    counted = sum(result.vectors.values())
    for engine in result.engines.values():
        assert (engine.differences, engine.vectors) == (0, counted)
        assert engine.tool
    assert result.vectors["rows"] == 569
    assert result.vectors["random"] == 1000
    conditions = len(forestc.open_design(folder).forest.conditions.comparators)
    assert result.vectors["boundary"] >= 3 * conditions
    assert result.agreement.agreement > 0.95
    json.dumps(result.figures)


def test_a_regression_is_compared_in_the_units_of_its_target(tmp_path):
    X = np.random.default_rng(0).normal(size=(300, 4))
    y = 1000 * X[:, 0] + X[:, 1]
    model = RandomForestRegressor(5, max_depth=4, random_state=0).fit(X[:200], y[:200])
    done = forestc.compile(model, X[:200], tmp_path / "out", label=y[:200], targets="c")
    result = check(done.design, X[200:], label=y[200:], engines=["c"], random_rows=1)
    apart = done.design.predict(X[200:]) - model.predict(X[200:])
    assert result.agreement.agreement is None and result.agreement.measure == "R squared"
    assert result.agreement.rms_difference == pytest.approx(np.sqrt((apart**2).mean()))
    assert result.agreement.largest_difference == pytest.approx(np.abs(apart).max()) and np.abs(apart).max() > 0.01
    assert result.agreement.model == pytest.approx(model.score(X[200:], y[200:]))
    for shown in (str(result), result._repr_html_(), (tmp_path / "out/report.md").read_text()):
        assert "largest difference from the model" in shown and "agreement with the model" not in shown


def planted(text, pattern, change, place):
    found = list(re.finditer(pattern, text))
    match = found[place % len(found)]
    return text[: match.start()] + change(match) + text[match.end() :]


C_MUTANTS = [
    (r"\] < (\d+)", lambda m: f"] < {int(m[1]) + 1}"),
    (r"\] < (\d+)", lambda m: f"] < {int(m[1]) - 1}"),
    (r"leaf = (\d+);", lambda m: f"leaf = {(int(m[1]) + 1) % 3};"),
    (r"\] >= (\d+)u\)", lambda m: f"] < {m[1]}u)"),
    (r"scores\[0\] = (-?\d+);", lambda m: f"scores[0] = {int(m[1]) + 1};"),
    (r"\] >= (-?\d+)", lambda m: f"] >= {int(m[1]) + 3}"),
]


@pytest.mark.parametrize("mutant", range(len(C_MUTANTS)))
def test_planted_errors_in_c_are_found(folder, mutant):
    header = folder / "c" / "ill.h"
    good = header.read_text()
    pattern, change = C_MUTANTS[mutant]
    for place in range(2):
        header.write_text(planted(good, pattern, change, 37 * place))
        result = run(folder, engines=["c"])
        assert not result.ok
        assert result.engines["c"].differences > 0
        assert "should give" in result.engines["c"].first


V_MUTANTS = [
    (r" ([|&]) \(", lambda m: f" {'&' if m[1] == '|' else '|'} ("),
    (r"\? (\w+|\d+'d\d+) : ([^;]+);", lambda m: f"? {m[2]} : {m[1]};"),
    (r" \+ ", lambda m: " - "),
    (r"(r\d+) <= [^;]+;", lambda m: f"{m[1]} <= 0;"),
]


@pytest.mark.parametrize("mutant", range(len(V_MUTANTS)))
def test_planted_errors_in_verilog_are_found(folder, mutant, need_tool):
    need_tool("iverilog")
    core = folder / "verilog" / "ill.v"
    good = core.read_text()
    pattern, change = V_MUTANTS[mutant]
    for place in range(2):
        core.write_text(planted(good, pattern, change, 11 * place))
        result = run(folder, engines=["icarus"])
        assert not result.ok and result.engines["icarus"].differences > 0


def test_the_written_test_bench_runs_by_itself(folder, need_tool, tmp_path):
    need_tool("iverilog")
    import subprocess

    here = folder / "verilog"
    subprocess.run(["iverilog", "-o", "x.vvp", "ill.v", "ill_tb.v"], cwd=here, check=True)
    done = subprocess.run(["vvp", "x.vvp"], cwd=here, check=True, capture_output=True, text=True)
    vectors = (here / "vectors.txt").read_text().splitlines()
    assert f"PASS {len(vectors)} vectors" in done.stdout
    (here / "vectors.txt").write_text(
        "\n".join([vectors[0][:-1] + ("0" if vectors[0][-1] != "0" else "1"), *vectors[1:]])
    )
    done = subprocess.run(["vvp", "x.vvp"], cwd=here, check=True, capture_output=True, text=True)
    assert "MISMATCH vector 0" in done.stdout and "FAIL 1 wrong" in done.stdout
    other = ["iverilog", '-Pill_tb.vectors="none"', "-o", "x.vvp", "ill.v", "ill_tb.v"]
    subprocess.run(other, cwd=here, check=True)
    done = subprocess.run(["vvp", "x.vvp"], cwd=here, check=True, capture_output=True, text=True)
    assert done.stdout == "can't read vector 0 of none\n"


def test_missing_tools_are_reported_or_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(running, "find", lambda *names: None)
    X, _ = rows()
    folder = tmp_path / "d"
    forestc.compile(trained("xgboost-binary")[0], X[:400], folder, targets="verilog")
    result = check(folder, X[:20], random_rows=10, engines=None)
    assert result.engines["icarus"].differences is None
    assert result.engines["icarus"].why == "verilator runs the same file; every=True runs both"
    assert result.ok and result.engines["verilator"].differences == 0
    with monkeypatch.context() as patch:
        patch.setattr(verilator, "find_verilator", lambda: None)
        result = check(folder, X[:20], random_rows=10)
    assert "not run: icarus: Icarus Verilog was not found; install iverilog" in result.not_run()
    for more in ({"engines": ["icarus"]}, {"require": True}):
        wanted = "the engine icarus can't run: Icarus Verilog was not found; install iverilog"
        with pytest.raises(CheckError, match=wanted):
            check(folder, X[:20], random_rows=10, **more)


@pytest.mark.long
def test_one_engine_runs_each_file_and_slow_ones_a_sample(folder, need_tool, monkeypatch):
    need_tool("iverilog")
    need_tool("verilator")
    X, _ = rows()
    monkeypatch.setitem(RUNNERS, "icarus", replace(RUNNERS["icarus"], sample=100))
    some = check(folder, X, random_rows=500)
    counted = sum(some.vectors.values())

    def ran(result):
        return {name: engine.vectors for name, engine in result.engines.items() if engine.differences is not None}

    assert {ran(some)[name] for name in ("netlist", "verilator", "c")} == {counted} and "icarus" not in ran(some)

    def not_run(result):  # whichever simulator of VHDL is here
        return [line for line in result.not_run() if not line.startswith(("not run: ghdl", "not run: nvc"))]

    assert not_run(some) == [
        "not run: icarus: verilator runs the same file; every=True runs both",
        "not run: engine-icarus: engine runs the same file; every=True runs both",
    ]
    every = check(folder, X, random_rows=500, every=True)
    assert set(ran(every).values()) == {counted} and "icarus" in ran(every) and not not_run(every)
    monkeypatch.setattr(verilator, "find_verilator", lambda: None)
    alone = check(folder, X, random_rows=500)
    assert alone.ok and 200 < alone.engines["icarus"].vectors <= 3 * 100
    core = folder / "verilog" / "ill.v"
    pattern, change = V_MUTANTS[0]
    core.write_text(planted(core.read_text(), pattern, change, 0))
    assert check(folder, X, random_rows=500).engines["icarus"].differences


def test_a_check_without_any_tool_says_what_was_not_run(folder, monkeypatch, tmp_path, capfd):
    monkeypatch.setattr(c_engine, "c_compiler", lambda: None)
    for module in (verilator, hls_engine):
        monkeypatch.setattr(module, "cxx_compiler", lambda: None)
    for module in (running, walking, languages_engine):
        monkeypatch.setattr(module, "find", lambda *names: None)
    monkeypatch.setattr(languages_engine, "package_folders", lambda name: [])
    monkeypatch.setenv("COLUMNS", "60")
    np.save(tmp_path / "rows.npy", rows()[0][:20])

    def checked(*more):
        with pytest.raises(SystemExit) as caught:
            main(["check", str(folder), "--rows", str(tmp_path / "rows.npy"), "--random", "10", *more])
        out = capfd.readouterr()
        return caught.value.code, out.out, out.err

    status, out, err = checked()
    said = " ".join(out.split())
    assert (status, err) == (0, "")
    for name in ALL:
        assert (f"not run: {name}: " in said) == (name not in ("netlist", "image", "shared", "python"))
    assert "not run: c: no C compiler was found; install gcc or clang, or set CC" in said
    tools = json.loads(checked("--json")[1])["tools"]
    assert tools["c"] == "not run: no C compiler was found; install gcc or clang, or set CC"
    error = "forestc: --engines: the engine c can't run: no C compiler was found; install gcc or clang, or set CC\n"
    assert checked("--engines", "netlist,c") == (3, "", error)


@pytest.mark.slow
def test_a_tool_that_takes_too_long_is_no_missing_one(folder, monkeypatch):
    def slow(*_, **__):
        raise ToolError("gcc took longer than 1800 s", where="gcc", do="give it a smaller design")

    monkeypatch.setattr(c_engine, "run_tool", slow)
    with pytest.raises(ToolError, match="took longer"):
        check(folder, rows()[0][:20], random_rows=10)


def test_a_header_that_does_not_compile_is_a_tool_error(folder):
    header = folder / "c" / "ill.h"
    header.write_text(header.read_text().replace("return", "retur n", 1))
    with pytest.raises(ToolError, match=r"ended with exit status 1: .*error"):
        run(folder, engines=["c"])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: shutil.rmtree(f), "has no readable manifest.json"),
        (lambda f: (f / "quantized.forest").unlink(), "has no readable quantized.forest"),
        (lambda f: (f / "manifest.json").write_text("{"), "manifest.json is damaged"),
        (lambda f: (f / "manifest.json").write_text('{"format": 99}'), "another version"),
        (
            lambda f: (f / "manifest.json").write_text(
                (f / "manifest.json").read_text().replace('"inputs": "words"', '"inputs": "bytes"')
            ),
            r"manifest.json is damaged \(options\.c\.inputs is \"bytes\", not one of \"words\", \"struct\"",
        ),
        (lambda f: (f / "model.forest").write_text("nothing"), "a forest in it is damaged"),
        (
            lambda f: (f / "quantized.forest").write_text(
                (f / "quantized.forest").read_text().replace("bias", "bias ")
            ),
            "a forest in it is damaged",
        ),
        (lambda f: (f / "c" / "ill.h").unlink(), "the c file is missing"),
    ],
)
def test_damaged_folders_are_refused(folder, damage, message):
    damage(folder)
    with pytest.raises(ForestcError, match=message):
        run(folder, engines=["c"])


def test_a_forest_that_was_edited_is_noticed(folder):
    path = folder / "quantized.forest"
    text = path.read_text()
    path.write_text(re.sub(r"leaf (\d+)", lambda m: f"leaf {int(m[1]) ^ 1}", text, count=1))
    with pytest.raises(ForestcError, match=r"was changed after forestc wrote it: quantized\.forest"):
        run(folder)
    reseal(folder)
    with pytest.raises(ForestcError, match="do not belong together"):
        run(folder)


def reseal(folder, change=lambda output: None):
    """Changes the manifest and makes all hashes anew, as a forger would who knows them."""
    path = folder / "manifest.json"
    output = json.loads(path.read_text())
    change(output)
    output.pop("sha256", None)
    files = {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file() and file != path
    }
    path.write_text(json.dumps(sealed(output, files)))


def test_every_field_of_the_manifest_is_sealed(folder):
    path = folder / "manifest.json"
    good = path.read_text()
    fields = json.loads(good)
    assert set(fields["sha256"]["fields"]) == set(fields) - {"sha256"}
    for field in fields["sha256"]["fields"]:
        if field == "format":
            continue
        for value in ({}, None, "other"):
            output = json.loads(good)
            output[field] = value
            path.write_text(json.dumps(output))
            with pytest.raises(ForestcError, match=rf"manifest\.json: {field}|manifest\.json is damaged"):
                run(folder, engines=["c"])
    output = json.loads(good)
    output["more"] = 1
    path.write_text(json.dumps(output))
    with pytest.raises(ForestcError, match=r"was changed after forestc wrote it: manifest\.json: more"):
        run(folder, engines=["c"])
    path.write_text(json.dumps({key: value for key, value in fields.items() if key != "sha256"}))
    with pytest.raises(ForestcError, match=r"manifest\.json is damaged"):
        run(folder, engines=["c"])


def test_every_file_is_sealed_and_check_names_what_was_changed(folder):
    sealed_files = json.loads((folder / "manifest.json").read_text())["sha256"]["files"]
    present = {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}
    assert set(sealed_files) == present - {"manifest.json"}
    for name in sealed_files:
        file = folder / name
        good = file.read_bytes()
        file.write_bytes(good + b"\n")
        if name.endswith(".forest"):
            with pytest.raises(ForestcError, match=f"forestc wrote it: {name}|a forest in it is damaged"):
                run(folder, engines=["netlist"], random_rows=10)
        else:
            result = run(folder, engines=["netlist"], random_rows=10)
            assert result.changed == (name,) and not result.ok and result.figures["changed"] == [name]
            assert str(result.problem()).startswith(f"{name} changed after forestc wrote it")
            assert result.problem().exit_status == 3
        file.write_bytes(good)
    assert run(folder, engines=["netlist"], random_rows=10).ok


def test_a_role_that_is_left_out_is_named_even_if_all_hashes_are_made_anew(folder):
    core = folder / "verilog" / "ill.v"
    core.write_text(core.read_text().replace("? ", "? ~", 3))
    for role in ("verilog", "testbench", "vectors", "c", "hls", "amaranth", "xdc"):
        work = folder.parent / role
        shutil.copytree(folder, work)
        reseal(work, lambda output, role=role: output["files"].pop(role))
        with pytest.raises(ForestcError, match=rf"was changed after forestc wrote it: manifest\.json: files, {role}"):
            run(work, engines=["netlist"])


def test_the_roles_of_all_targets_are_those_that_the_options_imply(compiled, tmp_path):
    output = json.loads((compiled / "manifest.json").read_text())
    assert set(output["files"]) == implied_roles(output["options"])

    model, X, y = trained("xgboost-binary")
    for registers in (False, True):
        stream = StreamOptions(registers=registers)
        done = forestc.compile(model, X[:99], tmp_path / "s", label=y[:99], targets=("verilog",), stream=stream)
        assert set(done.design.manifest["files"]) == implied_roles(done.design.manifest["options"])


def test_unknown_engines_are_refused(folder):
    with pytest.raises(
        OptionError,
        match=r"unknown engine 'vcs'; did you mean 'nvc'\? known: netlist, icarus, verilator, ghdl, nvc, c,",
    ):
        run(folder, engines=["vcs"])


def test_an_engine_without_its_files_is_refused(tmp_path, need_tool):
    need_tool("ghdl")
    model, X, y = trained("xgboost-binary")
    forestc.compile(model, X[:99], tmp_path / "out", label=y[:99], targets="verilog")
    with pytest.raises(ForestcError, match="no file of the role vhdl_testbench; compile with targets=vhdl"):
        check(tmp_path / "out", X[:9], engines=["ghdl"])


def test_results_that_are_missing_count_as_differences():
    wanted = np.arange(6).reshape(3, 2)
    assert difference(wanted, wanted).count == 0
    assert difference(wanted[:2], wanted).count == 1
    assert difference(wanted[:0], wanted).count == 3
    wrong = wanted.copy()
    wrong[1, 0] = 9
    found = difference(wrong, wanted)
    assert (found.count, found.first, found.got, found.expected) == (1, 1, (9, 3), (2, 3))


def test_error_kinds_carry_their_exit_status():
    assert (ForestcError.exit_status, ModelError.exit_status, OptionError.exit_status, ToolError.exit_status) == (
        1,
        1,
        2,
        4,
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.pop("files"),
        lambda m: m.update(files=5),
        lambda m: m["options"].pop("latency"),
        lambda m: m["options"].update(c=None),
        lambda m: m["options"].update(c={"layout": 1}),
        lambda m: m["files"].update(c="../../../etc/passwd"),
        lambda m: m.update(options=[]),
    ],
)
def test_a_tampered_manifest_is_refused(folder, change):
    from forestc.manifest.content import design_hash

    path = folder / "manifest.json"
    output = json.loads(path.read_text())
    printed = print_forest(forestc.open_design(folder).forest)
    change(output)
    output["hash"] = design_hash(printed, output["options"])
    path.write_text(json.dumps(output))
    with pytest.raises(ForestcError, match=r"manifest.json is damaged|names files outside the folder"):
        run(folder, engines=["c"])


@pytest.mark.parametrize(
    ("key", "change"),
    [
        ("features", lambda m: m["features"][0].update(offset=m["features"][1]["offset"])),
        ("latency_cycles", lambda m: m.update(latency_cycles=m["latency_cycles"] + 1)),
        ("classes", lambda m: m["classes"].reverse()),
        ("ports", lambda m: m["ports"].pop()),
    ],
)
def test_a_manifest_that_says_what_is_not_so_is_refused(folder, key, change):
    path = folder / "manifest.json"
    good = path.read_text()
    output = json.loads(good)
    change(output)
    path.write_text(json.dumps(output))
    with pytest.raises(ForestcError, match=rf"was changed after forestc wrote it: manifest\.json: {key}"):
        run(folder, engines=["netlist"])
    path.write_text(good)
    reseal(folder, change)
    with pytest.raises(ForestcError, match=f"manifest.json does not describe this design: {key}"):
        run(folder, engines=["netlist"])


def test_an_undecided_proof_is_called_a_limit_and_a_refutation_is_not():
    for refuted, changed, word in ((False, (), "limit"), (True, (), "refuted"), (False, ("m.v",), "not proved")):
        proof = Proof([ProofPart("votes", asked=2, proved=1, why="no net holds the vote")], refuted)
        problem = CheckResult({}, {}, None, {}, proof, changed).problem()
        assert word in problem.what and ("limit" in problem.what) == ("prove=True" in problem.do)
