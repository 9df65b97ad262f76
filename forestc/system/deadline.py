"""Time limits of searches: a search runs in a thread, and the caller leaves it when the time is over.

The caller goes on at once with the results found so far. The thread checks the time whenever it shares work out, and
ends there; compiled code that it runs ends first, beside the caller.
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
    """Raised if the time of a search is over."""


def look() -> None:
    """Raises LateError in a thread if its time is over."""
    until = _until.get()
    if until < math.inf and time.monotonic() > until:
        raise LateError


def before(until: float, run: Callable[[], T]) -> T:
    """Calls `run` in a thread and returns its result, or raises its exception; raises LateError if it does not end in
    time. until: as time.monotonic() counts; infinity calls `run` in this thread."""
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
