"""Tests the strict reader of the core's Verilog: it accepts the compiler's text, and nothing that tools read
differently."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from random import Random

import numpy as np
import pytest
from models import trained
from random_forests import random_forest, votes
from thinned import thinned

import forestc
from forestc.backends import hdl
from forestc.backends.ports import input_fields, output_fields, pack
from forestc.backends.vectors import expected, random_words
from forestc.backends.verilog import core as verilog
from forestc.checks.proof import prove_verilog
from forestc.checks.proof.core import run_core
from forestc.checks.proof.verilog_text import OutsideError, read_core
from forestc.lowering.trees import LoweringOptions, lower_with_witness
from forestc.netlist.builder import NetlistBuilder
from forestc.netlist.ir import WordType
from forestc.netlist.ports import Port
from forestc.toolchain import verilator
from forestc.toolchain.run import find, run_tool
from forestc.toolchain.yosys import run_yosys
from hdl_templates import render


def lowered(forest, latency):
    return lower_with_witness(forest, LoweringOptions(latency, "both" if forest.decides else "scores"))[0]


def core_of(forest, netlist):
    return verilog.emit(netlist)[f"{hdl.module_name(netlist)}.v"]


@cache
def example():
    model, X, y = trained("xgboost-binary")
    forest = forestc.quantize(model, X, y)
    netlist = lowered(forest, 2)
    return forest, netlist, core_of(forest, netlist)


@pytest.mark.parametrize("part", range(4))
def test_what_is_written_is_read_and_printed_with_its_meaning(part):
    """Reads the core of every kind of random forest: the netlist that was read gives the results of the forest."""
    for seed in range(part, 160, 4):
        forest = random_forest(seed, True)
        netlist = lowered(forest, seed % 4)
        core = read_core(core_of(forest, netlist).encode())
        random = np.random.default_rng(seed)
        words = random_words(forest, np.zeros((1, len(forest.features)), dtype=np.int64), 64, random)
        clocks = [words] * (netlist.latency + 1)
        driven = [{"in_valid": np.ones(64, dtype=np.uint64)}] * len(clocks)
        *_, (y, out_valid) = run_core(core, netlist, clocks, driven)
        wanted = pack(output_fields(netlist), expected(forest, netlist, words))
        got = [sum(int(lane) << 32 * place for place, lane in enumerate(row)) for row in y.tolist()]
        assert got == wanted and (out_valid == 1).all()
        assert len(re.findall("^(?:wire|reg) ", core.text(), re.MULTILINE)) == len(core.widths)


def test_hostile_names_are_read():
    for name in ("synthesis", "verilator", "translate_off", "`ifdef", "*/", "module", "a\nb", "endmodule", ""):
        forest = random_forest(3, True)
        features = [forest.features[0].__class__(f"{name} x", f.number, f.column, f.missing) for f in forest.features]
        forest = forestc.forest.builder.changed(forest, name=name, features=features)
        netlist = lowered(forest, 1)
        assert read_core(core_of(forest, netlist).encode()).name == hdl.module_name(netlist)


def test_small_sums_are_read_as_sums_and_must_hold_them():
    forest = votes(20)
    netlist = lowered(forest, 0)
    text = core_of(forest, netlist)
    words = np.array(list(np.ndindex(16, 16, 16, 16)), dtype=np.int64)[::7]
    *_, (y, _) = run_core(
        read_core(text.encode()), netlist, [words], [{"in_valid": np.ones(len(words), dtype=np.uint64)}]
    )
    wanted = pack(output_fields(netlist), expected(forest, netlist, words))
    assert [sum(int(lane) << 32 * place for place, lane in enumerate(row)) for row in y.tolist()] == wanted
    table, count = (
        line_of(text, pattern, Random(0)) for pattern in (r"SUM_1_1_1_1_1_1_BIT1 =", r"\{SUM_1_1_1_1_1_1_BIT2")
    )
    for line, other, why in (
        (table, re.sub(r"'h\w", "'h0", table), "the table does not hold bit 1"),
        (table, "", "no table for this small sum"),
        (table, table.replace("[63:0]", "[31:0]"), "no table of a small sum"),
        (table, table.replace("BIT1", "BIT2"), "the table does not hold bit 2"),
        (table, f"{table}\n{table}", "a second SUM_1_1_1_1_1_1_BIT1"),
        (count, count.replace("BIT1", "BIT0"), "no small sum"),
        (count, re.sub(r"\{n\d+, ", "{", count, count=1), "no small sum"),
        (count, count.replace("SUM_1_1_1_1_1_1_BIT2", "SUM_1_1_1_1_1_BIT2"), "no small sum"),
    ):
        assert why in outside(text.replace(f"{line}\n", f"{other}\n" if other else "", 1).encode()), other


def test_words_that_are_added_more_than_once_and_constants_are_in_the_tables():
    builder = NetlistBuilder("pair", "2 trees, 6 nodes")
    a, b = (builder.input(Port(f"x{index}", "word", index), WordType(2, False)) for index in range(2))
    total = builder.table([(a, 1), (b, 2), (builder.const(3, WordType(2, False)), 1)], 12)
    builder.output(Port("label", "label"), builder.less(total, 9))
    netlist = builder.build()
    text = verilog.emit(netlist)["pair.v"]
    assert "SUM_2_2x2_PLUS3_BIT3[{x1, x0}]" in text
    core = read_core(text.encode())
    words = np.array(list(np.ndindex(4, 4)), dtype=np.int64)
    *_, (y, _) = run_core(core, netlist, [words], [{"in_valid": np.ones(16, dtype=np.uint64)}])
    assert [int(row[0]) for row in y] == [int(p + 2 * q + 3 < 9) for p, q in words.tolist()]
    assert "the table does not hold bit 0" in outside(text.replace("PLUS3", "PLUS2").encode())


def test_no_bit_is_selected_of_a_net_without_a_range():
    """`n7[0]` of a net of one bit is illegal, and Verilator refuses it."""
    _, _, text = example()
    line = line_of(text, r"^    wire n\d+ = ", Random(0))
    name = name_in(line)
    assert read_core(after(text, line, f"    wire n9000 = ~{name};").encode()).wires["n9000"]
    for more in (
        f"    wire n9000 = ~{name}[0];",
        f"    wire [1:0] n9000 = {{{{1{{{name}[0]}}}}, {name}}} + 2'd1;",
        f"    wire unused = &{{1'b0, {name}[0:0]}};",
    ):
        assert f"{name} is a single bit" in outside(after(text, line, more).encode()), more


def line_of(text: str, pattern: str, random: Random) -> str:
    return random.choice([line for line in text.split("\n") if re.search(pattern, line)])


def before(text: str, line: str, more: str) -> str:
    return text.replace(f"{line}\n", f"{more}\n{line}\n", 1)


def after(text: str, line: str, more: str) -> str:
    return text.replace(f"{line}\n", f"{line}\n{more}\n", 1)


MUX, UPDATE, RESET, WIRE = r"= \w+ \? ", r" <= ", r" = \d+'d0;$", r"^    wire "


def wrong(line: str) -> str:
    """Exchanges the arms of the mux in a line."""
    return re.sub(r"\? (\S+) : (\S+);", r"? \2 : \1;", line)


def name_in(line: str) -> str:
    return re.search(r"(\w+) (?:=|<=) ", line)[1]


def register(text: str, random: Random) -> str:
    return name_in(line_of(text, UPDATE, random))


EDITS: dict[str, Callable[[str, Random], str]] = {
    # Some tools take comments such as these for commands, depending on their spaces.
    "translate_off after a tab": lambda t, r: after(
        t,
        line := line_of(t, UPDATE, r),
        f"        //\tsynthesis translate_off\n        {name_in(line)} <= 0;\n        //\tsynthesis translate_on",
    ),
    "translate_off": lambda t, r: after(
        t, line_of(t, WIRE, r), "// synopsys translate_off\nassign y = 0;\n// synopsys translate_on"
    ),
    "pragma": lambda t, r: before(t, line_of(t, WIRE, r), "    // pragma translate_off"),
    "verilator command": lambda t, r: before(t, line_of(t, WIRE, r), "    /*verilator public_flat_rw*/"),
    "command behind a wire": lambda t, r: t.replace(
        line := line_of(t, MUX, r), f"{line}  // synthesis translate_off", 1
    ),
    "block comment": lambda t, r: t.replace(line := line_of(t, MUX, r), f"/* {line} */ {wrong(line)}", 1),
    "comment in an expression": lambda t, r: t.replace(line := line_of(t, MUX, r), line.replace("?", "/**/?"), 1),
    "full_case": lambda t, r: t.replace(line := line_of(t, MUX, r), f"{line} // synopsys full_case", 1),
    # Some tools take these characters for the end of a line, others drop them.
    "tab": lambda t, r: t.replace(line := line_of(t, MUX, r), line.replace(" ?", "\t?"), 1),
    "carriage return in a comment": lambda t, r: before(t, line := line_of(t, UPDATE, r), f"        // \r{line}"),
    "carriage return hides a line": lambda t, r: t.replace(line := line_of(t, UPDATE, r), f"        // \r{line}", 1),
    "carriage returns at all ends": lambda t, r: t.replace("\n", "\r\n"),
    "form feed": lambda t, r: before(t, line_of(t, WIRE, r), "    // \f assign y = 0;"),
    "vertical tab": lambda t, r: before(t, line_of(t, WIRE, r), "    // \v assign y = 0;"),
    "null byte": lambda t, r: t.replace(line := line_of(t, MUX, r), line.replace(";", ";\0"), 1),
    "unicode line end": lambda t, r: before(t, line_of(t, WIRE, r), "    // \u2028 assign y = 0;"),
    "unicode next line": lambda t, r: before(t, line_of(t, WIRE, r), "    // \x85 assign y = 0;"),
    "unicode digit": lambda t, r: t.replace("'d1", "'d\u0661", 1),
    "unicode name": lambda t, r: re.sub(r"\bn(\d+)\b", "\u043d\\1", t),
    "byte order mark": lambda t, r: "\ufeff" + t,
    "no last newline": lambda t, r: t[:-1],
    # macros
    "ifdef YOSYS": lambda t, r: t.replace(
        line := line_of(t, MUX, r), f"`ifdef YOSYS\n{line}\n`else\n{wrong(line)}\n`endif", 1
    ),
    "ifdef behind an escaped name": lambda t, r: t.replace(
        line := line_of(t, MUX, r),
        f"    wire \\q// ; `ifdef YOSYS\n{line}\n    wire \\r// ; `else\n{wrong(line)}\n    wire \\s// ; `endif",
        1,
    ),
    "define of a keyword": lambda t, r: t.replace("none\nmodule", "none\n`define posedge negedge\nmodule"),
    "line continuation in a macro": lambda t, r: before(
        t, line := line_of(t, MUX, r), f"`define N \\\n{line}\n    // x"
    ),
    "continuation of a comment": lambda t, r: before(t, line_of(t, MUX, r), "    // \\"),
    "include": lambda t, r: before(t, line_of(t, WIRE, r), '`include "other.v"'),
    "timescale": lambda t, r: "`timescale 1ns/1ps\n" + t,
    "celldefine": lambda t, r: t.replace("`default_nettype none", "`celldefine\n`default_nettype none"),
    "nettype wand": lambda t, r: t.replace("`default_nettype none", "`default_nettype wand"),
    "undefineall": lambda t, r: "`undefineall\n" + t,
    # attributes and parameters
    "attribute": lambda t, r: t.replace(line := line_of(t, WIRE, r), f"    (* keep *) {line.strip()}", 1),
    "init attribute": lambda t, r: re.sub(r"    reg ", "    (* init = 1 *) reg ", t, count=1),
    "blackbox attribute": lambda t, r: t.replace("module ", "(* blackbox *) module ", 1),
    "defparam": lambda t, r: before(t, line_of(t, WIRE, r), "    defparam a.b = 1;"),
    "parameter": lambda t, r: t.replace("'d1", "'d1 + P", 1).replace("module ", "module #(parameter P = 0) ", 1),
    # modules
    "second module of the name": lambda t, r: t + re.search(r"module .*endmodule\n", t, re.DOTALL)[0],
    "second module": lambda t, r: t + "module other; endmodule\n",
    "an instance of itself": lambda t, r: before(
        t, line_of(t, WIRE, r), f"    {re.search(r'module (.*) .$', t, re.MULTILINE)[1]} again ();"
    ),
    "an instance": lambda t, r: before(t, line_of(t, WIRE, r), "    unknown u (.a(y[0]));"),
    "a gate": lambda t, r: before(t, line_of(t, WIRE, r), "    not (y[0], x[0]);"),
    "ports in another order": lambda t, r: t.replace(
        "    input  wire clk,\n    input  wire in_valid,", "    input  wire in_valid,\n    input  wire clk,"
    ),
    "x and y in another order": lambda t, r: re.sub(r"(    input .* x),\n(    output .* y)\n", r"\2,\n\1\n", t),
    "signed port": lambda t, r: t.replace("input  wire [", "input  wire signed [", 1),
    "a port more": lambda t, r: t.replace("    input  wire clk,", "    input  wire clk,\n    input  wire more,"),
    "ascending range": lambda t, r: re.sub(r"input  wire \[(\d+):0\] x", r"input  wire [0:\1] x", t),
    # processes
    "blocking assignment in a block of its own": lambda t, r: t.replace(
        f"{(line := line_of(t, UPDATE, r))}\n", "", 1
    ).replace(
        "    always @(posedge clk) begin",
        f"    always @(posedge clk) {line.strip().replace('<=', '=')}\n    always @(posedge clk) begin",
    ),
    "blocking assignment": lambda t, r: t.replace(line := line_of(t, UPDATE, r), line.replace("<=", "="), 1),
    "a second update": lambda t, r: after(t, line := line_of(t, UPDATE, r), line),
    "a later update to itself": lambda t, r: after(
        t, line := line_of(t, UPDATE, r), f"        {name_in(line)} <= {name_in(line)};"
    ),
    "no update": lambda t, r: t.replace(f"{line_of(t, UPDATE, r)}\n", "", 1),
    "negedge": lambda t, r: t.replace("posedge clk", "negedge clk"),
    "both edges": lambda t, r: t.replace("@(posedge clk)", "@(posedge clk or negedge clk)"),
    "another clock": lambda t, r: t.replace("posedge clk", "posedge in_valid"),
    "an asynchronous reset": lambda t, r: t.replace("@(posedge clk)", "@(posedge clk or posedge in_valid)"),
    "no initial value": lambda t, r: t.replace(f"{line_of(t, RESET, r)}\n", "", 1),
    "an initial 1": lambda t, r: t.replace(line := line_of(t, RESET, r), line.replace("'d0", "'d1"), 1),
    "an unknown initial value": lambda t, r: t.replace(line := line_of(t, RESET, r), line.replace("'d0", "'bx"), 1),
    "a second initial": lambda t, r: before(t, "endmodule", f"    initial {register(t, r)} = 1;"),
    "initstate": lambda t, r: t.replace(line := line_of(t, UPDATE, r), line.replace("<= ", "<= $initstate ? 1 : "), 1),
    "a delay": lambda t, r: t.replace(line := line_of(t, UPDATE, r), line.replace("<= ", "<= #7 "), 1),
    "a latch": lambda t, r: before(t, "endmodule", f"    always @* if (in_valid) {register(t, r)} = 0;"),
    "a latch of its own": lambda t, r: before(t, "endmodule", "    reg l; always @(clk) if (clk) l = x[0];"),
    "force": lambda t, r: before(t, "endmodule", f"    initial force {register(t, r)} = 0;"),
    "an enable": lambda t, r: t.replace(line := line_of(t, UPDATE, r), f"        if (in_valid) {line.strip()}", 1),
    # drivers and loops
    "a second driver of y": lambda t, r: before(t, "endmodule", "    assign y[0] = x[0];"),
    "a driven input": lambda t, r: before(t, "endmodule", "    assign x[0] = x[1];"),
    "a second wire of a name": lambda t, r: after(t, line := line_of(t, MUX, r), line),
    "a second driver of a wire": lambda t, r: after(
        t, line := line_of(t, MUX, r), f"    assign {name_in(line)} = 0;"
    ),
    "a net that reads itself": lambda t, r: t.replace(
        line := line_of(t, MUX, r),
        re.sub(r"(n\d+) = (\w+) \?", r"\1 = (\1 == \1) & \2 ?", line),
        1,
    ),
    "a loop of one": lambda t, r: t.replace(
        line := line_of(t, MUX, r), re.sub(r"(\w+) = (\w+) \? \S+ :", r"\1 = \2 ? \1 :", line), 1
    ),
    "a loop of two": lambda t, r: before(t, line_of(t, WIRE, r), "    wire n9001 = ~n9002;\n    wire n9002 = ~n9001;"),
    "a wire below its reader": lambda t, r: (
        t.replace(f"{(line := line_of(t, MUX, r))}\n", "", 1).replace("\n\n    initial", f"\n{line}\n\n    initial", 1)
    ),
    "an open wire": lambda t, r: t.replace(line := line_of(t, MUX, r), line.split(" =")[0] + ";", 1),
    # words
    "generate": lambda t, r: before(t, line_of(t, WIRE, r), "    generate endgenerate"),
    "a function": lambda t, r: before(t, line_of(t, WIRE, r), "    function f; input a; f = a; endfunction"),
    "case of keywords": lambda t, r: t.replace(line := line_of(t, WIRE, r), line.replace("wire", "WIRE"), 1),
    "wand": lambda t, r: t.replace(line := line_of(t, WIRE, r), line.replace("wire", "wand"), 1),
    "signed wire": lambda t, r: t.replace(line := line_of(t, MUX, r), line.replace("wire ", "wire signed "), 1),
    "an escaped name": lambda t, r: re.sub(r"\bn(\d+)\b", r"\\n\1 ", t),
    "a keyword as a name": lambda t, r: re.sub(rf"\b{name_in(line_of(t, MUX, r))}\b", "logic", t),
    "unknown digits": lambda t, r: re.sub(r"(\d+)'d\d+(?= [:;])", r"\1'bx", t, count=1),
    "a literal that does not fit": lambda t, r: re.sub(r"2'd[0-3]", "2'd9", t, count=1),
    "an unsized literal": lambda t, r: re.sub(r"\? (\d+)'d(\d+)", r"? \2", t, count=1),
    "a narrower wire": lambda t, r: re.sub(r"wire \[1:0\] n", "wire n", t, count=1),
    "a wider wire": lambda t, r: re.sub(r"wire \[1:0\] n", "wire [2:0] n", t, count=1),
    "ones in front of a word": lambda t, r: re.sub(r"\{(\d+)'d0, ", r"{\1'd1, ", t, count=1),
    "a bit outside": lambda t, r: re.sub(r"(~x\w+)\[\d+\]", r"\1[99]", t, count=1),
    "case equality": lambda t, r: t.replace(
        line := line_of(t, MUX, r), re.sub(r"= (\w+) \?", r"= (\1 === 1'b1) ?", line), 1
    ),
    "xor": lambda t, r: t.replace(line := line_of(t, UPDATE, r), line.replace(";", " ^ 1'b1;"), 1),
    "more than one statement": lambda t, r: t.replace(line := line_of(t, MUX, r), f"{line} wire n9000 = x[0];", 1),
    "system task": lambda t, r: before(t, "endmodule", "    initial $finish;"),
    "random": lambda t, r: t.replace(line := line_of(t, MUX, r), re.sub(r"= (\w+) \?", "= $random ?", line), 1),
}  # fmt: skip
HARMLESS = {  # lists edits without an effect on the meaning
    "a note's number": lambda t, r: re.sub(r"tree 0, node \d+", "tree 0, node 7", t),
    "a blank comment": lambda t, r: "//\n" + t,
}


def outside(data: bytes) -> str:
    try:
        read_core(data)
    except OutsideError as error:
        return str(error)
    return ""


def test_none_of_more_than_200_edits_that_tools_read_differently_is_proved():
    """Makes each kind of edit at three positions. None of the texts reads as a core, so no tool is asked about them."""
    _, _, text = example()
    tried = 0
    for kind, edit in EDITS.items():
        for seed in range(3):
            other = edit(text, Random(seed))
            assert other != text, kind
            tried += 1
            output = outside(other.encode("utf-8"))
            assert re.match(r"line \d+ is outside the Verilog that the proof reads \(", output), (kind, seed)
    assert tried >= 200


def test_an_edit_outside_of_what_is_read_is_neither_proved_nor_refuted():
    forest, netlist, text = example()
    line = line_of(text, UPDATE, Random(0))
    other = after(text, line, f"        //\tsynthesis translate_off\n        {name_in(line)} <= 0;")
    proof = prove_verilog(forest, netlist, other.encode())
    number = text.split("\n").index(line) + 2
    assert (
        proof.verdict == "undecided"
        and f"line {number} is outside the Verilog that the proof reads" in proof.parts[0].why
    )
    renamed = re.sub(r"\bmodule \w+", "module other", text)
    assert prove_verilog(forest, netlist, renamed.encode()).verdict == "undecided"


@pytest.mark.parametrize("kind", thinned(list(HARMLESS), keep=1))
def test_what_is_proved_all_three_tools_read_alike(kind, need_tool, tmp_path):
    need_tool("iverilog")
    need_tool("verilator")
    forest, netlist, text = example()
    other = HARMLESS[kind](text, Random(0))
    assert other != text and prove_verilog(forest, netlist, other.encode()).proved
    random = np.random.default_rng(0)
    words = random_words(forest, np.zeros((1, len(forest.features)), dtype=np.int64), 2000, random)
    lines = hdl.vector_lines(
        input_fields(netlist),
        output_fields(netlist),
        pack(input_fields(netlist), words),
        pack(output_fields(netlist), expected(forest, netlist, words)),
    )
    top = hdl.module_name(netlist)
    bench = verilog.emit(netlist)[f"{top}_tb.v"]
    (tmp_path / "core.v").write_text(other)
    run_yosys("read_verilog core.v\nproc\nwrite_verilog -noattr printed.v", tmp_path, writes=["printed.v"])
    (tmp_path / "bench.v").write_text(bench)
    (tmp_path / "vectors.txt").write_text(lines)
    for source in ("core.v", "printed.v"):
        run_tool([find("iverilog"), "-g2005", "-o", "bench.vvp", source, "bench.v"], tmp_path)
        assert run_tool([find("vvp"), "-n", "bench.vvp"], tmp_path).decode().startswith("PASS 2000")
    tool = verilator.find_verilator()
    assert tool is not None
    main = render(
        "check/verilator_main.cpp.j2",
        x_lanes=-(-sum(f.word.width for f in input_fields(netlist)) // 32),
        y_lanes=1,
        latency=netlist.latency,
        clocking=netlist.clocking,
    )
    program = verilator.build(tool, ["core.v"], top, main, tmp_path)
    data = forestc.backends.ports.packed_bytes(input_fields(netlist), words).astype("<u4").tobytes()
    out = np.frombuffer(run_tool([str(program)], tmp_path, data=data), dtype="<u4")
    assert out.tolist() == pack(output_fields(netlist), expected(forest, netlist, words))
