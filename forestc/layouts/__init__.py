"""Layouts of a quantized forest in memory: plain tables, without C, for the C backend and for the engine."""
