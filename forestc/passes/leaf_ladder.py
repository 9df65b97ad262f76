"""Defines the settings that round-leaves and fit-leaves try: numbers of leaf bits, ascending."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

from forestc.forest.ir import Forest
from forestc.passes.base import Pass, PassResult
from forestc.passes.ladder import Branch, Laddered, Rung, returning
from forestc.passes.options import DEFAULT_TOLERANCE
from forestc.passes.promises import Within
from forestc.passes.scorer import Loss
from forestc.passes.tree_costs import cost_of


class _OfLeafBits(Laddered, Protocol):
    @property
    def leaf_bits(self) -> int | str: ...


@dataclass(frozen=True)
class LeafLadder:
    """The settings of round-leaves or fit-leaves for one forest: numbers of leaf bits, ascending."""

    step: _OfLeafBits
    source: Forest
    most: range  # numbers of bits to try if the pass names none
    rounded: Callable[[int], Forest]  # rounds the leaves to a number of bits, to estimate a cost
    make: Callable[[int], tuple[Forest, dict[str, Any]]]  # returns the forest for a number of bits, and figures

    @cached_property
    def steps(self) -> dict[Pass, int]:
        bits = self.most if self.step.leaf_bits == "auto" else [int(self.step.leaf_bits)]
        return {replace(self.step, leaf_bits=count): count for count in bits}  # type: ignore[type-var]

    def branches(self) -> list[Branch]:
        """Returns a list with a single sequence of settings. Their costs are estimated from rounded leaves."""
        costs = tuple(cost_of(self.rounded(bits)) for bits in self.steps.values())
        return [Branch(tuple(self.steps), grows=True, costs=costs)]

    def rungs(self, steps: Sequence[Pass]) -> Iterator[Rung]:
        for step in steps:
            bits = self.steps[step]
            forest, figures = self.make(bits)
            assert isinstance(step, Laddered)
            yield Rung(step, cost_of(forest), returning(forest), {"leaf_bits": bits, **figures})

    def otherwise(self, losses: Sequence[tuple[Rung, Loss]], tried: int) -> PassResult:
        rung = min(losses, key=lambda scored: scored[1].counted)[0]
        return rung.step.result(self.source, rung, tried)


def taken(tolerance: float | None, rung: Rung, tried: int) -> PassResult:
    """Returns the result of a pass with the setting of `rung`. tried: how many settings were tried."""
    limit = DEFAULT_TOLERANCE if tolerance is None else float(tolerance)
    return PassResult(rung.forest, (Within(limit),), rung.report | {"chosen_on_held_out": tried > 1})
