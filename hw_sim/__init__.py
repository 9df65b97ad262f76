"""Simulates netlists, in three modes that compute the same words.

`evaluate` works cell by cell on columns of words. It needs no preparation: for few vectors.

`Simulator` runs hundreds of vectors in parallel in the bits of wide machine words and treats
registers as wires: to compare a netlist with a model on many rows.

`Clocked` runs one vector at a time, cycle by cycle, with its registers; `clock_rows` drives rows
through it with a valid signal and idle cycles, and writes a waveform (VCD): to see the pipeline
work.
"""

from hw_sim.counts import NetActivity, activity
from hw_sim.plain import evaluate, evaluate_from
from hw_sim.simulate import Clocked, ClockedRun, Simulator, clock_rows

__all__ = ["NetActivity", "Clocked", "ClockedRun", "Simulator", "activity", "clock_rows", "evaluate", "evaluate_from"]
