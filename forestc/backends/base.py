"""The types of the rows of `table.py`: targets, what accompanies them, and the engines that run their files.

Rows are small values: `code` imports what they do when it is wanted, so that the command line can list targets and
engines at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    from forestc.backends.running import Difference
    from forestc.backends.source import Source
    from forestc.backends.vectors import Vectors
    from forestc.forest.evaluate import Evaluation
    from forestc.forest.ir import Forest
    from forestc.forest.refusals import Refusal
    from forestc.netlist.ir import Netlist

Options = Mapping[str, Any]  # `options` of the manifest


class Gives(Enum):
    """What a target's files give to other parts of forestc, which ask for this and not for the target."""

    VERILOG = auto()  # the core in Verilog, for proofs, synthesis and boards
    VHDL = auto()  # the core in VHDL, for proofs and synthesis
    HEADER = auto()  # a C header with layouts, measured on processors
    WALKERS = auto()  # the second architecture, which loads trees


@dataclass(frozen=True)
class Artifact:
    """A generated file."""

    role: str  # key in the manifest
    path: str  # relative to the design's folder
    text: str


class Written(Protocol):
    """A compiled folder, as engines see it; `Design` is one."""

    @property
    def folder(self) -> Path: ...
    @property
    def forest(self) -> Forest: ...
    @property
    def netlist(self) -> Netlist: ...
    @property
    def manifest(self) -> Mapping[str, Any]: ...

    def path(self, role: str) -> Path: ...


class Engine(Protocol):
    """Runs one design in one tool. `compare` compares the tool's results with the evaluator's."""

    tool: str

    def compare(self, vectors: Vectors, evaluation: Evaluation) -> Difference: ...


@dataclass(frozen=True)
class Runner:
    """An engine of `check`, as the command line and the pages list it."""

    name: str  # value of `--engines`
    role: str  # file that runs; "" for the netlist
    runs: str  # what it runs, in words
    needs: str = "nothing"  # what must be installed
    sample: int = 0  # vectors of each origin that run by default; 0 for all
    stands_in_for: str = ""  # name of an engine; this one runs if that can't
    asked: bool = False  # True to run only if the user names it or asks for all


@dataclass(frozen=True)
class Core:
    """The core in a hardware language, and how tools read its files."""

    language: str  # also the folder, and the role of the core's file
    suffix: str  # of the files
    prefix: str  # begins the roles of the files beside the core
    yosys: bool  # True if yosys reads the language
    stream_bench: bool  # True if the stream wrapper has a test bench in the language, beside cocotb's
    vivado: str  # Tcl command that reads a file
    quartus: str  # assignment that adds a file
    fusesoc: str  # file type
    ip_xact: tuple[str, str]  # language, file type
    simulator: str  # runs the test bench in FuseSoC and cocotb


@dataclass(frozen=True)
class Code:
    """What a row of the table does."""

    emit: Callable[[Source, Sequence[Artifact], Sequence[Core]], list[Artifact]]  # also takes earlier files, all cores
    engines: Mapping[str, Callable[[Written, Path], Engine]]  # by name; each builds a design in a folder
    refusals: tuple[Refusal, ...] = ()  # the forests that it does not take
    options: Callable[[dict[str, Any]], object] = dict  # reads and checks the row's own options of a manifest
    tools: Callable[[Any], object] = type  # takes the options of compile; raises MissingToolError for `built`'s tool
    built: Callable[[Any, Mapping[str, str]], Mapping[str, bytes]] = lambda *_: {}  # files that a tool makes of others


@dataclass(frozen=True, kw_only=True)
class Row:
    """Files that forestc writes. A row that is no target accompanies the cores in hardware languages."""

    name: str
    layout: tuple[tuple[str, str], ...] = ()  # (names of files, their content), for the page
    roles: Callable[[Options, Sequence[Core]], tuple[str, ...]]  # of its files; others use a target's first
    code: Callable[[], Code]
    runners: tuple[Runner, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Target(Row):
    """A value of `--target`."""

    help: str  # one line
    lowered: bool = True  # False if files are made of the integer forest, without the netlist
    registers: bool = False  # True if its files have registers, and so the ports of a Clocking
    gives: Gives | None = None
    core: Core | None = None
    beside: Gives | None = None  # what cores in the same folder must give


def artifacts(folder: str, files: Mapping[str, tuple[str, str]]) -> list[Artifact]:
    """Returns files as artifacts. files: {role: (path in the folder, text)}."""
    return [Artifact(role, f"{folder}/{path}", text) for role, (path, text) in files.items()]


def named(folder: str, roles: Sequence[str], files: Mapping[str, str]) -> list[Artifact]:
    """Returns files as artifacts. files: {path in the folder: text}, in the order of `roles`."""
    return artifacts(folder, dict(zip(roles, files.items(), strict=True)))


SECOND = "vhdl_"  # begins the roles of shared files in the folder of the second language


def shared_roles(cores: Sequence[Core], roles: Sequence[str]) -> tuple[str, ...]:
    """Returns the roles of files that each language's folder holds."""
    return tuple(SECOND * number + role for number, _ in enumerate(cores) for role in roles)


def shared(
    core: Core, cores: Sequence[Core], roles: Sequence[str], files: Mapping[str, tuple[str, str]]
) -> list[Artifact]:
    """Returns the files of a language's folder. Except for the first language, roles in `roles` get the prefix SECOND,
    to be distinct. files: {role: (path in the folder, text)}."""
    own = {SECOND * (role in roles and core is not cores[0]) + role: file for role, file in files.items()}
    return artifacts(core.language, own)
