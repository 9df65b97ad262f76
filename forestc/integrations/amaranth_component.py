"""Turns a compiled design into a live component of Amaranth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from forestc.backends import amaranth
from forestc.manifest.design import Design, open_design


def hardware(design: Design | str | Path, *, stream: bool = True) -> Any:
    """A compiled design as a new Amaranth component, to be used as a submodule.

    stream: with the ports `i` and `o`, streams of features and results; else the core with `x` and `y`, and with
    `in_valid` and `out_valid` if it has registers. Raises ForestcError for a folder that can't be read, or if Amaranth
    is not installed.
    """
    opened = design if isinstance(design, Design) else open_design(design)
    generated = amaranth.module(opened.netlist)
    return getattr(generated, amaranth.core_name(opened.netlist) + ("Stream" if stream else ""))()
