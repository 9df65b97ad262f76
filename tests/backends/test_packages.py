"""Tests the packages of a core: the packers of four languages turn the same random rows into the same bits."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from random_forests import random_forest
from vhdl_tools import STANDARDS, analyzed, ghdl, run_bench

from forestc.backends import packages
from forestc.backends.ports import input_fields, output_fields, pack, packed_bytes, width_of
from forestc.backends.stream import quantizer
from forestc.backends.stream.lanes import layout_of
from forestc.backends.table import PACKAGES
from forestc.backends.vectors import expected, random_words
from forestc.backends.verilog import core as verilog
from forestc.backends.vhdl import core as vhdl
from forestc.lowering.trees import LoweringOptions, lower
from forestc.toolchain.run import run_tool
from forestc.toolchain.verilator import find_verilator

SEEDS = (5, 12)
READ = """
library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;
use std.textio.all;
use work.{module}_pkg.all;

entity rows is
end entity;

architecture test of rows is
    function bits(word : std_logic_vector) return string is
        variable text : string(1 to word'length);
        variable last : natural := 0;
    begin
        for place in word'range loop
            last := last + 1;
            text(last) := std_logic'image(word(place))(2);
        end loop;
        return text;
    end function;
begin
    process
        file given : text open read_mode is "bits.txt";
        variable rest : line;
        variable digit : character;
        variable x : std_logic_vector({x_bits} - 1 downto 0);
        variable row : {module}_row;
    begin
        while not endfile(given) loop
            readline(given, rest);
            for place in x'range loop
                read(rest, digit);
                x(place) := '0';
                if digit = '1' then
                    x(place) := '1';
                end if;
            end loop;
            row := unpack(x);
            assert pack(row) = x report "pack and unpack differ" severity failure;
            {writes}
            writeline(output, rest);
        end loop;
        wait;
    end process;
end architecture;
"""
SV = """
module rows;
    import {module}_pkg::*;
    reg [{x_bits} - 1:0] x;
    {module}_row row;
    integer file, read;
    initial begin
        file = $fopen("bits.txt", "r");
        read = $fscanf(file, "%b\\n", x);
        while (read == 1) begin
            row = x;
            $display("{format}", {fields});
            read = $fscanf(file, "%b\\n", x);
        end
        $finish;
    end
endmodule
"""


def design(seed, latency=0, name=None):
    forest = random_forest(seed, True)
    forest = replace(forest, name=name or forest.name)
    outputs = "both" if forest.decides else "scores"
    return forest, lower(forest, LoweringOptions(latency=latency, outputs=outputs))


def files_of(netlist, folder):
    """Writes the packages; returns their paths by role."""
    files = packages.emit(netlist)
    assert files == packages.emit(netlist) and tuple(files) == PACKAGES
    for path, text in files.values():
        (folder / path).write_text(text)
    return {role: path for role, (path, _) in files.items()}


@pytest.mark.parametrize("seed", SEEDS)
def test_four_languages_pack_the_same_bits(seed, tmp_path, need_tool):
    need_tool("ghdl")
    need_tool("iverilog")
    forest, netlist = design(seed)
    fields = input_fields(netlist)
    words = random_words(forest, np.zeros((1, len(fields)), dtype=np.int64), 200, np.random.default_rng(seed))
    numbers, width = pack(fields, words), width_of(fields)
    (tmp_path / "bits.txt").write_text("".join(f"{x:0{width}b}\n" for x in numbers))
    lanes = packed_bytes(fields, words).astype("<u4").tobytes()  # C++ passes these words to Verilator.
    size = len(lanes) // len(words)
    assert [int.from_bytes(lanes[at : at + size], "little") for at in range(0, len(lanes), size)] == numbers
    space: dict = {}
    exec(quantizer.emit(forest, netlist, layout_of(fields, 0), layout_of(output_fields(netlist), 0)), space)
    assert [space["pack"](row) for row in words.tolist()] == numbers

    files, module = files_of(netlist, tmp_path), netlist.name
    wanted = [
        [format(word & ((1 << f.word.width) - 1), f"0{f.word.width}b") for word, f in zip(row, fields, strict=True)]
        for row in words.tolist()
    ]
    read = (
        f"'0' & row.{f.identifier}" if f.word.width == 1 else f"std_logic_vector(row.{f.identifier})" for f in fields
    )
    writes = "\n            ".join(f"write(rest, bits({word}) & ' ');" for word in read)
    (tmp_path / "rows.vhd").write_text(READ.format(module=module, x_bits=width, writes=writes))
    for standard in STANDARDS:
        analyzed(tmp_path, [files["vhdl_package"], "rows.vhd"], standard)
        said = run_bench(tmp_path, "rows", standard).split("\n")[: len(words)]
        assert [line.split() for line in said] == [["0" * (len(w) == 1) + w for w in row] for row in wanted]

    names = ", ".join(f"row.{f.identifier}" for f in fields)
    text = SV.format(module=module, x_bits=width, format=" ".join(["%b"] * len(fields)), fields=names)
    (tmp_path / "rows.sv").write_text(text)
    subprocess.run(["iverilog", "-g2012", "-o", "rows.vvp", files["sv_package"], "rows.sv"], cwd=tmp_path, check=True)
    done = subprocess.run(["vvp", "-n", "rows.vvp"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert [line.split() for line in done.stdout.splitlines()[: len(words)]] == wanted


@pytest.mark.parametrize("latency", [0, 2])
@pytest.mark.parametrize("name", ["m", "signal", 'x"; --'])
def test_templates_make_a_design_that_runs(latency, name, tmp_path, need_tool):
    need_tool("ghdl")
    need_tool("verilator")
    _, netlist = design(5, latency, name)
    files, (core, text) = files_of(netlist, tmp_path), next(iter(vhdl.emit(netlist).items()))
    (tmp_path / core).write_text(text)
    head, declarations, body = (tmp_path / files["vhdl_instance"]).read_text().split("-- In ")
    body, declarations = body.split("\n", 1)[1], declarations.split("\n", 1)[1]
    around = f"{head}\nentity around is\nend entity;\n\narchitecture rtl of around is\n{declarations}begin\n{body}"
    (tmp_path / "around.vhd").write_text(f"{around}end architecture;\n")
    for standard in STANDARDS:
        # Other than synthesizers and VHDL-2002, VHDL-93 binds no component by its name alone.
        analyzed(tmp_path, [core, files["vhdl_package"], "around.vhd"], standard, "--syn-binding")
        ghdl(tmp_path, "-e", f"--std={standard}", "--syn-binding", "around")
    core, text = next(iter(verilog.emit(netlist).items()))
    (tmp_path / core).write_text(text)
    template = (tmp_path / files["verilog_instance"]).read_text()
    (tmp_path / "around.sv").write_text(f"module around;\n{template}endmodule\n")
    verilator = find_verilator()
    assert verilator is not None
    lint = [verilator.binary, "--lint-only", "--top-module", "around", files["sv_package"], core, "around.sv"]
    run_tool(lint, tmp_path, env={**os.environ, "VERILATOR_ROOT": str(verilator.root)})


def test_results_are_unpacked_by_their_offsets():
    forest, netlist = design(5)
    words = random_words(forest, np.zeros((1, len(forest.features)), dtype=np.int64), 5, np.random.default_rng(0))
    fields = output_fields(netlist)
    text = packages.emit(netlist)["vhdl_package"][1]
    assert len(expected(forest, netlist, words)[0]) == len(fields)
    for field in fields:
        top = field.offset + field.word.width - 1
        place = f"y({top})" if field.word.width == 1 else f"y({top} downto {field.offset})"
        assert f"        {place} := " in text and f"result.y_{field.name} := " in text
