"""Describes the settings of a pass as a ladder, on which a search finds the smallest sufficient forest.

A pass transforms a forest at fixed settings. Its ladder has branches, and each branch has rungs, one for each setting.
Along a shrinking branch forests get smaller from rung to rung; along a growing branch they get larger. Rungs are
computed in order, because each starts from the result of the one before. A search can compute the same rungs for
several models (folds) and score each on rows that its model has not seen. `forestc.search` does both.
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
    """One setting of a pass, applied to a forest.
    step: the pass with this setting; running it alone gives the same forest.
    cost: the cost of the new forest, in the prices of the pass. make: returns the new forest.
    report: figures of the new forest. last: True if further rungs of the branch would give the same forest.
    smaller: False if the setting gives no smaller forest, so that the rung is the old forest itself.
    hurried: True if a time limit cut the work short."""

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
    """Settings of a pass in the order in which they are tried.
    grows: True if forests get larger from rung to rung.
    give_up: stop a shrinking branch after this many failing settings in a row.
    at_least: try this many settings before a branch without a good one is given up.
    costs: the approximate cost of each setting, if it can be told in advance and rungs do not depend on earlier ones.
    alone: True if later branches may succeed although this one loses too much, because their forests are larger.
    most: forests that cost this much or more are useless."""

    steps: tuple[Pass, ...]
    grows: bool = False
    give_up: int = 4
    at_least: int = 0
    costs: tuple[float, ...] = ()
    alone: bool = False
    most: float = math.inf


class Ladder(Protocol):
    """The settings of a pass on one forest and its rows: branches of rungs. Fixed options give one branch with one
    rung."""

    def branches(self) -> Sequence[Branch]: ...

    def rungs(self, steps: Sequence[Pass]) -> Iterator[Rung]:
        """Yields a rung for each of the steps of a branch, in order. Ends early if the work would be too much."""

    def otherwise(self, losses: Sequence[tuple[Rung, Loss]], tried: int) -> PassResult | Laddered:
        """Returns the result of the pass if no rung is good, or another pass to settle instead. losses: the scored
        rungs. tried: the number of rungs tried. Raises OptionError if the user must loosen a limit."""


@runtime_checkable
class Laddered(Pass, Protocol):
    """A pass with a ladder of settings. open: True if its options leave settings to choose; `run` does not choose them.
    tolerance: the accuracy that a good setting may lose. needs_scorer: True if settings are scored on held-out rows."""

    @property
    def open(self) -> bool: ...

    @property
    def tolerance(self) -> float | None: ...

    @property
    def needs_scorer(self) -> bool: ...

    def ladder(self, forest: Forest, rows: Rows | None, scorer: Scorer | None = None) -> Ladder:
        """Returns the settings of the pass on a forest. Raises the errors of the pass. scorer: scores for the pass's
        own report; None in a search that scores rungs itself."""

    def result(self, forest: Forest, rung: Rung, tried: int) -> PassResult:
        """Returns the result of the pass if it takes this rung. tried: how many rungs were tried."""


def as_given(step: Laddered, forest: Forest, ladder: Ladder) -> PassResult:
    """Runs a pass whose options leave nothing to choose: takes the only rung of its ladder."""
    branches = ladder.branches()
    assert len(branches) == 1 and len(branches[0].steps) == 1, f"{print_pass(step)} is to be settled"
    rung = next(ladder.rungs(branches[0].steps), None)
    result = ladder.otherwise((), 1) if rung is None else step.result(forest, rung, 1)
    assert isinstance(result, PassResult)
    return result


class AtGivenSettings:
    """A base class that gives a pass with a ladder its `run`."""

    def run(self: Laddered, forest: Forest, rows: Rows | None, scorer: Scorer | None = None) -> PassResult:
        """Runs the pass, whose options must leave nothing open (see `settled`). Raises the errors of `ladder`."""
        return as_given(self, forest, self.ladder(forest, rows, scorer))


def returning(forest: Forest) -> Callable[[], Forest]:
    """Returns a function that returns the forest: the `make` of a rung whose forest exists already."""
    return lambda: forest
