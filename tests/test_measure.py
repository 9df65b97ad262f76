"""measure: real cross builds of a small forest, run in an emulator and compared with the evaluator."""

from __future__ import annotations

import json
import os
import shutil
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
from models import trained
from random_forests import random_forest, troublesome_rows
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from thinned import only, thinned

import forestc
from forestc.commands.measure import measured_inputs, spread
from forestc.errors import CheckError, ForestcError, MissingToolError, OptionError, RowsError, ToolError
from forestc.firmware import avr, emulator
from forestc.firmware.costly import costly_words
from forestc.firmware.emulator import Emulator, instructions
from forestc.firmware.image import read_image, static_stack
from forestc.forest.evaluate import leaf_nodes, missing_words
from forestc.forest.ir import LEAF
from forestc.forest.numbers import word_range
from forestc.rows.batches import ArrayRows
from forestc.rows.encode import encode
from forestc.toolchain import firmware
from forestc.toolchain.firmware import CPUS, build, find_compiler
from forestc.toolchain.run import find

ARM = [("cortex-m0plus", "gcc"), ("cortex-m4f", "gcc"), ("cortex-m0plus", "ziglang"), ("cortex-m4f", "ziglang")]
EVERYWHERE = [*ARM, ("rv32imc", "ziglang")]


@pytest.fixture(scope="module")
def design(tmp_path_factory):
    """A forest of 10 trees with three classes that have names."""
    model, X, y = trained("forest-text-labels")
    folder = tmp_path_factory.mktemp("measure") / "out"
    return forestc.compile(model, X, folder, label=y, targets="c", name="iris").design


@pytest.fixture(scope="module")
def rows():
    return trained("forest-text-labels")[1]


@pytest.fixture
def need(need_tool):
    """Skips a test whose tools are missing, or fails it where they must be there."""

    def needed(compiler, cpu="cortex-m4f"):
        if compiler == "gcc":
            need_tool(CPUS[cpu].gcc[0])
        if not all(find_spec(name) for name in ("unicorn", "elftools", "ziglang")):
            assert not os.environ.get("FORESTC_REQUIRE_TOOLS"), "the extra firmware is not installed"
            pytest.skip("the extra firmware is not installed")

    return needed


@pytest.fixture
def edited(design, tmp_path):
    """A copy of the design's folder, with a text of the header replaced."""

    def copy(old, new):
        folder = shutil.copytree(design.folder, tmp_path / "edited")
        header = folder / "c" / "iris.h"
        text = header.read_text()
        assert old in text
        header.write_text(text.replace(old, new, 1))
        return forestc.open_design(folder)

    return copy


@pytest.mark.parametrize(("cpu", "compiler"), thinned(EVERYWHERE, keep=3))
def test_real_builds_run_and_agree(design, rows, cpu, compiler, need):
    need(compiler, cpu)
    figures = forestc.measure(design, cpu, rows, compiler=compiler)
    assert figures["differences"] == 0 and not figures["notes"]
    assert (figures["rows"], figures["rows_given"]) == (150, 150) and figures["vectors"] > 200
    assert list(figures["entries"]) == ["predict", "scores", "row"] and figures["entry"] == "predict"
    for entry in figures["entries"].values():
        assert 500 < entry["flash"] < 5000 and entry["ram"] == 0
        assert entry["stack_by"] == "call graph" and entry["stack_seen"] <= entry["stack"] < 400
        taken = entry["instructions"]
        assert 50 < taken["mean"] <= taken["max"] <= taken["max_of_all"] < 3000 and entry["cycles"] is None
    assert figures["flash"] == figures["entries"]["predict"]["flash"]
    assert figures["entries"]["row"]["instructions"]["mean"] > figures["instructions"]["mean"]
    assert ("ziglang 0." if compiler == "ziglang" else "arm-none-eabi-gcc") in figures["tools"][0]
    assert figures["tools"][1].startswith("unicorn 2.")


@pytest.mark.parametrize("options", only([{"c_inputs": "struct", "c_quantizer": "double"}, {"c_inputs": "float"}], 0))
def test_every_form_of_the_header(options, rows, tmp_path, need):
    """Structs, raw floats, and probabilities by the floating-point unit, within their bound."""
    need("ziglang")
    model, _, y = trained("forest-text-labels")
    design = forestc.compile(model, rows, tmp_path / "out", label=y, targets="c", c_values="float", **options).design
    names = ["values", "predict", "scores", *(["row"] if options["c_inputs"] != "float" else [])]
    for cpu in ("cortex-m4f", "rv32imc"):
        figures = forestc.measure(design, cpu, compiler="ziglang", entries=names)
        assert figures["differences"] == 0 and figures["rows"] == 0 and list(figures["entries"]) == names
    if options["c_inputs"] == "float":
        with pytest.raises(OptionError, match="the header has no entry 'row'; it offers: predict, scores, values"):
            forestc.measure(design, "cortex-m4f", entries=["row"])


def test_missing_values_and_regressions(tmp_path, need):
    need("ziglang")
    for kind, entry in (("xgboost-missing", "predict"), ("tree-regression", "scores")):
        model, X, y = trained(kind)
        design = forestc.compile(model, X, tmp_path / kind, label=y, targets="c", name="m").design
        figures = forestc.measure(
            design, "cortex-m0plus", X, compiler="ziglang", most=50, entries=[entry, "values", "row"]
        )
        assert figures["differences"] == 0 and figures["entry"] == entry
        assert figures["rows"] == 50 and figures["rows_given"] == len(X)


@pytest.mark.parametrize(("cpu", "compiler"), [("cortex-m0plus", "ziglang"), ("rv32imc", "ziglang")])
def test_instructions_are_those_that_are_executed(design, cpu, compiler, need, tmp_path):
    """Counted block by block as one by one. (In IT blocks unicorn leaves out instructions whose condition fails.)"""
    need(compiler)
    import unicorn

    (tmp_path / "x.c").write_text(
        "int forestc_entry(const unsigned char *x); int forestc_entry(const unsigned char *x)"
        "{ int k, s = 0; for (k = 0; k < x[0]; k++) { if (x[k & 3] & 1) s += x[k & 7] * k; else s ^= k; } return s; }"
    )
    made = build(CPUS[cpu], find_compiler(CPUS[cpu], compiler), "x.c", tmp_path, "s")
    machine = Emulator(CPUS[cpu], read_image(made.image))
    single = []
    machine.machine.hook_add(unicorn.UC_HOOK_CODE, lambda *_: single.append(1))
    inputs = np.random.default_rng(0).integers(0, 40, (20, 8)).astype(np.uint8)
    ran = machine.run(inputs, np.dtype("<i4"), 1, True)
    assert int(ran.instructions.sum()) == len(single)

    def meant(x):
        total = 0
        for k in range(x[0]):
            total = total + x[k & 7] * k if x[k & 3] & 1 else total ^ k
        return total

    assert ran.results[:, 0].tolist() == [meant(row) for row in inputs.tolist()]


def test_lengths_of_instructions():
    assert instructions("ARCH_ARM", bytes.fromhex("70b5 dff80c00 08bf 0120 00f002f8 70bd".replace(" ", ""))) == 6
    assert instructions("ARCH_RISCV", bytes.fromhex("0145 13050500 8280".replace(" ", ""))) == 3


def test_wrong_answers_are_found(design, edited, run, need):
    """A wrong leaf, and the first row that it decides wrongly."""
    need("ziglang")
    text = design.path("c").read_text()
    tree = text.index("iris_tree_0")
    leaf = text[text.index("scores[", tree) :].split("\n")[0]
    other = leaf.replace("+ ", "+ 1000 + ", 1)
    wrong = edited(leaf, other)
    status, out, err = run("measure", wrong.folder, "--cpu", "cortex-m4f", "--compiler", "ziglang", "--json")
    figures, error = json.loads(out), json.loads(err)["error"]
    assert status == 3 and error["status"] == 3
    assert "answers differ from the quantized forest" in error["what"] and "should give" in error["where"]
    assert figures["differences"] > 0 and figures["entries"]["scores"]["differences"] > 0
    assert figures["notes"] == ["c/iris.h changed after forestc wrote it"]


def test_firmware_that_does_not_return(edited, monkeypatch, need):
    need("ziglang")
    monkeypatch.setattr(emulator, "MOST_INSTRUCTIONS", 100_000)
    start = "    uint8_t best = 0u;\n"
    endless = edited(start, f'{start}    for (;;) {{\n        __asm__ volatile ("");\n    }}\n')
    with pytest.raises(CheckError, match=r"input 0: .* does not return within 100,000 instructions"):
        forestc.measure(endless, "cortex-m4f", compiler="ziglang", entries=["predict"])
    header = endless.folder / "c" / "iris.h"
    header.write_text(header.read_text().replace("for (;;)", "*(volatile uint32_t *)0xC0000000u = 1u;"))
    with pytest.raises(CheckError, match=r"the firmware fails in the emulator \(Invalid memory write"):
        forestc.measure(endless, "rv32imc", compiler="ziglang", entries=["predict"])


def test_the_command(design, rows, tmp_path, run, need):
    need("gcc")
    pd.DataFrame(rows, columns=[f"f{k}" for k in range(rows.shape[1])]).to_csv(tmp_path / "rows.csv", index=False)
    command = ["measure", design.folder, "--cpu", "cortex-m0plus", "--rows", "rows.csv", "--compiler", "gcc"]
    command += ["--entry", "predict", "--most", 40]
    output = {}
    for level in "s23":
        status, out, _ = run(*command, "-O", level, "--json")
        output[level] = json.loads(out)
        assert status == 0
    keys = {"cpu", "flash", "ram", "stack", "instructions", "differences", "tools"}
    assert keys <= set(output["s"]) and {"mean", "max"} <= set(output["s"]["instructions"])
    assert output["s"]["flash"] < output["3"]["flash"] and output["2"]["optimize"] == "2"
    status, out, _ = run(*command)
    shown = " ".join(out.split())
    assert status == 0
    assert "instructions, mean of 40 rows of 150" in shown and "cycles" not in shown and "arm-none-eabi-gcc" in shown


def test_what_is_refused(design, tmp_path, need):
    need("ziglang")
    with pytest.raises(
        OptionError, match=r"unknown cpu 'cortex-m5'; did you mean cortex-m7 or .*known: cortex-m0plus, "
    ):
        forestc.measure(design, "cortex-m5")
    with pytest.raises(OptionError, match=r"compiler=: .*'clang'; did you mean 'ziglang'\? known: auto, ziglang, gcc"):
        forestc.measure(design, "cortex-m4", compiler="clang")
    with pytest.raises(OptionError, match=r"optimize=: .*'fast'; known: s, 2, 3"):
        forestc.measure(design, "cortex-m4", optimize="fast")
    with pytest.raises(OptionError, match=r"entr.*: .*'label'; known: predict, scores, values, row"):
        forestc.measure(design, "cortex-m4", entries=["label"])
    with pytest.raises(ForestcError, match=r"has no readable manifest.json; give a folder that forestc compile"):
        forestc.measure(tmp_path, "cortex-m4")
    (tmp_path / "rows.csv").write_text("f0,f1,f2,f3\n1,2,3,4\n1,2,x,4\n")
    with pytest.raises(RowsError, match=r"rows.csv"):
        forestc.measure(design, "cortex-m4", tmp_path / "rows.csv")
    (tmp_path / "few.csv").write_text("f0,f1\n1,2\n")
    with pytest.raises(RowsError, match=r"few.csv"):
        forestc.measure(design, "cortex-m4", tmp_path / "few.csv")
    (tmp_path / "none.csv").write_text("f0,f1,f2,f3\n")
    with pytest.raises(RowsError, match=r"none.csv"):
        forestc.measure(design, "cortex-m4", tmp_path / "none.csv")
    model, X, y = trained("tree-binary")
    hardware = forestc.compile(model, X, tmp_path / "hardware", label=y, targets="verilog").design
    with pytest.raises(ForestcError, match=r"no file of the role c; compile with targets=c"):
        forestc.measure(hardware, "cortex-m4")


def test_missing_tools_are_named(design, monkeypatch, need):
    need("ziglang")
    monkeypatch.setattr(firmware, "find", lambda *_: None)
    for cpu, wanted, said in (
        ("cortex-m4", "gcc", r"arm-none-eabi-gcc is not on the PATH; install .*apt install gcc-arm-none-eabi"),
        ("rv32imc", "gcc", r"riscv64-unknown-elf-gcc is not on the PATH; install .*apt install gcc-riscv64"),
        ("avr", "auto", r"no compiler for avr was found; install avr-gcc .*apt install gcc-avr avr-libc"),
    ):
        with pytest.raises(MissingToolError, match=said):
            forestc.measure(design, cpu, compiler=wanted)
    with pytest.raises(OptionError, match="cpu=: ziglang does not compile for avr here; use compiler=gcc"):
        forestc.measure(design, "avr", compiler="ziglang")
    assert find_compiler(CPUS["cortex-m4"]).kind == "ziglang"
    monkeypatch.setattr(firmware, "package_folders", lambda name: [])
    with pytest.raises(MissingToolError, match=r"ziglang is not installed; pip install \"forestc\[firmware\]\""):
        forestc.measure(design, "rv32imc", compiler="ziglang")
    with pytest.raises(
        MissingToolError, match=r"no compiler for rv32imc was found; pip install .*, or install riscv64"
    ):
        forestc.measure(design, "rv32imc")
    monkeypatch.setattr("forestc.firmware.workbench.find_spec", lambda name: None)
    with pytest.raises(MissingToolError, match=r"pyelftools and unicorn are not installed; pip install .*firmware"):
        forestc.measure(design, "cortex-m4")


@pytest.mark.parametrize(("cpu", "compiler"), [("cortex-m0plus", "gcc"), ("cortex-m0plus", "ziglang")])
def test_stack_and_library(cpu, compiler, need, tmp_path):
    """Parts of the compiler's library are in the flash; their frames and recursion are not known."""
    need(compiler, cpu)
    made = {}
    sources = {
        "plain": "return x[0];",
        "deep": "return other(x[0]);",
        "library": "return (uint32_t)(x[0] / x[1]);",
        "twins": "return first((uint32_t)x[0]) + second((uint32_t)x[1]);",  # GCC gives one function both names
        "recursive": "return other(x[0]);",
    }
    helpers = """#include <stdint.h>
uint32_t forestc_entry(const uint64_t *x);
uint32_t again(int n, uint64_t m);
__attribute__((noinline)) static uint32_t other(uint64_t n)
{
    volatile uint32_t room[50];
    room[n % 8u] = (uint32_t)n;
    return room[3] > 7u ? again((int)n, n) : 0u;
}
"""
    for twin in ("first", "second"):
        helpers += f"__attribute__((noinline)) static uint32_t {twin}(uint32_t n) {{ return n * n + 77u; }}\n"
    again = "__attribute__((noinline)) uint32_t again(int n, uint64_t m) { return %s; }\n"
    for name, body in sources.items():
        text = helpers + again % ("other(m) + (uint32_t)n" if name == "recursive" else "(uint32_t)n")
        text += f"uint32_t forestc_entry(const uint64_t *x) {{ (void)other; (void)first; (void)second; {body} }}\n"
        (tmp_path / f"{name}.c").write_text(text)
        made[name] = build(CPUS[cpu], find_compiler(CPUS[cpu], compiler), f"{name}.c", tmp_path, "s")
    flash = {name: read_image(files.image).flash for name, files in made.items()}
    assert flash["plain"] <= 12 and flash["library"] > 200
    assert static_stack(made["plain"]).size == 0
    assert 200 <= (static_stack(made["deep"]).size or 0) <= 240
    assert 0 < (static_stack(made["twins"]).size or 0) < 40
    assert static_stack(made["library"]).why == "the frame of __aeabi_uldivmod is not known"
    assert static_stack(made["recursive"]).why.endswith("is recursive")
    inputs = np.zeros((3, 16), dtype=np.uint8)
    deep = Emulator(CPUS[cpu], read_image(made["deep"].image)).run(inputs, np.dtype("<u4"), 1, True)
    assert deep.stack <= (static_stack(made["deep"]).size or 0)


def test_rows_are_spread():
    X = np.arange(1000.0)[:, None]
    some, total = spread(ArrayRows(X, size=77), 100)
    assert total == 1000 and len(some) == 100 and some[0, 0] == 0 and some[-1, 0] > 900
    assert np.diff(some[:, 0]).max() <= 16
    every, total = spread(ArrayRows(X, size=77), 0)
    assert total == 1000 and np.array_equal(every, X)
    few, total = spread(ArrayRows(X[:5]), 100)
    assert total == 5 and np.array_equal(few, X[:5])


def test_avr(design, rows, monkeypatch, need, need_tool):
    need("gcc", "avr")
    need_tool("simavr")
    figures = forestc.measure(design, "avr", rows, entries=["predict", "row"])
    assert figures["differences"] == 0 and figures["ram"] == 0 and figures["instructions"] is None
    assert 100 < figures["cycles"]["mean"] <= figures["cycles"]["max"] < 2000
    assert figures["stack"] >= figures["entries"]["predict"]["stack_seen"] > 3
    assert figures["tools"][0].startswith("avr-gcc") and "simavr" in figures["tools"][1]
    for module in ("commands.measure", "firmware.workbench"):
        monkeypatch.setattr(f"forestc.{module}.find", lambda *_: None)
    sizes = forestc.measure(design, "avr", rows)
    assert sizes["flash"] == figures["flash"] and sizes["cycles"] is None and sizes["differences"] is None
    assert sizes["notes"][1:] == [
        "nothing was run, as simavr is not on the PATH; install simavr (Debian: apt install simavr)"
    ]


LABEL = """#include "m.h"
TYPE forestc_entry(const uint8_t *x);
TYPE forestc_entry(const uint8_t *x) { return m_label(x[0]); }
"""


@pytest.mark.parametrize(
    ("labels", "gives"), [([-(1 << 62), 7, (1 << 62) + 1], "int64_t"), (["no", "yes", "rather"], "const char *")]
)
def test_labels_on_an_avr(labels, gives, tmp_path, need, need_tool):
    """Numbers are read from flash, and take no RAM; a note counts the RAM of text, which `measure` doesn't link."""
    need("gcc", "avr")
    need_tool("simavr")
    X, y = trained("forest-text-labels")[1], np.arange(150) // 50
    model = RandomForestClassifier(2, max_depth=2, random_state=0).fit(X, np.asarray(labels)[y])
    design = forestc.compile(model, X, tmp_path / "out", targets="c", name="m").design
    text = (design.folder / "c" / "m.h").read_text()
    (tmp_path / "m.h").write_text(text)
    (tmp_path / "x.c").write_text(LABEL.replace("TYPE", gives))
    compiler = find_compiler(CPUS["avr"])
    made = build(CPUS["avr"], compiler, "x.c", tmp_path, "s")
    image = read_image(made.image)
    notes = [note for note in forestc.measure(design, "avr")["notes"] if "m_label" in note]
    if gives == "int64_t":
        machine = avr.Simavr(find("simavr"), compiler, made, image.flash, tmp_path)
        ran = machine.run(np.arange(3, dtype=np.uint8)[:, np.newaxis], np.dtype("i8"), 1, True)
        assert ran.results.ravel().tolist() == sorted(labels) and image.ram == 0 and not notes
    else:
        (note,) = notes
        assert note.endswith(f" {image.ram} bytes") and image.ram == sum(len(label) + 3 for label in labels)


def test_cycles_of_an_avr(need, need_tool, tmp_path):
    """Cycles of instructions as the AVR manual gives them: `ldi` 1, `ret` 5, `nop` 1; a loop of `sbiw`, `brne` 4."""
    need("gcc", "avr")
    need_tool("simavr")
    cpu = CPUS["avr"]
    compiler = find_compiler(cpu)
    for body, cycles in (
        ("", 6),
        ("nop\\nnop\\nnop", 9),
        ("ldi r26,32\\nldi r27,78\\n1: sbiw r26,1\\nbrne 1b", 80_007),
    ):
        text = "unsigned char forestc_entry(const void *x);\nunsigned char forestc_entry(const void *x)\n"
        text += f'{{ (void)x; __asm__ volatile ("{body}" ::: "r26", "r27"); return 7; }}\n'
        (tmp_path / "x.c").write_text(text)
        made = build(cpu, compiler, "x.c", tmp_path, "s")
        program = find("simavr")
        assert program is not None
        machine = avr.Simavr(program, compiler, made, read_image(made.image).flash, tmp_path)
        ran = machine.run(np.zeros((3, 2), dtype=np.uint8), np.dtype("u1"), 1, True)
        assert ran.cycles.tolist() == [cycles] * 3 and ran.results.tolist() == [[7]] * 3 and ran.stack == 3


def test_a_budget_that_is_exceeded_ends_with_status_3(tmp_path, need, monkeypatch, run):
    need("gcc")
    model, X, y = trained("forest-text-labels")
    monkeypatch.setattr("forestc.firmware.layouts.LayoutFigures.used", lambda *_: 1)  # nothing is refused
    folder = tmp_path / "d"
    forestc.compile(model, X, folder, label=y, targets="c", cpu="cortex-m4f", flash=300, instructions=20, name="m")
    figures = forestc.measure(folder, "cortex-m4f", entries=["predict"])
    assert f"flash of predict, {figures['flash']:,} of 300, instructions of predict, " in figures["over_budget"]
    other = forestc.measure(folder, "cortex-m4f", entries=["scores", "predict"])
    assert other["over_budget"] == figures["over_budget"]
    other = forestc.measure(folder, "cortex-m4f", entries=["scores"])
    assert other["over_budget"] == "" and any("the budgets count predict" in note for note in other["notes"])
    assert forestc.measure(folder, "cortex-m0plus", entries=["predict"])["over_budget"] == ""
    status, _, err = run("measure", folder, "--cpu", "cortex-m4f", "--entry", "predict")
    assert status == 3 and "over the budget of the design: flash of predict" in err


def test_a_table_of_nodes_has_a_bound(tmp_path, need):
    need("gcc")
    model, X, y = trained("forest-text-labels")
    for layout in ("nodes", "branches"):
        forestc.compile(model, X, tmp_path / layout, label=y, targets="c", c_layout=layout)
        entries = forestc.measure(tmp_path / layout, "cortex-m0plus", X, entries=["predict", "scores"])["entries"]
        bound = entries["predict"]["bound"]
        assert (bound >= entries["predict"]["instructions"]["max_of_all"]) if layout == "nodes" else bound is None
        assert entries["scores"]["bound"] is None


def test_trees_beyond_a_processor_say_what_to_do(design, monkeypatch, need):
    need("gcc")

    def build(*_):
        raise ToolError("ended with exit status 1: size of array 'iris_nodes' is too large", where="gcc")

    monkeypatch.setattr("forestc.firmware.workbench.build", build)
    with pytest.raises(ToolError, match=r"larger than cortex-m4f reaches; .* another c_layout="):
        forestc.measure(design, "cortex-m4f", entries=["predict"])


def splits_of(forest, words):
    """(rows,) Splits that the rows come to, counted one by one."""
    missing, counts = missing_words(forest), []
    for tree in forest.trees:
        above = {0: 0}
        for node in range(tree.size):
            for child in (tree.left[node], tree.right[node]):
                if tree.left[node] != LEAF:
                    above[int(child)] = above[node] + 1
        counts.append([above[node] for node in leaf_nodes(forest, tree, words, missing).tolist()])
    return np.sum(counts, axis=0)


@pytest.mark.parametrize("seed", range(6))
def test_costly_inputs_have_paths_no_shorter_than_where_they_start(seed):
    forest = random_forest(seed, True)
    starts = encode(forest, troublesome_rows(forest, seed, 30))
    found = costly_words(forest, starts)
    if any(len(tree.inner) for tree in forest.trees):
        assert splits_of(forest, found).max() >= splits_of(forest, starts).max()
    else:
        assert not len(found)
    for column, feature in zip(found.T, forest.features, strict=True):
        span = word_range(feature.number, feature.missing)
        assert ((column >= span.low) & (column <= span.top) | (column == span.missing)).all()
    assert np.array_equal(found, costly_words(forest, starts))


def test_the_longest_paths_are_measured():
    """In a forest of 15 trees nearly all reach their deepest leaves in one input, as no row does."""
    X, y = load_breast_cancer(return_X_y=True)
    forest = forestc.quantize(RandomForestClassifier(15, max_depth=6, random_state=3).fit(X, y), X, y)
    batches = list(measured_inputs(forest, X[:50]))
    assert [batch.origin for batch in batches] == ["rows", "boundary", "random", "costly"]
    deepest = sum(len(tree.levels) - 1 for tree in forest.trees)
    of_rows, of_costly = (splits_of(forest, batches[place].words).max() for place in (0, 3))
    assert of_rows < of_costly <= deepest and of_costly >= 0.9 * deepest
