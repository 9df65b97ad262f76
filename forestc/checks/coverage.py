"""Counts the leaves, nodes and comparator sides that a check's vectors reach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.forest.ir import Forest
from forestc.inputs.coverage import Coverage, Reachable
from forestc.inputs.stimuli import Stimuli

ALL = "all"
MOST_NODES = 200_000  # nodes above which, without an input model, unreachable leaves are not searched


@dataclass(frozen=True)
class Covered:
    """Counts of the leaves, nodes and comparator sides that a check's vectors reached."""

    by_origin: Mapping[str, Mapping[str, Mapping[str, int | None]]]  # figures for each origin, and for all vectors
    inputs: Mapping[str, int] | None = None  # figures about rows drawn from an input model


class CoverageOfVectors:
    """Counts the leaves that a check's vectors reach, for each origin and for all vectors."""

    def __init__(self, forest: Forest) -> None:
        self.forest = forest
        self.found: dict[str, Coverage] = {}

    def add(self, origin: str, leaves: NDArray[np.int32]) -> None:
        for name in (origin, ALL):
            self.found.setdefault(name, Coverage.of(self.forest)).add(leaves)

    def covered(self, drawn: Stimuli | None) -> Covered:
        """Returns counts of the leaves, nodes and comparator sides reached, for each origin and for all vectors. drawn:
        rows drawn from an input model."""
        nodes = sum(tree.size for tree in self.forest.trees)
        reachable = Reachable.of(self.forest) if drawn is not None or nodes <= MOST_NODES else None
        by_origin: dict[str, Any] = {name: coverage.figures(reachable) for name, coverage in self.found.items()}
        if drawn is None:
            return Covered(by_origin)
        figures = {"drawn": drawn.drawn, "rows": len(drawn.rows), "leaves_conditioned": drawn.conditioned}
        figures["leaves_steered"] = drawn.steered
        before = drawn.coverage.figures(reachable)["leaves"]["reached"]
        return Covered(by_origin, figures | {"rows_moved": drawn.moved, "leaves_reached_by_drawn": int(before or 0)})
