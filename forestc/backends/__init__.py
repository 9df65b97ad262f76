"""Backends: pure functions from a netlist or an integer forest to text, one file a target."""
