"""Runs outside programs: in a folder of theirs, without a shell, with a time limit, exit code checked.

Each program gets a session of its own. If it takes too long, or the caller is interrupted, the whole session's process
group is ended, so that no child of a compiler driver goes on alone.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TypeVar

from forestc.errors import ToolError

T = TypeVar("T")

TAIL_LINES = 12
GRACE_SECONDS = 2


@dataclass
class _Batch:
    """The programs that run now; `end` ends them and lets no other start."""

    running: set[subprocess.Popen[bytes]] = field(default_factory=set)
    ended: bool = False
    lock: Lock = field(default_factory=Lock)

    @contextmanager
    def program(
        self, command: Sequence[str], cwd: Path, env: Mapping[str, str] | None
    ) -> Iterator[subprocess.Popen[bytes]]:
        """A program that is over, one way or another, when the block is left."""
        with self.lock:
            if self.ended:
                raise ToolError(f"{Path(command[0]).name} was not started, as another program failed")
            process = subprocess.Popen(
                list(command),
                cwd=cwd,
                env=None if env is None else dict(env),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
            self.running.add(process)
        try:
            with process:
                try:
                    yield process
                finally:
                    _kill(process)
        finally:
            with self.lock:
                self.running.discard(process)

    def end(self) -> None:
        with self.lock:
            self.ended = True
            for process in self.running:
                _kill(process)


# What `together` runs: a thread's programs are ended with those of its siblings.
_SHARED: ContextVar[_Batch | None] = ContextVar("_SHARED", default=None)


def together(tasks: Sequence[Callable[[], T]]) -> list[T]:
    """What the tasks return, as many of them running at once as there are cores.

    If one fails, or the caller is interrupted, the outside programs of all are ended. Raises what the first of them
    raised.
    """
    batch = _SHARED.get() or _Batch()

    def run(task: Callable[[], T]) -> T:
        _SHARED.set(batch)
        return task()

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        waiting = [pool.submit(copy_context().run, run, task) for task in tasks]
        try:
            return [done.result() for done in waiting]
        except BaseException:  # an interrupt too, which reaches this thread alone
            batch.end()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Ends a program and its children: asked first, as compilers then remove their temporary files."""
    if process.returncode is not None:  # waited for: its number may be another's by now
        return
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_SECONDS)
        os.killpg(process.pid, signal.SIGKILL)


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
    return _run(_SHARED.get() or _Batch(), command, cwd, seconds, env, data, errors)


def run_tools(commands: Sequence[Sequence[str]], cwd: Path, *, seconds: float = 600) -> None:
    """Runs several programs, as many at once as there are cores; if one fails, all are ended. Raises ToolError."""
    together([partial(run_tool, command, cwd, seconds=seconds) for command in commands])


def _run(
    batch: _Batch,
    command: Sequence[str],
    cwd: Path,
    seconds: float,
    env: Mapping[str, str] | None = None,
    data: bytes | None = None,
    errors: bool = False,
) -> bytes:
    name = Path(command[0]).name
    try:
        with batch.program(command, cwd, env) as process:
            out, err = process.communicate(data or b"", timeout=seconds)
    except FileNotFoundError:
        raise ToolError(f"{name} is not there", where=command[0]) from None
    except subprocess.TimeoutExpired:
        raise ToolError(f"{name} took longer than {seconds:.0f} s", do="give it a smaller design") from None
    if process.returncode:
        log = (out + err).decode("utf-8", "replace").splitlines()
        tail = " | ".join(line.strip() for line in log[-TAIL_LINES:] if line.strip())
        raise ToolError(f"{name} ended with exit status {process.returncode}", where=tail[:2000])
    return out + (err if errors else b"")


def find(*names: str) -> str | None:
    """The first of these programs on the PATH."""
    return next((path for name in names if (path := shutil.which(name))), None)
