"""Tests scripts for other tools: with a Tcl linter, with recorded commands, and with the tools that are free."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from models import trained
from random_forests import random_forest
from thinned import only
from tools_of_fusesoc import fusesoc
from vhdl_tools import STANDARDS, analyzed, ghdl

import forestc
from forestc.backends import project
from forestc.backends.names import identifier
from forestc.backends.table import CORES
from forestc.errors import OptionError
from forestc.lowering.trees import LoweringOptions, lower
from forestc.toolchain.packaged import need_command
from forestc.toolchain.run import run_tool
from forestc.toolchain.yosys import need_yosys

HOSTILE = '"]; exec rm -rf / ; # [quit] $x {'


def written(folder, latency, name="m", language="verilog"):
    """Writes the folder of a small design, as compile does."""
    model, X, y = trained("tree-binary")
    return forestc.compile(model, X, folder / "out", label=y, latency=latency, targets=language, name=name).design


@pytest.mark.parametrize("latency", [0, 2])
def test_output_is_pure_and_no_name_gets_in(latency):
    netlist = replace(lower(random_forest(3, True, "binary"), LoweringOptions(latency=latency)), name=HOSTILE)
    sources = {"core": "a.v", "testbench": "b.v", "vectors": "vectors.txt"}
    first = project.emit(netlist, sources, CORES["verilog"])
    assert first == project.emit(netlist, sources, CORES["verilog"])
    harmless = project.emit(replace(netlist, name="harmless"), sources, CORES["verilog"])
    for role, (path, text) in first.items():
        assert (path, text) == tuple(part.replace("harmless", identifier(HOSTILE)) for part in harmless[role])


PREFIXES = {"verilog": "", "vhdl": "vhdl_"}  # begins the roles of a language's scripts


@pytest.mark.parametrize("language", PREFIXES)
@pytest.mark.parametrize("latency", [0, 2])
def test_tcl_is_clean_under_a_linter(need_tool, tmp_path, latency, language):
    need_tool("tclint")
    folder = written(tmp_path, latency, HOSTILE, language).path(f"{PREFIXES[language]}vivado").parent
    scripts = [path for path in folder.iterdir() if path.suffix in (".tcl", ".xdc", ".sdc")]
    assert len(scripts) == 4
    (tmp_path / "tclint.toml").write_text('ignore = ["line-length"]\n[style]\nindent = 2\n')
    command = ["tclint", "-c", str(tmp_path / "tclint.toml"), *map(str, scripts)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
    broken = scripts[0].read_text() + "set a [list 1\n"
    scripts[0].write_text(broken)
    assert subprocess.run(command, capture_output=True, check=False).returncode


class Recorded:
    """A Tcl interpreter with vendor commands that only record their calls."""

    def __init__(self, folder: Path, commands: str) -> None:
        import tkinter

        self.calls: list[tuple[str, ...]] = []
        self.tcl = tkinter.Tcl()
        self.tcl.eval(f"cd {{{folder}}}")
        for name in commands.split():
            self.tcl.createcommand(name, lambda *words, name=name: self.note(name, words))

    def note(self, name, words):
        self.calls.append((name, *map(str, words)))
        return f"<{name}>"

    def run(self, script: Path, *arguments: str) -> None:
        self.tcl.eval(f"set argv [list {' '.join(arguments)}]; set quartus(args) $argv; cd {{{script.parent}}}")
        self.tcl.eval(script.read_text())

    def of(self, name):
        return [call[1:] for call in self.calls if call[0] == name]


VIVADO = """read_verilog synth_design report_utilization close_design read_xdc create_clock get_ports opt_design
place_design phys_opt_design route_design report_timing_summary write_checkpoint"""
QUARTUS = """project_new set_global_assignment set_instance_assignment execute_module execute_flow
project_close package"""


def test_vivado_script(tmp_path):
    script = written(tmp_path, 2).path("vivado")
    tcl = Recorded(script.parent, VIVADO)
    tcl.run(script)
    expected = ("-mode", "out_of_context", "-flatten_hierarchy", "full", "-part", project.VIVADO_PART, "-top")
    assert tcl.of("synth_design") == [(*expected, "m"), (*expected, "m_registered")]
    assert tcl.of("create_clock") == [("-name", "clk", "-period", "2.000", "<get_ports>")]
    order = [name for name, *_ in tcl.calls]
    assert order.index("place_design") < order.index("route_design") < order.index("report_timing_summary")
    for (file,) in tcl.of("read_verilog"):
        assert (script.parent / file).is_file()
    assert (script.parent / tcl.of("read_xdc")[0][-1]).is_file()
    tcl = Recorded(script.parent, VIVADO)
    tcl.run(script, "xc7a35tcsg324-1", "5", "elsewhere")
    assert tcl.of("synth_design")[0][5] == "xc7a35tcsg324-1"
    assert tcl.of("create_clock")[0][3] == "5"
    assert tcl.of("report_timing_summary")[0][-1] == "elsewhere/timing.rpt" and (script.parent / "elsewhere").is_dir()


@pytest.mark.parametrize("latency", [0, 2])
def test_quartus_script(tmp_path, latency):
    script = written(tmp_path, latency).path("quartus")
    tcl = Recorded(script.parent, QUARTUS)
    tcl.run(script, "10CX085YU484E6G", "4")
    assert tcl.of("project_new") == [("-overwrite", "-part", "10CX085YU484E6G", name) for name in ("m", "m_registered")]
    named = [words for words in tcl.of("set_global_assignment") if words[1] == "VERILOG_FILE"]
    assert [Path(words[2]).name for words in named] == ["m.v", "m.v", "m_registered.v"]
    assert all(Path(words[2]).is_file() for words in named)
    assert tcl.of("execute_module") == [("-tool", "map")] and tcl.of("execute_flow") == [("-compile",)]
    ports = [words[-1] for words in tcl.of("set_instance_assignment")]
    assert ports == ["x", "y", "in_valid", "out_valid"][: 4 if latency else 2]
    constraint = (script.parent / "quartus" / "clock.sdc").read_text()
    assert constraint == "create_clock -name clk -period 4 [get_ports clk]\n"


def test_yosys_script_makes_a_netlist_that_nextpnr_places(tmp_path):
    script = written(tmp_path, 2).path("yosys")
    yosys, nextpnr = need_yosys(), need_command("nextpnr-ecp5")
    output = run_tool([*yosys, "-s", script.name], script.parent).decode()
    assert "LUT4" in output
    (line,) = [line for line in script.read_text().splitlines() if "nextpnr-ecp5 " in line]
    run_tool([*nextpnr, *line.split()[2:]], script.parent)
    report = json.loads((script.parent / "report.json").read_text())
    assert min(clock["achieved"] for clock in report["fmax"].values()) > 20


@pytest.mark.parametrize("language", PREFIXES)
@pytest.mark.parametrize("latency", [0, 2])
def test_fusesoc_runs_the_test_bench(need_tool, tmp_path, latency, language):
    need_tool("iverilog" if language == "verilog" else "ghdl")
    folder = written(tmp_path, latency, language=language).path(f"{PREFIXES[language]}fusesoc").parent
    assert "PASS" in fusesoc(folder, tmp_path, "--target=sim", "forestc:compiled:m")


def scripts(options):
    netlist = lower(random_forest(3, True, "binary"), LoweringOptions(latency=2))
    return {role: text for role, (_, text) in project.emit(netlist, {"core": "a.v"}, CORES["verilog"], options).items()}


def test_scripts_start_with_what_was_given():
    neutral = scripts(None)
    for role in ("xdc", "sdc", "vivado", "quartus", "yosys"):
        assert "the clock is a default: set yours" in neutral[role]
    for role in ("vivado", "quartus", "yosys", "fusesoc"):
        assert "the part is a default: set yours" in neutral[role]
    assert "-period 2.000" in neutral["xdc"] and "--freq 500 " in neutral["yosys"]
    given = scripts(project.ProjectOptions("ecp5-25k", 150.0))
    for role in ("xdc", "sdc"):
        assert "-period 6.667 [" in given[role] and "the clock given: 150 MHz" in given[role]
    for role in ("vivado", "quartus"):
        assert "set period 6.667\n" in given[role]
    assert "--25k " in given["yosys"] and "--freq 150 " in given["yosys"] and "default" not in given["yosys"]
    given = scripts(project.ProjectOptions("vivado:xc7a35tcsg324-1"))
    assert (
        "set part xc7a35tcsg324-1\n" in given["vivado"]
        and "part: xc7a35tcsg324-1  # the part given" in given["fusesoc"]
    )
    given = scripts(project.ProjectOptions("quartus:10CL025YU256C8G"))
    assert "family: Cyclone 10 LP\n" in given["fusesoc"] and "set part 10CL025YU256C8G\n" in given["quartus"]
    assert "family" not in scripts(project.ProjectOptions("quartus:ZZ1"))["fusesoc"]


def test_compile_puts_the_clock_and_the_device_into_the_manifest_and_the_constraints(tmp_path, monkeypatch):
    counts = dict.fromkeys(("lut", "ff", "carry", "bram", "depth", "latency_cycles"), 1)
    figures = {"device": "any", **counts, "fmax_mhz": None, "tools": ["none"], "seconds": {}}
    monkeypatch.setattr("forestc.commands.compile.synthesis_figures", lambda *_, **__: dict(figures))
    monkeypatch.setattr("forestc.compilation.request.need_tools", lambda *_, **__: None)
    model, X, y = trained("tree-binary")
    made = {}
    for clock in (None, 50.0, 60.0):
        out = tmp_path / str(clock)
        more = {"device": "ecp5-85k", "clock_mhz": clock} if clock else {}
        made[clock] = forestc.compile(model, X, out, label=y, targets=["verilog"], name="m", **more).design
        assert made[clock].changed_files() == ()
    assert not {"device", "clock_mhz"} & made[None].manifest["options"].keys()
    assert (
        made[50.0].manifest["options"]["clock_mhz"] == 50.0 and made[50.0].manifest["options"]["device"] == "ecp5-85k"
    )
    assert "-period 20.000 " in made[50.0].path("xdc").read_text()
    assert len({design.manifest["hash"] for design in made.values()}) == 3
    part = {"device": "vivado:xc7a35tcsg324-1", "clock_mhz": 200}
    vendor = forestc.compile(model, X, tmp_path / "v", label=y, targets=["verilog"], latency=2, **part).design
    assert "-period 5.000 " in vendor.path("xdc").read_text() and vendor.manifest["latency_cycles"] == 2
    assert "set part xc7a35tcsg324-1\n" in vendor.path("vivado").read_text()
    with pytest.raises(OptionError, match=r"clock_mhz=: .*; give a number of megahertz above 0"):
        forestc.compile(model, X, tmp_path / "no", label=y, targets=["verilog"], device="ecp5-85k", clock_mhz=0)
    with pytest.raises(OptionError, match="is not a part name"):
        forestc.compile(model, X, tmp_path / "no", label=y, targets=["verilog"], device="vivado:a b")
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize("target", only(["lint", "axis", "cocotb"], 0, 1))
def test_fusesoc_knows_the_stream_and_its_bench(need_tool, tmp_path, target):
    need_tool("iverilog")
    if target == "lint":
        need_tool("verilator_bin")
    model, X, y = trained("tree-multi")
    stream = forestc.StreamOptions(tdata_bits=32)
    out = tmp_path / "out"
    done = forestc.compile(model, X, out, label=y, targets="verilog", stream=stream, latency=1, name="m")
    setup = ["--setup"] if target == "axis" else []  # Other cores use the wrapper alone, so it has no run of its own.
    core = f"forestc:compiled:m:{forestc.__version__}"
    said = fusesoc(done.design.path("fusesoc").parent, tmp_path, *setup, f"--target={target}", core)
    assert target != "cocotb" or "PASS=4 FAIL=0" in said, said


# --- a core in VHDL ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("latency", [0, 2])
def test_vendors_scripts_read_the_files_in_vhdl(tmp_path, latency):
    design = written(tmp_path, latency, language="vhdl")
    assert not any(path.startswith("verilog/") for path in design.manifest["files"].values())
    script = design.path("vhdl_vivado")
    tcl = Recorded(script.parent, VIVADO.replace("read_verilog", "read_vhdl"))
    tcl.run(script)
    assert tcl.of("read_vhdl") == [("m.vhd",), ("m_registered.vhd",)]
    assert all((script.parent / file).is_file() for (file,) in tcl.of("read_vhdl"))
    script = design.path("vhdl_quartus")
    tcl = Recorded(script.parent, QUARTUS)
    tcl.run(script)
    named = [words for words in tcl.of("set_global_assignment") if words[1] == "VHDL_FILE"]
    assert [Path(words[2]).name for words in named] == ["m.vhd", "m.vhd", "m_registered.vhd"]
    assert all(Path(words[2]).is_file() for words in named)


@pytest.mark.parametrize("latency", [0, 2])
def test_registers_around_a_core_in_vhdl_are_analyzed(need_tool, tmp_path, latency):
    need_tool("ghdl")
    folder = written(tmp_path, latency, language="vhdl").path("vhdl_registered").parent
    for standard in STANDARDS:
        analyzed(folder, ["m.vhd", "m_registered.vhd"], standard)
        ghdl(folder, "--synth", f"--std={standard}", "--out=none", "m_registered")
