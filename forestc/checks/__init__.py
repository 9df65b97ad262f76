"""Checks of compiled designs: runs in simulators and compilers, proofs, and the agreement with the model."""
