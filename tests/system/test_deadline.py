"""Tests that a caller leaves a slow function at its deadline, and the function ends where it divides its work."""

from __future__ import annotations

import math
import threading
import time

import pytest

from forestc.system.compiled import in_threads, share_out
from forestc.system.deadline import LateError, before, look


def test_what_ends_in_time_returns_and_raises_as_here():
    assert before(math.inf, threading.get_ident) == threading.get_ident()
    assert before(time.monotonic() + 60, lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        before(time.monotonic() + 60, lambda: 1 // 0)
    look()  # There is no limit here.


@pytest.mark.parametrize(
    "shares", [lambda part: share_out(64, lambda *_: part()), lambda part: in_threads(lambda _: part(), range(64))]
)
def test_the_caller_goes_on_at_once_and_the_thread_ends_soon_after(shares):
    ended, parts = threading.Event(), []

    def work():
        try:
            while True:
                shares(lambda: parts.append(time.sleep(0.02)))
        except LateError:
            ended.set()
            raise

    begin = time.monotonic()
    with pytest.raises(LateError):
        before(begin + 0.2, work)
    assert time.monotonic() - begin < 2 and parts
    assert ended.wait(5)
