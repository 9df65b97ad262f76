"""Describes the settings of a pass as a ladder, on which a search finds the smallest sufficient forest.

A ladder has branches; a branch has rungs, one for each setting. From rung to rung forests get smaller, or larger if the
branch grows.
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
    """One setting of a pass, applied to a forest. step: the pass with this setting.
    cost: the cost of the new forest, in the prices of the pass.
    make: returns the new forest.
    last: True if further rungs of the branch are not worth trying.
    smaller: False if the setting gives no smaller forest, so that the rung is the old forest.
    hurried: True if a time limit cut the work short."""

    step: Laddered  # the pass with this setting
    cost: float  # cost of the new forest, in the prices of the pass
    make: Callable[[], Forest]  # returns the new forest
    report: dict[str, Any] = field(default_factory=dict)
    last: bool = False  # True if no later setting of the branch is worth trying
    smaller: bool = True  # False if the setting leaves the forest unchanged
    hurried: bool = False  # True if a time limit cut the work short

    @cached_property
    def forest(self) -> Forest:
        return self.make()


@dataclass(frozen=True)
class Branch:
    """Settings of a pass in the order in which they are tried. grows: True if forests get larger from rung to rung.
    give_up: stop a shrinking branch after this many failing settings in a row.
    at_least: try this many settings before a shrinking branch is given up without a good one.
    costs: the approximate cost of each setting, if known in advance.
    alone: True if later branches may succeed although no rung of this one is good.
    most: forests that cost this much or more are useless."""

    steps: tuple[Pass, ...]
    grows: bool = False  # True if forests get larger from setting to setting
    give_up: int = 4  # stops a shrinking sequence after this many failures in a row
    at_least: int = 0  # tries this many settings before it gives up without a success
    costs: tuple[float, ...] = ()  # approximate cost of each setting, if known in advance
    alone: bool = False  # True if later sequences may succeed although this one fails
    most: float = math.inf  # forests that cost this much or more are useless


class Ladder(Protocol):
    """The settings of a pass for one forest and its rows, as branches of rungs."""

    def branches(self) -> Sequence[Branch]: ...

    def rungs(self, steps: Sequence[Pass]) -> Iterator[Rung]:
        """Yields a rung for each of the steps of a branch, in order. May end early."""

    def otherwise(self, losses: Sequence[tuple[Rung, Loss]], tried: int) -> PassResult | Laddered:
        """Returns the result of the pass if no rung is good, or another pass to settle instead. May raise OptionError
        if the user must loosen a limit.
        losses: the scored rungs.
        tried: the number of rungs tried."""


@runtime_checkable
class Laddered(Pass, Protocol):
    """A pass with a ladder of settings. open: True if its options leave settings to choose.
    tolerance: the accuracy that a good setting may lose.
    needs_scorer: True if settings are scored on held-out rows."""

    @property
    def open(self) -> bool: ...

    @property
    def tolerance(self) -> float | None: ...

    @property
    def needs_scorer(self) -> bool: ...

    def ladder(self, forest: Forest, rows: Rows | None, scorer: Scorer | None = None) -> Ladder:
        """Returns the settings of the pass for a forest. scorer: adds figures to the report, if given."""

    def result(self, forest: Forest, rung: Rung, tried: int) -> PassResult:
        """Returns the result of the pass at this rung. tried: how many rungs were tried."""


def as_given(step: Laddered, forest: Forest, ladder: Ladder) -> PassResult:
    """Runs a pass whose options leave nothing to choose, at the only rung of its ladder."""
    branches = ladder.branches()
    assert len(branches) == 1 and len(branches[0].steps) == 1, f"{print_pass(step)} is to be settled"
    rung = next(ladder.rungs(branches[0].steps), None)
    result = ladder.otherwise((), 1) if rung is None else step.result(forest, rung, 1)
    assert isinstance(result, PassResult)
    return result


class AtGivenSettings:
    """A base class that gives the method `run` to a pass with a ladder."""

    def run(self: Laddered, forest: Forest, rows: Rows | None, scorer: Scorer | None = None) -> PassResult:
        return as_given(self, forest, self.ladder(forest, rows, scorer))


def returning(forest: Forest) -> Callable[[], Forest]:
    return lambda: forest
