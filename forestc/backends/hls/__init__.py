"""The target hls: C++ for Vitis HLS."""

from __future__ import annotations

from forestc.backends.base import Code, Runner, Target

ROLES = ("hls_header", "hls", "hls_testbench", "hls_script", "hls_config", "hls_vectors")


def _code() -> Code:
    from forestc.backends.hls.core import artifacts
    from forestc.backends.hls.engine import HlsEngine

    return Code(artifacts, {"hls": HlsEngine})


TARGET = Target(
    name="hls",
    help="C++ for Vitis HLS",
    layout=(
        (
            "`hls/NAME_hls.cpp`, `.h`, `_tb.cpp`, `vectors.txt`, `run_hls.tcl`, `hls_config.cfg`",
            "C++ for Vitis HLS, its test bench and scripts",
        ),
    ),
    roles=lambda *_: ROLES,
    code=_code,
    runners=(Runner("hls", "hls", "runs the HLS C++ in C simulation", '`pip install ".[hls]"`, g++'),),
)
