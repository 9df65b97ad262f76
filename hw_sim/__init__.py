"""Simulates netlists in three ways, which give the same words.

`evaluate` computes cell by cell, for few vectors. `Simulator` computes hundreds of vectors at once, with registers as
wires. `Clocked` runs one vector at a time, cycle by cycle; `clock_rows` drives rows through it.
"""

from hw_sim.counts import NetActivity, activity
from hw_sim.plain import evaluate, evaluate_from
from hw_sim.simulate import Clocked, ClockedRun, Simulator, clock_rows

__all__ = ["NetActivity", "Clocked", "ClockedRun", "Simulator", "activity", "clock_rows", "evaluate", "evaluate_from"]
