"""The search of levels 2 and 3: lists of passes, made of the model and judged on rows that none of them has seen.

What is tried are the settings of passes (`forestc.passes.ladder`). Each is made of the model, for its size, and of the
model of each fold, for its accuracy: of a model that was trained without the fold's judged rows, on the rows that it
was trained on. With held-out rows there is one fold, whose model is the model itself. Of all settings, the smallest
is taken whose loss, with `Loss.within`, is within the tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from forestc.errors import ForestcError
from forestc.forest.ir import Forest
from forestc.passes.base import Pass, PassResult, print_pass
from forestc.passes.ladder import Branch, Ladder, Laddered, Rung
from forestc.passes.regrow_trees.regrow_trees import GrowingLadder
from forestc.passes.scorer import ERRORS, Loss
from forestc.passes.simplify import Simplify
from forestc.rows.batches import Rows, count_rows
from forestc.search.cross_validation import CrossScorer, Fold
from forestc.search.settle import WORSE, best_of, settled
from forestc.search.sizes import Size
from forestc.system.compiled import in_threads
from forestc.system.deadline import look

SIMPLIFY = Simplify()
# (rows x trees, deals): up to so much work, settings that lose only just too much are tried on this many deals of folds
REPEATS = ((10_000, 5), (40_000, 3), (math.inf, 1))
REPEATED = 0.8  # share of its standard error that a loss has after five deals (Nadeau and Bengio)
LARGER = 1.5  # times the cost of the best so far: what is larger is not judged
MARGIN = 1.1  # a branch that grows ends at forests that cost this much more than the best of the family
TOO_LARGE = f"not judged, as all of it costs over {LARGER} times the least that is good"
STALE = 3  # successive forests, none more accurate than the best before, after which such a branch ends, too
MEASURED = 4  # estimate the sizes of this many trials of a family: those that cost least
NEAR = 2.0  # estimate no sizes of trials that cost this many times the cheapest good one


@dataclass(frozen=True)
class Family:
    """Settings that are tried: those of `step` on what the passes `before` leave. otherwise: a step whose settings are
    tried if none of the first is good. work: stop growing ensembles on a fold after this many steps."""

    name: str
    before: tuple[Pass, ...]
    step: Pass
    otherwise: Pass | None = None
    work: float = math.inf


@dataclass(frozen=True)
class LevelTrial:
    """A list of passes that was tried. make: what each of them makes of the model. cost: in the prices of the last
    searching pass. loss: on the judged rows, or on those of the first folds, where they showed that too much is lost.
    good: whether the loss on all judged rows is within the tolerance. size_of: the size of a forest."""

    family: str
    passes: tuple[Pass, ...]
    make: Callable[[], list[PassResult]] = field(repr=False)
    cost: float
    loss: Loss
    good: bool
    size_of: Callable[[Forest], float] = field(repr=False)

    @cached_property
    def results(self) -> list[PassResult]:
        """What each of the passes makes, of the model and of what the one before made."""
        return self.make()

    @property
    def forest(self) -> Forest:
        return self.results[-1].forest

    @cached_property
    def size(self) -> float:
        return self.size_of(self.forest)

    @property
    def measured(self) -> bool:
        """Whether its size is known already."""
        return "size" in vars(self)


@dataclass(frozen=True)
class Stop:
    """How long is searched. effort: 1 (little) to 3. seconds: for all passes of the level; results then depend on the
    speed of the machine. until: the time of time.monotonic() at which the search has to end."""

    effort: int
    seconds: float = math.inf
    until: float = math.inf


class _Place:
    """A model and its rows, and what lists of passes have made of it."""

    def __init__(self, model: Forest, rows: Rows) -> None:
        self.model, self.rows = model, rows
        self._made: dict[tuple[str, ...], list[PassResult]] = {(): []}

    def know(self, passes: Sequence[Pass], results: Sequence[PassResult]) -> None:
        """Takes what passes made of the model, where that is known."""
        names = tuple(map(print_pass, passes))
        for count in range(1, len(names) + 1):
            self._made[names[:count]] = list(results[:count])

    def made(self, passes: Sequence[Pass]) -> list[PassResult]:
        """What each of the passes makes; they leave nothing to choose."""
        names = tuple(map(print_pass, passes))
        if names not in self._made:
            before = self.made(passes[:-1])
            forest = before[-1].forest if before else self.model
            self._made[names] = [*before, settled(passes[-1], forest, self.rows)]
        return self._made[names]

    def after(self, passes: Sequence[Pass]) -> Forest:
        """The forest after all of them."""
        return self.made(passes)[-1].forest if passes else self.model


@dataclass
class LevelSearch:
    """Tries families of settings on a model, its rows and folds. tolerance: what may be lost on the judged rows.
    refused: why a family could not be tried. repeated: folds of other deals of the rows, as `Folds` has them.
    heading: begins each line of progress."""

    model: Forest
    rows: Rows
    folds: tuple[Fold, ...]
    size: Size
    tolerance: float
    stop: Stop = Stop(2)
    progress: Callable[[str], None] = lambda _: None
    trials: list[LevelTrial] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    repeated: Callable[[int], tuple[Fold, ...]] | None = None
    heading: str = ""

    def __post_init__(self) -> None:
        self.base = _Place(self.model, self.rows)
        self.places = [
            self.base if fold.model is self.model and fold.fit is self.rows else _Place(fold.model, fold.fit)
            for fold in self.folds
        ]
        self.scorer = CrossScorer(self.folds, self.base not in self.places)
        work = self.count * len(self.model.trees)
        most = next(repeats for most_work, repeats in REPEATS if work <= most_work)
        self.repeats = 0 if self.repeated is None or self.base in self.places else most
        self._repeats: dict[int, list[tuple[Fold, _Place]]] = {}

    def repeat(self, number: int) -> list[tuple[Fold, _Place]]:
        """The folds of another deal of the rows."""
        assert self.repeated is not None
        if number not in self._repeats:
            self._repeats[number] = [(fold, _Place(fold.model, fold.fit)) for fold in self.repeated(number)]
        return self._repeats[number]

    @cached_property
    def count(self) -> int:
        """The number of given rows."""
        return count_rows(self.rows)

    def smallest(self) -> LevelTrial:
        """The smallest trial that is good, or the first one, which is good by its own promise."""
        return min([self.trials[0], *self._candidates()], key=lambda trial: trial.size)

    def known(self, plain: LevelTrial) -> LevelTrial:
        """The best design where no time is left to find sizes: the smallest of the good ones that have one, or else
        the cheapest."""
        good = [trial for trial in self.trials if trial.good and trial is not plain]
        measured = [trial for trial in [*good, plain] if trial.measured]
        if any(trial is not plain for trial in measured):
            return min(measured, key=lambda trial: trial.size)
        return min(good, key=lambda trial: trial.cost, default=plain)

    @property
    def cheapest(self) -> float:
        """The least cost of the good trials so far."""
        return min((trial.cost for trial in self.trials if trial.good), default=math.inf)

    def _candidates(self) -> list[LevelTrial]:
        """The good trials of each family that cost least, as sizes take longer to find than costs."""
        candidates: list[LevelTrial] = []
        for family in dict.fromkeys(trial.family for trial in self.trials):
            good = [trial for trial in self.trials if trial.family == family and trial.good]
            near = [trial for trial in good if trial.cost <= NEAR * self.cheapest]
            candidates += sorted(near, key=lambda trial: trial.cost)[:MEASURED]
        return candidates

    def plain(self, name: str, passes: Sequence[Pass]) -> LevelTrial:
        """Tries one list of passes."""
        loss = self.scorer.of([place.after(passes) for place in self.places])
        return self.add(name, tuple(passes), lambda: self.base.made(passes), math.inf, loss)

    def add(
        self, name: str, passes: tuple[Pass, ...], make: Callable[[], list[PassResult]], cost: float, loss: Loss
    ) -> LevelTrial:
        look()
        good = loss.rows >= len(self.scorer.baseline.errors) and loss.within(self.tolerance)
        trial = LevelTrial(name, passes, make, cost, loss, good, self.size.of)
        self.trials.append(trial)
        return trial

    def climb(self, family: Family) -> None:
        """Tries the settings of a family, branch by branch, from each until it gets too large or loses too much."""
        before = len(self.trials)
        try:
            good = _Climb(self, family, family.step).run()
            if not good and family.otherwise is not None:
                _Climb(self, family, family.otherwise).run()
        except ForestcError as error:
            self.refused[family.name] = error.what
        else:
            if len(self.trials) == before:
                self.refused[family.name] = TOO_LARGE


class _Climb:
    """The settings of one family, made of the model and of the models of all folds."""

    def __init__(self, search: LevelSearch, family: Family, step: Pass) -> None:
        self.search, self.family = search, family
        assert isinstance(step, Laddered)
        self.places = list(dict.fromkeys([*search.places, search.base]))
        ladders = in_threads(self._ladder_of(step), self.places)
        self.step, self.ladders = step, dict(zip(self.places, ladders, strict=True))
        self.best, self.tried = math.inf, 0

    def _ladder_of(self, step: Laddered) -> Callable[[_Place], Ladder]:
        def ladder_of(place: _Place) -> Ladder:
            ladder = step.ladder(place.after(self.family.before), place.rows)
            if isinstance(ladder, GrowingLadder):
                ladder.most_work = min(ladder.most_work, self.family.work)
            return ladder

        return ladder_of

    def run(self) -> bool:
        """Whether any setting is good."""
        for branch in self.ladders[self.search.base].branches():
            before = self.tried
            taken, least = best_of(branch, self._grown(branch) if branch.grows else self._shrunk(branch))
            cheapest = math.inf if taken is None else taken.cost
            self.best = min(self.best, cheapest)
            if branch.grows:
                continue
            known = min(self.search.cheapest, self.best)
            much = known < math.inf and (least if branch.alone else cheapest) > WORSE * known
            if much or self.tried == before:  # other settings would be larger than what is known
                break
        return self.best < math.inf

    def _add(self, rung: Rung, loss: Loss, made: Rung | None) -> bool:
        """Whether the trial is good. made: its rung of the model, None where that is not made yet."""
        self.tried += 1
        name = self.family.name
        best = self.search.cheapest
        cost = f", the best costs about {best:,.0f} {self.search.size.unit}" if best < math.inf else ""
        self.search.progress(f"{self.search.heading}{name}: {self.tried} settings tried{cost}")
        passes = (*self.family.before, rung.step, SIMPLIFY)
        return self.search.add(name, passes, partial(self._results, rung.step, made), rung.cost, loss).good

    def _results(self, step: Laddered, made: Rung | None) -> list[PassResult]:
        """What the passes of a trial make of the model."""
        base = self.search.base
        before = base.made(self.family.before)
        made = made or next(self.ladders[base].rungs([step]))
        chosen = step.result(base.after(self.family.before), made, 1)
        return [*before, chosen, SIMPLIFY.run(chosen.forest, base.rows)]

    def _grown(self, branch: Branch) -> Iterator[tuple[int, Rung, bool]]:
        """As `best_of` takes them, from the smallest up; each on its own, and only on as many folds as it takes to see
        that too much is lost."""
        base, least, stale = self.search.base, math.inf, 0
        most = min(MARGIN * self.best, LARGER * self.search.cheapest)
        for number, step in enumerate(branch.steps):
            if branch.costs and branch.costs[number] >= most:
                break
            last: tuple[Rung, Loss] | None = None
            for last in self._raced(step):
                if last[0].cost >= most or last[1].lost - last[1].error > self.search.tolerance:
                    break
            if last is None or last[0].cost >= most:
                break
            rung, loss = last
            made = rung if base in self.search.places else None
            yield number, rung, self._add(rung, self._confirmed([step], self.errors, loss), made)
            stale = 0 if loss.lost < least else stale + 1
            least = min(least, loss.lost)
            if stale == STALE:
                break

    def _raced(self, step: Pass) -> Iterator[tuple[Rung, Loss]]:
        """A rung of each fold, and the loss on the folds so far."""
        self.errors = errors = list[NDArray[np.float64]]()
        for number, (place, fold) in enumerate(zip(self.search.places, self.search.folds, strict=True), 1):
            rung = next(self.ladders[place].rungs([step]), None)
            if rung is None or rung.hurried:  # another machine may make another
                return
            errors += fold.scorer.errors([rung.forest])
            yield rung, replace(self.search.scorer, folds=self.search.folds[:number]).loss(errors)

    def _confirmed(self, steps: Sequence[Pass], errors: Sequence[NDArray[np.float64]], loss: Loss) -> Loss:
        """Returns the loss of a setting. If the first folds find only just too much, further deals of the rows are
        added until the loss is within the tolerance or clearly above it. steps: of a branch, up to the setting.
        errors: on the first folds."""
        search, folds, known = self.search, list(self.search.folds), list(errors)
        for number in range(1, search.repeats):
            least = loss.lost + ERRORS * loss.error * REPEATED
            if (
                loss.rows < len(search.scorer.baseline.errors)
                or loss.within(search.tolerance)
                or least > search.tolerance
            ):
                break
            try:
                again = search.repeat(number)
            except ForestcError:  # a deal without rows of a rare class
                search.repeats = 0
                break
            ladders = in_threads(self._ladder_of(self.step), [place for _, place in again])
            forests = in_threads(lambda ladder: [rung.forest for rung in ladder.rungs(steps)][-1:], ladders)
            if not all(forests):
                break
            folds += [fold for fold, _ in again]
            known += [fold.scorer.errors(forest)[0] for (fold, _), forest in zip(again, forests, strict=True)]
            loss = replace(search.scorer, folds=tuple(folds)).loss(known)
        return loss

    def _shrunk(self, branch: Branch) -> Iterator[tuple[int, Rung, bool]]:
        """As `best_of` takes them, from the largest down, each from the one before. What is much larger than the best
        of all so far is made of the model alone, and not judged."""
        search = self.search
        steps = branch.steps[sum(cost >= LARGER * search.cheapest for cost in branch.costs) :]
        ladders = {place: self.ladders[place].rungs(steps) for place in dict.fromkeys([search.base, *self.places])}
        rungs: dict[_Place, Rung] = {}
        own, number, skipped = next(ladders[search.base], None), 0, 0

        def advance(place: _Place) -> Rung | None:
            """Brings the ladder of a fold to the rung of the model. The model's own goes one rung ahead meanwhile,
            which is returned; without folds it has nothing to go ahead of."""
            if place is search.base:
                return None if rung.last or len(ladders) == 1 else next(ladders[place], None)
            for _ in range(skipped + 1):  # a ladder that ends before that of the model stays where it ended
                rungs[place] = next(ladders[place], rungs.get(place, rung))
            return None

        while own is not None:
            rung = rungs[search.base] = own
            if rung.cost >= LARGER * search.cheapest and not rung.last:
                own, number, skipped = next(ladders[search.base], None), number + 1, skipped + 1
                continue
            own = in_threads(advance, tuple(ladders))[0]
            skipped = 0
            pairs = zip(search.folds, search.places, strict=True)
            errors = [fold.scorer.errors([rungs[place].forest])[0] for fold, place in pairs]
            loss = self._confirmed(steps[: steps.index(rung.step) + 1], errors, search.scorer.loss(errors))
            yield number, rung, self._add(rung, loss, rung)
            if len(ladders) == 1:
                own = next(ladders[search.base], None)
            number += 1
