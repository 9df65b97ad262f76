"""The table of engines that `check` runs."""

from __future__ import annotations

from forestc.checks.board import BOARD
from forestc.checks.engines import (
    AmaranthEngine,
    CEngine,
    Engine,
    GhdlEngine,
    GhdlStreamEngine,
    HlsEngine,
    IcarusEngine,
    NetlistEngine,
    NvcEngine,
    NvcStreamEngine,
    VerilatorEngine,
    WordsEngine,
)
from forestc.checks.walking import ImageInReader, WalkersInIcarus, WalkersInVerilator

_ALL = (
    NetlistEngine,
    IcarusEngine,
    VerilatorEngine,
    GhdlEngine,
    NvcEngine,
    GhdlStreamEngine,
    NvcStreamEngine,
    CEngine,
    WordsEngine,
    HlsEngine,
    AmaranthEngine,
    WalkersInIcarus,
    WalkersInVerilator,
    ImageInReader,
)
ENGINES: dict[str, type[Engine]] = {engine.name: engine for engine in _ALL}
ROLES: dict[str, str] = {engine.name: engine.role for engine in _ALL} | {BOARD: "bitstream"}
