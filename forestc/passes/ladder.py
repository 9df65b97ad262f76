"""Ladders: the settings of a pass among which a search takes the smallest forest that is good enough.

A pass that searches states its settings as branches of rungs. On a branch that shrinks, forests get smaller from rung
to rung, and the search ends after several that lose too much; on one that grows, it ends at the first that is good.
Rungs are made one after the other, as what one finds is where the next begins. The same rungs can be made of several
models, so that what is chosen is judged on rows that none of them has seen (`forestc.search.portfolio`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

from forestc.forest.ir import Forest
from forestc.passes.base import Pass, PassResult
from forestc.rows.batches import Rows

WORSE = 1.25  # the search ends behind a branch whose best forest costs this much more than the best of all


@dataclass(frozen=True)
class Rung:
    """One setting. step: the pass with it, which makes the same forest. cost: of the forest, in the prices of the pass.
    report: figures of the forest. last: whether further rungs of the branch would make the same."""

    step: Laddered
    cost: float
    make: Callable[[], Forest]
    report: dict[str, Any] = field(default_factory=dict)
    last: bool = False

    @cached_property
    def forest(self) -> Forest:
        return self.make()


@dataclass(frozen=True)
class Branch:
    """Settings in the order in which they are tried. grows: whether forests get larger from rung to rung. give_up: of a
    branch that shrinks, the number of successive rungs that are no good after which it ends; at_least: how many are
    tried before it ends without any that is good. costs: about what each costs, where that is known beforehand and a
    rung needs none of those before it. alone: whether the next branches may be good where all of this one loses too
    much, as their forests keep more."""

    steps: tuple[Pass, ...]
    grows: bool = False
    give_up: int = 4
    at_least: int = 0
    costs: tuple[float, ...] = ()
    alone: bool = False


class Ladder(Protocol):
    """The settings of a pass on one forest and its rows."""

    def branches(self) -> Sequence[Branch]: ...

    def rungs(self, steps: Sequence[Pass]) -> Iterator[Rung]:
        """A rung for each of the steps of a branch, in their order; fewer where the work would be too much."""


@runtime_checkable
class Laddered(Pass, Protocol):
    """A pass that has a ladder."""

    def ladder(self, forest: Forest, rows: Rows) -> Ladder: ...

    def result(self, forest: Forest, rung: Rung, tried: int) -> PassResult:
        """What the pass makes of a forest where it takes a rung. tried: how many rungs were."""


def climb(ladder: Ladder, good: Callable[[Rung], bool], most: float = math.inf) -> tuple[Rung | None, int]:
    """The cheapest rung that is good and cheaper than `most`, or None; and the number of rungs tried."""
    best: Rung | None = None
    tried = 0
    for branch in ladder.branches():
        missed, cheapest = 0, math.inf
        for number, rung in enumerate(ladder.rungs(branch.steps)):
            bound = most if best is None else best.cost
            tried += 1
            if branch.grows and rung.cost >= bound:
                break
            if good(rung):
                missed, cheapest = 0, min(cheapest, rung.cost)
                if rung.cost < bound:
                    best = rung
                if branch.grows:
                    break
            elif not branch.grows:
                missed += 1
                if missed >= branch.give_up and (cheapest < math.inf or number >= branch.at_least):
                    break
            if rung.last:
                break
        if best is not None and not branch.grows and cheapest > WORSE * best.cost:
            break
    return best, tried
