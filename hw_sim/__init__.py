"""Simulates netlists in three ways, with equal results: `evaluate` computes cell by cell, `Simulator` many vectors at
once, and `Clocked` cycle by cycle."""

from hw_sim.counts import NetActivity, activity
from hw_sim.plain import evaluate, evaluate_from
from hw_sim.simulate import Clocked, ClockedRun, Simulator, clock_rows

__all__ = ["NetActivity", "Clocked", "ClockedRun", "Simulator", "activity", "clock_rows", "evaluate", "evaluate_from"]
