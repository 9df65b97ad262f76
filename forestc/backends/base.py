"""The contract of a backend, which generates the texts of files from a design."""

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
    """A generated file. role: its key in the manifest. path: in the design's folder."""

    role: str
    path: str
    text: str


@dataclass(frozen=True)
class Source:
    """The input of backends.

    logic: the netlist; None where only C and an engine are wanted, which are written from the forest. vectors,
    raw_rows: return the lines of words and of raw values for test benches; they are computed at the first call. hash:
    of the design, 64 hexadecimal digits. answers: returns the rows of the C self-test, likewise. engine: the capacity
    of an engine that is wanted. words: returns rows of words for its test bench.
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
            raise InternalError("a backend of hardware runs where only C is wanted")
        return self.logic


@dataclass(frozen=True)
class Backend:
    """target: its name in the option targets; None for a backend that comes with others. roles: the roles of its files
    for a design with these options (of the manifest); none if it is not wanted. emit: its artifacts, from a source and
    the artifacts of the backends before it in the table. Pure: the same source gives the same bytes."""

    name: str
    roles: Callable[[Mapping[str, Any]], tuple[str, ...]]
    emit: Callable[[Source, tuple[Artifact, ...]], list[Artifact]]
    target: str | None = None
