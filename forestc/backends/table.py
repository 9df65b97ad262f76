"""The table of targets and what accompanies them, in the order in which their files are written."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from forestc.backends import amaranth, c, engine, hls, languages, shared, verilog, vhdl
from forestc.backends.base import Code, Core, Gives, Options, Row, Runner, Target, shared_roles
from forestc.backends.c.options import COptions
from forestc.backends.shared.options import SharedKeyword
from forestc.backends.stream import STREAM
from forestc.backends.stream.options import StreamKeyword
from forestc.errors import opt

if TYPE_CHECKING:
    from pathlib import Path

    from forestc.backends.base import Artifact, Engine, Written
    from forestc.backends.source import Source
    from forestc.forest.ir import Forest


def _simulator() -> Code:
    from forestc.backends.running import NetlistEngine

    return Code(lambda *_: [], {SIMULATOR: NetlistEngine})


def _packages() -> Code:
    from forestc.backends.packages import artifacts

    return Code(artifacts, {})


def _scripts() -> Code:
    from forestc.backends.project import written

    return Code(written, {})


def _script_roles(_: Options, cores: Sequence[Core]) -> tuple[str, ...]:
    from forestc.backends.project import roles

    return tuple(role for core in cores for role in roles(core))


SIMULATOR = "netlist"
PACKAGES = ("vhdl_package", "sv_package", "vhdl_instance", "verilog_instance")
_ROWS: tuple[Row, ...] = (
    Row(
        name=SIMULATOR,
        roles=lambda *_: (),
        code=_simulator,
        runners=(Runner(SIMULATOR, "", "runs the netlist in forestc's simulator"),),
    ),
    verilog.TARGET,
    vhdl.TARGET,
    c.TARGET,
    *languages.TARGETS,
    hls.TARGET,
    amaranth.TARGET,
    shared.TARGET,
    Row(
        name="packages",
        layout=(
            (
                "`verilog/NAME_pkg.vhd`, `NAME.vho`",
                "for a VHDL design that contains the core: a package with a component, and an instantiation template; "
                "in `vhdl/`, too, with `--target vhdl`",
            ),
            (
                "`verilog/NAME_pkg.sv`, `NAME.veo`",
                "for a SystemVerilog design that contains the core: a package, and an instantiation template; in "
                "`vhdl/`, too, with `--target vhdl`",
            ),
        ),
        roles=lambda _, cores: shared_roles(cores, PACKAGES),
        code=_packages,
    ),
    STREAM,
    engine.TARGET,
    Row(
        name="project",
        layout=(
            (
                "`verilog/vivado.tcl`, `quartus.tcl`, `yosys.ys`, `NAME.core`, `NAME.xdc`, `NAME.sdc`, "
                "`NAME_registered.v`",
                "scripts for Vivado, Quartus and yosys, a FuseSoC core, clock constraints, and a wrapper with "
                "registers on all ports to measure the clock",
            ),
        ),
        roles=_script_roles,
        code=_scripts,
    ),
)
BACKENDS = {row.name: row for row in _ROWS}
TARGETS = {row.name: row for row in _ROWS if isinstance(row, Target)}
RUNNERS = {runner.name: runner for row in _ROWS for runner in row.runners}
CORES = {target.core.language: target.core for target in TARGETS.values() if target.core is not None}


def gives(targets: Collection[str], *wanted: Gives) -> bool:
    """Returns True if one of these targets gives one of the wanted."""
    return any(name in targets and target.gives in wanted for name, target in TARGETS.items())


def gives_only(targets: Collection[str], wanted: Gives) -> bool:
    """Returns True if all targets give this."""
    return all(TARGETS[name].gives is wanted for name in targets)


def file_of(design: Written, wanted: Gives) -> Path:
    """Returns the path of the file that gives something. Raises ForestcError if no target of the design gives it."""
    options = design.manifest["options"]
    giving = [target for target in TARGETS.values() if target.gives is wanted]
    target = max(giving, key=lambda target: target.name in options["targets"])
    return design.path(target.roles(options, ())[0])


def cores(targets: Collection[str]) -> list[Core]:
    """Returns the hardware cores of these targets; some targets have none."""
    return [target.core for name, target in TARGETS.items() if name in targets and target.core is not None]


def core_of(targets: Collection[str]) -> Core:
    """Returns the core to synthesize: one that yosys reads, if there is one."""
    return max(cores(targets), key=lambda core: core.yosys)


def lowered(targets: Collection[str]) -> bool:
    """Returns True if one of these targets needs the netlist."""
    return any(TARGETS[name].lowered for name in targets)


def refuse(forest: Forest, targets: Collection[str]) -> None:
    """Raises ModelError if one of these targets does not take such a forest."""
    for name in targets:
        for refusal in TARGETS[name].code().refusals:
            refusal.refuse(forest, f"the target {name}", f"leave {name} out of {opt.target}")


@dataclass(frozen=True, kw_only=True)
class TargetOptions(StreamKeyword, SharedKeyword, COptions):
    """The options of all rows, as keywords of `forestc.compile`."""


def opened(name: str, design: Written, folder: Path) -> Engine:
    """Builds a design in a folder for an engine. Raises MissingToolError if the engine's tool is missing."""
    (row,) = (row for row in _ROWS for runner in row.runners if runner.name == name)
    return row.code().engines[name](design, folder)


def roles(row: Row, options: Options) -> tuple[str, ...]:
    """Returns the roles of the files that a row of the table writes for a manifest's options."""
    if isinstance(row, Target) and row.name not in options["targets"]:
        return ()
    return row.roles(options, cores(options["targets"]))


def implied_roles(options: Options) -> set[str]:
    """Returns the roles of all files of a design with the given options."""
    return {role for row in _ROWS for role in roles(row, options)}


def written(source: Source) -> tuple[Artifact, ...]:
    """Returns the artifacts of all rows of the table that have files for a design's options."""
    files: list[Artifact] = []
    for row in _ROWS:
        if roles(row, source.options):
            files += row.code().emit(source, files, cores(source.options["targets"]))
    return tuple(files)


def need_tools(targets: Collection[str], options: TargetOptions) -> None:
    """Raises MissingToolError if a target's files can't be built here."""
    for name in targets:
        TARGETS[name].code().tools(options)


def built(targets: Collection[str], options: TargetOptions, files: Mapping[str, str]) -> dict[str, bytes]:
    """Returns the files that tools make of the targets' texts, by path. Raises ToolError if a tool fails."""
    found: dict[str, bytes] = {}
    for name in targets:
        found |= TARGETS[name].code().built(options, files)
    return found
