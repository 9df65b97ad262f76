"""Writes files for firmware projects beside the C header: a self-test, files for CMake, PlatformIO, Arduino, Zephyr,
ESP-IDF and ESPHome, and a server of rows over a serial port."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from forestc.backends.base import Artifact, artifacts, named
from forestc.backends.c import esphome, header, selftest, serial
from forestc.backends.c.options import COptions, c_options_of
from forestc.backends.c.selftest import Answers
from forestc.backends.names import identifier
from forestc.forest.ir import Forest
from forestc.forest.outputs import kinds_of
from hdl_templates import render

if TYPE_CHECKING:
    from forestc.backends.source import Source


class _File(NamedTuple):
    """A file for a build system."""

    role: str
    path: str  # in the folder `c`, with {p} for the model's name
    template: str


CMAKE = (
    _File("c_cmake", "CMakeLists.txt", "c/project/CMakeLists.txt.j2"),
    _File("c_test", "test/{p}_test.c", "c/project/test.c.j2"),
)
FILES: Mapping[str, tuple[_File, ...]] = {
    "selftest": (),
    "cmake": CMAKE,
    "platformio": (_File("c_platformio", "library.json", "c/project/library.json.j2"),),
    "arduino": (
        _File("c_arduino", "library.properties", "c/project/library.properties.j2"),
        _File("c_arduino_example", "examples/{p}/{p}.ino", "c/project/example.ino.j2"),
    ),
    "zephyr": (
        _File("c_zephyr", "zephyr/module.yml", "c/project/module.yml.j2"),
        _File("c_zephyr_cmake", "zephyr/CMakeLists.txt", "c/project/zephyr.cmake.j2"),
        _File("c_zephyr_kconfig", "zephyr/Kconfig", "c/project/Kconfig.j2"),
    ),
    "esp-idf": (*CMAKE, _File("c_idf", "idf_component.yml", "c/project/idf_component.yml.j2")),
    "esphome": (
        _File("c_esphome", "__init__.py", "c/project/esphome.py.j2"),
        _File("c_esphome_header", "{p}_esphome.h", "c/project/esphome.h.j2"),
    ),
    "serial": (
        _File("c_serial", "{p}_serial.h", "c/project/serial.h.j2"),
        _File("c_serial_arduino", "examples/{p}_serial/{p}_serial.ino", "c/project/serial.ino.j2"),
        _File("c_serial_pico", "serial/pico/main.c", "c/project/pico.c.j2"),
        _File("c_serial_pico_cmake", "serial/pico/CMakeLists.txt", "c/project/pico.cmake.j2"),
        _File("c_serial_zephyr", "serial/zephyr/main.c", "c/project/zephyr_main.c.j2"),
        _File("c_serial_zephyr_cmake", "serial/zephyr/CMakeLists.txt", "c/project/zephyr_app.cmake.j2"),
        _File("c_serial_zephyr_conf", "serial/zephyr/prj.conf", "c/project/zephyr.conf.j2"),
    ),
}
SELFTEST = "c_selftest"


def roles(project: str) -> tuple[str, ...]:
    """Returns the roles of the files for a value of the option `c_project`."""
    files = _files(project)
    return () if files is None else (SELFTEST, *(file.role for file in files))


def emit(forest: Forest, options: COptions, answers: Answers, design_hash: str) -> dict[str, tuple[str, str]]:
    """Returns the project's files as {role: (path in the folder `c`, text)}."""
    files, prefix = _files(options.c_project), identifier(forest.name)
    if files is None:
        return {}
    view = {
        "prefix": prefix,
        "macro": prefix.upper(),
        "title": f"{len(forest.trees)} trees, {forest.n_nodes} nodes",
        **(esphome.view(forest, options) if "c_esphome" in roles(options.c_project) else {}),
        **(serial.view(forest, options, design_hash) if "c_serial" in roles(options.c_project) else {}),
    }
    written = {SELFTEST: (f"{prefix}_selftest.h", selftest.emit(forest, options, answers))}
    return written | {file.role: (file.path.format(p=prefix), render(file.template, **view)) for file in files}


def written(source: Source, *_: object) -> list[Artifact]:
    """Returns all files of the target c."""
    options = c_options_of(source.options["c"])
    kinds = kinds_of(source.options["outputs"])
    files = named("c", ("c",), header.emit_with(source.forest, options, kinds))
    return files + artifacts("c", emit(source.forest, options, source.answers(), source.hash))


def _files(project: str) -> tuple[_File, ...] | None:
    if project == "none":
        return None
    selected = FILES if project == "all" else project.split(",")
    return tuple(dict.fromkeys(file for kit, files in FILES.items() if kit in selected for file in files))
