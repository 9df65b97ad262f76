"""Runs a pass. If its options leave settings open, settings are tried and the cheapest good forest is taken."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from forestc.forest.ir import Forest
from forestc.passes.base import Memory, Pass, PassResult, Remembering, required
from forestc.passes.ladder import Branch, Laddered, Rung
from forestc.passes.options import DEFAULT_TOLERANCE
from forestc.passes.scorer import Loss, Scorer
from forestc.rows.batches import Rows

WORSE = 1.25  # times the best cost; the search stops after a sequence without cheaper forests
Scored: TypeAlias = Callable[[Branch, float], Iterable[tuple[int, Rung, bool]]]


def settled(
    step: Pass, forest: Forest, rows: Rows | None, scorer: Scorer | None = None, memory: Memory | None = None
) -> PassResult:
    """Returns the result of a pass; for open settings, the cheapest forest that is good enough. Raises OptionError if a
    scorer is needed and missing."""
    if not isinstance(step, Laddered) or not step.open:
        if memory is not None and isinstance(step, Remembering):
            return step.run_remembering(forest, rows, memory)
        return step.run(forest, rows, scorer)
    losses: list[tuple[Rung, Loss]] = []
    limit = DEFAULT_TOLERANCE if step.tolerance is None else float(step.tolerance)
    ladder = step.ladder(forest, rows, scorer)
    tried = 0

    def scored(branch: Branch, most: float) -> Iterator[tuple[int, Rung, bool]]:
        nonlocal tried
        for number, rung in enumerate(ladder.rungs(branch.steps)):
            tried += 1
            if branch.grows and rung.cost >= min(most, branch.most):
                return
            if step.needs_scorer:
                losses.append((rung, required(scorer, step).of(rung.forest)))
            yield number, rung, rung.smaller and all(loss.within(limit) for _, loss in losses[-1:])

    best = climb(ladder.branches(), scored)
    other = ladder.otherwise(losses, tried) if best is None else step.result(forest, best, tried)
    return other if isinstance(other, PassResult) else settled(other, forest, rows, scorer)


def climb(branches: Sequence[Branch], scored: Scored, others: Callable[[], float] = lambda: math.inf) -> Rung | None:
    """Tries the settings of branches. Returns the cheapest good setting with its forest, or None if no setting is good.
    scored: for a branch and the best cost so far, yields (setting's number, setting with its forest, True if good).
    others: returns the least cost of good forests of other passes."""
    best: Rung | None = None
    for branch in branches:
        taken, least = _best_of(branch, scored(branch, _cost(best)))
        if _cost(taken) < _cost(best):
            best = taken
        if branch.grows:
            continue
        reached = least if branch.alone else _cost(taken)
        if least == math.inf or reached > WORSE * min(others(), _cost(best)):
            break  # Later settings would be larger than the best so far.
    return best


def _cost(rung: Rung | None) -> float:
    return math.inf if rung is None else rung.cost


def _best_of(branch: Branch, scored: Iterable[tuple[int, Rung, bool]]) -> tuple[Rung | None, float]:
    """Returns a pair: the cheapest good setting with its forest (None if no setting is good), and the least cost
    tried."""
    best, least, missed = None, math.inf, 0
    for number, rung, good in scored:
        least = min(least, rung.cost)
        if good and (best is None or rung.cost < best.cost):
            best = rung
        missed = 0 if good else missed + 1
        enough = best is not None or number >= branch.at_least
        if rung.last or (good if branch.grows else missed >= branch.give_up and enough):
            break
    return best, least
