"""Limits the time of a selection, lets Ctrl-C end it with the best choice so far, and reports its progress."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

Report = Callable[[float, float], None]
QUIET = 1.0  # seconds before a line of progress, and between two


@dataclass
class SelectionRun:
    """The state of a running selection.

    until: time of time.perf_counter() at which the selection ends; infinity for none.
    report: called with the best value and the bound, both as changes of objective (1) in units of the gains.
    interrupted: True after Ctrl-C.
    last: the last report.
    """

    until: float = math.inf
    report: Report = lambda value, bound: None
    interrupted: bool = False
    last: tuple[float, float] | None = None

    @property
    def left(self) -> float:
        """The seconds left, at least 0; 0 after Ctrl-C."""
        return 0.0 if self.interrupted else max(0.0, self.until - time.perf_counter())

    @contextmanager
    def part(self, share: float) -> Iterator[None]:
        """Limits the time within the context to a share of the time left."""
        until = self.until
        self.until = min(until, time.perf_counter() + share * self.left)
        try:
            yield
        finally:
            self.until = until

    def tell(self, value: float, bound: float) -> None:
        """Reports value and bound if either changed, but not after Ctrl-C. A KeyboardInterrupt in `report` counts."""
        try:
            if not self.interrupted and (value, bound) != self.last:
                self.last = value, bound
                self.report(value, bound)
        except KeyboardInterrupt:
            self.interrupt()

    def interrupt(self) -> None:
        """Notes a first Ctrl-C. Raises KeyboardInterrupt at the second."""
        if self.interrupted:
            raise KeyboardInterrupt
        self.interrupted = True


def printer(prefix: str, verbose: bool | int | None) -> Callable[[str], None]:
    """Returns a function that prints lines of progress: all or none as `verbose` says. If it is None, from the first
    second on a line a second at most, to standard error."""
    printed = time.monotonic()

    def say(text: str) -> None:
        nonlocal printed
        if verbose:
            sys.stdout.write(f"{prefix} {text}\n")
        elif verbose is None and time.monotonic() > printed + QUIET:
            printed = time.monotonic()
            sys.stderr.write(f"{prefix} {text}\n")

    return say


def progress(say: Callable[[str], None], callback: Callable[[float, float, float], object] | None) -> Report:
    """Returns a report that says the objective, its bound and the gap, and calls back with them."""

    def report(objective: float, bound: float) -> None:
        gap = (bound - objective) / max(abs(objective), 1e-12)
        say(f"objective {objective:.6f}, bound {bound:.6f}, gap {100 * gap:.2f} %")
        if callback is not None:
            callback(objective, bound, gap)

    return report
