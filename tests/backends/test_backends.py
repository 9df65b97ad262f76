"""One contract for every backend: pure, deterministic, exact, helpful; then what is particular to each."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_forests import random_forest, troublesome_rows

from forestc.backends import c, verilog
from forestc.backends.c import COptions
from forestc.backends.manifest import manifest
from forestc.checks.engines import CEngine, IcarusEngine, VerilatorEngine
from forestc.checks.vectors import Vectors, vectors
from forestc.design import Design
from forestc.errors import OptionError
from forestc.forest.evaluate import evaluate_words
from forestc.forest.numbers import FLOAT64, Fixed, Float, Ordered
from forestc.forest.rows import ArrayRows
from forestc.forest.text import parse_forest, print_forest
from forestc.lowering.trees import LoweringOptions, lower
from forestc.toolchain import verilator as verilator_tool
from forestc.toolchain.compilers import STRICT, c_compiler, cxx_compiler
from forestc.toolchain.verilator import find_verilator

CASES = Path(__file__).parents[1] / "cases"
SMALL = parse_forest((CASES / "small.forest").read_text())


def design(forest, folder, latency=0, outputs="auto", c_inputs="words", targets=("verilog", "c")):
    """A design as compile would write it, without a model behind it."""
    netlist = lower(forest, LoweringOptions(latency=latency, outputs=outputs))
    files, roles = {}, {}
    if "verilog" in targets:
        for role, (path, text) in zip(("verilog", "testbench"), verilog.emit(forest, netlist).items(), strict=True):
            files[path], roles[role] = text, path
    if "c" in targets:
        for path, text in c.emit(forest, COptions(inputs=c_inputs)).items():
            files[path], roles["c"] = text, path
    options = {"targets": list(targets), "latency": latency, "outputs": outputs, "c": {"inputs": c_inputs}}
    for path, text in files.items():
        (folder / path).write_text(text)
    return Design(folder, manifest(forest, netlist, roles, options, {}), forest, forest)


def differences(engine, made, folder, seed, rows=60):
    folder = folder / engine.name
    folder.mkdir()
    built = engine(made, folder)
    base = ArrayRows(troublesome_rows(made.forest, seed, rows))
    parts = list(vectors(made.forest, base, 300, seed))
    joined = Vectors(np.concatenate([p.words for p in parts]), np.concatenate([p.raw for p in parts]), "all")
    return built.compare(joined, evaluate_words(made.forest, joined.words))


@pytest.mark.parametrize("latency", [0, 3])
def test_output_is_pure_and_golden(golden, latency):
    before = print_forest(SMALL)
    netlist = lower(SMALL, LoweringOptions(latency=latency, outputs="both"))
    first, second = verilog.emit(SMALL, netlist), verilog.emit(SMALL, netlist)
    assert first == second
    assert print_forest(SMALL) == before
    golden(f"small_{latency}.v", first["small_model.v"])
    if not latency:
        for inputs in ("words",):
            golden(f"small_{inputs}.h", c.emit(SMALL, COptions(inputs=inputs))["small_model.h"])
    told = manifest(SMALL, netlist, {}, {"latency": latency}, {})
    golden(f"small_{latency}.json", json.dumps(told, indent=1) + "\n")


@settings(deadline=None, max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 10**6), st.sampled_from([0, 1, 4]), st.sampled_from(["auto", "scores"]))
def test_icarus_equals_the_evaluator_on_random_forests(need_tool, tmp_path_factory, seed, latency, outputs):
    need_tool("iverilog")
    folder = tmp_path_factory.mktemp("icarus")
    made = design(random_forest(seed, True), folder, latency, outputs, targets=("verilog",))
    assert differences(IcarusEngine, made, folder, seed).count == 0


@pytest.mark.parametrize(("seed", "latency", "native"), [(17, 0, False), (5, 3, False), (5, 3, True)])
def test_verilator_equals_the_evaluator_on_random_forests(need_tool, tmp_path, monkeypatch, seed, latency, native):
    need_tool("verilator_bin" if native else "verilator")
    found = find_verilator(native)
    monkeypatch.setattr(verilator_tool, "find_verilator", lambda: found)
    made = design(random_forest(seed, True), tmp_path, latency, "scores", targets=("verilog",))
    assert differences(VerilatorEngine, made, tmp_path, seed).count == 0


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 10**6))
def test_c_equals_the_evaluator_on_random_forests(tmp_path_factory, seed):
    folder = tmp_path_factory.mktemp("c")
    made = design(random_forest(seed, True), folder, targets=("c",))
    assert differences(CEngine, made, folder, seed).count == 0


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 10**6), st.sampled_from([32, 64]))
def test_c_on_raw_floats_equals_the_evaluator(tmp_path_factory, seed, bits):
    folder = tmp_path_factory.mktemp("c")
    types = [Ordered(bits), Fixed(6, 2, True), Fixed(8), Fixed(12, -3, True), Fixed(23, 12)]
    forest = random_forest(seed, True, types=types)
    if bits == 64:
        forest = replace(forest, features=tuple(replace(f, raw=FLOAT64) for f in forest.features))
    made = design(forest, folder, c_inputs="float", targets=("c",))
    assert differences(CEngine, made, folder, seed).count == 0


def test_verilog_is_clean_under_lint(need_tool, tmp_path):
    need_tool("iverilog")
    for latency in (0, 2):
        made = design(SMALL, tmp_path, latency, "both", targets=("verilog",))
        done = subprocess.run(
            ["iverilog", "-g2005", "-Wall", "-Wno-timescale", "-o", "x.vvp", "small_model.v", "small_model_tb.v"],
            cwd=made.folder, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stderr == ""


# A compiler of other floats: what its <float.h> says in place of this one's, or a `double` that is in truth a float.
OTHER_FLOATS = [
    (
        64,
        {"DBL_MANT_DIG": 24, "DBL_MIN_EXP": -125, "DBL_MAX_EXP": 128},
        [],
        "double is not the 64-bit float of IEEE 754",
    ),
    (64, {"DBL_MIN_EXP": -999}, [], "double is not the 64-bit float of IEEE 754"),
    (64, {}, ["-Ddouble=float"], "use_c_inputs_words"),
    (64, {}, ["-U__FLOAT_WORD_ORDER__", "-D__FLOAT_WORD_ORDER__=4321"], "double has its halves the other way round"),
    (32, {"FLT_RADIX": 16}, [], "float is not the 32-bit float of IEEE 754"),
    (32, {"FLT_MANT_DIG": 11}, [], "float is not the 32-bit float of IEEE 754"),
    (32, {}, ["-Dfloat=double"], "use_c_inputs_words"),
]


@pytest.mark.parametrize("language", ["-std=c99", "-std=c++14"])
def test_raw_floats_stop_a_compiler_whose_floats_are_others(tmp_path, language):
    base = random_forest(1, True, types=[Ordered(32)])
    compiler = c_compiler() if language == "-std=c99" else cxx_compiler()
    assert compiler is not None
    flags = [flag for flag in STRICT if not flag.startswith("-std")]

    def compiled(bits, inputs, macros, more):
        forest = replace(base, features=tuple(replace(f, raw=Float(bits)) for f in base.features))
        ((name, text),) = c.emit(forest, COptions(inputs=inputs)).items()
        (tmp_path / name).write_text(text)
        (tmp_path / "main.c").write_text(f'#include "{name}"\nint main(void) {{ return 0; }}\n')
        told = "".join(f"#undef {macro}\n#define {macro} ({value})\n" for macro, value in macros.items())
        (tmp_path / "float.h").write_text(f"#include_next <float.h>\n{told}")
        kind = "c" if language == "-std=c99" else "c++"
        command = [compiler, "-isystem", ".", *flags, language, *more, "-x", kind, "-fsyntax-only", "main.c"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    for bits in (32, 64):
        done = compiled(bits, "float", {}, [])
        assert (done.returncode, done.stderr) == (0, "")
    for bits, macros, more, wanted in OTHER_FLOATS:
        done = compiled(bits, "float", macros, more)
        assert done.returncode and wanted in done.stderr, done.stderr
        assert "words" in done.stderr  # the way out, which holds there
        assert compiled(bits, "words", macros, more).returncode == 0


def test_c_is_clean_under_two_language_standards(tmp_path):
    design(SMALL, tmp_path, targets=("c",))
    (tmp_path / "main.c").write_text('#include "small_model.h"\nint main(void) { return 0; }\n')
    compiler = c_compiler()
    assert compiler is not None
    for standard in ("-std=c99", "-std=c11"):
        subprocess.run([compiler, *STRICT, standard, "main.c", "-o", "m"], cwd=tmp_path, check=True)


NAMES = [
    "x",
    "input",
    "a b",
    "1st",
    "module",
    '"; $finish',
    "same",
    "same",
    "名" * 300,
    "*/ int y;",
    "\\",
    "\n`define x",
]


@pytest.mark.parametrize("name", ["module", "1st", 'a"; $finish', "int", "x" * 300, "..", "é*/"])
def test_no_name_breaks_or_injects_code(need_tool, tmp_path, name):
    need_tool("iverilog")
    from dataclasses import replace

    forest = random_forest(8, True, "binary")
    forest = replace(
        forest,
        name=name,
        features=tuple(replace(f, name=n) for f, n in zip(forest.features, NAMES, strict=False)),
        classes=('"); system("ls', "*/ \n??/"),
    )
    made = design(forest, tmp_path, latency=1)
    assert differences(IcarusEngine, made, tmp_path, 0).count == 0
    assert differences(CEngine, made, tmp_path, 0).count == 0
    assert "$finish" not in (tmp_path / made.manifest["files"]["verilog"]).read_text()


def test_what_a_backend_can_not_do_is_refused_by_name():
    with pytest.raises(OptionError, match="c: inputs=bytes; use words or float"):
        COptions(inputs="bytes")
    with pytest.raises(OptionError, match="c: inputs=float can't take the category '1st'; use inputs=words"):
        c.emit(SMALL, COptions(inputs="float"))
    with pytest.raises(TypeError):
        COptions(layout="nodes")


def test_deep_trees_nest_no_deeper_than_their_logarithm(tmp_path):
    """A chain of 3,000 nodes, as boosting libraries may write it."""
    from forestc.forest.builder import make_forest, make_tree
    from forestc.forest.ir import Aggregate, Decision, Feature, Link

    n = 3000
    left = [i for k in range(n) for i in (2 * k + 1, -1)] + [-1]
    right = [i for k in range(n) for i in (2 * k + 2, -1)] + [-1]
    tree = make_tree(
        where="chain",
        feature=[0] * len(left),
        threshold=[k // 2 + 1 for k in range(len(left))],
        left=left,
        right=right,
        values=[[k % 7] for k in range(n + 1)],
        outputs=[0],
        quantised=True,
    )
    forest = make_forest(
        name="chain", features=[Feature("a", Fixed(12), 0)], columns=1, trees=[tree], n_outputs=1, bias=[0],
        aggregate=Aggregate(), link=Link(), decision=Decision("none"), scale=1.0,
    )  # fmt: skip
    made = design(forest, tmp_path, targets=("c",))
    deepest = max(len(line) - len(line.lstrip()) for line in (tmp_path / "chain.h").read_text().splitlines())
    assert deepest <= 16
    assert differences(CEngine, made, tmp_path, 0).count == 0


@pytest.mark.parametrize("classes", [255, 256, 257])
def test_numbers_of_classes_about_a_byte(tmp_path, classes):
    from forestc.forest.builder import make_forest, make_tree
    from forestc.forest.ir import Aggregate, Decision, Feature, Link

    trees = [
        make_tree(
            where="t", feature=[0, -1, -1], threshold=[k, 0, 0], left=[1, -1, -1], right=[2, -1, -1],
            values=[[0], [k % 7]], outputs=[k], quantised=True,
        )
        for k in range(classes)
    ]  # fmt: skip
    forest = make_forest(
        name="many", features=[Feature("a", Fixed(9), 0)], columns=1, trees=trees, n_outputs=classes,
        bias=[0] * classes, aggregate=Aggregate(), link=Link(), decision=Decision("argmax"),
        classes=range(classes), scale=1.0,
    )  # fmt: skip
    made = design(forest, tmp_path, targets=("c",))
    assert differences(CEngine, made, tmp_path, 0).count == 0


@pytest.mark.parametrize("name", ["type", "checker", "local", "with", "alias", "null", "let", "main", "logic"])
def test_words_of_systemverilog_are_no_names(name):
    from forestc.backends.names import identifier

    assert identifier(name) == f"m_{name}"
