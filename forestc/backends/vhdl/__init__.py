"""The target vhdl: a core and its self-checking test bench."""

from __future__ import annotations

from forestc.backends.base import Code, Core, Gives, Runner, Target


def _code() -> Code:
    from forestc.backends.vhdl.core import artifacts
    from forestc.backends.vhdl.engines import GhdlEngine, NvcEngine

    return Code(artifacts, {"ghdl": GhdlEngine, "nvc": NvcEngine})


_RUNS = "runs the VHDL and its test bench"
TARGET = Target(
    name="vhdl",
    help="a core in VHDL-93",
    registers=True,
    layout=(
        (
            "`vhdl/NAME.vhd`, `NAME_tb.vhd`, `vectors.txt`",
            "the core in VHDL-93, its test bench and vectors; scripts, constraints and `NAME_registered.vhd` as in "
            "`verilog/`: see [VHDL](../howto/vhdl.md)",
        ),
    ),
    roles=lambda *_: ("vhdl", "vhdl_testbench", "vhdl_vectors"),
    code=_code,
    runners=(
        Runner("ghdl", "vhdl", _RUNS, "`ghdl` on the PATH", sample=2000),
        Runner("nvc", "vhdl_testbench", _RUNS, "`nvc` on the PATH", sample=2000, stands_in_for="ghdl"),
    ),
    gives=Gives.VHDL,
    core=Core(
        "vhdl",
        suffix="vhd",
        prefix="vhdl_",
        yosys=False,
        stream_bench=True,
        vivado="read_vhdl",
        quartus="VHDL_FILE",
        fusesoc="vhdlSource-93",
        ip_xact=("VHDL", "vhdlSource"),
        simulator="ghdl",
    ),
)
