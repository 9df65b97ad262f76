"""The host's C and C++ compilers."""

from __future__ import annotations

import os
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from forestc.errors import ToolError
from forestc.toolchain.run import find, run_tool

STRICT = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]
SANITIZERS = ["-fsanitize=undefined,address", "-fno-sanitize-recover=all"]


def c_compiler() -> str | None:
    """The C compiler to use: $CC, else cc, gcc or clang on the PATH."""
    return find(os.environ.get("CC", "cc"), "cc", "gcc", "clang")


def cxx_compiler() -> str | None:
    """The C++ compiler to use: $CXX, else c++, g++ or clang++ on the PATH."""
    return find(os.environ.get("CXX", "c++"), "c++", "g++", "clang++")


@cache
def sanitizers(compiler: str) -> tuple[str, ...]:
    """The sanitizer flags this compiler can link; empty where it has none of the run-time libraries."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "probe.c"
        source.write_text("int main(void) { return 0; }\n")
        try:
            run_tool([compiler, *SANITIZERS, "probe.c", "-o", "probe"], Path(folder), seconds=60)
            run_tool([str(Path(folder) / "probe")], Path(folder), seconds=60)
        except ToolError:
            return ()
    return tuple(SANITIZERS)


def ap_types() -> Path | None:
    """The folder of the open ap_int and ap_fixed headers inside an installed hls4ml, which is not imported."""
    spec = find_spec("hls4ml")
    places = spec.submodule_search_locations if spec is not None else None
    folders = [Path(place) / "templates" / "vivado" / "ap_types" for place in places or ()]
    return next((folder for folder in folders if (folder / "ap_int.h").is_file()), None)


def version(program: str) -> str:
    """The first line a program says of its version."""
    for flag in ("--version", "-V"):
        try:
            lines = run_tool([program, flag], Path.cwd(), seconds=60).decode("utf-8", "replace").splitlines()
        except ToolError:
            continue
        if lines:
            return lines[0].strip()
    return Path(program).name
