"""Tests generated C of every kind under compilers with all warnings, sanitizers, a MISRA checker, and by its linked
symbols."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from typing import get_args

import catboost
import numpy as np
import pytest
import xgboost
from forest_kinds import FLOATABLE
from random_forests import random_forest, troublesome_rows
from sklearn.datasets import load_diabetes, load_digits
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from thinned import only

import forestc
from forestc.backends.c import header as c
from forestc.backends.c import selftest as c_selftest
from forestc.backends.c import types as c_types
from forestc.backends.c.inputs import inputs_of
from forestc.backends.c.misra import cppcheck, findings
from forestc.backends.c.options import COptions, CValues
from forestc.backends.c.quantizer import row_type
from forestc.backends.c.values import shown
from forestc.checks.bench import selftest_answers
from forestc.errors import MissingToolError
from forestc.forest.numbers import Category, word_range
from forestc.layouts import ranks
from forestc.layouts.nodes import nodes_of
from forestc.rows.batches import ArrayRows
from forestc.toolchain.compilers import STRICT, c_compiler, cxx_compiler, sanitizers

KINDS = ("binary", "argmax", "regression", "vector", "vote", "each", "average", "median", "means", "max", "min")
MORE = ("-Wsign-conversion", "-Wundef", "-Wcast-qual")
WARNINGS = [*(flag for flag in STRICT if not flag.startswith("-std")), *MORE]
ZIG = (sys.executable, "-m", "ziglang")
M0 = ("-mcpu=cortex-m0plus", "-mthumb")


def cases():
    """Yields (forest, options) of every kind, form of the inputs and layout, each with a name of its own."""
    for place, kind in enumerate(KINDS):
        for number, inputs in enumerate(("words", "struct", "float")):
            seed = 10 * place + number
            extreme = kind in ("max", "min")
            types = FLOATABLE if inputs == "float" else None
            forest = random_forest(seed, True, "argmax" if extreme else kind, types)
            if extreme:
                forest = replace(forest, aggregate=replace(forest.aggregate, kind=kind))
            tables = ("nodes", "mixed" if place % 3 == number else "masks")
            for layout in ("branches",) if extreme else ("branches", "ranked", *tables):
                quantizer = "auto" if inputs == "float" else ("float", "double", "none")[place % 3]
                options = COptions(
                    c_inputs=inputs, c_quantizer=quantizer, c_values=get_args(CValues)[seed % 4], c_layout=layout
                )
                yield replace(forest, name=f"{kind}_{inputs}_{layout}"), options
    for seed, types in enumerate(("*=int16", "1=int8,2=float,*=uint32", "1=double,2=int32,*=uint8")):
        forest = random_forest(seed + 1000, True, ("vector", "binary", "regression")[seed], [*FLOATABLE, Category(5)])
        for layout in ("branches", "ranked", "nodes"):
            yield replace(forest, name=f"raw{seed}_{layout}"), COptions(c_inputs="raw", c_layout=layout, c_types=types)
    X, y = load_diabetes(return_X_y=True)
    forest = forestc.quantize(RandomForestRegressor(4, max_depth=4).fit(X, np.stack([y, -y], axis=1)), X)
    yield replace(forest, name="two_targets"), COptions(c_layout="nodes")  # has a function _values, a table of leaves
    X, y = load_digits(return_X_y=True)
    model = xgboost.XGBClassifier(n_estimators=7, max_depth=3).fit(X, y)  # A class has 7 trees, which is no power of 2.
    forest = forestc.quantize(model, X, y)
    for layout in ("branches", "ranked", "nodes", "masks", "mixed"):
        yield replace(forest, name=f"digits_{layout}"), COptions(c_layout=layout)
    towns = np.array([[f"town {k % 7}", k % 13] for k in range(200)], dtype=object)
    kept = {"verbose": 0, "random_seed": 0, "allow_writing_files": False}
    booster = catboost.CatBoostClassifier(4, depth=3, cat_features=[0], one_hot_max_size=2, **kept)
    hashed = forestc.quantize(booster.fit(towns, np.arange(200) % 7 > 3), towns)
    assert hashed.hashed
    yield replace(hashed, name="hashed"), COptions()  # has functions that hash texts
    deep = forestc.quantize(RandomForestClassifier(20, random_state=0).fit(X, y), X, y)  # its leaves need two bytes
    X, y = load_diabetes(return_X_y=True)
    precise = forestc.quantize(RandomForestRegressor(9, random_state=0).fit(X, y), X, level=0)  # so do its thresholds
    for name, forest in (("deep", deep), ("precise", precise)):
        for layout in ("nodes", "mixed"):
            yield replace(forest, name=f"{name}_{layout}"), COptions(c_layout=layout)


def entries(forest, options):
    """Lists the functions that a linker sees: the decision, and functions that the user asked for."""
    name, labels, scores = forest.name, c_types.label_type(forest), c_types.score_type(forest)
    kind = inputs_of(forest, options.c_inputs, options.c_types).type
    made = [(f"void {name}_try_scores(const {kind} *x, {scores} *y)", f"{name}_scores(x, y);")]
    if forest.decides:
        made.append((f"void {name}_try(const {kind} *x, uint32_t n, {labels} *y)", f"{name}_predict_batch(x, n, y);"))
    asked = []
    if options.quantizes:
        row = row_type(forest, options.c_quantizer).name
        asked.append((f"void {name}_try_row(const {row} *row, {kind} *x)", f"{name}_quantize(row, x);"))
    if (values := shown(forest, name, options.c_values)) is not None:
        call = "probabilities(x, y)" if values.probabilities else "values(x, y)"
        call = f"y[0] = {name}_value(x);" if values.single else f"{name}_{call};"
        asked.append((f"void {name}_try_values(const {kind} *x, {values.kind} *y)", call))
    return ["".join(f"{head};\n{head} {{ {body} }}\n" for head, body in some) for some in (made, asked)]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Writes all headers to a folder. Returns it, and by name: the source of a header's functions, that of the
    requested ones, and whether its words have 64 bits."""
    folder, sources = tmp_path_factory.mktemp("warnings"), {}
    for number, (forest, options) in enumerate(cases()):
        with pytest.MonkeyPatch.context() as patch:
            if number % 3:  # Without this, few features of small forests are ranked.
                patch.setattr(ranks, "RANKING", -1000)
            ((path, text),) = c.emit(forest, options).items()
        (folder / path).write_text(text)
        answers = selftest_answers(forest, options, ArrayRows(troublesome_rows(forest, 1, 50)))
        (folder / f"{forest.name}_selftest.h").write_text(c_selftest.emit(forest, options, answers))
        spans = [word_range(feature.number, feature.missing) for feature in forest.features]
        wide = any(span.top >= 1 << 32 or span.low < -(1 << 31) for span in spans) or "double" in options.c_types
        sources[forest.name] = (*entries(forest, options), wide)
    return folder, sources


def source(names, sources, asked=True):
    included = "".join(f'#include "{name}_selftest.h"\n' for name in names)
    return included + "".join(sources[name][0] + sources[name][1] * asked for name in names)


def run(command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


COMPILERS = {
    "gcc": (("cc",), "-std=c99"),
    "gcc, C11": (("cc",), "-std=c11"),
    "clang": ((*ZIG, "cc"), "-std=c99"),
    "g++": (("c++",), "-std=c++17"),
    "clang++": ((*ZIG, "c++"), "-std=c++17"),
    "Cortex-M0+": (("arm-none-eabi-gcc", *M0), "-std=c99"),
    "AVR": (("avr-gcc", "-mmcu=atmega2560"), "-std=c99"),
}


@pytest.mark.slow
# gcc reads all headers in every run, some others every fifth header; the remaining cases are slow tests.
@pytest.mark.parametrize(
    ("compiler", "step"),
    only([("gcc", 1), *((name, 5) for name in COMPILERS), *((name, 1) for name in COMPILERS)], 0, 3, 4, 6, 7),
)
def test_no_compiler_warns(compiler, step, written, need_tool):
    folder, sources = written
    sources = dict(list(sources.items())[::step])
    command, standard = COMPILERS[compiler]
    host = {"cc": c_compiler(), "c++": cxx_compiler()}
    need_tool(host.get(command[0], command[0]))
    text = source(sources, sources)
    # AVR's double has 32 bits. Headers that need a double of 64 bits refuse it, so they are left out.
    if compiler == "AVR":
        headers = {name: (folder / f"{name}.h").read_text() for name in sources}
        own = [name for name in sources if "double is not the 64-bit float" not in headers[name]]
        text = source([name for name in own if not re.search(r"const double \*row", sources[name][1])], sources)
    (folder / "all.c").write_text(text)
    language = ["-x", "c++"] if "++" in standard else []
    named = [host.get(command[0], command[0]), *command[1:]]
    assert run([*named, standard, *WARNINGS, "-Os", *language, "-c", "all.c", "-o", "all.o"], folder) == ""


@pytest.mark.slow
def test_every_kind_gives_the_evaluators_answers_under_sanitizers(written):
    """Runs the self-tests: rows on thresholds and beside them, and random words."""
    folder, sources = written
    calls = "".join(f'    if ({name}_selftest() >= 0) {{ puts("{name}"); }}\n' for name in sources)
    included = "".join(f'#include "{name}_selftest.h"\n' for name in sources)
    (folder / "main.c").write_text(f"#include <stdio.h>\n{included}int main(void)\n{{\n{calls}    return 0;\n}}\n")
    compiler = c_compiler()
    assert sanitizers(compiler)
    run([compiler, *STRICT, *sanitizers(compiler), "-O1", "main.c", "-o", "main"], folder)
    assert run([str(folder / "main")], folder) == ""


# These patterns match functions of the compiler's own library, which a processor without division, 64-bit words or jump
# tables calls.
DIVISION = {"__aeabi_idiv", "__aeabi_uidiv"}  # divides the shares of several classes
WIDE = {"__aeabi_lcmp", "__aeabi_ulcmp"}
# JUMPS matches calls for jump tables of GCC for Thumb-1, and a table for exceptions
JUMPS = re.compile(r"__gnu_thumb1_case_\w+|__aeabi_unwind_cpp_pr\d")


CLANG = (*ZIG, "cc", "-target", "thumb-freestanding-eabi")


@pytest.mark.parametrize(
    "command", [("arm-none-eabi-gcc", *M0), pytest.param(CLANG, marks=pytest.mark.long)], ids=["gcc", "clang"]
)
def test_decisions_call_no_library(command, written, need_tool):
    """Checks that decisions call nothing, not even memcpy, on a processor without division and floats."""
    need_tool("arm-none-eabi-nm")
    need_tool(command[0])
    folder, sources = written
    zig = ["-mcpu=cortex_m0plus"] * ("ziglang" in command)
    groups = {"plain": (set(), []), "means": (DIVISION, []), "wide": (WIDE | DIVISION, [])}
    for name, (_, _, wide) in sources.items():
        groups["wide" if wide else "means" if name.startswith("means") else "plain"][1].append(name)
    assert len(groups["plain"][1]) > 35
    for allowed, names in groups.values():
        (folder / "one.c").write_text(source(names, sources, asked=False))
        run([*command, *zig, "-std=c99", "-ffreestanding", "-Os", "-c", "one.c", "-o", "one.o"], folder)
        needed = set(run(["arm-none-eabi-nm", "-u", "one.o"], folder).split()) - {"U"}
        assert {name for name in needed if not JUMPS.fullmatch(name)} <= allowed


@pytest.mark.slow
def test_symbols_of_two_bytes_are_clean(tmp_path, need_tool):
    """An AVR has no room for a self-test of so many columns."""
    need_tool("cppcheck")
    X = np.random.default_rng(0).integers(0, 250, (600, 400))
    forest = forestc.quantize(RandomForestClassifier(12, random_state=0).fit(X, X.sum(axis=1) > 50_000), X, level=0)
    assert nodes_of(forest, float_bytes=0).code == "wide"
    ((path, text),) = c.emit(replace(forest, name="wide"), COptions(c_layout="nodes")).items()
    (tmp_path / path).write_text(text)
    (tmp_path / "all.c").write_text(f'#include "{path}"\n')
    assert run([c_compiler(), "-std=c99", *WARNINGS, "-Os", "-c", "all.c"], tmp_path) == ""
    assert findings(tmp_path, [path]) == []


@pytest.mark.slow
@pytest.mark.parametrize("step", only((30, 1), 0))  # all headers take minutes
def test_cppchecks_misra_add_on_finds_nothing(step, written, need_tool):
    need_tool("cppcheck")
    folder, sources = written
    assert findings(folder, [f"{name}.h" for name in list(sources)[::step]]) == []


@pytest.mark.slow
def test_a_finding_is_named_and_fails_the_check(written, tmp_path, need_tool):
    need_tool("cppcheck")
    (tmp_path / "m.h").write_text("static inline int m(int a)\n{\n    if (a > 1) { return 1; }\n    return 0;\n}\n")
    assert findings(tmp_path, ["m.h"]) == [("m.h", 3, "15.5")]


def test_a_batch_is_its_rows_one_by_one(tmp_path):
    """Covers rows of several labels and structs, and labels, scores, probabilities and values."""
    cases = ((3, "argmax", "words"), (5, "each", "struct"), (7, "binary", "float"), (9, "regression", "raw"))
    for seed, kind, inputs in cases:
        forest = replace(random_forest(seed, True, kind, FLOATABLE), name="m")
        options = COptions(c_inputs=inputs, c_types="1=int16,*=float" if inputs == "raw" else "")
        answers = selftest_answers(forest, options, ArrayRows(troublesome_rows(forest, seed, 50)))
        (tmp_path / "m.h").write_text(c.emit(forest, options)["m.h"])
        (tmp_path / "m_selftest.h").write_text(c_selftest.emit(forest, options, answers))
        x, values = inputs_of(forest, options.c_inputs, options.c_types).type, shown(forest, "m", options.c_values)
        assert (values is None) == (kind == "each")
        labels = c_types.label_type(forest) if forest.decides else ""
        loop = ""
        if values is not None:
            each = f"m_{'probabilities' if values.probabilities else 'values'}"
            one = "v[0] = m_value(at);" if values.single else f"{each}(at, v);"
            loop = f"""
    static {values.kind} values[ROWS][{values.count}], v[{values.count}];
    const {x} *at = x;
    int row;
    {each}_batch(x, ROWS, values[0]);
    for (row = 0; row < ROWS; row++, at += WIDE) {{
        {one}
        if (memcmp(v, values[row], sizeof v) != 0) {{ return 1; }}
    }}"""
        (tmp_path / "main.c").write_text(
            f"""#include <stdio.h>
#include <string.h>
#include "m_selftest.h"
enum {{ ROWS = M_SELFTEST_ROWS, WIDE = sizeof m_selftest_x[0] / sizeof({x}) }};
int main(void)
{{
    static {labels or "uint8_t"} labels[ROWS][{len(forest.targets)}];
    static {c_types.score_type(forest)} scores[ROWS][M_OUTPUTS];
    const {x} *x = (const {x} *)m_selftest_x;
    {"m_predict_batch(x, ROWS, labels[0]);" if labels else ""}
    m_scores_batch(x, ROWS, scores[0]);
    {{ {loop} }}
    fwrite(labels, sizeof labels, 1, stdout);
    fwrite(scores, sizeof scores, 1, stdout);
    return 0;
}}
"""
        )
        run([c_compiler(), "-std=c99", "-O1", "-fno-strict-aliasing", "main.c", "-o", "m"], tmp_path)
        out = subprocess.run([str(tmp_path / "m")], capture_output=True, check=True).stdout
        rows = len(answers.words)
        scores = np.array(answers.scores, np.dtype(c_types.score_type(forest).removesuffix("_t"))).tobytes()
        assert out.endswith(scores)
        if labels:
            got = np.frombuffer(out[: -len(scores)], np.dtype(labels.removesuffix("_t")))
            assert np.array_equal(got.reshape(rows, -1), answers.labels)


def test_another_version_of_cppcheck_is_refused(tmp_path, monkeypatch):
    program = tmp_path / "cppcheck"
    program.write_text("#!/bin/sh\necho Cppcheck 2.10\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("forestc.backends.c.misra.package_folders", lambda name: [])
    with pytest.raises(MissingToolError, match=r"Cppcheck 2\.10 is not cppcheck 2\.22"):
        cppcheck()
