"""Describes the settings of a pass as a ladder, from which a search takes the cheapest good forest.

A ladder has branches: sequences of settings. A rung is one setting with its forest.
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
    """One setting of a pass, with the forest that the pass makes with it."""

    step: Laddered  # the pass with this setting
    cost: float  # cost of the new forest, in the unit that the pass minimizes
    make: Callable[[], Forest]  # returns the new forest
    report: dict[str, Any] = field(default_factory=dict)
    last: bool = False  # True if no later setting is worth trying
    smaller: bool = True  # False if the setting leaves the forest unchanged
    hurried: bool = False  # True if a time limit or Ctrl-C may have cut the work short

    @cached_property
    def forest(self) -> Forest:
        return self.make()


@dataclass(frozen=True)
class Branch:
    """A sequence of settings of a pass, in the order in which a search tries them."""

    steps: tuple[Pass, ...]
    grows: bool = False  # True if forests get larger from setting to setting
    give_up: int = 4  # stops a shrinking sequence after this many failures in a row
    at_least: int = 0  # tries more settings than this before it gives up without a success
    costs: tuple[float, ...] = ()  # approximate cost of each setting, if known in advance
    alone: bool = False  # True if later sequences may succeed although this one fails
    most: float = math.inf  # forests that cost this much or more are useless


class Ladder(Protocol):
    """The settings of a pass for one forest and its rows."""

    def branches(self) -> Sequence[Branch]: ...

    def rungs(self, steps: Sequence[Pass]) -> Iterator[Rung]:
        """Runs the pass with each setting of `steps`, in order. Yields each setting with its forest (a rung), and may
        end early."""

    def otherwise(self, losses: Sequence[tuple[Rung, Loss]], tried: int) -> PassResult | Laddered:
        """Returns what to do if no setting is good: a result, or another pass to try. Raises OptionError if the user
        must loosen a limit.
        losses: the scored settings with their losses."""


@runtime_checkable
class Laddered(Pass, Protocol):
    """A pass with a sequence of settings. open: True if a search must choose the setting."""

    @property
    def open(self) -> bool: ...

    @property
    def tolerance(self) -> float | None: ...

    @property
    def needs_scorer(self) -> bool: ...

    def ladder(self, forest: Forest, rows: Rows | None, scorer: Scorer | None = None) -> Ladder:
        """Returns the settings of the pass for a forest. scorer: may add figures to the report."""

    def result(self, forest: Forest, rung: Rung, tried: int) -> PassResult:
        """Returns the result of the pass with the setting of `rung`. tried: how many settings were tried."""


def as_given(step: Laddered, forest: Forest, ladder: Ladder) -> PassResult:
    """Runs a pass whose options leave only one setting."""
    branches = ladder.branches()
    assert len(branches) == 1 and len(branches[0].steps) == 1, f"{print_pass(step)} is to be settled"
    rung = next(ladder.rungs(branches[0].steps), None)
    result = ladder.otherwise((), 1) if rung is None else step.result(forest, rung, 1)
    assert isinstance(result, PassResult)
    return result


class AtGivenSettings:
    """A base class for passes with settings: its method `run` runs the pass if only one setting is possible."""

    def run(self: Laddered, forest: Forest, rows: Rows | None, scorer: Scorer | None = None) -> PassResult:
        return as_given(self, forest, self.ladder(forest, rows, scorer))


def returning(forest: Forest) -> Callable[[], Forest]:
    return lambda: forest
