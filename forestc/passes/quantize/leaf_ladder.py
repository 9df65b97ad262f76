"""quantize with leaves of more and more bits, each rounded alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from forestc.forest.ir import Forest
from forestc.passes.base import Pass, PassResult
from forestc.passes.judge import Loss
from forestc.passes.ladder import Branch, Laddered, Rung, known
from forestc.passes.quantize.rounding import Leaves, candidates, one_sum, with_leaves
from forestc.passes.tree_costs import cost_of
from forestc.rows.batches import Rows


@dataclass(frozen=True)
class LeafLadder:
    """shaped: the model `source` with integer thresholds. words: figures of the words, for reports. settings: numbers
    of bits, and the pass with each."""

    source: Forest
    shaped: Forest
    rows: Rows
    words: dict[str, Any]
    settings: tuple[tuple[int, Laddered], ...]

    def branches(self) -> list[Branch]:
        """The costs are those of rounded leaves, which fitting changes little."""
        costs = tuple(cost_of(with_leaves(self.shaped, self.rounded(bits))) for bits, _ in self.settings)
        return [Branch(tuple(step for _, step in self.settings), grows=True, costs=costs)]

    def rungs(self, steps: Sequence[Pass]) -> Iterator[Rung]:
        for step in steps:
            bits, setting = next(pair for pair in self.settings if pair[1] == step)
            forest, figures = self.made(bits)
            yield Rung(setting, cost_of(forest), known(forest), self.words | {"leaf_bits": bits} | figures)

    def otherwise(self, losses: Sequence[tuple[Rung, Loss]], tried: int) -> PassResult:
        """What loses least."""
        rung = min(losses, key=lambda scored: scored[1].counted)[0]
        return rung.step.result(self.source, rung, tried)

    def rounded(self, bits: int) -> Leaves:
        return candidates(one_sum(self.source), bits)[0]

    def made(self, bits: int) -> tuple[Forest, dict[str, Any]]:
        """The forest with leaves of some bits, and figures of it."""
        return with_leaves(self.shaped, self.rounded(bits)), {}
