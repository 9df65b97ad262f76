"""Estimates of a design's size and clock rate without running a tool: devices, fitted costs, estimates and prices."""
