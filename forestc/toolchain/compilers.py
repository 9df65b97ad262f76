"""Finds the host's C and C++ compilers and what they support."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

from forestc.errors import ToolError
from forestc.toolchain.run import find, package_folders, run_tool, tool_text

STRICT = [
    "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Wdouble-promotion", "-Werror",
]  # fmt: skip
# Leaves out slow checks that find no more than the address sanitizer does.
_LEFT_OUT = "-fno-sanitize=null,alignment,object-size,pointer-overflow,nonnull-attribute,returns-nonnull-attribute"
_PLAIN = ("-fsanitize=undefined,address", "-fno-sanitize-recover=all")
# Lists sets of flags for GCC, clang and others; the first that works is used.
SANITIZERS = (
    (*_PLAIN, _LEFT_OUT, "--param", "asan-instrumentation-with-call-threshold=0"),
    (*_PLAIN, _LEFT_OUT, "-mllvm", "-asan-instrumentation-with-call-threshold=0"),
    _PLAIN,
)


def c_compiler() -> str | None:
    """Returns the path of the C compiler: $CC, otherwise cc, gcc or clang on the PATH; None if there is none."""
    return find(os.environ.get("CC", "cc"), "cc", "gcc", "clang")


def cxx_compiler() -> str | None:
    """Returns the path of the C++ compiler: $CXX, otherwise c++, g++ or clang++ on the PATH; None if there is none."""
    return find(os.environ.get("CXX", "c++"), "c++", "g++", "clang++")


@cache
def sanitizers(compiler: str) -> tuple[str, ...]:
    """Returns the sanitizer flags that work with a compiler; empty if none do."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "probe.c"
        source.write_text("int main(void) { return 0; }\n")
        for flags in SANITIZERS:
            with suppress(ToolError):
                run_tool([compiler, *flags, "probe.c", "-o", "probe"], Path(folder), seconds=60, writes=["probe"])
                run_tool([str(Path(folder) / "probe")], Path(folder), seconds=60)
                return flags
    return ()


def ap_types() -> Path | None:
    """Returns the folder of the open ap_int and ap_fixed headers in an installed hls4ml; None if there is none."""
    folders = [package / "templates" / "vivado" / "ap_types" for package in package_folders("hls4ml")]
    return next((folder for folder in folders if (folder / "ap_int.h").is_file()), None)


def version(program: str) -> str:
    """Returns the first line of a program's version output; the program's name if there is none."""
    for flag in ("--version", "-V"):
        try:
            lines = tool_text([program, flag], Path.cwd(), seconds=60).splitlines()
        except ToolError:
            continue
        if lines:
            return lines[0].strip()
    return Path(program).name
