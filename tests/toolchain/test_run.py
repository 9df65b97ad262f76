"""Tests running of tools: a tool has succeeded if it wrote its files and its exit status says so; it cannot command the
terminal."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeClassifier

import forestc
from forestc.backends import hdl
from forestc.backends.engine.image_reader import EngineShape
from forestc.backends.running import bench_difference, rows_of_numbers
from forestc.backends.verilog import core as verilog
from forestc.checks.proof import ProofPart, prove_verilog
from forestc.checks.proof.step import prove_step
from forestc.commands.check import check
from forestc.commands.measure import measure
from forestc.costs.devices import LUT6
from forestc.engine.capacity import Capacity
from forestc.engine.folder import described
from forestc.engine.verilog import emit
from forestc.errors import CheckError, ToolError, printable
from forestc.forest.text import parse_forest
from forestc.lowering.trees import LoweringOptions, lower
from forestc.toolchain.compilers import version
from forestc.toolchain.nextpnr import place
from forestc.toolchain.run import run_tool
from forestc.toolchain.vendor import run_vendor
from forestc.toolchain.yosys import synthesize

SMALL = parse_forest((Path(__file__).parents[1] / "cases" / "small.forest").read_text())
SILENT = "#!/bin/sh\nexit 0\n"


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Puts a script in a tool's place; returns a function from (name, script) to its path."""
    folder = tmp_path / "tools"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("FORESTC_CACHE", "")

    def put(name, script=SILENT):
        (folder / name).write_text(script)
        (folder / name).chmod(0o755)
        return str(folder / name)

    return put


def test_a_program_must_write_what_is_asked(tmp_path, program):
    (tmp_path / "out").write_text("of an earlier run")
    with pytest.raises(ToolError, match="silent: ended with exit status 0 and did not write out"):
        run_tool([program("silent")], tmp_path, writes=["out"])
    assert not (tmp_path / "out").exists()
    with pytest.raises(ToolError, match="did not write out"):
        run_tool([program("empty", "#!/bin/sh\n: > out\n")], tmp_path, writes=["out"])
    with pytest.raises(ToolError, match="fails: ended with exit status 7: why"):
        run_tool([program("fails", "#!/bin/sh\necho x > out\necho why\nexit 7\n")], tmp_path, writes=["out"])
    run_tool([program("writes", "#!/bin/sh\necho x > out\n")], tmp_path, writes=["out"])
    with pytest.raises(ToolError, match=r"bad: can't be started \(Exec format error\)"):
        run_tool([program("bad", "\x7fELF")], tmp_path)


TERMINAL = (
    "\x1b[2J\x1b[31mred\x1b[0m \x1b]0;title\x07\x9b1mtext\x1bc\r\x08\x00\u202e \x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\"
)


def test_what_tools_print_commands_no_terminal(tmp_path, program):
    assert printable(TERMINAL) == "red text link" and printable("naïve\tné\n→") == "naïve\tné\n→"
    assert str(ToolError(TERMINAL, where=TERMINAL, do="read it")) == "red text link: red text link; read it"
    (tmp_path / "said").write_text(TERMINAL)
    says = program("says", f'#!/bin/sh\ncat "{tmp_path}/said"\nexit "${{1:-0}}"\n')
    with pytest.raises(ToolError, match=r"exit status 3: red text link; run"):
        run_tool([says, "3"], tmp_path)
    assert version(program("cc9", f'#!/bin/sh\ncat "{tmp_path}/said"\n')) == "red text link"
    with pytest.raises(ToolError, match=r"no verdicts: red text link; run"):
        bench_difference(TERMINAL.encode(), np.zeros((1, 1), dtype=np.int64))


@pytest.mark.parametrize(
    "out", [b"", b"PASS 2 vectors\n", b"PASS\n", b"PASS 3 vectors\nFAIL 0 wrong\n", b"FAIL\n", b"\xff"]
)
def test_a_bench_passes_with_one_verdict_on_all_vectors(out):
    expected = np.zeros((3, 1), dtype=np.int64)
    assert not bench_difference(b"note\nPASS 3 vectors\n", expected).count
    try:
        assert bench_difference(out, expected).count
    except ToolError:
        assert out in (b"", b"\xff") or b"FAIL 0" in out


def test_results_that_are_cut_are_refused():
    assert rows_of_numbers(bytes(24), "<i8", 3).shape == (1, 3)
    with pytest.raises(ToolError, match="ended within a row"):
        rows_of_numbers(bytes(23), "<i8", 3)


def writing_status(text):
    """Makes a yosys that writes a status and ends with 0."""
    return f"#!/bin/sh\nprintf '{text}' > status.txt\n"


FOUND = "Found 9 $equiv cells in equiv:\\n  Of those cells %s are proven and %s are unproven.\\n"
PROVED = "  Equivalence successfully proven!\\n"


LYING = [
    SILENT,
    "#!/bin/sh\necho Equivalence successfully proven!\n",
    writing_status(""),
    writing_status(FOUND % (9, 0)),
    writing_status(PROVED),
    writing_status(FOUND[9:] % (9, 0) + PROVED),
    writing_status(FOUND % (8, 1) + PROVED),
]


@pytest.mark.parametrize("script", LYING)
def test_a_yosys_that_did_nothing_proves_nothing(script, program):
    program("yosys", script)
    netlist = lower(SMALL, LoweringOptions())
    core = verilog.emit(netlist)[f"{hdl.module_name(netlist)}.v"].encode()
    with pytest.raises(ToolError, match="yosys could not compare"):
        prove_verilog(SMALL, netlist, core, native=True)


@pytest.mark.parametrize(
    "script", [SILENT, "#!/bin/sh\nprintf '{' > step.json\n", "#!/bin/sh\necho '[]' > step.json\n"]
)
def test_a_yosys_that_did_nothing_proves_no_step(script, program):
    program("yosys", script)
    small, part = Capacity(1, 16, 1, 2), ProofPart("step", 2)
    with pytest.raises(ToolError, match=r"did not write step.json|can't be read"):
        prove_step(EngineShape.of(described(small)), emit(small).encode(), small, part, native=True)
    assert part.proved == 0


def test_figures_of_an_earlier_synthesis_are_not_taken(tmp_path, program):
    for name in ("yosys", "nextpnr-ice40", "vivado", "quartus_sh"):
        program(name)
    (tmp_path / "m.v").write_text("module m; endmodule\n")
    (tmp_path / "m.stat.json").write_text('{"design": {"num_cells_by_type": {"LUT6": 1}}}')
    (tmp_path / "m.ltp.txt").write_text("Longest topological path in m (length=1)\n")
    with pytest.raises(ToolError, match=r"did not write m\.stat\.json"):
        synthesize([tmp_path / "m.v"], "m", LUT6.synthesis, native=True)
    (tmp_path / "m.json").write_text("{}")
    (tmp_path / "m.report.json").write_text('{"utilization": {"LC": {"used": 1, "available": 2}}, "fmax": {}}')
    with pytest.raises(ToolError, match=r"did not write m\.report\.json"):
        place(tmp_path / "m.json", "ice40", [], "LC", native=True)
    reports = tmp_path / "reports"
    reports.mkdir()
    for name in ("utilization.rpt", "m.map.rpt"):
        (reports / name).write_text("old")
    for tool, part, name in (("vivado", "xcku5p", "utilization.rpt"), ("quartus", "5C", "m.map.rpt")):
        with pytest.raises(ToolError, match=f"did not write reports/{name}"):
            run_vendor(tool, part, tmp_path / "script.tcl", "m_registered", period_ns=2.0)
        assert not (reports / name).exists()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    X, y = load_iris(return_X_y=True)
    model = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    out = tmp_path_factory.mktemp("silent") / "o"
    forestc.compile(model, X, out, label=y, targets="verilog,vhdl,c,hls", name="m", latency=1)
    return out, X


SILENT_TOOLS = {
    "icarus": ["iverilog"], "icarus ": ["vvp"], "ghdl": ["ghdl"], "c": ["cc"], "hls": ["c++"], "verilator": ["c++"],
    "nvc": ["nvc"],
}  # fmt: skip


@pytest.mark.parametrize("engine", SILENT_TOOLS)
def test_no_engine_agrees_by_a_tool_that_does_nothing(engine, folder, program, monkeypatch):
    for name in SILENT_TOOLS[engine]:
        path = program(name)
        monkeypatch.setenv({"cc": "CC", "c++": "CXX"}.get(name, "UNUSED"), path)
    out, X = folder
    with pytest.raises((ToolError, CheckError)):
        check(out, X[:20], random_rows=10, engines=[engine.strip()], record=False)


def test_no_firmware_is_measured_by_a_compiler_that_does_nothing(folder, program):
    program("arm-none-eabi-gcc")
    with pytest.raises(ToolError, match=r"arm-none-eabi-gcc: ended with exit status 0 and did not write"):
        measure(folder[0], cpu="cortex-m4", compiler="gcc")
    program(
        "arm-none-eabi-gcc",
        '#!/bin/sh\nwhile [ $# -gt 0 ]; do case "$1" in -c) echo y > "${2%.c}.su";; -o) echo x > "$2";; esac; '
        "shift; done; exit 0\n",
    )
    with pytest.raises(ToolError, match=r"the compiler's file can't be read"):
        measure(folder[0], cpu="cortex-m4", compiler="gcc")
