"""Boosting in which conditions and leaves have prices."""
