"""The engine backend: hardware whose trees are loaded at run time, an image of the forest, and a test bench."""

from __future__ import annotations

import json

import numpy as np
from numpy.typing import NDArray

from forestc.engine.capacity import Capacity
from forestc.engine.folder import CAPACITY, described
from forestc.engine.image import image_of
from forestc.engine.vectors import image_lines, result_lines, row_lines
from forestc.engine.verilog import emit as engine_text
from forestc.engine.verilog import emit_bench, emit_walker
from forestc.forest.ir import Forest

ROLES = ("engine", "engine_testbench", "engine_capacity", "engine_image", "engine_rows", "engine_results", "engine_c")


def emit(forest: Forest, capacity: Capacity, words: NDArray[np.int64]) -> dict[str, str]:
    """{path: text} in the order of ROLES. words: (rows, features) for the test bench. Same input, same bytes."""
    return {
        f"{capacity.name}.v": engine_text(capacity),
        f"{capacity.name}_tb.v": emit_bench(capacity),
        CAPACITY: json.dumps(described(capacity), indent=1) + "\n",
        "images.txt": image_lines(image_of(forest, capacity)),
        "rows.txt": row_lines(forest, capacity, words),
        "results.txt": result_lines([forest], capacity, words),
        f"{capacity.name}_image.h": emit_walker(capacity),
    }
