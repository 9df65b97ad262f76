"""The types of a backend's input and output: a design goes in, texts of files come out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.backends.c import COptions
from forestc.backends.c.selftest import Answers
from forestc.backends.project import ProjectOptions
from forestc.engine.capacity import Capacity
from forestc.errors import InternalError
from forestc.forest.ir import Forest
from forestc.netlist.ir import Netlist
from forestc.options.stream import StreamOptions


@dataclass(frozen=True)
class Artifact:
    """A generated file. role: its key in the manifest. path: relative to the design's folder."""

    role: str
    path: str
    text: str


@dataclass(frozen=True)
class Source:
    """A design as the input of backends.

    logic: the netlist; None if no target needs it.
    hash: SHA-256 of the design, 64 hexadecimal digits.
    vectors, raw_rows: return texts for test benches.
    c, stream, project: options of these backends.
    answers: returns the rows of the C self-test.
    engine: None if no engine is generated.
    words: returns (rows, features) for the engine's test bench.
    """

    forest: Forest
    logic: Netlist | None
    hash: str
    vectors: Callable[[], str]
    raw_rows: Callable[[], str]
    c: COptions = field(default_factory=COptions)
    stream: StreamOptions = field(default_factory=StreamOptions)
    project: ProjectOptions = field(default_factory=ProjectOptions)
    answers: Callable[[], Answers] = Answers
    engine: Capacity | None = None
    words: Callable[[], NDArray[np.int64]] = lambda: np.empty((0, 0), dtype=np.int64)

    @property
    def netlist(self) -> Netlist:
        if self.logic is None:
            raise InternalError("a backend of hardware runs where only C is wanted", where="target c")
        return self.logic


@dataclass(frozen=True)
class Backend:
    """A generator of files.

    name: its key in the table of backends.
    roles: returns the roles of its files, from the manifest's options.
    emit: returns its artifacts, from the design and the artifacts of earlier backends.
    target: its name in the option `targets`; None for a backend that runs along with others.
    """

    name: str
    roles: Callable[[Mapping[str, Any]], tuple[str, ...]]
    emit: Callable[[Source, tuple[Artifact, ...]], list[Artifact]]
    target: str | None = None
