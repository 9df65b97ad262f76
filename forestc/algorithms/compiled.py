"""Compiled functions, kept on disk where there is a folder for them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numba
from numba import njit

PIECES = 8  # of work for each thread, so that none waits long for another


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """A decorator: the function compiled by numba, with its options. It runs beside other threads."""

    def decorate(function: Callable[..., Any]) -> Any:
        try:
            return njit(cache=True, nogil=True, **options)(function)
        except RuntimeError:  # there is no folder where compiled code could be kept
            return njit(nogil=True, **options)(function)

    return decorate


def share_out(count: int, run: Callable[[int, int], None]) -> None:
    """Calls run(first, last) for stretches that make up 0 .. count - 1, on all cores.

    run: calls a compiled function, and what stretches write does not overlap. Threads rather than numba's own parallel
    loops, which take twice as long to compile and can't be run by two threads at once.
    """
    threads = min(numba.get_num_threads(), count)
    if threads < 2:
        run(0, count)
        return
    ends = sorted({count * piece // (threads * PIECES) for piece in range(threads * PIECES + 1)})
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(run, *stretch) for stretch in pairwise(ends)]:
            done.result()
