"""Runs a pass. If its options leave settings open, settings are tried and the cheapest good forest is taken."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

from forestc.forest.ir import Forest
from forestc.passes.base import Memory, Pass, PassResult, Remembering, required
from forestc.passes.ladder import Branch, Ladder, Laddered, Rung
from forestc.passes.options import DEFAULT_TOLERANCE
from forestc.passes.scorer import Loss, Scorer
from forestc.rows.batches import Rows

WORSE = 1.25  # times the best cost; the search stops after a sequence without cheaper forests


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

    def good(rung: Rung) -> bool:
        if step.needs_scorer:
            losses.append((rung, required(scorer, step).of(rung.forest)))
        return rung.smaller and all(loss.within(limit) for _, loss in losses[-1:])

    ladder = step.ladder(forest, rows, scorer)
    best, tried = climb(ladder, good)
    other = ladder.otherwise(losses, tried) if best is None else step.result(forest, best, tried)
    return other if isinstance(other, PassResult) else settled(other, forest, rows, scorer)


def climb(ladder: Ladder, good: Callable[[Rung], bool]) -> tuple[Rung | None, int]:
    """Returns a pair: the cheapest good setting with its forest (None if no setting is good), and the number of
    settings tried."""
    best: Rung | None = None
    tried = 0

    def scored(branch: Branch, most: float) -> Iterator[tuple[int, Rung, bool]]:
        nonlocal tried
        for number, rung in enumerate(ladder.rungs(branch.steps)):
            tried += 1
            if branch.grows and rung.cost >= most:
                return
            yield number, rung, good(rung)

    for branch in ladder.branches():
        most = branch.most if best is None else best.cost
        taken, _ = best_of(branch, scored(branch, most))
        if taken is not None and taken.cost < most:
            best = taken
        cheapest = math.inf if taken is None else taken.cost
        if best is not None and not branch.grows and cheapest > WORSE * best.cost:
            break
    return best, tried


def best_of(branch: Branch, scored: Iterable[tuple[int, Rung, bool]]) -> tuple[Rung | None, float]:
    """Returns a pair: the cheapest good setting with its forest (None if no setting is good), and the least cost tried.
    scored: yields (setting's number, setting with its forest, True if good)."""
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
