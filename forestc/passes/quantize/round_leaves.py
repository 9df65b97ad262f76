"""quantize with more and more bits of rounded leaves, for a search that takes the fewest within its tolerance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from forestc.forest.ir import Forest
from forestc.passes.base import Pass
from forestc.passes.ladder import Branch, Laddered, Rung
from forestc.passes.quantize.rounding import candidates, with_leaves
from forestc.passes.tree_costs import cost_of


@dataclass(frozen=True)
class RoundingLadder:
    """The forest with rounded leaves of more and more bits. shaped: the model with integer thresholds. known: figures
    of the words, for reports. settings: numbers of bits, and the pass with each."""

    source: Forest
    shaped: Forest
    known: dict[str, Any]
    settings: tuple[tuple[int, Laddered], ...]

    def branches(self) -> list[Branch]:
        costs = tuple(cost_of(self._rounded(bits)) for bits, _ in self.settings)
        return [Branch(tuple(step for _, step in self.settings), grows=True, costs=costs)]

    def rungs(self, steps: Sequence[Pass]) -> Iterator[Rung]:
        for step in steps:
            bits, setting = next(pair for pair in self.settings if pair[1] == step)
            forest = self._rounded(bits)
            yield Rung(setting, cost_of(forest), partial(_itself, forest), self.known | {"leaf_bits": bits})

    def _rounded(self, bits: int) -> Forest:
        return with_leaves(self.shaped, candidates(self.source, bits)[0])


def _itself(forest: Forest) -> Forest:
    return forest
