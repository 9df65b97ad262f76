"""Functions compiled by numba, cached on disk where there is a folder to write to, and a thread pool to run them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from itertools import pairwise
from typing import Any, TypeVar

import numba
from numba import njit

from forestc.algorithms.deadline import look

A = TypeVar("A")
B = TypeVar("B")
PIECES = 8  # pieces of work per thread, so that no thread waits long for another


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
    look()
    threads = min(numba.get_num_threads(), count)
    if threads < 2 or count <= few:
        run(0, count)
        return
    ends = sorted({count * piece // (threads * PIECES) for piece in range(threads * PIECES + 1)})

    def part(first: int, past: int) -> None:
        look()
        run(first, past)

    with ThreadPoolExecutor(threads) as pool:
        for future in [pool.submit(copy_context().run, part, *stretch) for stretch in pairwise(ends)]:
            future.result()


def in_threads(run: Callable[[A], B], items: Sequence[A]) -> list[B]:
    """What `run` makes of each item, in threads on all cores; most of it should be compiled functions."""

    def timely(item: A) -> B:
        look()
        return run(item)

    if len(items) < 2:
        return [timely(item) for item in items]
    with ThreadPoolExecutor(numba.get_num_threads()) as pool:
        return [future.result() for future in [pool.submit(copy_context().run, timely, item) for item in items]]


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
