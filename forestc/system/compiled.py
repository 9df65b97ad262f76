"""Compiles functions with numba and runs them in threads.

Compiling takes seconds, so functions with small calls run as plain Python first.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from functools import cache, cached_property, update_wrapper
from itertools import pairwise
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, TypeVar, cast

import numpy as np

from forestc.system.deadline import look

A = TypeVar("A")
B = TypeVar("B")
PLAIN = 500_000  # microseconds that a function runs as plain Python before numba compiles it
PIECES = 8  # pieces of work per thread, so that no thread waits long for another
OWN = ("forestc", "hw_sim")  # lists packages; compiling their functions is announced
_log = logging.getLogger("forestc")


def _kept_in(cached: str | None) -> str:
    if cached is None:
        return "and cannot keep them, as no folder for them can be written to (set NUMBA_CACHE_DIR to one that can)"
    package = Path(__file__).parents[1]
    if Path(cached).is_relative_to(package.parent):
        return f"and keeps them in the __pycache__ folders of {package}"
    return f"and keeps them in {Path(cached).parent}"


@cache
def announce() -> None:
    """From now on, says once if numba compiles a function of forestc or of its simulator."""
    from numba.core import event

    class Notice(event.Listener):  # type: ignore[misc]
        spoke = False

        def on_start(self, event: Any) -> None:
            function = event.data["dispatcher"]
            if self.spoke or str(function.py_func.__module__).partition(".")[0] not in OWN:
                return
            self.spoke = True
            where = _kept_in(function.stats.cache_path)
            _log.warning(
                "forestc compiles its own functions that this run needs for this computer, each of them once (seconds "
                "of processor time; with -O2 ten or more), %s",
                where,
            )

        def on_end(self, event: Any) -> None:
            pass

    event.register("numba:compile", Notice())


class _Compiled:
    """A function that numba compiles when it is first needed."""

    def __init__(
        self, function: FunctionType, microseconds: Callable[..., float] | None, options: dict[str, Any]
    ) -> None:
        update_wrapper(self, function)
        self.py_func, self._options = function, options
        self.microseconds, self._spent = microseconds, 0.0
        FUNCTIONS[function] = self

    def __call__(self, *given: Any) -> Any:
        if self.microseconds is not None and self._spent <= PLAIN:
            self._spent += self.microseconds(*given)
            if self._spent <= PLAIN:
                with np.errstate(all="ignore"):  # Compiled words overflow without a warning.
                    return self.plain(*given)
        return self.dispatcher(*given)

    @cached_property
    def plain(self) -> Callable[..., Any]:
        """The function as plain Python; the compiled functions that it calls are plain, too."""
        code, global_names = self.py_func.__code__, self.py_func.__globals__
        called = {name: FUNCTIONS.get(getattr(global_names.get(name), "py_func", None)) for name in _names(code)}
        inner = {name: function.plain for name, function in called.items() if function is not None}
        return FunctionType(code, global_names | inner)

    @cached_property
    def dispatcher(self) -> Any:
        """The function compiled by numba. It also replaces compiled callees in the module's globals by their
        dispatchers."""
        from numba import njit

        announce()
        global_names = self.py_func.__globals__
        for name in _names(self.py_func.__code__):
            if isinstance(global_names.get(name), _Compiled):
                global_names[name] = global_names[name].dispatcher
        # Leaves out numba's wrapper for calls from C, which nothing here needs.
        options = {"nogil": True, "no_cfunc_wrapper": True} | self._options
        try:
            function = njit(cache=True, **options)(self.py_func)
        except RuntimeError:  # There is no folder to cache compiled code in.
            return njit(**options)(self.py_func)
        cached = function._cache._cache_file
        try:
            cached._load_index()
        except (AttributeError, ImportError):  # Another version wrote the cache, with a class that is gone.
            cached.flush()
        return function


FUNCTIONS: dict[Any, _Compiled] = {}  # registers compiled functions by their Python function


def _names(code: CodeType) -> set[str]:
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*map(_names, inner))


def compiled(microseconds: Callable[..., float] | None = None, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Returns a decorator that compiles a function with numba. microseconds: estimates a call's time as plain Python;
    without it, the first call compiles. Both versions must give the same bits."""
    return lambda function: _Compiled(cast(FunctionType, function), microseconds, options)


def threads() -> int:
    numba_threads = getattr(sys.modules.get("numba"), "get_num_threads", None)
    if numba_threads is not None:
        return int(numba_threads())
    given = os.environ.get("NUMBA_NUM_THREADS", "")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return int(given) if given.isdecimal() else cores


def share_out(count: int, run: Callable[[int, int], None], *, few: int = 1) -> None:
    """Calls run(first, past) in threads, for half-open ranges that cover 0 to count - 1. few: largest count without
    threads. Raises LateError."""
    look()
    count_of = min(threads(), count)
    if count_of < 2 or count <= few:
        run(0, count)
        return
    ends = sorted({count * piece // (count_of * PIECES) for piece in range(count_of * PIECES + 1)})

    def part(first: int, past: int) -> None:
        look()
        run(first, past)

    with ThreadPoolExecutor(count_of) as pool:
        for future in [pool.submit(copy_context().run, part, first, past) for first, past in pairwise(ends)]:
            future.result()


def in_threads(run: Callable[[A], B], items: Sequence[A]) -> list[B]:
    """Calls `run` for each item in threads and returns the results. Raises LateError if the time is over."""

    def timely(item: A) -> B:
        look()
        return run(item)

    if len(items) < 2:
        return [timely(item) for item in items]
    with ThreadPoolExecutor(threads()) as pool:
        return [future.result() for future in [pool.submit(copy_context().run, timely, item) for item in items]]


@contextmanager
def interruptible() -> Iterator[None]:
    """Raises the exception of a signal, such as KeyboardInterrupt, where numba raises SystemError instead."""
    try:
        yield
    except SystemError as error:
        cause: BaseException | None = error
        while cause is not None:
            if not isinstance(cause, Exception):
                raise cause from None
            cause = cause.__cause__ or cause.__context__
        raise
