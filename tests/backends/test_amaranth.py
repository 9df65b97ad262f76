"""Tests the Amaranth components: proved equal to the Verilog, exact in simulation, and streams that lose nothing."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import get_args

import numpy as np
import pytest
from amaranth import DomainRenamer, Module, ResetInserter, Signal
from amaranth.back import rtlil
from amaranth.hdl import unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator
from random_forests import random_forest
from random_netlists import all_kinds
from thinned import only

import forestc
from forestc.backends import hdl
from forestc.backends.amaranth import core as amaranth
from forestc.backends.amaranth.engine import AmaranthEngine
from forestc.backends.ports import input_fields, output_fields
from forestc.backends.vectors import Vectors, expected, vectors
from forestc.backends.verilog import core as verilog
from forestc.checks.proof.equality import prove_component, prove_equal
from forestc.checks.proof.verilog_text import read_core
from forestc.errors import CheckError, ForestcError, MissingExtraError, ToolError
from forestc.forest.builder import changed, make_forest, make_tree
from forestc.forest.evaluate import evaluate_words
from forestc.forest.ir import Aggregate, Decision, Feature, Forest, Link
from forestc.forest.numbers import Fixed
from forestc.forest.text import parse_forest
from forestc.lowering.trees import LoweringOptions, lower
from forestc.manifest.content import manifest
from forestc.manifest.design import Design
from forestc.netlist import ir
from forestc.netlist.ir import Cell, Netlist, evaluate, reads
from forestc.rows.batches import ArrayRows

CASES = Path(__file__).parents[1] / "cases"
MODELS = Path(__file__).parents[2] / "examples" / "models"
SMALL = parse_forest((CASES / "small.forest").read_text())


def lowered(forest: Forest, latency: int, outputs: str = "both") -> Netlist:
    return lower(forest, LoweringOptions(latency=latency, outputs=outputs))


def text_of(forest: Forest, netlist: Netlist) -> str:
    (text,) = amaranth.emit(netlist).values()
    return text


def classes(forest: Forest, netlist: Netlist):
    """Returns the live core and stream classes."""
    made = amaranth.module(netlist)
    name = amaranth.core_name(netlist)
    return getattr(made, name), getattr(made, name + "Stream")


def rtlil_of(text: str) -> str:
    space: dict = {"__name__": "written"}
    exec(compile(text, "written.py", "exec", dont_inherit=True), space)
    return space["convert"](rtlil)


def some_words(forest: Forest, count: int, seed: int = 0) -> np.ndarray:
    rows = ArrayRows(np.random.default_rng(seed).normal(size=(20, forest.columns)) * 20)
    words = np.concatenate([part.words for part in vectors(forest, rows, count, seed)])
    return np.random.default_rng(seed).permutation(words)[:count]


def packed(layout: data.StructLayout, words: list[int]) -> dict[str, int]:
    return {name: word for (name, _), word in zip(layout, words, strict=False)}


def named_forest(name: str, features: list[str]) -> Forest:
    """Makes a forest of one tree on the first feature, with the given model and feature names."""
    tree = make_tree(
        where="tree", feature=[0, -1, -1], threshold=[3, 0, 0], left=[1, -1, -1], right=[2, -1, -1],
        values=[[1], [6]], outputs=(0,), missing_left=[False] * 3, set_index=[-1] * 3, sets=[], quantized=True,
    )  # fmt: skip
    return make_forest(
        name=name, features=[Feature(text, Fixed(4), k, False) for k, text in enumerate(features)],
        columns=len(features), trees=[tree], n_outputs=1, bias=[0], aggregate=Aggregate(), link=Link(),
        decision=Decision("none"), classes=[], scale=1.0,
    )  # fmt: skip


# --- the text ---------------------------------------------------------------------------------------------


def test_output_is_pure_and_golden(golden):
    netlist = lowered(SMALL, 3)
    assert amaranth.emit(netlist) == amaranth.emit(netlist)
    golden("small_3.py.txt", text_of(SMALL, netlist))


def test_it_needs_amaranth_alone():
    tree = ast.parse(text_of(SMALL, lowered(SMALL, 2)))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {n.name for node in imports if isinstance(node, ast.Import) for n in node.names}
    assert names == {"os", "shutil", "sys"}
    taken = {node.module.split(".")[0] for node in imports if isinstance(node, ast.ImportFrom)}
    assert taken == {"amaranth", "pathlib"}


@pytest.mark.parametrize("name", ["random", "amaranth", '"""'])
def test_names_of_modules_that_amaranth_imports_are_harmless(name, tmp_path):
    forest = named_forest(name, ["x"])
    netlist = lowered(forest, 1, "scores")
    prove_component(netlist)
    ((file, text),) = amaranth.emit(netlist).items()
    (tmp_path / file).write_text(text)
    code = f"import {file.removesuffix('.py')}"
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=False).returncode == 0


def test_no_name_of_the_module_is_hidden_by_a_model_called_so():
    text = text_of(SMALL, lowered(SMALL, 1))
    words = {w for w in re.findall(r"[A-Za-z]\w*", text.split('"""')[2]) if w.isidentifier() and "small" not in w}
    for word in sorted(words):
        forest = named_forest(word, ["a"])
        core, flow = classes(forest, lowered(forest, 1, "scores"))
        assert "module" in rtlil.convert(flow(), name="top")
        assert core.__name__ in (word, f"m_{word}")


def test_the_written_file_is_a_program(tmp_path):
    ((file, text),) = amaranth.emit(lowered(SMALL, 2)).items()
    (tmp_path / file).write_text(text)
    env = {"PATH": "/nowhere", "HOME": str(Path.home())}  # yosys from pip is found beside its Python.
    for argument, ports in (([], "y, clk, in_valid, x, out_valid"), (["stream"], "clk, rst")):
        done = subprocess.run(
            [sys.executable, file, *argument], cwd=tmp_path, capture_output=True, text=True, check=True, env=env
        )
        header = re.search(r"^module (small_model\w*)\((.*?)\);", done.stdout, re.M)
        assert header is not None and header[1] == "small_model" + ("_stream" if argument else "")
        assert set(ports.split(", ")) <= set(header[2].split(", "))
        assert "rst" not in header[2] or argument


def test_without_amaranth_there_is_one_clear_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "amaranth", None)
    with pytest.raises(
        MissingExtraError, match=r"Python in .*: Amaranth is not installed; pip install \"forestc\[amaranth\]\""
    ):
        prove_component(lowered(SMALL, 0))


# --- equality ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "trees", "latency"),
    [
        ("breast_cancer.json", 20, 0),
        ("digits.skops", 3, 3),
        pytest.param("digits.skops", 16, 3, marks=pytest.mark.long),
    ],
)
def test_shipped_models_are_proved_equal(name, trees, latency):
    model = forestc.load(MODELS / name)
    forest = forestc.quantize(model, np.random.default_rng(0).random((200, model.columns)) * 16)
    assert len(forest.trees) in (16, 20)
    forest = changed(forest, trees=forest.trees[:trees])
    prove_component(lowered(forest, latency))


NAMES = named_forest("kinds", ["a", "b", "c", "d", "e"])


@pytest.mark.parametrize("latency", only([0, 2], 0))
def test_every_kind_of_cell_is_proved_and_simulated(latency):
    seen = set()
    for seed in range(4):
        netlist = all_kinds(Random(seed), latency)
        assert netlist.latency == latency
        seen |= {type(cell) for cell in netlist.cells}
        prove_component(netlist)
        if not latency:
            simulated_equals_the_cells(netlist, seed)
    assert set(get_args(Cell)) - {ir.Input, ir.Register} <= seen


def simulated_equals_the_cells(netlist: Netlist, seed: int) -> None:
    """Compares Amaranth's simulator with `forestc.netlist.ir.evaluate`, without yosys in between."""
    core = classes(NAMES, netlist)[0]()
    random = Random(seed)
    inputs, outputs = input_fields(netlist), output_fields(netlist)

    async def bench(context):
        for _ in range(20):
            row = [random.choice([f.word.low, f.word.high, random.randint(f.word.low, f.word.high)]) for f in inputs]
            context.set(core.x, packed(core.x.shape(), row))
            await context.delay(1e-6)
            values: list[int] = []
            ports = iter(row)
            for cell in netlist.cells:
                below = reads(cell)
                known = type(cell).__name__ != "Input"
                values.append(evaluate(cell, tuple(values[a] for a in below)) if known else next(ports))
            got = context.get(core.y)
            nets = {port.name: net for port, net in netlist.outputs}
            assert {f.name: got[f.name] for f in outputs} == {f.name: values[nets[f.name]] for f in outputs}

    simulator = Simulator(core)
    simulator.add_testbench(bench)
    simulator.run()


def test_differences_are_refused():
    forest = random_forest(8, True, "argmax", [Fixed(8), Fixed(6, 0, True)])
    netlist = lowered(forest, 3)
    text = text_of(forest, netlist)
    top = hdl.module_name(netlist)
    ours = read_core(verilog.emit(netlist)[f"{top}.v"].encode())
    prove_equal(ours, rtlil_of(text), "it")
    for pattern, change in PLANTED:
        places = list(re.finditer(pattern, text))
        assert places, pattern
        for match in places[:1]:
            other = text[: match.start()] + change(match) + text[match.end() :]
            with pytest.raises(CheckError, match="does not equal the Verilog"):
                prove_equal(ours, rtlil_of(other), "it")
    for start in ("1", "x"):
        other = re.sub(
            r"(init \d+'\d*)0\n(  wire width \d+ (?:signed )?\\r)", rf"\g<1>{start}\n\2", rtlil_of(text), count=1
        )
        assert other != rtlil_of(text)
        with pytest.raises(CheckError):
            prove_equal(ours, other, "it")
    with pytest.raises(ToolError):  # An error is raised for a text that is no circuit, instead of a difference.
        prove_equal(ours, "module \\broken", "it")


PLANTED = [
    (r"~(x\w+\[\d+\] [&|])", lambda m: m[1]),
    (r"(x\w+\[\d+\] )([&|])", lambda m: f"{m[1]}{'&' if m[2] == '|' else '|'}"),
    (r"(Mux\(\w+, )(-?\d+)", lambda m: f"{m[1]}{int(m[2]) ^ 1}"),
    (r"_register\((.*?)(, reset_less=False)?\)\n", lambda m: f"_word({m[1]})\n"),
    (r'"label": unsigned\((\d+)\)', lambda m: f'"label": unsigned({int(m[1]) + 1})'),
]


def test_the_engine_finds_a_difference_in_the_written_file(need_tool, tmp_path):
    need_tool("verilator")
    forest = random_forest(8, True, "argmax", [Fixed(8), Fixed(6, 0, True)])
    netlist = lowered(forest, 2, "scores")
    ((file, text),) = amaranth.emit(netlist).items()
    options = {"latency": 2, "outputs": "scores", "targets": ["amaranth"], "c": {}}
    design = Design(tmp_path, manifest(forest, netlist, {"amaranth": file}, options, {}), forest, forest)
    words = some_words(forest, 500)
    batch = Vectors(words, words.astype(float), "random")
    pattern, change = PLANTED[2]
    (tmp_path / file).write_text(re.sub(pattern, change, text, count=1))
    folder = tmp_path / "engine"
    folder.mkdir()
    assert AmaranthEngine(design, folder).compare(batch, evaluate_words(forest, words)).count > 0


# --- streams ----------------------------------------------------------------------------------------------


def streamed(flow, words: np.ndarray, send: float, take: float, seed: int, reset_at: int = -1):
    """Feeds rows to a stream component; `send` and `take` are the chances of being valid and ready each cycle. Returns
    results and cycles."""
    random = Random(seed)
    results, sent, held, cycles = [], 0, None, 0

    async def bench(context):
        nonlocal sent, held, cycles
        offering = False
        while len(results) < len(words):
            offering = sent < len(words) and (offering or random.random() < send)  # Valid stays until the row is taken.
            context.set(flow.i.valid, offering)
            if offering:
                context.set(flow.i.payload, packed(flow.i.payload.shape(), words[sent].tolist()))
            before = context.get(flow.i.ready)
            context.set(flow.o.ready, random.random() < take)
            taking, ready, valid = context.get(flow.o.ready), context.get(flow.i.ready), context.get(flow.o.valid)
            assert ready == before, "ready follows the other side's within the cycle"
            payload = tuple(context.get(flow.o.payload)[name] for name, _ in flow.o.payload.shape())
            if held is not None:
                assert valid and payload == held, "the result changed before it was taken"
            held = payload if valid and not taking else None
            if valid and taking:
                results.append(payload)
            await context.tick()
            cycles += 1
            if offering and ready:
                sent, offering = sent + 1, False
            assert cycles < 40 * len(words) + 100

    simulator = Simulator(flow)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return results, cycles


@pytest.mark.parametrize("latency", [0, 1, 3])
@pytest.mark.parametrize(("send", "take"), [(1, 1), (0.5, 0.5), (0.9, 0.3), (0.2, 0.9)])
def test_streams_lose_and_repeat_nothing(latency, send, take):
    forest = random_forest(8, True, "argmax", [Fixed(8), Fixed(6, 0, True)])
    netlist = lowered(forest, latency)
    words = some_words(forest, 200)
    flow = classes(forest, netlist)[1]()
    results, cycles = streamed(flow, words, send, take, seed=latency)
    assert results == [tuple(row) for row in expected(forest, netlist, words).tolist()]
    assert len(set(results)) > 5
    if send == take == 1:
        assert cycles == len(words) + latency  # one row each cycle


def test_a_reset_empties_the_pipeline():
    netlist = lowered(SMALL, 3)
    top = Module()
    flow = classes(SMALL, netlist)[1]()
    reset = Signal()
    top.submodules.flow = ResetInserter(reset)(flow)
    seen = []

    async def bench(context):
        context.set(flow.o.ready, 1)
        context.set(flow.i.valid, 1)
        await context.tick().repeat(2)
        context.set(flow.i.valid, 0)
        context.set(reset, 1)
        await context.tick()
        context.set(reset, 0)
        for _ in range(6):
            seen.append(context.get(flow.o.valid))
            await context.tick()

    simulator = Simulator(top)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert seen == [0] * 6


# --- in a design of one's own -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("amaranth") / "out"
    rows = np.random.default_rng(0).normal(size=(300, forestc.load(MODELS / "breast_cancer.json").columns)) * 100
    forestc.compile(MODELS / "breast_cancer.json", rows, out, latency=2, targets=["amaranth"], outputs="scores")
    return out


class Counting(wiring.Component):
    """A user's design: it classifies its input in a clock domain of its own, and counts results."""

    def __init__(self, folder: Path) -> None:
        self.classifier = forestc.hardware(folder)
        super().__init__(
            {
                "rows": In(stream.Signature(self.classifier.i.payload.shape())),
                "count": Out(unsigned(8)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.classifier = classifier = DomainRenamer("fast")(self.classifier)
        wiring.connect(m, wiring.flipped(self.rows), classifier.i)
        m.d.comb += classifier.o.ready.eq(1)
        with m.If(classifier.o.valid):
            m.d.fast += self.count.eq(self.count + 1)
        return m


def test_it_lives_in_a_design_of_ones_own(folder):
    top = Counting(folder)

    async def bench(context):
        context.set(top.rows.valid, 1)
        await context.tick("fast").repeat(10)
        context.set(top.rows.valid, 0)
        await context.tick("fast").repeat(5)
        assert context.get(top.count) == 10

    simulator = Simulator(top)
    simulator.add_clock(1e-6, domain="fast")
    simulator.add_testbench(bench)
    simulator.run()
    assert "module \\top.classifier" in rtlil.convert(Counting(folder), name="top")


def test_the_folder_says_where_it_is(folder):
    design = forestc.open_design(folder)
    core, flow = forestc.hardware(design, stream=False), forestc.hardware(folder)
    assert rtlil.convert(core, name="core") and rtlil.convert(flow, name="flow")
    assert design.targets == ("amaranth",)
    assert design.path("amaranth").read_text() == text_of(design.forest, design.netlist)
    assert set(core.signature.members) == {"in_valid", "out_valid", "x", "y"}
    words = {port.name for port, _ in design.netlist.outputs if port.kind != "valid"}
    assert words == {name for name, _ in flow.o.payload.shape()}
    with pytest.raises(ForestcError, match="no readable manifest"):
        forestc.hardware(folder / "nowhere")
