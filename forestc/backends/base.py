"""What a backend is: from a design to the texts of its files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from forestc.backends.axi_stream import StreamOptions
from forestc.backends.c import COptions
from forestc.backends.project import ProjectOptions
from forestc.forest.ir import Forest
from forestc.netlist.ir import Netlist


@dataclass(frozen=True)
class Artifact:
    """A file to be written. role: what it is, as the manifest names it. path: in the design's folder."""

    role: str
    path: str
    text: str


@dataclass(frozen=True)
class Source:
    """What backends write from.

    vectors, raw_rows: the lines of test benches, of words and of values, each made when it is first asked for.
    hash: the design's, 64 hexadecimal digits.
    """

    forest: Forest
    netlist: Netlist
    hash: str
    vectors: Callable[[], str]
    raw_rows: Callable[[], str]
    c: COptions = field(default_factory=COptions)
    stream: StreamOptions = field(default_factory=StreamOptions)
    project: ProjectOptions = field(default_factory=ProjectOptions)


@dataclass(frozen=True)
class Backend:
    """target: the name to ask for it by; None of one that comes with others. roles: of the files that a design of some
    options, the manifest's, gets of it; none where it is not asked for. emit: its artifacts, from a source and those
    of the backends before it in the table. Pure: the same source gives the same bytes."""

    name: str
    roles: Callable[[Mapping[str, Any]], tuple[str, ...]]
    emit: Callable[[Source, tuple[Artifact, ...]], list[Artifact]]
    target: str | None = None
