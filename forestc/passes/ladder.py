"""The space of a pass: the settings among which a search takes the smallest forest that is good enough.

A pass transforms at given settings, and states its space as branches of rungs. On a branch that shrinks, forests get
smaller from rung to rung; on one that grows, they get larger. Rungs are made one after the other, as what one finds is
where the next begins. The same rungs can be made of several models, and scored on rows that none of them has seen.
`forestc.search` does both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

from forestc.forest.ir import Forest
from forestc.passes.base import Pass, PassResult, print_pass
from forestc.passes.scorer import Loss, Scorer
from forestc.rows.batches import Rows


@dataclass(frozen=True)
class Rung:
    """One setting. step: the pass with it, which makes the same forest. cost: of the forest, in the prices of the pass.
    report: figures of the forest. last: whether further rungs of the branch would make the same. smaller: False for the
    forest itself, where the setting makes no other. hurried: whether a limit of time ended the work."""

    step: Laddered
    cost: float
    make: Callable[[], Forest]
    report: dict[str, Any] = field(default_factory=dict)
    last: bool = False
    smaller: bool = True
    hurried: bool = False

    @cached_property
    def forest(self) -> Forest:
        return self.make()


@dataclass(frozen=True)
class Branch:
    """Settings in the order in which they are tried. grows: whether forests get larger from rung to rung. give_up: stop
    a branch that shrinks after this many failing settings in a row; at_least: try this many before it ends without a
    good one. costs: about what each costs, where that is known beforehand and a rung needs none of those before it.
    alone: whether the next branches may be good where all of this one loses too much, as their forests keep more.
    most: the cost from which a forest is not wanted."""

    steps: tuple[Pass, ...]
    grows: bool = False
    give_up: int = 4
    at_least: int = 0
    costs: tuple[float, ...] = ()
    alone: bool = False
    most: float = math.inf


class Ladder(Protocol):
    """The settings of a pass on one forest and its rows. At given settings one branch with one rung."""

    def branches(self) -> Sequence[Branch]: ...

    def rungs(self, steps: Sequence[Pass]) -> Iterator[Rung]:
        """A rung for each of the steps of a branch, in their order; fewer where the work would be too much."""

    def otherwise(self, losses: Sequence[tuple[Rung, Loss]], tried: int) -> PassResult | Laddered:
        """What the pass makes where no rung is good, or a pass to settle instead. losses: of the rungs that were
        scored. tried: how many rungs were tried. Raises OptionError where the user has to loosen a limit."""


@runtime_checkable
class Laddered(Pass, Protocol):
    """A pass that has a ladder. open: whether its options leave settings to choose, which `run` does not. tolerance,
    needs_scorer: the accuracy that a good setting may lose, where held-out rows score it."""

    @property
    def open(self) -> bool: ...

    @property
    def tolerance(self) -> float | None: ...

    @property
    def needs_scorer(self) -> bool: ...

    def ladder(self, forest: Forest, rows: Rows | None, scorer: Scorer | None = None) -> Ladder:
        """Raises the errors of the pass. judge: of a user's pass; None in a search that scores rungs itself."""

    def result(self, forest: Forest, rung: Rung, tried: int) -> PassResult:
        """What the pass makes of a forest where it takes a rung. tried: how many rungs were."""


def as_given(step: Laddered, forest: Forest, ladder: Ladder) -> PassResult:
    """What a pass makes whose options leave nothing to choose."""
    branches = ladder.branches()
    assert len(branches) == 1 and len(branches[0].steps) == 1, f"{print_pass(step)} is to be settled"
    rung = next(ladder.rungs(branches[0].steps), None)
    result = ladder.otherwise((), 1) if rung is None else step.result(forest, rung, 1)
    assert isinstance(result, PassResult)
    return result


class AtGivenSettings:
    """Gives a pass that has a ladder its `run`."""

    def run(self: Laddered, forest: Forest, rows: Rows | None, scorer: Scorer | None = None) -> PassResult:
        """As `Pass` has it; `settled` chooses open settings. Raises the errors of `ladder`."""
        return as_given(self, forest, self.ladder(forest, rows, scorer))


def returning(forest: Forest) -> Callable[[], Forest]:
    """What a rung makes whose forest is made already."""
    return lambda: forest
