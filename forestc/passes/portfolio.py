"""The search of levels 2 and 3: lists of passes, made of the model and judged on rows that none of them has seen.

What is tried are the settings of passes (`forestc.passes.ladder`). Each is made of the model, for its size, and of the
model of each fold, for its accuracy: of a model that was trained without the fold's judged rows, on the rows that it
was trained on. With held-out rows there is one fold, whose model is the model itself. Of all settings, the smallest
is taken whose loss, with `Loss.within`, is within the tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from forestc.errors import ForestcError
from forestc.forest.ir import Forest
from forestc.passes.base import Pass, print_pass
from forestc.passes.judge import Judge, Judged, Loss
from forestc.passes.ladder import WORSE, Branch, Ladder, Laddered, Rung
from forestc.passes.simplify import Simplify
from forestc.rows.batches import Rows

SIMPLIFY = Simplify()


@dataclass(frozen=True)
class Fold:
    """A model, the rows that passes see, and a judge with rows that neither has seen."""

    model: Forest
    fit: Rows
    judge: Judge


@dataclass(frozen=True)
class CrossJudge:
    """Judges what is made of the models of several folds, on the judged rows of all of them together."""

    folds: tuple[Fold, ...]

    @cached_property
    def judged(self) -> Judged:
        parts = [fold.judge.judged for fold in self.folds]
        errors, truth = (np.concatenate([getattr(part, name) for part in parts]) for name in ("errors", "truth"))
        return Judged(errors, truth, parts[0].decides, parts[0].labelled)

    def of(self, forests: Sequence[Forest]) -> Loss:
        """The loss of forests made of each fold's model."""
        errors = [fold.judge.errors([forest])[0] for fold, forest in zip(self.folds, forests, strict=True)]
        return self.judged.loss(np.concatenate(errors))


@dataclass(frozen=True)
class Family:
    """Settings that are tried: those of `step` on what the passes `before` leave."""

    name: str
    before: tuple[Pass, ...]
    step: Pass


@dataclass(frozen=True)
class Trial:
    """A list of passes that was made. forest: of the model, without needless splits. cost: in the prices of the last
    searching pass."""

    family: str
    passes: tuple[Pass, ...]
    forest: Forest
    cost: float
    loss: Loss
    size_of: Callable[[Forest], float] = field(repr=False, default=lambda forest: math.nan)

    @cached_property
    def size(self) -> float:
        return self.size_of(self.forest)


class _Place:
    """A model and its rows, and the forests that lists of passes have made of it."""

    def __init__(self, model: Forest, rows: Rows) -> None:
        self.rows = rows
        self._made: dict[tuple[str, ...], Forest] = {(): model}

    def after(self, passes: Sequence[Pass]) -> Forest:
        """The forest after passes that leave nothing to choose."""
        names = tuple(map(print_pass, passes))
        if names not in self._made:
            self._made[names] = passes[-1].run(self.after(passes[:-1]), self.rows, None).forest
        return self._made[names]


@dataclass
class Search:
    """Tries families of settings on a model, its rows and folds. size: of a forest, in LUTs or bytes."""

    model: Forest
    rows: Rows
    folds: tuple[Fold, ...]
    size: Callable[[Forest], float]
    progress: Callable[[str], None] = lambda _: None
    trials: list[Trial] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.base = _Place(self.model, self.rows)
        self.places = [
            self.base if fold.model is self.model and fold.fit is self.rows else _Place(fold.model, fold.fit)
            for fold in self.folds
        ]
        self.judge = CrossJudge(self.folds)

    def plain(self, name: str, passes: Sequence[Pass]) -> Trial:
        """Tries one list of passes."""
        forest = self.base.after(passes)
        loss = self.judge.of([place.after(passes) for place in self.places])
        return self._add(name, tuple(passes), forest, math.inf, loss)

    def _add(self, name: str, passes: tuple[Pass, ...], forest: Forest, cost: float, loss: Loss) -> Trial:
        trial = Trial(name, passes, forest, cost, loss, self.size)
        self.trials.append(trial)
        return trial

    def climb(self, family: Family, good: Callable[[Trial], bool]) -> None:
        """Tries the settings of a family, branch by branch, from each until it gets too large or loses too much."""
        try:
            self._climb(family, good)
        except ForestcError as error:
            self.refused[family.name] = error.what

    def _climb(self, family: Family, good: Callable[[Trial], bool]) -> None:
        step = family.step
        assert isinstance(step, Laddered)
        places = list(dict.fromkeys([self.base, *self.places]))
        ladders = [step.ladder(place.after(family.before), place.rows) for place in places]
        best = math.inf
        for branch in ladders[0].branches():
            missed, cheapest = 0, math.inf
            for number, rungs in enumerate(_together(ladders, branch)):
                rung = next(rungs)
                if branch.grows and rung.cost >= best:
                    break
                made = dict(zip(places, [rung, *rungs], strict=True))
                loss = self.judge.of([made[place].forest for place in self.places])
                forest = SIMPLIFY.run(rung.forest, self.rows).forest
                trial = self._add(family.name, (*family.before, rung.step, SIMPLIFY), forest, rung.cost, loss)
                if good(trial):
                    missed, cheapest = 0, min(cheapest, rung.cost)
                    best = min(best, rung.cost)
                    if branch.grows:
                        break
                elif not branch.grows:
                    missed += 1
                    if missed >= branch.give_up and (cheapest < math.inf or number >= branch.at_least):
                        break
                if rung.last:
                    break
            if best < math.inf and not branch.grows and cheapest > WORSE * best:
                break


def _together(ladders: Sequence[Ladder], branch: Branch) -> Iterator[Iterator[Rung]]:
    """For each step of a branch the rungs of all ladders, each made when it is asked for. A ladder that ends before the
    first one stays where it ended."""
    iterators = [ladder.rungs(branch.steps) for ladder in ladders]
    last: list[Rung | None] = [None] * len(ladders)

    def rungs(first: Rung) -> Iterator[Rung]:
        yield first
        for place, iterator in enumerate(iterators[1:], 1):
            last[place] = next(iterator, last[place])
            rung = last[place]
            assert rung is not None
            yield rung

    for first in iterators[0]:
        yield rungs(first)
