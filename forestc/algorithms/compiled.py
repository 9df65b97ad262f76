"""Functions compiled by numba, cached on disk where there is a folder to write to, and a thread pool to run them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba import njit
from numba.core import event

A = TypeVar("A")
B = TypeVar("B")
PIECES = 8  # pieces of work per thread, so that no thread waits long for another
OWN = ("forestc", "hw_sim")  # packages of the functions that are spoken of
_log = logging.getLogger("forestc")


def _kept_in(cached: str | None) -> str:
    """What becomes of a compiled function, from the folder where numba keeps it."""
    if cached is None:
        return "and cannot keep them, as no folder for them can be written to (set NUMBA_CACHE_DIR to one that can)"
    package = Path(__file__).parents[1]
    if Path(cached).is_relative_to(package.parent):
        return f"and keeps them in the __pycache__ folders of {package}"
    return f"and keeps them in {Path(cached).parent}"


class Notice(event.Listener):  # type: ignore[misc]
    """Says once, while it happens, that functions of forestc are compiled. numba starts the event only for functions
    that are not in its cache. Handlers of the logger `forestc` get the sentence; without any it goes to standard error.
    """

    def __init__(self) -> None:
        self._told = False

    def on_start(self, event: Any) -> None:
        function = event.data["dispatcher"]
        if self._told or function.py_func.__module__.partition(".")[0] not in OWN:
            return
        self._told = True
        kept = _kept_in(function.stats.cache_path)
        _log.warning(
            "forestc compiles its own functions for this computer, once (ten seconds of processor time or more), %s",
            kept,
        )

    def on_end(self, event: Any) -> None:
        pass


event.register("numba:compile", Notice())


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """A decorator that compiles a function with numba and releases the GIL while it runs. options: numba's own."""

    def decorate(function: Callable[..., Any]) -> Any:
        try:
            return njit(cache=True, nogil=True, **options)(function)
        except RuntimeError:  # no folder to cache compiled code in
            return njit(nogil=True, **options)(function)

    return decorate


def share_out(count: int, run: Callable[[int, int], None], *, few: int = 1) -> None:
    """Calls run(first, past) for ranges that together cover 0 .. count - 1, on all cores; up to `few` on this one, as
    threads take a while to start.

    run: calls a compiled function; different ranges must not write to the same place. Python threads are used instead
    of numba's parallel loops, which take twice as long to compile and can't be entered by two threads at once.
    """
    threads = min(numba.get_num_threads(), count)
    if threads < 2 or count <= few:
        run(0, count)
        return
    ends = sorted({count * piece // (threads * PIECES) for piece in range(threads * PIECES + 1)})
    with ThreadPoolExecutor(threads) as pool:
        for future in [pool.submit(run, *stretch) for stretch in pairwise(ends)]:
            future.result()


def in_threads(run: Callable[[A], B], items: Sequence[A]) -> list[B]:
    """What `run` makes of each item, in threads on all cores; most of it should be compiled functions."""
    if len(items) < 2:
        return [run(item) for item in items]
    with ThreadPoolExecutor(numba.get_num_threads()) as pool:
        return list(pool.map(run, items))


@contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C as KeyboardInterrupt also where it comes while numba prepares a call, which makes a SystemError of it."""
    try:
        yield
    except SystemError as error:
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, KeyboardInterrupt):
                raise cause from None
            cause = cause.__cause__ or cause.__context__
        raise
