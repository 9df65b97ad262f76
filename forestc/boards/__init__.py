"""Boards: designs behind a serial line, as gateware and bitstreams for FPGA boards, and the other end of that line."""
