"""Backends: pure functions that turn a netlist or a quantized forest into the texts of files."""
