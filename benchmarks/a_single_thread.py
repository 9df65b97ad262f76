"""Imported first by benchmarks whose libraries should start one thread each: they read the variable when they load."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
