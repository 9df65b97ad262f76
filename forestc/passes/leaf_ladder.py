"""Defines the search of `round-leaves` and `fit-leaves` for the number of leaf bits, from few bits to many."""

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
    """A ladder over the number of leaf bits, ascending. If the pass names a number, it is the only one.
    step: the pass. source: the forest that the pass gets. most: the numbers of bits to try.
    rounded: returns the forest with leaves rounded to a number of bits, to estimate its cost.
    make: returns the forest of the pass with a number of bits, and its figures."""

    step: _OfLeafBits
    source: Forest
    most: range
    rounded: Callable[[int], Forest]
    make: Callable[[int], tuple[Forest, dict[str, Any]]]

    @cached_property
    def steps(self) -> dict[Pass, int]:
        """The pass with each number of bits, mapped to that number."""
        bits = self.most if self.step.leaf_bits == "auto" else [int(self.step.leaf_bits)]
        return {replace(self.step, leaf_bits=count): count for count in bits}  # type: ignore[type-var]

    def branches(self) -> list[Branch]:
        """Returns one branch. Its costs are those of rounded leaves, because fitting leaves changes costs little."""
        costs = tuple(cost_of(self.rounded(bits)) for bits in self.steps.values())
        return [Branch(tuple(self.steps), grows=True, costs=costs)]

    def rungs(self, steps: Sequence[Pass]) -> Iterator[Rung]:
        for step in steps:
            bits = self.steps[step]
            forest, figures = self.make(bits)
            assert isinstance(step, Laddered)
            yield Rung(step, cost_of(forest), returning(forest), {"leaf_bits": bits, **figures})

    def otherwise(self, losses: Sequence[tuple[Rung, Loss]], tried: int) -> PassResult:
        """Returns the result of the rung that loses least."""
        rung = min(losses, key=lambda scored: scored[1].counted)[0]
        return rung.step.result(self.source, rung, tried)


def taken(tolerance: float | None, rung: Rung, tried: int) -> PassResult:
    """Returns the result of a pass that takes this rung. tried: how many rungs were tried."""
    limit = DEFAULT_TOLERANCE if tolerance is None else float(tolerance)
    return PassResult(rung.forest, (Within(limit),), rung.report | {"chosen_on_held_out": tried > 1})
