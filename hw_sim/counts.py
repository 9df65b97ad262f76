"""Counts how often each bit of a netlist is 1, and how often it changes, for estimates of power."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forestc.netlist.ir import Const, Input, Net, Netlist, reads
from hw_sim.plain import Column, value_of

BATCH = 8192  # rows evaluated at once


@dataclass(frozen=True)
class NetActivity:
    """Counts of ones and of changes over rows, for each bit of each net, lowest bit first."""

    rows: int
    ones: tuple[NDArray[np.int64], ...]  # for each net (width,): number of rows in which the bit is 1
    # Holds for each net (width,): number of changes between successive rows, without glitches.
    toggles: tuple[NDArray[np.int64], ...]


def activity(netlist: Netlist, words: NDArray[np.int64]) -> NetActivity:
    """Returns the counts for every net. Counts of constants are 0; a register has the counts of the net it reads.

    words: (rows, inputs), as for `evaluate`.
    """
    widths = [word.width for word in netlist.types]
    ones = [np.zeros(width, dtype=np.int64) for width in widths]
    toggles = [np.zeros(width, dtype=np.int64) for width in widths]
    ends: list[NDArray[np.int64] | None] = [None] * len(widths)
    column_of = {net: column for column, (net, _) in enumerate(netlist.inputs)}
    last = {read: net for net, cell in enumerate(netlist.cells) for read in reads(cell)}
    for start in range(0, len(words), BATCH):
        batch = words[start : start + BATCH]
        held: dict[Net, Column] = {}
        for net, cell in enumerate(netlist.cells):
            column = batch[:, column_of[net]] if isinstance(cell, Input) else value_of(cell, held, len(batch))
            held[net] = column
            if not isinstance(cell, Const):
                bits = column[:, None] >> np.arange(widths[net]) & 1
                ones[net] += bits.sum(axis=0)
                before = ends[net]
                joined = bits if before is None else np.concatenate([before[None, :], bits])
                toggles[net] += (joined[1:] != joined[:-1]).sum(axis=0)
                ends[net] = bits[-1]
            for read in set(reads(cell)):
                if last[read] == net:
                    del held[read]
    return NetActivity(len(words), tuple(ones), tuple(toggles))
