"""The input of backends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forestc.backends.base import Options
from forestc.backends.c.selftest import Answers
from forestc.errors import InternalError
from forestc.forest.ir import Forest
from forestc.netlist.ir import Netlist


@dataclass(frozen=True)
class Source:
    """A design as the input of backends."""

    forest: Forest
    logic: Netlist | None  # None if no target needs the netlist
    options: Options  # as the manifest holds them; each target reads its own
    hash: str  # SHA-256 of the design, 64 hexadecimal digits
    vectors: Callable[[], str]  # returns the input words of test benches
    raw_rows: Callable[[], str]  # returns the unquantized rows of test benches
    answers: Callable[[], Answers] = Answers  # returns the rows of the C self-test
    words: Callable[[], NDArray[np.int64]] = lambda: np.empty((0, 0), dtype=np.int64)  # rows of the engine's test bench

    @property
    def netlist(self) -> Netlist:
        if self.logic is None:
            raise InternalError("a backend of hardware runs where only C is wanted", where="target c")
        return self.logic
