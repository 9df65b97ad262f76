"""Runs trials in the process of the search, because workers take seconds to start."""

from __future__ import annotations

import math
from typing import Any

import pytest

from forestc.exploration.candidate import Bench
from forestc.exploration.pool import carried_out


class Here:
    """A pool of one worker: this process."""

    def __init__(self, bench: Bench) -> None:
        self.bench, self.jobs = bench, []

    def free(self) -> int:
        return 1 - len(self.jobs)

    def give(self, job: Any) -> None:
        self.jobs.append(job)

    def take(self, until: float = math.inf) -> list[Any]:
        return [carried_out(self.bench, self.jobs.pop())]

    def drop(self) -> None:
        pass

    close = drop


def searches_here(patch: pytest.MonkeyPatch) -> None:
    """Makes searches run in this process, without Verilator, which takes seconds a design."""
    patch.setattr("forestc.commands.explore.pool_of", Here)
    patch.setattr("forestc.toolchain.verilator.find_verilator", lambda: None)
