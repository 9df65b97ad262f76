"""Estimates of a design on a device, before any tool runs: the table of devices, fitted costs, estimates, prices."""
