"""The table of backends, in the order in which they run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from forestc.backends import amaranth, axi_stream, c, engine, hls, packages, project, verilog, vhdl
from forestc.backends.base import Artifact, Backend, Source
from forestc.backends.c import project as c_project
from forestc.errors import InternalError

# Names the roles of a stream's files that each language's folder holds.
STREAM = ("driver", "words", "cocotb", "raw_rows")
SECOND = "vhdl_"  # begins the roles of shared files in the folder of the second language


def _hardware(options: Mapping[str, Any]) -> list[str]:
    return [target for target in ("verilog", "vhdl") if target in options["targets"]]


def _of_target(name: str, *roles: str) -> Callable[[Mapping[str, Any]], tuple[str, ...]]:
    """Returns a function from options to roles: these roles if the options name the target, otherwise ()."""
    return lambda options: roles if name in options["targets"] else ()


def _stream_roles(options: Mapping[str, Any]) -> tuple[str, ...]:
    if not options.get("stream"):
        return ()
    roles = ["axi_stream", "ip_xact", *(["axi_lite"] if options["stream"]["registers"] else [])]
    prefixes = [project.LANGUAGES[language].prefix for language in _hardware(options)]
    bench = ["vhdl_stream_testbench"] if "vhdl" in options["targets"] else []
    return (*(prefix + role for prefix in prefixes for role in roles), *bench, *_shared_roles(options, STREAM))


def _shared_roles(options: Mapping[str, Any], roles: Sequence[str]) -> tuple[str, ...]:
    """Returns the roles of files that each language's folder holds."""
    return tuple(SECOND * number + role for number, _ in enumerate(_hardware(options)) for role in roles)


def _of_language(
    language: str, languages: Sequence[str], shared: Sequence[str], files: Mapping[str, tuple[str, str]]
) -> dict[str, tuple[str, str]]:
    """Returns {role: file}. Except for the first language, roles in `shared` get the prefix SECOND, to be distinct."""
    return {SECOND * (role in shared and language != languages[0]) + role: file for role, file in files.items()}


def _artifacts(folder: str, files: Mapping[str, tuple[str, str]]) -> list[Artifact]:
    """Returns files as artifacts. files: {role: (path in the folder, text)}."""
    return [Artifact(role, f"{folder}/{path}", text) for role, (path, text) in files.items()]


def _named(folder: str, roles: tuple[str, ...], files: Mapping[str, str]) -> list[Artifact]:
    """Returns files as artifacts. files: {path in the folder: text}, in the order of `roles`."""
    return _artifacts(folder, dict(zip(roles, files.items(), strict=True)))


def _verilog(source: Source, _: tuple[Artifact, ...]) -> list[Artifact]:
    written = _named("verilog", ("verilog", "testbench"), verilog.emit(source.netlist))
    return [*written, Artifact("vectors", "verilog/vectors.txt", source.vectors())]


def _vhdl(source: Source, _: tuple[Artifact, ...]) -> list[Artifact]:
    return [
        *_named("vhdl", ("vhdl", "vhdl_testbench"), vhdl.emit(source.netlist)),
        Artifact("vhdl_vectors", "vhdl/vectors.txt", source.vectors()),
    ]


def _c(source: Source, _: tuple[Artifact, ...]) -> list[Artifact]:
    return _named("c", ("c",), c.emit(source.forest, source.c))


def _c_roles(options: Mapping[str, Any]) -> tuple[str, ...]:
    if "c" not in options["targets"]:
        return ()
    return c_project.roles(options.get("c", {}).get("project", "none"))


def _c_project(source: Source, _: tuple[Artifact, ...]) -> list[Artifact]:
    return _artifacts("c", c_project.emit(source.forest, source.c, source.answers(), source.hash))


def _hls(source: Source, _: tuple[Artifact, ...]) -> list[Artifact]:
    options = hls.HlsOptions(source.project.part("vivado", hls.PART), source.project.period(hls.PERIOD_NS))
    written = _named("hls", HLS[:-1], hls.emit(source.forest, source.netlist, options))
    return [*written, Artifact("hls_vectors", "hls/vectors.txt", source.vectors())]


def _amaranth(source: Source, _: tuple[Artifact, ...]) -> list[Artifact]:
    return _named("amaranth", ("amaranth",), amaranth.emit(source.netlist))


def _stream(source: Source, before: tuple[Artifact, ...]) -> list[Artifact]:
    artifacts: list[Artifact] = []
    languages = [file.role for file in before if file.role in project.LANGUAGES]
    for language in languages:
        files = axi_stream.emit(source.forest, source.netlist, source.stream, source.hash, language)
        files["raw_rows"] = ("rows.txt", source.raw_rows())
        artifacts += _artifacts(language, _of_language(language, languages, STREAM, files))
    return artifacts


def _project(source: Source, before: tuple[Artifact, ...]) -> list[Artifact]:
    artifacts = []
    for language, files in project.LANGUAGES.items():
        beside = {
            "core" if file.role == language else file.role.removeprefix(files.prefix): PurePosixPath(file.path).name
            for file in before
            if file.path.startswith(f"{language}/")
        }
        if "core" in beside:
            artifacts += _artifacts(language, project.emit(source.netlist, beside, source.project, language))
    return artifacts


def _project_roles(options: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(role for language in _hardware(options) for role in project.roles(language))


def _packages(source: Source, before: tuple[Artifact, ...]) -> list[Artifact]:
    languages, files = [file.role for file in before if file.role in project.LANGUAGES], packages.emit(source.netlist)
    return [
        file
        for language in languages
        for file in _artifacts(language, _of_language(language, languages, packages.ROLES, files))
    ]


def _engine(source: Source, _: tuple[Artifact, ...]) -> list[Artifact]:
    if source.engine is None:
        raise InternalError("an engine is wanted, and its capacity is not known", where="target engine")
    return _named("engine", engine.ROLES, engine.emit(source.forest, source.engine, source.words()))


HLS = ("hls_header", "hls", "hls_testbench", "hls_script", "hls_config", "hls_vectors")
_ALL = (
    Backend("verilog", _of_target("verilog", "verilog", "testbench", "vectors"), _verilog, "verilog"),
    Backend("vhdl", _of_target("vhdl", "vhdl", "vhdl_testbench", "vhdl_vectors"), _vhdl, "vhdl"),
    Backend("c", _of_target("c", "c"), _c, "c"),
    Backend("c_project", _c_roles, _c_project),
    Backend("hls", _of_target("hls", *HLS), _hls, "hls"),
    Backend("amaranth", _of_target("amaranth", "amaranth"), _amaranth, "amaranth"),
    Backend("packages", lambda options: _shared_roles(options, packages.ROLES), _packages),
    Backend("stream", _stream_roles, _stream),
    Backend("engine", _of_target("engine", *engine.ROLES), _engine, "engine"),
    Backend("project", _project_roles, _project),
)
BACKENDS: Mapping[str, Backend] = {backend.name: backend for backend in _ALL}
TARGETS = tuple(backend.target for backend in _ALL if backend.target is not None)
FROM_THE_FOREST = {"c", "engine"}  # targets that need no netlist


def implied_roles(options: Mapping[str, Any]) -> set[str]:
    """Returns the roles of all files of a design with the given options."""
    return {role for backend in BACKENDS.values() for role in backend.roles(options)}


def written(source: Source, options: Mapping[str, Any]) -> tuple[Artifact, ...]:
    """Returns the artifacts of all backends that have files for these options."""
    artifacts: tuple[Artifact, ...] = ()
    for backend in BACKENDS.values():
        if backend.roles(options):
            artifacts += tuple(backend.emit(source, artifacts))
    return artifacts
