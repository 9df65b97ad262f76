"""The engine backend: writes hardware that loads trees at run time, an image of the forest, and a test bench."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from forestc.backends.base import Artifact, named
from forestc.backends.engine import ROLES
from forestc.backends.names import identifier, is_identifier
from forestc.engine.capacity import Capacity
from forestc.engine.folder import CAPACITY, described, open_engine
from forestc.engine.image import image_of
from forestc.engine.vectors import image_lines, result_lines, row_lines
from forestc.engine.verilog import emit as engine_text
from forestc.engine.verilog import emit_bench, emit_walker
from forestc.errors import OptionError, opt
from forestc.forest.ir import Forest

if TYPE_CHECKING:
    from forestc.backends.source import Source


def engine_of(given: Capacity | str | Path) -> Capacity:
    """Returns an engine's capacity, read from a folder if a path is given.

    Raises ForestcError for an unreadable folder or an invalid module name.
    """
    capacity = given if isinstance(given, Capacity) else open_engine(given)
    if not is_identifier(capacity.name):
        raise OptionError(
            f"name is {capacity.name!r}, a word that the files use otherwise",
            where="" if isinstance(given, Capacity) else str(Path(given) / CAPACITY),
            do=f"write the engine again with {opt.name:{identifier(capacity.name)}}",
        )
    return capacity


def emit(forest: Forest, capacity: Capacity, words: NDArray[np.int64]) -> dict[str, str]:
    """Returns {file name: text} in the order of ROLES. words: (rows, features), for the test bench."""
    return {
        f"{capacity.name}.v": engine_text(capacity),
        f"{capacity.name}_tb.v": emit_bench(capacity),
        CAPACITY: json.dumps(described(capacity), indent=1) + "\n",
        "images.txt": image_lines(image_of(forest, capacity)),
        "rows.txt": row_lines(forest, capacity, words),
        "results.txt": result_lines([forest], capacity, words),
        f"{capacity.name}_image.h": emit_walker(capacity),
    }


def artifacts(source: Source, *_: object) -> list[Artifact]:
    capacity = Capacity.of(source.options["engine"])
    return named("engine", ROLES, emit(source.forest, capacity, source.words()))
