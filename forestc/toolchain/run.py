"""Runs external programs in a given folder, without a shell, with a time limit.

If a program is ended, its child processes are ended too.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import TypeVar

from forestc.errors import ToolError, printable
from forestc.system.calls import end_process

T = TypeVar("T")

TAIL_LINES = 12  # lines of a failed program's log that its error shows


@dataclass
class _Running:
    """The running programs of a batch; `end` terminates them and refuses new ones."""

    running: set[subprocess.Popen[bytes]] = field(default_factory=set)
    ended: bool = False
    lock: Lock = field(default_factory=Lock)

    @contextmanager
    def program(
        self, command: Sequence[str], cwd: Path, env: Mapping[str, str] | None
    ) -> Iterator[subprocess.Popen[bytes]]:
        """Starts a program and yields it. At the end of the block the program is terminated."""
        with self.lock:
            if self.ended:
                raise ToolError(
                    "was not started, as another program failed",
                    where=Path(command[0]).name,
                    do="see the error of the other program",
                )
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
                    end_process(process)
        finally:
            with self.lock:
                self.running.discard(process)

    def end(self) -> None:
        with self.lock:
            self.ended = True
            for process in self.running:
                end_process(process)


# The batch of programs to which the threads of one `together` belong.
_SHARED: ContextVar[_Running | None] = ContextVar("_SHARED", default=None)


def together(tasks: Sequence[Callable[[], T]]) -> list[T]:
    """Runs tasks in threads and returns their results. If a task fails, the external programs of all tasks are
    terminated and the failed task's exception is raised."""
    batch = _SHARED.get() or _Running()

    def run(task: Callable[[], T]) -> T:
        _SHARED.set(batch)
        return task()

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        futures = [pool.submit(copy_context().run, run, task) for task in tasks]
        try:
            return [future.result() for future in futures]
        except BaseException:  # also an interrupt, which only this thread receives
            batch.end()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def is_ended() -> bool:
    """Returns True if another task of the same `together` failed, or the user interrupted it."""
    batch = _SHARED.get()
    return batch is not None and batch.ended


def run_tool(
    command: Sequence[str],
    cwd: Path,
    *,
    seconds: float = 600,
    env: Mapping[str, str] | None = None,
    data: bytes | None = None,
    errors: bool = False,
    writes: Sequence[str] = (),
) -> bytes:
    """Runs a program and returns its standard output. data: standard input. writes: files that it must write. errors:
    appends standard error. Raises ToolError if it fails or exceeds `seconds`."""
    name, batch = Path(command[0]).name, _SHARED.get() or _Running()
    for file in writes:
        (cwd / file).unlink(missing_ok=True)
    try:
        with batch.program(command, cwd, env) as process:
            out, err = process.communicate(data or b"", timeout=seconds)
    except FileNotFoundError:
        raise ToolError("was not found", where=command[0]) from None
    except OSError as error:  # not executable, or no program
        raise ToolError(f"can't be started ({error.strerror})", where=command[0]) from None
    except subprocess.TimeoutExpired:
        raise ToolError(f"took longer than {seconds:.0f} s", where=name, do="give it a smaller design") from None
    missing = next((file for file in writes if not _written(cwd / file)), None)
    if process.returncode or missing is not None:
        log = printable((out + err).decode("utf-8", "replace")).splitlines()
        tail = " | ".join(line.strip() for line in log[-TAIL_LINES:] if line.strip())
        without = "" if process.returncode else f" and did not write {missing}"
        raise ToolError(f"ended with exit status {process.returncode}{without}: {tail[:2000]}", where=name)
    return out + (err if errors else b"")


def tool_text(command: Sequence[str], cwd: Path, *, seconds: float = 600, errors: bool = False) -> str:
    return printable(run_tool(command, cwd, seconds=seconds, errors=errors).decode("utf-8", "replace"))


def _written(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0


def package_folders(name: str) -> list[Path]:
    """Returns the folders of a Python package; none if it is not installed."""
    spec = find_spec(name)
    return list(map(Path, spec.submodule_search_locations or ())) if spec is not None else []


def find(*names: str) -> str | None:
    """Returns the path of the first of these programs on the PATH; None if there is none."""
    return next((path for name in names if (path := shutil.which(name))), None)
