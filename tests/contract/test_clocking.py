"""Tests the reset and the clock enable of a core in every language and tool, against a queue of evaluated rows."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from forest_designs import design, differences
from forest_kinds import FORESTS, LARGE
from models import trained
from random_forests import random_forest

import forestc
from forestc.backends import hdl
from forestc.backends.ports import input_fields, output_fields, pack, width_of
from forestc.backends.table import TARGETS
from forestc.backends.vectors import expected, random_words
from forestc.backends.verilog import core as verilog
from forestc.backends.vhdl import core as vhdl
from forestc.checks.proof import prove_verilog, prove_vhdl
from forestc.checks.proof.core import wrong_cycle
from forestc.checks.proof.equality import prove_component
from forestc.checks.proof.verilog_text import read_core
from forestc.errors import CheckError, InternalError, MissingToolError, OptionError, ToolError
from forestc.forest.numbers import Category, Fixed
from forestc.lowering.trees import LoweringOptions, lower
from forestc.netlist.ports import PLAIN, Clocking
from forestc.netlist.text import parse_netlist, print_netlist
from forestc.netlist.verify import verify
from forestc.toolchain import verilator
from forestc.toolchain.ghdl import as_verilog
from forestc.toolchain.run import run_tool
from forestc.toolchain.yosys import run_yosys
from hw_sim import Clocked

pytestmark = pytest.mark.each_case
CLOCKINGS = {
    f"{reset}-enable" if enable else reset: Clocking(reset, enable)
    for reset, enable in product(("none", "sync", "async"), (False, True))
}
CONTROLLED = {name: clocking for name, clocking in CLOCKINGS.items() if clocking.ports}
NARROW = [Fixed(6), Fixed(5, 2, True), Category(5)]
LATENCY = 4


def forest_of(seed, kind="argmax"):
    return random_forest(seed, True, kind, NARROW)


def netlist_of(forest, clocking, latency=LATENCY):
    outputs = "both" if forest.decides else "scores"
    return lower(forest, LoweringOptions(latency, outputs, clocking=clocking))


def verilog_of(netlist):
    return verilog.emit(netlist)[f"{hdl.module_name(netlist)}.v"]


def vhdl_of(netlist):
    return vhdl.emit(netlist)[f"{hdl.module_name(netlist)}.vhd"]


def trace(forest, netlist, cycles=500, seed=0):
    """Returns random cycles (rst, en, in_valid, words, out_valid, y), in which rows are halted and dropped at random.
    Outputs are those before the clock's edge; y is None if no row has come to the last registers."""
    random, clocking = np.random.default_rng(seed), netlist.clocking
    words = random_words(forest, np.zeros((1, len(forest.features)), dtype=np.int64), cycles, random)
    results = pack(output_fields(netlist), expected(forest, netlist, words))
    rows = [(0, None)] * netlist.latency  # valid and results behind each stage
    made = []
    for row, result in zip(words, results, strict=True):
        rst = int(random.random() < 0.05) if clocking.reset != "none" else 0
        en = int(random.random() < 0.6) if clocking.enable else 1
        valid = int(random.random() < 0.7)
        if rst and clocking.reset == "async":
            rows = [(0, None)] * netlist.latency
        made.append((rst, en, valid, row, *rows[-1]))
        if rst:
            rows = [(0, None)] * netlist.latency
        elif en:
            rows = [(valid, result), *rows[:-1]]
    assert not clocking.ports or any(rst or not en for rst, en, *_ in made)
    return made


@pytest.mark.parametrize("name", CLOCKINGS)
@pytest.mark.parametrize("seed", range(6))
def test_the_simulator_halts_and_drops_rows(name, seed):
    forest = forest_of(seed, ("binary", "argmax", "regression", "vector")[seed % 4])
    netlist = netlist_of(forest, CLOCKINGS[name], 1 + seed)
    simulated, outputs = Clocked(netlist), output_fields(netlist)
    for rst, en, valid, row, out_valid, y in trace(forest, netlist, seed=seed):
        controls = {port: {"rst": rst, "en": en}[port] for port in netlist.clocking.ports}
        words = {f"x{index}": value for index, value in enumerate(row.tolist())}
        got = simulated.clock({**words, "in_valid": valid, **controls})
        assert got["out_valid"] == out_valid
        assert y is None or pack(outputs, np.array([[got[field.name] for field in outputs]])) == [y]


VERILOG_BENCH = """module trace;
    reg clk = 0, rst = 0, en = 1, in_valid = 0;
    reg [{x}:0] x = 0;
    wire out_valid;
    wire [{y}:0] y;
    reg [3:0] given;
    reg [{x}:0] words;
    reg [{y}:0] result;
    reg valid;
    integer file, cycles = 0, wrong = 0;
    {module} dut (.clk(clk), {controls} .in_valid(in_valid), .out_valid(out_valid), .x(x), .y(y));
    initial begin
        file = $fopen("trace.txt", "r");
        while ($fscanf(file, "%b %b %b %b\\n", given, words, valid, result) == 4) begin
            {{rst, en, in_valid}} = given[3:1];
            x = words;
            #5 if (out_valid !== valid || (given[0] && y !== result)) wrong = wrong + 1;
            clk = 1;
            #5 clk = 0;
            cycles = cycles + 1;
        end
        $display("%0d wrong of %0d", wrong, cycles);
    end
endmodule
"""
VHDL_BENCH = """library ieee;
use ieee.std_logic_1164.all;
use std.textio.all;
entity trace is
end entity;
architecture test of trace is
    signal clk, rst, in_valid : std_logic := '0';
    signal en : std_logic := '1';
    signal out_valid : std_logic;
    signal x : std_logic_vector({x} downto 0) := (others => '0');
    signal y : std_logic_vector({y} downto 0);
begin
    dut : entity work.{module}
        port map (clk => clk, {controls} in_valid => in_valid, out_valid => out_valid, x => x, y => y);
    process
        file trace : text open read_mode is "trace.txt";
        variable rest : line;
        variable given : bit_vector(3 downto 0);
        variable words : bit_vector({x} downto 0);
        variable valid : bit_vector(0 downto 0);
        variable result : bit_vector({y} downto 0);
        variable cycles, wrong : natural := 0;
    begin
        while not endfile(trace) loop
            readline(trace, rest);
            read(rest, given);
            read(rest, words);
            read(rest, valid);
            read(rest, result);
            rst <= to_stdulogic(given(3));
            en <= to_stdulogic(given(2));
            in_valid <= to_stdulogic(given(1));
            x <= to_stdlogicvector(words);
            wait for 5 ns;
            if out_valid /= to_stdulogic(valid(0)) or (given(0) = '1' and y /= to_stdlogicvector(result)) then
                wrong := wrong + 1;
            end if;
            clk <= '1';
            wait for 5 ns;
            clk <= '0';
            cycles := cycles + 1;
        end loop;
        write(rest, wrong);
        write(rest, string'(" wrong of "));
        write(rest, cycles);
        writeline(output, rest);
        wait;
    end process;
end architecture;
"""
CPP_MAIN = """#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include "Vtop.h"
double sc_time_stamp() {{ return 0; }}
int main() {{
    Vtop top;
    char given[8], words[80], valid[8], result[80];
    int cycles = 0, wrong = 0;
    while (std::scanf("%7s %79s %7s %79s", given, words, valid, result) == 4) {{
        {controls}
        top.in_valid = given[2] == '1';
        top.x = std::strtoull(words, nullptr, 2);
        top.eval();
        const bool same = top.y == std::strtoull(result, nullptr, 2);
        wrong += top.out_valid != (valid[0] == '1') || (given[3] == '1' && !same);
        top.clk = 1;
        top.eval();
        top.clk = 0;
        top.eval();
        cycles++;
    }}
    std::printf("%d wrong of %d\\n", wrong, cycles);
    return 0;
}}
"""


def filled(text, netlist, control):
    """Fills a bench in. control: format of the connection of a port of the clocking."""
    x, y = (width_of(fields(netlist)) - 1 for fields in (input_fields, output_fields))
    controls = " ".join(control.format(port) for port in netlist.clocking.ports)
    return text.format(x=x, y=y, module=hdl.module_name(netlist), controls=controls)


def icarus(netlist, sources, folder):
    (folder / "trace.v").write_text(filled(VERILOG_BENCH, netlist, ".{0}({0}),"))
    run_tool(["iverilog", "-g2005", "-o", "trace.vvp", *sources, "trace.v"], folder)
    return run_tool(["vvp", "-n", "trace.vvp"], folder)


def run_icarus(netlist, folder):
    (folder / "core.v").write_text(verilog_of(netlist))
    return icarus(netlist, ["core.v"], folder)


def run_yosys_netlist(netlist, folder):
    """Runs the gates that yosys makes of the Verilog."""
    (folder / "core.v").write_text(verilog_of(netlist))
    script = "read_verilog core.v\nsynth -flatten\ndfflegalize -cell $_DFF_P_ 0 -cell $_DFF_PP0_ 0\n"
    run_yosys(f"{script}write_verilog -noattr gates.v", folder, writes=["gates.v"])
    return icarus(netlist, ["gates.v"], folder)


def run_ghdl(netlist, folder):
    (folder / "core.vhd").write_text(vhdl_of(netlist))
    (folder / "trace.vhd").write_text(filled(VHDL_BENCH, netlist, "{0} => {0},"))
    run_tool(["ghdl", "-a", "--std=93", "core.vhd", "trace.vhd"], folder)
    run_tool(["ghdl", "-e", "--std=93", "trace"], folder)
    return run_tool(["ghdl", "-r", "--std=93", "trace", "--ieee-asserts=disable-at-0"], folder)


def run_ghdl_netlist(netlist, folder):
    """Runs the Verilog that GHDL makes of the VHDL."""
    (folder / "core.v").write_text(as_verilog([vhdl_of(netlist).encode()], hdl.module_name(netlist)))
    return icarus(netlist, ["core.v"], folder)


def run_verilator(netlist, folder):
    (folder / "core.v").write_text(verilog_of(netlist))
    place = {"rst": 0, "en": 1}
    main = CPP_MAIN.format(
        controls=" ".join(f"top.{port} = given[{place[port]}] == '1';" for port in netlist.clocking.ports)
    )
    program = verilator.build(verilator.need_verilator(), ["core.v"], hdl.module_name(netlist), main, folder)
    return run_tool([str(program)], folder, data=(folder / "trace.txt").read_bytes())


TOOLS = {
    "icarus": (run_icarus, ["iverilog"]),
    "yosys": (run_yosys_netlist, ["iverilog"]),
    "ghdl": (run_ghdl, ["ghdl"]),
    "ghdl-synth": (run_ghdl_netlist, ["ghdl", "iverilog"]),
    "verilator": (run_verilator, ["verilator"]),
}


@pytest.mark.parametrize("name", CLOCKINGS)
@pytest.mark.parametrize("tool", TOOLS)
def test_tools_halt_and_drop_rows(tool, name, tmp_path, need_tool):
    run, needed = TOOLS[tool]
    for program in needed:
        need_tool(program)
    forest = forest_of(1)
    netlist = netlist_of(forest, CLOCKINGS[name])
    x, y = width_of(input_fields(netlist)), width_of(output_fields(netlist))
    lines = [
        f"{rst}{en}{valid}{int(result is not None)} {packed:0{x}b} {out_valid} {result or 0:0{y}b}\n"
        for rst, en, valid, row, out_valid, result in trace(forest, netlist)
        for packed in pack(input_fields(netlist), row[None])
    ]
    (tmp_path / "trace.txt").write_text("".join(lines))
    assert run(netlist, tmp_path).decode().split() == ["0", "wrong", "of", "500"]


def kinds():
    """Returns (engine, kind of forest). By default each engine runs on one kind; every eighth of the others is a slow
    test."""
    runners = [(target, one) for target in TARGETS.values() if target.registers for one in target.runners]
    for place, (_, runner) in enumerate(runners):
        for number, kind in enumerate(FORESTS):
            others = pytest.mark.long if (number + place) % 8 else pytest.mark.slow
            marks = () if kind not in LARGE and number == place else others
            yield pytest.param(runner.name, kind, marks=marks, id=f"{runner.name}-{kind}")


@pytest.mark.parametrize(("engine", "kind"), [*kinds()])
def test_engines_of_check_run_kinds_of_forest(engine, kind, tmp_path):
    """Each engine halts the core now and then, and resets it before the first row, with rows under way."""
    target = next(target.name for target in TARGETS.values() if engine in [one.name for one in target.runners])
    forest = FORESTS[kind](5, NARROW)
    for number, (name, clocking) in enumerate(CONTROLLED.items()):
        folder = tmp_path / name
        folder.mkdir()
        made = design(forest, folder, 2 + number, targets=(target,), clocking=clocking)
        try:
            assert not differences(engine, made, folder, number).count, name
        except MissingToolError as error:
            pytest.skip(str(error))


BROKEN = {
    "a reset at 0": lambda text: text.replace("if (rst)", "if (!rst)"),
    "no reset": lambda text: text.replace("if (rst)", "if (1'b0)"),
    "no enable": lambda text: text.replace("if (en)", "if (1'b1)"),
    "an enable at 0": lambda text: text.replace("if (en)", "if (!en)"),
}


@pytest.mark.parametrize("broken", BROKEN)
@pytest.mark.parametrize("engine", ["icarus", "verilator"])
def test_engines_of_check_notice_a_wrong_reset_or_enable(engine, broken, tmp_path, need_tool):
    need_tool({"icarus": "iverilog"}.get(engine, engine))
    for reset in ("sync", "async"):
        folder = tmp_path / reset
        folder.mkdir()
        made = design(forest_of(2), folder, 3, targets=("verilog",), clocking=Clocking(reset, True))
        path = made.path("verilog")
        text = BROKEN[broken](path.read_text())
        assert text != path.read_text()
        path.write_text(text)
        assert differences(engine, made, folder, 1).count, reset


@pytest.mark.parametrize("name", CLOCKINGS)
def test_every_clocking_is_proved_and_no_other_text(name, need_tool):
    """The Verilog of each clocking equals its netlist; that of others is refuted."""
    forest = forest_of(3)
    netlist = netlist_of(forest, CLOCKINGS[name], 3)
    assert parse_netlist(print_netlist(netlist)) == netlist
    for other, clocking in CLOCKINGS.items():
        text = verilog_of(netlist_of(forest, clocking, 3))
        proof = prove_verilog(forest, netlist, text.encode(), native=True)
        assert proof.verdict == ("proved" if other == name else "refuted"), (other, proof.parts)
        if other == name:
            assert wrong_cycle(read_core(text.encode()), forest, netlist) is None


@pytest.mark.parametrize("name", CLOCKINGS)
def test_the_vhdl_of_every_clocking_is_proved_and_no_other(name, need_tool):
    need_tool("ghdl")
    forest = forest_of(3)
    netlist = netlist_of(forest, CLOCKINGS[name], 3)
    for other, clocking in CLOCKINGS.items():
        proof = prove_vhdl(netlist, vhdl_of(netlist_of(forest, clocking, 3)).encode(), native=True)
        assert proof.verdict == ("proved" if other == name else "undecided"), (other, proof.parts)


@pytest.mark.parametrize("name", CLOCKINGS)
def test_the_amaranth_component_of_every_clocking_is_proved_and_no_other(name):
    pytest.importorskip("amaranth")
    netlist = netlist_of(forest_of(3), CLOCKINGS[name], 3)
    prove_component(netlist)
    from forestc.backends.amaranth import core as amaranth

    component = amaranth.module(netlist)
    for other, clocking in CLOCKINGS.items():
        if other == name:
            continue
        with pytest.MonkeyPatch.context() as patch, pytest.raises(CheckError):
            patch.setattr(amaranth, "module", lambda _: component)
            prove_component(replace(netlist, clocking=clocking))


VHDL_EDITS = {
    "a register without its reset": (
        lambda text: re.sub(r"^ +r\d+ <= (?:'0'|\(others => '0'\));\n", "", text, count=1, flags=re.MULTILINE)
    ),
    "a register without its next word": (
        lambda text: re.sub(r"^ +r\d+ <= [a-z]+\d+;\n", "", text, count=1, flags=re.MULTILINE)
    ),
    "a register without its initial value": lambda text: re.sub(
        r"(signal r\d+ : \w+[^:]*) := [^;]+;", r"\1;", text, count=1
    ),
    "the other level": lambda text: text.replace("rst = '1'", "rst = '0'"),
    "a process that does not wait for the reset": lambda text: text.replace("process (clk, rst)", "process (clk)"),
    "an enable that comes first": (
        lambda text: text.replace("if rst = '1'", "if EN = '1'").replace("if en", "if rst").replace("EN", "en")
    ),
}


@pytest.mark.parametrize("edit", VHDL_EDITS)
@pytest.mark.parametrize("reset", ["sync", "async"])
def test_an_edit_of_the_vhdl_is_not_proved(reset, edit, need_tool):
    need_tool("ghdl")
    netlist = netlist_of(forest_of(3), Clocking(reset, True), 2)
    text = vhdl_of(netlist)
    edited = VHDL_EDITS[edit](text)
    if edited == text:
        assert (reset, edit) == ("sync", "a process that does not wait for the reset")
        return
    if (reset, edit) == ("async", "a register without its next word"):
        with pytest.raises(ToolError, match="latch"):
            prove_vhdl(netlist, edited.encode(), native=True)
        return
    assert prove_vhdl(netlist, edited.encode(), native=True).verdict == "undecided"


@pytest.mark.parametrize("reset", ["sync", "async"])
def test_an_edit_of_the_verilog_is_not_proved(reset):
    forest = forest_of(3)
    netlist = netlist_of(forest, Clocking(reset, True), 2)
    text = verilog_of(netlist)
    first = re.search(r"^        (r\d+) <= (\d+)'d0;$", text, re.MULTILINE)
    edits = [
        text.replace(first[0] + "\n", ""),
        text.replace(first[0], f"        {first[1]} <= {first[2]}'d1;"),
        text.replace("if (rst)", "if (en)", 1).replace("else if (en)", "else if (rst)"),
        text.replace("posedge clk", "negedge clk"),
        text.replace("else if (en) begin", "else begin"),
        text.replace("    input  wire rst,\n", ""),
    ]
    for edited in edits:
        assert edited != text
        assert prove_verilog(forest, netlist, edited.encode(), native=True).verdict != "proved"


def test_a_netlist_without_registers_has_neither():
    netlist = netlist_of(forest_of(3), Clocking("sync", True), 0)
    assert netlist.clocking == PLAIN
    with pytest.raises(InternalError, match="no registers"):
        verify(replace(netlist, clocking=Clocking("sync")))


def test_compile_refuses_what_has_no_such_port(tmp_path):
    model, X, _ = trained("xgboost-binary")

    def refused(where, match, **options):
        with pytest.raises(OptionError, match=match) as caught:
            forestc.compile(model, X[:50], tmp_path / "d", **options)
        assert where in str(caught.value)

    refused("reset=", "hls", targets="verilog,hls", latency=2, reset="sync")
    refused("enable=", "hls", targets="hls", latency=2, enable=True)
    refused("reset=", "verilog or vhdl or amaranth", targets="c", reset="async")
    refused("enable=", "no registers", targets="verilog", enable=True)
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize("name", ["rst", "en", "step"])
def test_names_of_a_model_and_its_features_do_not_collide(name, tmp_path, need_tool):
    pytest.importorskip("amaranth")
    need_tool("iverilog")
    need_tool("ghdl")
    forest = forest_of(4)
    features = tuple(replace(feature, name=name) for feature in forest.features)
    forest = replace(
        forest, name=name, features=features, classes=tuple(f"{name}{k}" for k in range(9))[: len(forest.classes)]
    )
    for target, engine in (("verilog", "icarus"), ("verilog", "verilator"), ("vhdl", "ghdl"), ("amaranth", "amaranth")):
        folder = tmp_path / engine
        folder.mkdir()
        made = design(forest, folder, 2, targets=(target,), clocking=Clocking("async", True))
        assert not differences(engine, made, folder, 3).count, engine


def test_a_compiled_folder_says_what_it_has(tmp_path, need_tool):
    model, X, _ = trained("xgboost-binary")
    options = {"targets": "verilog,vhdl,amaranth", "latency": 2, "reset": "async", "enable": True}
    done = forestc.compile(model, X[:100], tmp_path / "d", **options, stream=forestc.StreamOptions(tdata_bits=8))
    opened = forestc.open_design(tmp_path / "d")
    assert opened.netlist.clocking == Clocking("async", True)
    assert [port["name"] for port in opened.manifest["ports"]] == [
        "clk",
        "rst",
        "en",
        "in_valid",
        "out_valid",
        "x",
        "y",
    ]
    assert "2 cycles, asynchronous reset, clock enable" in (tmp_path / "d" / "report.md").read_text()
    assert done.figures["clocking"] == ["asynchronous reset", "clock enable"]
    need_tool("ghdl")
    assert forestc.check(tmp_path / "d", X[:50], prove=True, engines=["netlist", "ghdl", "ghdl_stream"]).ok
    need_tool("iverilog")
    for path in sorted((tmp_path / "d" / "verilog").glob("*_axis.v")):
        command = ["iverilog", "-g2005", "-Wall", "-o", "/dev/null", path, opened.path("verilog")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0 and not done.stderr, done.stderr
