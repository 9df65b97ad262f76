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

# Extras of nextpnr's families that `synth` does not install.
EXTRAS = ("gowin", "machxo2", "nexus", "gatemate")


def find_command(program: str, native: bool = False) -> tuple[str, ...] | None:
    """Returns the command of a program: the PyPI package's, otherwise one on the PATH; None if there is none. native:
    reverses the order."""
    name = program.replace("-", "_")
    module = f"yowasp_{name}"
    run = f"import sys, {module}; sys.exit({module}.run_{name}(sys.argv[1:]))"
    packaged = (sys.executable, "-c", run) if util.find_spec(module) else None
    path = find(program)
    on_path = None if path is None else (path,)
    return (on_path or packaged) if native else (packaged or on_path)


def need_command(program: str, native: bool = False) -> tuple[str, ...]:
    command = find_command(program, native)
    if command is None:
        family = program.rpartition("-")[2]
        extra = family if family in EXTRAS else "synth"
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
