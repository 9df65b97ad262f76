"""Tests models with names that occur within their own files: every such name is avoided, in every language."""

from __future__ import annotations

import ast
import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from needs import ap_headers
from thinned import only

from forestc.backends import project
from forestc.backends.amaranth import core as amaranth
from forestc.backends.c import header as c
from forestc.backends.hls import core as hls
from forestc.backends.names import RESERVED, identifier
from forestc.backends.stream import axi_stream
from forestc.backends.stream.axi_stream import StreamOptions
from forestc.backends.table import CORES
from forestc.backends.verilog import core as verilog
from forestc.errors import OptionError
from forestc.forest.text import parse_forest
from forestc.lowering.trees import LoweringOptions, lower
from forestc.toolchain.compilers import STRICT, c_compiler, cxx_compiler
from forestc.toolchain.verilator import find_verilator

SMALL = parse_forest((Path(__file__).parents[1] / "cases" / "small.forest").read_text())
NEUTRAL = "zebra"
NAMES = """
    x y clk in_valid out_valid unused n12 c3 r4 sum5 x0 x0_name aclk s_axis_tdata dut core compare x_held
    forestc_registered
    TOP Vtop main int module X Clk std stdint string print self signed convert data None match ap_int zebra
    """.split()  # noqa: SIM905


def designs(name):
    """Yields designs of a model of this name, with latencies and wrappers that write different files."""
    streams = [StreamOptions(), StreamOptions(8, 2, True), StreamOptions(1024, 1, True), StreamOptions(align=8)]
    for latency, stream in zip((0, 3, 3, 3), streams, strict=True):
        forest = replace(SMALL, name=name)
        yield forest, lower(forest, LoweringOptions(latency=latency, outputs="both")), stream


def verilog_files(forest, netlist, stream):
    """Returns the Verilog files by name."""
    files = verilog.emit(netlist)
    files |= dict(axi_stream.emit(forest, netlist, stream, "0" * 64, CORES["verilog"]).values())
    files |= dict(project.emit(netlist, {"core": "core.v"}, CORES["verilog"]).values())
    return {path: text for path, text in files.items() if path.endswith(".v")}


def words_of(text, comment):
    """Returns every word of a file, without comments and strings."""
    return set(re.findall(r"(?<![\w$'`])[A-Za-z]\w*", re.sub(rf'(?s:/\*.*?\*/)|{comment}[^\n]*|"[^"\n]*"', " ", text)))


def test_no_model_is_called_as_what_its_modules_hold():
    words = {word for design in designs(NEUTRAL) for text in verilog_files(*design).values()
             for word in words_of(text, "//") if not word.startswith(NEUTRAL)}  # fmt: skip
    assert {"x", "clk", "unused", "in_valid", "x_held", "expected"} <= words
    names = words.union(NAMES[: NAMES.index("TOP")])
    assert not [name for name in names if identifier(name) == name and name not in RESERVED]


def verilog_is_clean(names, tool, folder):
    found = find_verilator()
    environment = {**os.environ, **({"VERILATOR_ROOT": str(found.root)} if found else {})}
    for place in (0, 1):
        texts, tops = {}, []
        for name in names:
            made = verilog_files(*list(designs(name))[place])
            texts |= dict.fromkeys(made.values())
            tops.append(identifier(name))
        (folder / "all.v").write_text("\n".join(texts))
        if tool == "iverilog":
            ends = ("_tb", "_axis", "_registered")
            roots = [option for top in sorted(set(tops)) for end in ends for option in ("-s", top + end)]
            command = ["iverilog", "-g2005", "-Wall", "-o", os.devnull, *roots, "all.v"]
        else:
            quiet = ["-Wno-MULTITOP", "--timing"]
            command = [found.binary, "--lint-only", "--language", "1364-2005", *quiet, "all.v"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 0 and not done.stderr, done.stderr[:2000]


@pytest.mark.parametrize("tool", only(["iverilog", "verilator"], 0))
def test_verilog_of_any_name_is_clean(tool, tmp_path, need_tool):
    need_tool(tool)
    verilog_is_clean(NAMES, tool, tmp_path)


def test_amaranth_modules_of_any_name_run():
    nodes = []
    for _, netlist, _ in designs(NEUTRAL):
        nodes += ast.walk(ast.parse(next(iter(amaranth.emit(netlist).values()))))
    own = {node.id for node in nodes if isinstance(node, ast.Name)}
    own |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    own |= {node.name for node in nodes if isinstance(node, ast.alias | ast.FunctionDef)}
    own -= {NEUTRAL, f"{NEUTRAL}Stream"}
    assert {"Signal", "m", "sys"} <= own
    for name in own:
        _, netlist, _ = next(designs(name))
        assert not {amaranth.core_name(netlist), f"{amaranth.core_name(netlist)}Stream"} & own
    for name in ("x", "print", "self", "None", "Signal", "unused", "sys"):
        assert amaranth.module(next(designs(name))[1]).LATENCY == 0


def test_hls_of_any_name_compiles(tmp_path):
    sources = []
    for name in {identifier(name).upper(): name for name in NAMES}.values():
        files = hls.emit(*next(designs(name))[:2])
        for path, text in files.items():
            (tmp_path / path).write_text(text)
        sources.append(next(path for path in files if path.endswith("_hls.cpp")))
    (tmp_path / "main.cpp").write_text("".join(f'#include "{source}"\n' for source in sorted(set(sources))))
    flags = ["-std=c++14", "-Wno-unknown-pragmas", "-fsyntax-only", "-isystem", ap_headers()]
    assert subprocess.run([cxx_compiler(), *flags, "main.cpp"], cwd=tmp_path, check=False).returncode == 0


def test_headers_of_any_name_compile(tmp_path):
    headers, includes = tmp_path / "headers", ["assert", "errno", "math", "stdint", "stdio", "string", "time"]
    headers.mkdir()
    stems = set()
    for name in [*NAMES, *includes, "complex", "limits"]:
        for inputs in ("words", "struct", "float"):
            forest = replace(SMALL, name=f"{name}{inputs}" if name == NEUTRAL else name)
            try:
                ((path, text),) = c.emit(forest, c.COptions(c_inputs=inputs)).items()
            except OptionError:
                continue
            (headers / path).write_text(text)
            stems.add(path)
    lines = [f"#include <{stem}.h>\n" for stem in includes] + [f'#include "{stem}"\n' for stem in sorted(stems)]
    for compiler, standard, end in ((c_compiler(), "-std=c99", "c"), (cxx_compiler(), "-std=c++14", "cpp")):
        main = tmp_path / f"main.{end}"
        main.write_text("".join(lines) + "int main(void) { return 0; }\n")
        flags = [flag for flag in STRICT if not flag.startswith("-std")]
        command = [compiler, standard, *flags, f"-I{headers}", "-fsyntax-only", str(main)]
        assert subprocess.run(command, check=False).returncode == 0
