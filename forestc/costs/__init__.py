"""What a design takes on a device, before any tool runs: one table of devices, fitted costs, estimates, prices."""
