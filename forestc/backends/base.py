"""The contract of a backend, which generates the texts of files from a design."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from forestc.backends.axi_stream import StreamOptions
from forestc.backends.c import COptions
from forestc.backends.c.selftest import Answers
from forestc.backends.project import ProjectOptions
from forestc.forest.ir import Forest
from forestc.netlist.ir import Netlist


@dataclass(frozen=True)
class Artifact:
    """A generated file. role: its key in the manifest. path: in the design's folder."""

    role: str
    path: str
    text: str


@dataclass(frozen=True)
class Source:
    """The input of backends.

    vectors, raw_rows: return the lines of words and of raw values for test benches; they are computed at the first
    call. hash: of the design, 64 hexadecimal digits. answers: returns the rows of the C self-test, likewise.
    """

    forest: Forest
    netlist: Netlist
    hash: str
    vectors: Callable[[], str]
    raw_rows: Callable[[], str]
    c: COptions = field(default_factory=COptions)
    stream: StreamOptions = field(default_factory=StreamOptions)
    project: ProjectOptions = field(default_factory=ProjectOptions)
    answers: Callable[[], Answers] = Answers


@dataclass(frozen=True)
class Backend:
    """target: its name in the option targets; None for a backend that comes with others. roles: the roles of its files
    for a design with these options (of the manifest); none if it is not wanted. emit: its artifacts, from a source and
    the artifacts of the backends before it in the table. Pure: the same source gives the same bytes."""

    name: str
    roles: Callable[[Mapping[str, Any]], tuple[str, ...]]
    emit: Callable[[Source, tuple[Artifact, ...]], list[Artifact]]
    target: str | None = None
