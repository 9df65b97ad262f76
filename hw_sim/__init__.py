"""Simulates netlists, in three modes that compute the same words.

`evaluate` goes cell by cell over columns of words: at once, for few vectors.

`Simulator` runs vectors in bulk, hundreds side by side in the bits of wide machine words, with
registers taken for wires: to compare a netlist with a model on many rows.

`Clocked` runs one vector at a time, clock by clock, registers and all; `clock_rows` drives rows
through it with a valid signal and idle cycles, and writes a waveform (VCD): to see the pipeline
work.
"""

from hw_sim.plain import evaluate, evaluate_from
from hw_sim.simulate import Clocked, ClockedRun, Simulator, clock_rows

__all__ = ["Clocked", "ClockedRun", "Simulator", "clock_rows", "evaluate", "evaluate_from"]
