"""Turns signals that end the program into exceptions, so temporary files are removed and outside tools ended."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from forestc.system.calls import ENDING_SIGNALS


class Interrupted(BaseException):
    """Raised for a signal that ends the program. It is a BaseException, so that no handler of errors catches it."""

    def __init__(self, number: int) -> None:
        self.status = 128 + number


class CtrlC(KeyboardInterrupt):
    """Raised for Ctrl-C. A plain KeyboardInterrupt that passes through exec() would change the exit status."""


@contextmanager
def ctrl_c_ends() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt as error:
        ended = Interrupted(signal.SIGINT)
        for note in getattr(error, "__notes__", ()):
            ended.add_note(note)
        raise ended from None


_ending: list[int] = []  # signals, except Ctrl-C, that ended this process


def raise_if_ending() -> None:
    """Raises Interrupted if a signal other than Ctrl-C has arrived; compiled code may have lost its exception."""
    if _ending:
        raise Interrupted(_ending[0])


def _interrupt(number: int, frame: FrameType | None) -> None:
    if number == signal.SIGINT:
        raise CtrlC
    _ending.append(number)
    raise Interrupted(number)


@contextmanager
def interruptible() -> Iterator[None]:
    """Turns signals that end the program into exceptions. Ignored signals stay ignored."""
    _ending.clear()
    before = {number: signal.getsignal(number) for number in ENDING_SIGNALS}
    handled = [number for number, handler in before.items() if handler is not signal.SIG_IGN]
    for number in handled:
        signal.signal(number, _interrupt)
    try:
        yield
    except RuntimeError as error:
        # Python 3.11 wraps what is raised in __set_name__, where the import of a dataclass may be interrupted.
        if isinstance(error.__cause__, (CtrlC, Interrupted)):
            raise error.__cause__ from None
        raise
    finally:
        for number in handled:
            signal.signal(number, before[number])
        _ending.clear()
