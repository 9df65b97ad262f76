"""Layouts of a quantized forest in memory: plain tables for the C backend and for the engine."""
