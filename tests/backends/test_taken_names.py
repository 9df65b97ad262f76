"""Tests names of models: one table lists the forbidden ones, and any other name of a model, a feature or a class passes
the tools of every language."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import replace

import pytest
from backends.test_own_names import NEUTRAL, SMALL, designs, verilog_files, verilog_is_clean, words_of
from needs import ap_headers
from vhdl_tools import STANDARDS, analyzed

from forestc.backends import packages, project
from forestc.backends.c import header as c
from forestc.backends.hls import core as hls
from forestc.backends.names import RESERVED, TAKEN, identifier
from forestc.backends.stream import axi_stream
from forestc.backends.table import CORES
from forestc.backends.vhdl import core as vhdl
from forestc.errors import OptionError
from forestc.lowering.trees import LoweringOptions, lower
from forestc.toolchain.compilers import STRICT, c_compiler, cxx_compiler

FEW = ["pack", "UNPACK", "Pack", "error", "shift_left", "maximum", "read_word", "row", "result", "fill", "test"]
ALL_TAKEN = frozenset().union(*TAKEN.values())

# This design uses the package and the component next to the standard packages.
USES = """library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;
use work.{name}_pkg.all;

entity {name}_around is
end entity;

architecture {name}_test of {name}_around is
    signal {name}_given : {name}_row;
    signal {name}_gives : {name}_result;
    signal x : std_logic_vector({x} downto 0);
    signal y : std_logic_vector({y} downto 0);
    signal clk, in_valid, out_valid : std_logic;
begin
    x <= pack({name}_given);
    {name}_gives <= unpack(y);
    {name}_core : {name} port map (clk => clk, in_valid => in_valid, out_valid => out_valid, x => x, y => y);
end architecture;
"""


def vhdl_files(forest, netlist, stream):
    """Returns the VHDL files by name, in the order of their use."""
    files = vhdl.emit(netlist) | dict([packages.emit(netlist)["vhdl_package"]])
    parts = axi_stream.emit(forest, netlist, stream, "0" * 64, CORES["vhdl"])
    roles = ("vhdl_axi_lite", "vhdl_axi_stream", "vhdl_stream_testbench")
    files |= dict(parts[role] for role in roles if role in parts)
    return files | dict([project.emit(netlist, {"core": "core.vhd"}, CORES["vhdl"])["vhdl_registered"]])


def c_files(forest):
    """Returns the headers of each form of inputs, by name."""
    files = {}
    for number, inputs in enumerate(("words", "struct", "float")):
        try:
            ((path, text),) = c.emit(forest, c.COptions(c_inputs=inputs)).items()
        except OptionError:
            continue
        files[f"{number}/{path}"] = text
    return files


def own_words():
    """Returns the words of the files of all languages that do not contain the model's name."""
    words = set()
    for forest, netlist, stream in designs(NEUTRAL):
        for text in verilog_files(forest, netlist, stream).values():
            words |= words_of(text, "//")
        for text in vhdl_files(forest, netlist, stream).values():
            words |= words_of(text, "--")
        for text in [*c_files(forest).values(), *hls.emit(forest, netlist).values()]:
            words |= words_of(text, "//")
    return sorted(word for word in words if not word.lower().startswith(NEUTRAL))


def test_names_beside_the_component_are_taken():
    """Covers the design units, and the declarations of a package, in every language that has one."""
    declared = set()
    for forest, netlist, stream in designs(NEUTRAL):
        for text in vhdl_files(forest, netlist, stream).values():
            declared |= set(re.findall(r"^(?:entity|package|package body) (\w+) is", text, re.M))
            head = re.search(r"^package \w+ is\n(.*?)^end package;", text, re.M | re.S)
            if head:
                pattern = r"^    (?:component|type|subtype|constant|function|procedure|signal) (\w+)"
                declared |= set(re.findall(pattern, head[1], re.M))
        declared |= set(re.findall(r"^package (\w+);|\} (\w+);", packages.emit(netlist)["sv_package"][1], re.M)[0])
    declared = {name for name in declared - {""} if not name.startswith(NEUTRAL)}
    assert {"pack", "unpack"} <= declared <= ALL_TAKEN


@pytest.mark.parametrize("kind", TAKEN)
def test_what_is_taken_gets_a_prefix_in_any_case(kind):
    for name in TAKEN[kind]:
        assert name == name.lower() or name in RESERVED
        for written in (name, name.upper(), name.capitalize()):
            made = identifier(written)
            assert made == f"m_{written}" and identifier(made) == made, written


def vhdl_analyzes(names, folder, standards):
    for name in sorted({identifier(name).lower(): name for name in names}.values()):
        forest = replace(SMALL, name=name)
        netlist = lower(forest, LoweringOptions(latency=3, outputs="both"))
        files = vhdl_files(forest, netlist, axi_stream.StreamOptions(8, 2, True))
        made, core = identifier(name), next(iter(files.values()))
        x, y = (re.search(rf"{port} std_logic_vector\((\d+) downto", core)[1] for port in ("x : in", "y : out"))
        files[f"{made}_around.vhd"] = USES.format(name=made, x=x, y=y)
        for path, text in files.items():
            (folder / path).write_text(text)
        for standard in standards:
            analyzed(
                folder, list(files), standard, "-Wno-hide", "-Wno-reserved", "-Wno-binding", "-Wno-default-binding"
            )


def test_vhdl_of_some_names(tmp_path, need_tool):
    need_tool("ghdl")
    vhdl_analyzes(FEW, tmp_path, STANDARDS)


def headers_compile(names, folder):
    """Compiles each header from its own folder, which compilers search before the folders of C's headers."""
    for name in names:
        for path, text in c_files(replace(SMALL, name=name)).items():
            place = folder / path
            place.parent.mkdir(exist_ok=True)
            for old in place.parent.iterdir():
                old.unlink()
            place.write_text(text)
            for compiler, standard, end in ((c_compiler(), "-std=c99", "c"), (cxx_compiler(), "-std=c++14", "cpp")):
                main = folder / f"main.{end}"
                main.write_text(f'#include <signal.h>\n#include "{place.name}"\n#include <string.h>\n')
                flags = [flag for flag in STRICT if not flag.startswith("-std")]
                command = [compiler, standard, "-D_GNU_SOURCE", *flags, f"-I{place.parent}", "-fsyntax-only", main]
                assert subprocess.run(command, check=False).returncode == 0, (name, path)


def test_headers_of_names_of_the_library(tmp_path):
    headers_compile(["features", "si", "Endian"], tmp_path)


def with_names(names):
    """Yields the small model with these names of its features and classes, a few at a time."""
    step = len(SMALL.features)
    for start in range(0, len(names), step):
        some = [names[(start + place) % len(names)] for place in range(99)]
        features = tuple(replace(feature, name=some[place]) for place, feature in enumerate(SMALL.features))
        classes = tuple(f"{name}{place}" for place, name in enumerate(some[: len(SMALL.classes)]))
        yield replace(SMALL, name=f"{NEUTRAL}{start}", features=features, classes=classes)


def features_pass(names, folder):
    texts = []
    for forest in with_names(names):
        netlist = lower(forest, LoweringOptions(latency=2, outputs="both"))
        stream = axi_stream.StreamOptions(8, 2, True)
        files = vhdl_files(forest, netlist, stream)
        for path, text in files.items():
            (folder / path).write_text(text)
        analyzed(folder, list(files), "08", "-Wno-hide")
        texts += verilog_files(forest, netlist, stream).values()
        texts.append(packages.emit(netlist)["sv_package"][1])
        headers = c_files(forest)
        for path, text in headers.items():
            (folder / path.replace("/", "_")).write_text(text)
            command = [cxx_compiler(), "-std=c++14", "-fsyntax-only", "-x", "c++", path.replace("/", "_")]
            assert subprocess.run(command, cwd=folder, check=False).returncode == 0, path
        for path, text in hls.emit(forest, netlist).items():
            (folder / path).write_text(text)
        command = [cxx_compiler(), "-std=c++14", "-fsyntax-only", "-Wno-unknown-pragmas", "-isystem", ap_headers()]
        source = f"{identifier(forest.name)}_hls.cpp"
        assert subprocess.run([*command, source], cwd=folder, check=False).returncode == 0, source
    (folder / "all.sv").write_text("\n".join(dict.fromkeys(texts)))
    command = ["iverilog", "-g2012", "-Wall", "-o", os.devnull, "all.sv"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "error" not in done.stderr, done.stderr[:2000]


def test_features_and_classes_of_some_names(tmp_path, need_tool):
    need_tool("ghdl")
    need_tool("iverilog")
    features_pass(["pack", "Signal", "class"], tmp_path)


@pytest.mark.long
def test_vhdl_of_every_name(tmp_path, need_tool):
    need_tool("ghdl")
    vhdl_analyzes([*own_words(), *ALL_TAKEN], tmp_path, ("93", "08"))


@pytest.mark.long
def test_verilog_of_every_name(tmp_path, need_tool):
    need_tool("iverilog")
    names = {identifier(name): name for name in [*own_words(), *ALL_TAKEN]}
    for name in names.values():
        verilog_is_clean([name], "iverilog", tmp_path)


@pytest.mark.long
def test_headers_of_every_name(tmp_path):
    names = {identifier(name).lower(): name for name in [*own_words(), *ALL_TAKEN]}
    headers_compile(names.values(), tmp_path)


@pytest.mark.long
def test_features_and_classes_of_every_name(tmp_path, need_tool):
    need_tool("ghdl")
    need_tool("iverilog")
    features_pass([*own_words(), *sorted(ALL_TAKEN)], tmp_path)
