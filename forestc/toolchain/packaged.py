"""Finds programs packaged as WebAssembly on PyPI (YoWASP), which are compiled to machine code on their first run."""

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


def find_command(program: str, native: bool = False) -> tuple[str, ...] | None:
    """Returns the command of a program, such as nextpnr-ice40: the PyPI package's, otherwise one on the PATH; `native`
    reverses this order. Returns None if there is none."""
    name = program.replace("-", "_")
    module = f"yowasp_{name}"
    run = f"import sys, {module}; sys.exit({module}.run_{name}(sys.argv[1:]))"
    packaged = (sys.executable, "-c", run) if util.find_spec(module) else None
    path = find(program)
    on_path = None if path is None else (path,)
    return (on_path or packaged) if native else (packaged or on_path)


def need_command(program: str, native: bool = False) -> tuple[str, ...]:
    """Returns the command of a program. Raises MissingToolError if there is none."""
    command = find_command(program, native)
    if command is None:
        do = f'pip install "forestc[synth]", or install {program.partition("-")[0]}'
        raise MissingToolError(f"{program} was not found", do=do)
    return command


@cache
def prepare(package: str, command: tuple[str, ...]) -> None:
    """Compiles a packaged program in one process, while others that need it wait. For yosys this takes a minute, and
    every run that starts meanwhile would repeat it. If the package's cache can't be found or written to, nothing is
    prepared, and each run compiles the program itself."""
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
