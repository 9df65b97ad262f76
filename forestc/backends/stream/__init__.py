"""The AXI4-Stream wrapper of cores, and its test benches."""

from __future__ import annotations

from collections.abc import Sequence

from forestc.backends.base import Code, Core, Options, Row, Runner, shared_roles

SHARED = ("driver", "words", "cocotb", "raw_rows")  # files that each language's folder holds


def _roles(options: Options, cores: Sequence[Core]) -> tuple[str, ...]:
    if not options.get("stream"):
        return ()
    roles = ["axi_stream", "ip_xact", *(["axi_lite"] if options["stream"]["registers"] else [])]
    own = (core.prefix + role for core in cores for role in roles)
    benches = (f"{core.prefix}stream_testbench" for core in cores if core.stream_bench)
    return (*own, *benches, *shared_roles(cores, SHARED))


def _code() -> Code:
    from forestc.backends.stream.axi_stream import written
    from forestc.backends.stream.engines import GhdlStreamEngine, NvcStreamEngine, WordsEngine
    from forestc.backends.stream.options import StreamOptions

    return Code(
        written,
        {"ghdl_stream": GhdlStreamEngine, "nvc_stream": NvcStreamEngine, "words": WordsEngine},
        options=lambda record: StreamOptions(**record),
    )


_RUNS = "runs the stream wrapper in VHDL and its test bench, with random stalls"
_NVC = Runner("nvc_stream", "vhdl_stream_testbench", _RUNS, "`nvc` on the PATH", 2000, stands_in_for="ghdl_stream")
STREAM = Row(
    name="stream",
    layout=(
        (
            "`verilog/NAME_axis.v`, `NAME_axi_lite.v`",
            "with `--stream`, `--axi-lite`: an AXI4-Stream wrapper of the core, and its registers",
        ),
        (
            "`verilog/component.xml`, `NAME_axis.h`",
            "with `--stream`: the wrapper as an IP for Vivado's catalog (IP-XACT), and a C header of its rows, results "
            "and registers",
        ),
        (
            "`verilog/test_NAME_axis.py`, `NAME_words.py`, `rows.txt`",
            "with `--stream`: a cocotb test bench of the wrapper, and a Python module that turns raw rows into words "
            "and bits",
        ),
        (
            "`vhdl/NAME_axis.vhd`, `NAME_axi_lite.vhd`, `NAME_axis_tb.vhd`, `component.xml`",
            "with `--target vhdl --stream`: the stream wrapper, its registers and test bench in VHDL, and their "
            "IP-XACT; also the other files of a stream",
        ),
    ),
    roles=_roles,
    code=_code,
    runners=(
        Runner("ghdl_stream", "vhdl_axi_stream", _RUNS, "`ghdl` on the PATH", 2000),
        _NVC,
        Runner("words", "words", "runs the Python module `NAME_words.py` of a stream", sample=2000),
    ),
)
