"""Measures firmware: a design's C header, compiled for a microcontroller and run in an emulator."""
