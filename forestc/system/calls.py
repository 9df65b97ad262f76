"""Wraps calls that only some operating systems have, each with a substitute for the others.

`make types-elsewhere` finds such calls in other modules. Calls without a substitute are listed in
docs/reference/systems.md.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO

GRACE_SECONDS = 2  # seconds between the request to end and the kill

if sys.platform == "win32":
    ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM)
else:
    ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def end_process(process: subprocess.Popen[bytes]) -> None:
    """Ends a program that runs in a session of its own, and its children: with SIGTERM, then SIGKILL. On Windows it
    kills them at once."""
    if process.returncode is not None:  # The process is reaped: its id may be in use again.
        return
    if sys.platform == "win32":
        command = ["taskkill", "/F", "/T", "/PID", str(process.pid)]
        with suppress(OSError):
            subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        process.kill()
    else:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(GRACE_SECONDS)
            os.killpg(process.pid, signal.SIGKILL)


def lock_file(file: IO[str], *, wait: bool) -> bool:
    """Locks an open file against other processes. Returns False if another process holds it and `wait` is false. On
    Windows it only returns True."""
    if sys.platform != "win32":
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def resident_mb(pid: int) -> float | None:
    """Returns a process's resident memory in megabytes; None if the system does not tell it."""
    with suppress(OSError, ValueError, IndexError):
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
        if sys.platform != "win32":
            return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
    with suppress(OSError, ValueError, subprocess.SubprocessError):
        printed = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, timeout=10, check=True)
        return int(printed.stdout) * 1024 / 1e6
    return None


def cores() -> int:
    """Returns the number of processors that this process may use; outside of Linux, the machine's number."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    else:
        return os.cpu_count() or 1


def pseudo_terminal() -> tuple[int, int, str] | None:
    """Opens a pseudo-terminal that passes bytes unchanged. Returns the ends of the program and of its user, and the
    name of the second; None on Windows, which has none."""
    if sys.platform == "win32":
        return None
    else:
        import pty
        import tty

        program, user = pty.openpty()
        tty.setraw(user)
        return program, user, os.ttyname(user)
