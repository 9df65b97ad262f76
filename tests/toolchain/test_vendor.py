"""Tests Vivado and Quartus: reports in their documented form are read, and programs on the PATH get the right
arguments.

The vendors' programs are not installed here. Stand-ins check how they are called and write such reports.
"""

from __future__ import annotations

import json
import sys

import pytest
from models import trained

import forestc
from forestc.commands.synth import synth
from forestc.errors import OptionError, ToolError
from forestc.toolchain.vendor import read_quartus, read_vivado

UTILIZATION = """\
| Tool Version : Vivado v.2023.2 (lin64) Build 4029153 Fri Oct 13 20:13:54 MDT 2023
| Command      : report_utilization -file reports/utilization.rpt

1. CLB Logic
------------

+-------------------------+------+-------+------------+-----------+-------+
|        Site Type        | Used | Fixed | Prohibited | Available | Util% |
+-------------------------+------+-------+------------+-----------+-------+
| CLB LUTs*               | 1063 |     0 |          0 |    216960 |  0.49 |
|   LUT as Logic          | 1063 |     0 |          0 |    216960 |  0.49 |
| CLB Registers           |  345 |     0 |          0 |    433920 |  0.08 |
| CARRY8                  |   27 |     0 |          0 |     27120 |  0.10 |
+-------------------------+------+-------+------------+-----------+-------+

| Block RAM Tile |    0 |     0 |          0 |       480 |  0.00 |
"""
TIMING = """\
------------------------------------------------------------------------------------------------
| Design Timing Summary
| ---------------------
------------------------------------------------------------------------------------------------

    WNS(ns)      TNS(ns)  TNS Failing Endpoints  TNS Total Endpoints      WHS(ns)      THS(ns)
    -------      -------  ---------------------  -------------------      -------      -------
     -0.500      -12.345                    101                  401        0.045        0.000

Slack (VIOLATED) :        -0.500ns  (required time - arrival time)
  Data Path Delay:        2.450ns  (logic 0.900ns (36.735%)  route 1.550ns (63.265%))
  Logic Levels:           9  (CARRY8=2 LUT6=7)
"""
MAP = """\
; Analysis & Synthesis Resource Usage Summary               ;
; Estimate of Logic utilization (ALMs needed) ; 624         ;
; Combinational ALUT usage for logic          ; 1,036       ;
;     -- 7 input functions                    ; 12          ;
; Dedicated logic registers                   ; 350         ;
"""
FIT = """\
Fitter Status : Successful - Fri Nov 20 10:00:00 2026
Quartus Prime Version : 22.1std.0 Build 915 10/25/2022 SC Lite Edition
Logic utilization (in ALMs) : 702 / 41,910 ( 2 % )
Total registers : 600
Total RAM Blocks : 0 / 553 ( 0 % )
"""
STA = """\
------------------------------------------------------------
Timing Analyzer Summary
------------------------------------------------------------

Type  : Slow 1100mV 100C Model Setup 'clk'
Slack : -6.000
TNS   : -1000.123

Type  : Slow 1100mV 100C Model Hold 'clk'
Slack : 0.300
TNS   : 0.000

Type  : Fast 1100mV -40C Model Setup 'clk'
Slack : -1.000
TNS   : -100.000
"""
VIVADO_FILES = {"utilization.rpt": UTILIZATION, "placed.rpt": UTILIZATION, "timing.rpt": TIMING}
QUARTUS_FILES = {"m.map.rpt": MAP, "m_registered.fit.summary": FIT, "m_registered.sta.summary": STA}
STAND_IN = """#!{python}
import pathlib, sys
words = sys.argv[1:]
assert words == {words!r}, words
for name in {needed!r}:
    assert pathlib.Path(name).is_file(), name
folder = pathlib.Path(words[-1])
folder.mkdir()
for name, text in {files!r}.items():
    (folder / name).write_text(text)
"""


@pytest.fixture(scope="module")
def design(tmp_path_factory):
    model, X, y = trained("tree-binary")
    out = tmp_path_factory.mktemp("vendor") / "out"
    return forestc.compile(model, X, out, label=y, latency=1, targets=["verilog"], name="m").design


def stand_in(folder, monkeypatch, name, **what):
    path = folder / name
    path.write_text(STAND_IN.format(python=sys.executable, **what))
    path.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


def test_vivado_on_the_path(design, tmp_path, monkeypatch):
    words = ["-mode", "batch", "-nojournal", "-nolog", "-notrace", "-source", "vivado.tcl"]
    words += ["-tclargs", "xcku5p-ffvb676-2-e", "2.000", "reports"]
    needed = ["m.v", "m_registered.v", "m.xdc", "vivado.tcl"]
    stand_in(tmp_path, monkeypatch, "vivado", words=words, needed=needed, files=VIVADO_FILES)
    before = sorted(design.folder.rglob("*"))
    output = synth(design, "vivado:xcku5p-ffvb676-2-e")
    assert (output["lut"], output["ff"], output["carry"], output["bram"], output["depth"]) == (1063, 345, 27, 0, 9)
    assert output["fmax_mhz"] == 400.0  # The path takes 2 ns and is 0.5 ns too slow.
    assert output["placed"] == {"used": 1063, "available": 216960} and output["tools"] == ["Vivado 2023.2"]
    assert sorted({*design.folder.rglob("*")} - {design.folder / "measured.json"}) == before


def test_quartus_on_the_path(design, tmp_path, monkeypatch, run):
    words = ["-t", "quartus.tcl", "5CSEBA6U23I7", "2.000", "reports"]
    needed = ["m.v", "m_registered.v", "quartus.tcl"]
    stand_in(tmp_path, monkeypatch, "quartus_sh", words=words, needed=needed, files=QUARTUS_FILES)
    output = synth(design, "quartus:5CSEBA6U23I7")
    assert (output["lut"], output["ff"], output["fmax_mhz"], output["depth"]) == (1036, 350, 125.0, None)
    assert output["placed"] == {"used": 702, "available": 41910} and output["tools"] == ["Quartus 22.1std.0"]
    command = ["synth", design.folder, "--device", "quartus:5CSEBA6U23I7"]
    assert "125.0 MHz" in run(*command)[1]
    assert json.loads(run(*command, "--json")[1])["device"] == "quartus:5CSEBA6U23I7"


def test_series_7_rows_and_reports_that_tell_nothing(tmp_path):
    cells = UTILIZATION.replace("CLB LUTs*     ", "Slice LUTs    ").replace("CLB Registers  ", "Slice Registers")
    for name, text in (
        VIVADO_FILES | {"utilization.rpt": cells, "placed.rpt": cells.replace("CARRY8", "CARRY4")}
    ).items():
        (tmp_path / name).write_text(text)
    assert read_vivado(tmp_path, 4.0).lut == 1063
    (tmp_path / "timing.rpt").write_text(TIMING.replace("-0.500  ", "    NA  "))
    with pytest.raises(ToolError, match="vivado's reports lack figures"):
        read_vivado(tmp_path, 4.0)
    with pytest.raises(ToolError, match=r".*m\.map\.rpt: the script wrote no report"):
        read_quartus(tmp_path, "m", "m_registered", 4.0)
    for name, text in (QUARTUS_FILES | {"m_registered.sta.summary": "no clock"}).items():
        (tmp_path / name).write_text(text)
    with pytest.raises(ToolError, match="quartus's reports lack figures"):
        read_quartus(tmp_path, "m", "m_registered", 4.0)


def test_what_is_refused(design, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolError, match=r"PATH: vivado was not found; install Vivado.* or compile with no_synth=True"):
        synth(design, "vivado:xc7a35tcsg324-1")
    for part in ("-source x.tcl", "a;b", "a b", "[exec ls]"):
        with pytest.raises(OptionError, match=r"is not a part name; write device=vivado:PART"):
            synth(design, f"vivado:{part}")
    with pytest.raises(OptionError, match="unknown device 'vivado:'"):
        synth(design, "vivado:")
