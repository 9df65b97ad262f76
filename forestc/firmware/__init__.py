"""Measures firmware: compiles a design's C header for a microcontroller and runs it in an emulator."""
