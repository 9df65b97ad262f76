"""Time limits of searches: a search runs in a thread, and its caller stops waiting when the time is over.

The thread ends when it next checks the time.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from typing import TypeVar

T = TypeVar("T")
_until: ContextVar[float] = ContextVar("until", default=math.inf)


class LateError(Exception):
    pass


def look() -> None:
    """Raises LateError if the time of the search in this thread is over."""
    until = _until.get()
    if until < math.inf and time.monotonic() > until:
        raise LateError


def before(until: float, run: Callable[[], T]) -> T:
    """Calls `run` in a thread and returns its result. Raises LateError if it runs past `until`, a value of
    time.monotonic(). An infinite `until` needs no thread."""
    if until == math.inf:
        return run()
    returned: list[T] = []
    raised: list[BaseException] = []

    def limited() -> None:
        _until.set(until)
        try:
            returned.append(run())
        except BaseException as error:  # noqa: BLE001 - raised again by the caller
            raised.append(error)

    thread = threading.Thread(target=copy_context().run, args=(limited,), daemon=True)
    thread.start()
    thread.join(max(0.0, until - time.monotonic()))
    if raised:
        raise raised[0]
    if not returned:
        raise LateError
    return returned[0]
