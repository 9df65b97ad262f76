"""Limits libraries such as OpenMP to one thread each. Benchmarks import this module first, because a library reads the
variable when it is loaded."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
