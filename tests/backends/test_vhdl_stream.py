"""Tests the stream wrapper and the registers in VHDL: proved equal to the Verilog, under their own test bench in each
standard, and under the cocotb bench, which sees the same at each clock in both languages."""

from __future__ import annotations

import pytest
from backends.test_axi_stream import DESIGNS, FOREST, VECTORS, bench, written
from models import trained
from sklearn.datasets import load_iris
from sklearn.ensemble import GradientBoostingClassifier
from thinned import only, thinned
from tools_of_fusesoc import fusesoc
from vhdl_tools import STANDARDS, analyzed, nvc_calls, run_bench, wrappers_differ

import forestc
from forestc.backends.stream import axi_stream
from forestc.backends.stream.axi_stream import StreamOptions
from forestc.backends.table import CORES, opened
from forestc.backends.verilog import core as verilog
from forestc.backends.vhdl import core as vhdl
from forestc.commands.check import check
from forestc.lowering.trees import LoweringOptions, lower

MOST_VECTORS = 600


def texts(latency, outputs, options):
    """Returns the netlist, the Verilog files and the VHDL files of a design, each by path in the order of their use."""
    netlist = lower(FOREST, LoweringOptions(latency=latency, outputs=outputs))
    files: list[dict[str, str]] = []
    for core, language in ((verilog.emit(netlist), "verilog"), (vhdl.emit(netlist), "vhdl")):
        parts = axi_stream.emit(FOREST, netlist, options, "ab" * 32, CORES[language])
        prefix = "" if language == "verilog" else "vhdl_"
        used = [parts[prefix + role] for role in ("axi_lite", "axi_stream") if prefix + role in parts]
        files.append(dict([next(iter(core.items())), *used]))
    return netlist, *files


def benched(folder, latency, outputs, options, standard="93", change=lambda text: text):
    """Runs the test bench in VHDL; returns its output. change: edits the wrapper's text."""
    netlist, _ = written(folder, latency, outputs, options, MOST_VECTORS)
    _, _, files = texts(latency, outputs, options)
    parts = axi_stream.emit(FOREST, netlist, options, "ab" * 32, CORES["vhdl"])
    files |= dict([parts["vhdl_stream_testbench"]])
    for path, text in files.items():
        (folder / path).write_text(change(text) if path == "random5_axis.vhd" else text)
    analyzed(folder, [*files], standard)
    return run_bench(folder, "random5_axis_tb", standard)


@pytest.mark.parametrize(("latency", "outputs", "options"), thinned(DESIGNS, keep=4))
def test_no_row_is_lost_in_vhdl(latency, outputs, options, tmp_path, need_tool):
    need_tool("ghdl")
    for standard in STANDARDS:
        said = benched(tmp_path, latency, outputs, options, standard)
        assert said.startswith(f"PASS {MOST_VECTORS} vectors, of {MOST_VECTORS} sent; 0 wrong, 0 unstable, "), said
    short = " 0 short rows" not in said
    assert short == (axi_stream.stream_of(texts(latency, outputs, options)[0], options).beats > 1)
    assert "stalls 0 in" not in said and " 0 out" not in said


@pytest.mark.parametrize(("latency", "outputs", "options"), only(DESIGNS, 4))
def test_the_wrapper_is_that_in_verilog_clock_by_clock(latency, outputs, options, need_tool):
    need_tool("ghdl")
    _, before, after = texts(latency, outputs, options)
    assert wrappers_differ("random5_axis", before, after) == ""


# Each edit breaks one promise: the text, its replacement, and the message of the test bench.
FAULTS = [
    ("taken_next = 8", "taken_next = 9", "FAULT places for rows"),  # The buffer has one entry too many.
    ("taken_next = 8", "taken_next >= 2", "FAULT stalls at full rate"),  # The buffer has too few entries.
    ("result_valid <= pop or (result_valid and not m_axis_tready)", "result_valid <= pop", "MISMATCH"),
    ("if pop = '1' then\n                popped", "if stored /= 0 then\n                popped", "MISMATCH"),
    ("flight <= (others => '0')", "null", "FAULT rows after a reset"),  # Rows survive a reset.
    ("if last_beat = '1' or s_axis_tlast = '1'", "if last_beat = '1'", "MISMATCH"),  # Rows with too few beats run on.
    ("s_axis_tuser & s_axis_tlast", "s_axis_tuser & '0'", "MISMATCH"),
    ("fire and s_axis_tlast and not last_beat", "fire and s_axis_tlast", "FAULT a register after some rows"),
    ("rising_edge", "falling_edge", "FAULT"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "by", "said"), FAULTS)
def test_the_bench_sees_faults(what, by, said, tmp_path, need_tool):
    need_tool("ghdl")
    design = (3, "label", StreamOptions(tdata_bits=16, user_bits=8, registers=True))

    def change(text):
        assert text.count(what) == 1
        return text.replace(what, by)

    done = benched(tmp_path, *design, change=change)
    assert "\nFAIL " in done and said in done, done


CHANGES = [
    ("axis", "taken_next = 8", "taken_next = 7"),
    ("axis", "(others => '0');\n                write_at", "(others => '1');\n                write_at"),
    ("axis", "rising_edge", "falling_edge"),
    ("axis", "s_axis_tuser & s_axis_tlast", "s_axis_tuser & not s_axis_tlast"),
    ("axi_lite", "and clear_wanted;", ";"),
    ("axi_lite", "OKAY when", "SLVERR when"),
    ("axi_lite", 'X"00000001"', 'X"00000000"'),
    ("axi_lite", "not s_axi_bready", "s_axi_bready"),
    ("axi_lite", "_count + 1", "_count + 2"),
]


@pytest.mark.parametrize(("part", "what", "by"), only(CHANGES, 0))
def test_the_proof_sees_changes(part, what, by, need_tool):
    need_tool("ghdl")
    _, before, after = texts(3, "label", StreamOptions(user_bits=2, registers=part == "axi_lite"))
    path = f"random5_{part}.vhd"
    assert what in after[path]
    after[path] = after[path].replace(what, by, 1)
    if part == "axi_lite":  # alone
        before, after = {"random5_axi_lite.v": before["random5_axi_lite.v"]}, {path: after[path]}
    assert wrappers_differ(f"random5_{part}", before, after)


@pytest.mark.long
@pytest.mark.parametrize("place", [3, 1, 5])
def test_cocotb_sees_of_the_vhdl_what_it_sees_of_the_verilog(place, tmp_path, need_tool):
    need_tool("ghdl")
    need_tool("iverilog")
    figures = []
    for language in ("verilog", "vhdl"):
        folder = tmp_path / language
        folder.mkdir()
        netlist, parts = written(folder, *DESIGNS[place])
        if language == "vhdl":
            parts = axi_stream.emit(FOREST, netlist, DESIGNS[place][2], "ab" * 32, CORES[language])
            for path, text in [*vhdl.emit(netlist).items(), *parts.values()]:
                (folder / path).write_text(text)
        status, log, seen = bench(folder, parts, "icarus" if language == "verilog" else "ghdl")
        assert status == 0, log
        figures.append({name: figure for name, figure in seen.items() if name != "seconds"})
    assert figures[0] == figures[1] and figures[0]["sent"] == VECTORS


# --- what compile writes ----------------------------------------------------------------------------------


@pytest.fixture
def design(tmp_path):
    model, X, y = trained("tree-binary")
    stream = StreamOptions(tdata_bits=16, user_bits=8, registers=True)
    out = tmp_path / "out"
    made = forestc.compile(model, X, out, label=y, latency=2, targets="vhdl", stream=stream, name="m")
    return made.design, X


def test_check_runs_the_stream_in_vhdl_and_finds_an_edit(design, need_tool):
    need_tool("ghdl")
    folder, X = design
    result = check(folder, X, random_rows=300)
    assert result.ok and result.engines["ghdl_stream"].vectors > 100 and result.engines["words"].vectors
    wrapper = folder.path("vhdl_axi_stream")
    wrapper.write_text(wrapper.read_text().replace("& s_axis_tlast;", "& not s_axis_tlast;"))
    result = check(folder, X, engines=["ghdl_stream"], random_rows=300)
    assert not result.ok and result.engines["ghdl_stream"].differences == sum(result.vectors.values())
    assert result.changed == ("vhdl/m_axis.vhd",)


def test_scores_in_lanes_of_their_own(tmp_path, need_tool):
    need_tool("ghdl")
    X, y = load_iris(return_X_y=True)
    model = GradientBoostingClassifier(n_estimators=2, max_depth=2, random_state=0).fit(X, y)
    stream = StreamOptions(tdata_bits=32, align=16)
    out = tmp_path / "out"
    forestc.compile(model, X, out, label=y, latency=2, targets="vhdl", outputs="both", stream=stream, name="m")
    assert check(out, X, engines=["ghdl_stream"], random_rows=300).ok


def test_nvc_gets_all_files_of_the_stream(design, tmp_path, monkeypatch):
    folder, _ = design
    calls = nvc_calls(monkeypatch, tmp_path)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    opened("nvc_stream", folder, scratch)
    assert calls()[0] == "--std=1993 -a m.vhd m_axi_lite.vhd m_axis.vhd m_axis_tb.vhd -e m_axis_tb"


def test_the_folder_holds_what_belongs_to_a_stream_once(design, tmp_path):
    folder, X = design
    model, _, y = trained("tree-binary")
    files = folder.manifest["files"]
    assert {files["driver"], files["words"], files["cocotb"]} == {
        "vhdl/m_axis.h",
        "vhdl/m_words.py",
        "vhdl/test_m_axis.py",
    }
    assert "axi_stream" not in files and "m_axi_lite.vhd" in files["vhdl_axi_lite"]
    stream = StreamOptions(tdata_bits=16)
    made = forestc.compile(model, X, tmp_path / "both", label=y, targets="verilog,vhdl", stream=stream, name="m").design
    files = made.manifest["files"]
    assert files["axi_stream"] == "verilog/m_axis.v" and files["vhdl_axi_stream"] == "vhdl/m_axis.vhd"
    assert files["words"] == "verilog/m_words.py" and files["ip_xact"] != files["vhdl_ip_xact"]
    assert made.changed_files() == () and "axi_lite" not in files


@pytest.mark.parametrize("target", only(["stream", "cocotb"], 0))
def test_fusesoc_runs_the_benches_of_the_stream_in_vhdl(design, target, tmp_path, need_tool):
    need_tool("ghdl")
    folder = design[0].path("vhdl_fusesoc").parent
    said = fusesoc(folder, tmp_path, f"--target={target}", "forestc:compiled:m")
    assert ("PASS=5 FAIL=0" if target == "cocotb" else "PASS ") in said, said
