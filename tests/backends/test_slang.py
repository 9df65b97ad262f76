"""Tests that slang, with all of its warnings, accepts the Verilog of a design, its bench and its package together."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from backends.test_own_names import SMALL, verilog_files

from forestc.backends import packages
from forestc.backends.stream.axi_stream import StreamOptions
from forestc.engine.capacity import Capacity
from forestc.engine.folder import write_engine
from forestc.lowering.trees import LoweringOptions, lower

REMARK = re.compile(r"(\S+):\d+:\d+: (?:warning|error): (.*)")
# MEANT matches slang's warnings of unused names, if the names themselves say that they are unused.
MEANT = re.compile(r".*'unused\w*'.*\[-Wunused-[a-z-]+\]")
USES = """
module uses (
    input small_model_pkg::small_model_row a, output small_model_pkg::small_model_row b,
    input small_model_pkg::small_model_result c, output small_model_pkg::small_model_result d
);
    assign b = a;
    assign d = c;
endmodule
"""
DESIGNS = [
    (0, StreamOptions()),
    (3, StreamOptions(8, 2, True)),
    (1, StreamOptions(1024, 40, True)),
    (2, StreamOptions(align=8)),
]
ENGINES = [
    Capacity(3, 64, 3, 5, word_bits=8, outputs=2, scores=True),
    Capacity(9, 64, 2, 2, word_bits=16, outputs=7, load="axi-lite"),
    Capacity(1, 4096, 2, 6, word_bits=2, banks=1, user_bits=40),
]


def remarks(folder: Path, standard: str, said: pytest.CaptureFixture[str]) -> list[str]:
    """Returns slang's warnings on all files of a folder together."""
    from pyslang.driver import Driver

    driver = Driver()
    driver.addStandardArgs()
    files = " ".join(str(path) for path in sorted(folder.glob("*.*v")) if path.suffix in (".v", ".sv"))
    assert driver.parseCommandLine(f"slang --std {standard} -Weverything {files}")
    assert driver.processOptions() and driver.parseAllSources()
    compilation = driver.createCompilation()
    driver.reportCompilation(compilation, True)
    driver.runAnalysis(compilation)
    driver.reportDiagnostics(True)
    lines = REMARK.findall(said.readouterr().err)
    return [f"{Path(path).name}: {what}" for path, what in lines if not MEANT.fullmatch(what)]


@pytest.mark.parametrize(("latency", "stream"), DESIGNS)
def test_designs_and_benches(latency, stream, tmp_path, need_tool, capfd):
    need_tool("pyslang")
    netlist = lower(SMALL, LoweringOptions(latency=latency, outputs="both"))
    for path, text in verilog_files(SMALL, netlist, stream).items():
        (tmp_path / path).write_text(text)
    assert (tmp_path / "small_model_tb.v").exists() and (tmp_path / "small_model_axis.v").exists()
    assert remarks(tmp_path, "1364-2005", capfd) == []
    path, text = packages.emit(netlist)["sv_package"]
    (tmp_path / path).write_text(text)
    (tmp_path / "uses.sv").write_text(USES)
    assert remarks(tmp_path, "1800-2017", capfd) == []


@pytest.mark.parametrize("capacity", ENGINES)
def test_benches_of_engines(capacity, tmp_path, need_tool, capfd):
    need_tool("pyslang")
    write_engine(tmp_path / "engine", capacity)
    assert [
        line for line in remarks(tmp_path / "engine", "1364-2005", capfd) if "error" in line or "_tb.v" in line
    ] == []


def test_what_slang_remarks_on_is_seen(tmp_path, need_tool, capfd):
    need_tool("pyslang")
    (tmp_path / "a.v").write_text("module a (input wire [3:0] x, output wire y);\n    assign y = x;\nendmodule\n")
    assert remarks(tmp_path, "1364-2005", capfd) == [
        "a.v: implicit conversion truncates from 4 to 1 bits [-Wwidth-trunc]"
    ]
