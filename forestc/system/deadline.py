"""Time limits of searches: what takes long runs in a thread, which the caller leaves when the time is over.

The caller goes on at once with what was found until then. The thread looks at the clock wherever it shares work out,
and ends there; compiled code that it is in runs to its end first, beside the caller.
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
    """The time of a search is over."""


def look() -> None:
    """Raises LateError in a thread whose time is over."""
    until = _until.get()
    if until < math.inf and time.monotonic() > until:
        raise LateError


def before(until: float, run: Callable[[], T]) -> T:
    """Returns what `run` returns, and raises what it raises; LateError at a time of time.monotonic(), if it has not
    ended by then. An infinite time runs it here."""
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
