"""Programs of PyPI packages in WebAssembly (YoWASP), which their first run compiles to machine code."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache
from pathlib import Path

from forestc.errors import ToolError
from forestc.toolchain.run import run_tool


@cache
def prepare(package: str, command: tuple[str, ...]) -> None:
    """Has one process compile a packaged program, while others that want it wait.

    That takes yosys a minute of a core, and all runs that start within it would do the same work. Where the package's
    cache can't be found or written to nothing is prepared, and each run does it for itself.
    """
    try:
        import fcntl

        from platformdirs import user_cache_dir  # the package itself asks it
    except ImportError:
        return
    place = Path(os.environ.get("YOWASP_CACHE_DIR") or user_cache_dir("YoWASP", appauthor=False)) / package
    with suppress(OSError, ToolError):
        place.mkdir(parents=True, exist_ok=True)
        with (place / "forestc.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not any(place.glob("*/*")):
                run_tool([*command, "-V"], place)
