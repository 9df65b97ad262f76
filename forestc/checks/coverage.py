"""Counts what the vectors of a check reached: leaves, nodes and both sides of comparators, by the vectors' origin."""

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
MOST_NODES = 200_000  # nodes of a forest; in larger ones unreachable leaves are not searched without an input model


@dataclass(frozen=True)
class Covered:
    """What the vectors of a check reached. by_origin: the figures of `Coverage.figures` for each origin and for all
    together. inputs: figures about rows drawn from an input model; None without one."""

    by_origin: Mapping[str, Mapping[str, Mapping[str, int | None]]]
    inputs: Mapping[str, int] | None = None


class CoverageOfVectors:
    """Counts, for each origin of vectors, the leaves that they reach."""

    def __init__(self, forest: Forest) -> None:
        self.forest = forest
        self.found: dict[str, Coverage] = {}

    def add(self, origin: str, leaves: NDArray[np.int32]) -> None:
        """Adds the leaves that vectors reach. leaves: (vectors, trees) of an `Evaluation`."""
        for name in (origin, ALL):
            self.found.setdefault(name, Coverage.of(self.forest)).add(leaves)

    def covered(self, drawn: Stimuli | None) -> Covered:
        """Returns the figures of all vectors added. drawn: the rows drawn from an input model, None without one."""
        nodes = sum(tree.size for tree in self.forest.trees)
        reachable = Reachable.of(self.forest) if drawn is not None or nodes <= MOST_NODES else None
        by_origin: dict[str, Any] = {name: coverage.figures(reachable) for name, coverage in self.found.items()}
        if drawn is None:
            return Covered(by_origin)
        figures = {"drawn": drawn.drawn, "rows": len(drawn.rows), "leaves_conditioned": drawn.conditioned}
        figures["leaves_steered"] = drawn.steered
        before = drawn.coverage.figures(reachable)["leaves"]["reached"]
        return Covered(by_origin, figures | {"rows_moved": drawn.moved, "leaves_reached_by_drawn": int(before or 0)})
