"""Runs outside programs: in a folder of theirs, without a shell, with a time limit, exit code checked."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from forestc.errors import ToolError

TAIL_LINES = 12


def run_tool(
    command: Sequence[str],
    cwd: Path,
    *,
    seconds: float = 600,
    env: Mapping[str, str] | None = None,
    data: bytes | None = None,
    errors: bool = False,
) -> bytes:
    """Standard output, with `errors` what is on standard error after it.

    Raises ToolError with the log's tail if it fails or takes longer than `seconds`.
    """
    name = Path(command[0]).name
    try:
        done = subprocess.run(
            list(command),
            cwd=cwd,
            env=None if env is None else dict(env),
            input=data if data is not None else b"",
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except FileNotFoundError:
        raise ToolError(f"{name} is not there", where=command[0]) from None
    except subprocess.TimeoutExpired:
        raise ToolError(f"{name} took longer than {seconds:.0f} s", do="give it a smaller design") from None
    if done.returncode:
        log = (done.stdout + done.stderr).decode("utf-8", "replace").splitlines()
        tail = " | ".join(line.strip() for line in log[-TAIL_LINES:] if line.strip())
        raise ToolError(f"{name} ended with exit status {done.returncode}", where=tail[:2000])
    return done.stdout + (done.stderr if errors else b"")


def find(*names: str) -> str | None:
    """The first of these programs on the PATH."""
    return next((path for name in names if (path := shutil.which(name))), None)
