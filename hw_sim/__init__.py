"""Simulates netlists. All three ways compute the same words.

`evaluate` computes cell by cell on columns of words. It needs no preparation: for few vectors.

`Simulator` computes hundreds of vectors in parallel in the bits of wide machine words, and takes registers for wires:
to compare a netlist with a model on many rows.

`Clocked` runs one vector at a time, cycle by cycle, with its registers. `clock_rows` drives rows through it, with a
valid signal and idle cycles, and writes a waveform (VCD): to see how the pipeline works.
"""

from hw_sim.counts import NetActivity, activity
from hw_sim.plain import evaluate, evaluate_from
from hw_sim.simulate import Clocked, ClockedRun, Simulator, clock_rows

__all__ = ["NetActivity", "Clocked", "ClockedRun", "Simulator", "activity", "clock_rows", "evaluate", "evaluate_from"]
