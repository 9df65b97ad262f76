"""Searches for levels 2 and 3: tries lists of passes on the model and scores them on held-out rows. The smallest of
-O1's forest and the forests within the tolerance is taken."""

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
from forestc.passes.scorer import Loss
from forestc.passes.simplify import Simplify
from forestc.rows.batches import Rows, count_rows
from forestc.search.choice import STEP, STRICTEST, SURE, WITHIN, Choice, Differences, Evidence
from forestc.search.cross_validation import CrossScorer, Fold
from forestc.search.settle import climb, settled
from forestc.search.sizes import Size
from forestc.system.compiled import in_threads
from forestc.system.deadline import look

SIMPLIFY = Simplify()
# Lists (limit of rows times trees, number of splits into folds on which settings near the tolerance are scored).
REPEATS = ((10_000, 5), (40_000, 3), (math.inf, 1))
REPEATED = 0.8  # share of a loss's standard error that remains after five splits
LARGER = 1.5  # times the best cost so far; larger trials are not scored
MARGIN = 1.1  # times the family's best cost; a growing branch of settings ends at more
TOO_LARGE = f"not scored, as all of it costs over {LARGER} times the least that is good"
STALE = 3  # stops a growing branch after this many forests without a gain in accuracy
MEASURED = 4  # trials of each family for which sizes are estimated: the cheapest ones
SHOWN = 12  # most trials of a curve, beside -O1's and the chosen one
NEAR = 2.0  # times the cheapest good trial; sizes of costlier trials are not estimated


@dataclass(frozen=True)
class Family:
    """A family of settings of one pass, run after the passes `before`."""

    name: str
    before: tuple[Pass, ...]
    step: Pass
    otherwise: Pass | None = None  # another pass, tried if no setting of this family's pass is good
    work: float = math.inf  # most steps of work for growing trees on one model


@dataclass(frozen=True, eq=False)
class LevelTrial:
    """A list of passes that was tried."""

    family: str
    passes: tuple[Pass, ...]
    make: Callable[[], list[PassResult]] = field(repr=False)  # returns the result of each pass on the model
    cost: float  # rough measure of size, cheaper to compute than `size`
    loss: Loss  # loss on held-out rows; only on some of them if those lose too much
    good: bool  # True if `loss` is on all held-out rows and within tolerance
    differences: Differences | None = field(repr=False)  # None if some held-out rows were left out
    size_of: Callable[[Forest], float] = field(repr=False)  # returns the size of a forest

    @cached_property
    def results(self) -> list[PassResult]:
        return self.make()

    @property
    def forest(self) -> Forest:
        return self.results[-1].forest

    @cached_property
    def size(self) -> float:
        return self.size_of(self.forest)

    @property
    def measured(self) -> bool:
        return "size" in vars(self)


@dataclass(frozen=True)
class Chosen:
    trial: LevelTrial
    evidence: Evidence
    finalists: tuple[LevelTrial, ...]  # the trials of known size that are as good as the chosen one, with that


@dataclass(frozen=True)
class Stop:
    """The limits of a search."""

    effort: int  # from 1 (little) to 3
    seconds: float = math.inf  # time limit for all passes of the level
    until: float = math.inf  # time of time.monotonic() at which the search ends


class _PassRuns:
    """Runs lists of passes on one model and its rows. Passes with which several lists begin run only once."""

    def __init__(self, model: Forest, rows: Rows) -> None:
        self.model, self.rows = model, rows
        self._results: dict[tuple[str, ...], list[PassResult]] = {(): []}

    def add_results(self, passes: Sequence[Pass], results: Sequence[PassResult]) -> None:
        """Stores the results of passes that have run on the model already."""
        names = tuple(map(print_pass, passes))
        for count in range(1, len(names) + 1):
            self._results[names[:count]] = list(results[:count])

    def results(self, passes: Sequence[Pass]) -> list[PassResult]:
        names = tuple(map(print_pass, passes))
        if names not in self._results:
            before = self.results(passes[:-1])
            forest = before[-1].forest if before else self.model
            self._results[names] = [*before, settled(passes[-1], forest, self.rows)]
        return self._results[names]

    def after(self, passes: Sequence[Pass]) -> Forest:
        return self.results(passes)[-1].forest if passes else self.model


@dataclass
class LevelSearch:
    """A search over families of settings for a model, its rows and folds."""

    model: Forest
    rows: Rows
    folds: tuple[Fold, ...]
    size: Size
    tolerance: float  # accuracy that may be lost on held-out rows
    stop: Stop = Stop(2)
    progress: Callable[[str], None] = lambda _: None
    trials: list[LevelTrial] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)  # why families failed or have no trial
    repeated: Callable[[int], tuple[Fold, ...]] | None = None  # as in `Folds`
    lacking: Loss | None = None  # as in `Folds`
    heading: str = ""  # begins each line of progress

    def __post_init__(self) -> None:
        self.base = _PassRuns(self.model, self.rows)
        self.fold_runs = [
            self.base if fold.model is self.model and fold.fit is self.rows else _PassRuns(fold.model, fold.fit)
            for fold in self.folds
        ]
        self.scorer = CrossScorer(self.folds, self.base not in self.fold_runs, self.lacking)
        work = self.count * len(self.model.trees)
        most = next(repeats for most_work, repeats in REPEATS if work <= most_work)
        self.repeats = 0 if self.repeated is None or self.base in self.fold_runs else most
        self._repeats: dict[int, list[tuple[Fold, _PassRuns]]] = {}

    def repeat(self, number: int) -> list[tuple[Fold, _PassRuns]]:
        """Returns the folds of split `number`, each with a cache of the results of passes on its model."""
        assert self.repeated is not None
        if number not in self._repeats:
            self._repeats[number] = [(fold, _PassRuns(fold.model, fold.fit)) for fold in self.repeated(number)]
        return self._repeats[number]

    @cached_property
    def count(self) -> int:
        return count_rows(self.rows)

    def smallest(self) -> LevelTrial:
        """Returns the smallest of the first trial (-O1) and the good trials."""
        return min([self.trials[0], *self._candidates()], key=lambda trial: trial.size)

    def choose(self, sure: bool, measure: bool = True) -> Chosen:
        """Returns the smallest trial whose loss is within the tolerance with the choice counted, or -O1's, and what it
        loses. The choice gets stricter until that is so.
        sure: the whole interval of the loss must be within the tolerance.
        measure: sizes that are not known yet may be estimated."""
        scored = [trial for trial in self.trials if trial.differences is not None]
        differences = [trial.differences for trial in scored if trial.differences is not None]
        choice = Choice([trial.loss for trial in scored], differences, self.scorer.baseline)
        plain, limit, words = scored[0], self.tolerance, SURE if sure else WITHIN
        plain_evidence = Evidence(plain.loss, retrained=self.scorer.retrained)
        for strict in np.arange(plain.loss.errors, STRICTEST, STEP):
            while True:
                sizes = self._weights(scored)
                taken = scored[choice.of(sizes, limit, strict)]
                if taken.measured or not measure:
                    break
                _ = taken.size
            if taken is plain:
                break
            evidence = replace(plain_evidence, loss=taken.loss, optimism=choice.optimism(sizes, limit, strict))
            if evidence.word(limit) in words:
                within = [trial for trial in scored if trial.measured and trial.loss.within(limit, strict)]
                alike = [trial for trial in within if replace(evidence, loss=trial.loss).word(limit) in words]
                return Chosen(taken, evidence, tuple(alike))
        return Chosen(plain, plain_evidence, (plain,))

    def curve(self, chosen: LevelTrial) -> tuple[LevelTrial, ...]:
        """Returns -O1's trial, the chosen one, and up to `SHOWN` of which none is both smaller and loses less than
        another."""
        scored = [trial for trial in self.trials if trial.differences is not None]
        front = list[LevelTrial]()
        for number in np.lexsort((np.array([trial.loss.lost for trial in scored]), self._weights(scored))):
            if not front or scored[number].loss.lost < front[-1].loss.lost:
                front.append(scored[number])
        some = [front[round(at)] for at in np.linspace(0, len(front) - 1, min(SHOWN, len(front)))]
        return tuple(dict.fromkeys([self.trials[0], chosen, *some]))

    def _weights(self, trials: Sequence[LevelTrial]) -> NDArray[np.float64]:
        """Returns the size of each trial: its cost, in units of sizes, where the size is not known."""
        ratios = [trial.size / trial.cost for trial in trials if trial.measured and 0 < trial.cost < math.inf]
        unit = float(np.median(ratios)) if ratios else 1.0
        return np.array([trial.size if trial.measured else unit * trial.cost for trial in trials])

    @property
    def cheapest(self) -> float:
        return min((trial.cost for trial in self.trials if trial.good), default=math.inf)

    def _candidates(self) -> list[LevelTrial]:
        """Returns up to MEASURED good trials of each family, whose costs are near the least of all."""
        candidates: list[LevelTrial] = []
        for family in dict.fromkeys(trial.family for trial in self.trials):
            good = [trial for trial in self.trials if trial.family == family and trial.good]
            near = [trial for trial in good if trial.cost <= NEAR * self.cheapest]
            candidates += sorted(near, key=lambda trial: trial.cost)[:MEASURED]
        return candidates

    def plain(self, name: str, passes: Sequence[Pass]) -> LevelTrial:
        errors = self.scorer.errors([runs.after(passes) for runs in self.fold_runs])
        loss = self.scorer.loss(errors)
        return self.add(name, tuple(passes), lambda: self.base.results(passes), math.inf, loss, errors)

    def add(
        self,
        name: str,
        passes: tuple[Pass, ...],
        make: Callable[[], list[PassResult]],
        cost: float,
        loss: Loss,
        errors: Sequence[NDArray[np.float64]],
    ) -> LevelTrial:
        """Adds a trial. errors: as `CrossScorer.loss` takes them."""
        look()
        baseline, joined = self.scorer.baseline, np.concatenate(errors)
        whole = len(joined) == len(baseline.errors)
        differences = Differences.of(joined, baseline) if whole else None
        good = whole and loss.within(self.tolerance)
        trial = LevelTrial(name, passes, make, cost, loss, good, differences, self.size.of)
        self.trials.append(trial)
        return trial

    def climb(self, family: Family) -> None:
        before = len(self.trials)
        try:
            best = self._climbed(family, family.step)
            if best is None and family.otherwise is not None:
                self._climbed(family, family.otherwise)
        except ForestcError as error:
            self.refused[family.name] = error.what
        else:
            if len(self.trials) == before:
                self.refused[family.name] = TOO_LARGE

    def _climbed(self, family: Family, step: Pass) -> Rung | None:
        settings = _Settings(self, family, step)
        return climb(settings.ladders[self.base].branches(), settings.scored, lambda: self.cheapest)


class _Settings:
    """The settings of one family, run on the model and on the models of folds, and scored on the folds."""

    def __init__(self, search: LevelSearch, family: Family, step: Pass) -> None:
        self.search, self.family = search, family
        assert isinstance(step, Laddered)
        self.all_runs = list(dict.fromkeys([*search.fold_runs, search.base]))
        ladders = in_threads(self._ladder_of(step), self.all_runs)
        self.step, self.ladders = step, dict(zip(self.all_runs, ladders, strict=True))
        self.tried = 0

    def _ladder_of(self, step: Laddered) -> Callable[[_PassRuns], Ladder]:
        def ladder_of(runs: _PassRuns) -> Ladder:
            ladder = step.ladder(runs.after(self.family.before), runs.rows)
            if isinstance(ladder, GrowingLadder):
                ladder.most_work = min(ladder.most_work, self.family.work)
            return ladder

        return ladder_of

    def scored(self, branch: Branch, best: float) -> Iterator[tuple[int, Rung, bool]]:
        """Tries the settings of a branch and adds them to the search's trials. Yields (number of the setting, setting
        with its forest, True if good). best: the family's best cost so far."""
        return self._grown(branch, best) if branch.grows else self._shrunk(branch)

    def _add(self, rung: Rung, loss: Loss, on_model: Rung | None, errors: Sequence[NDArray[np.float64]]) -> bool:
        """Adds a trial and returns True if it is good."""
        self.tried += 1
        name = self.family.name
        best = self.search.cheapest
        cost = f", the best costs about {best:,.0f} {self.search.size.unit}" if best < math.inf else ""
        self.search.progress(f"{self.search.heading}{name}: {self.tried} settings tried{cost}")
        passes = (*self.family.before, rung.step, SIMPLIFY)
        return self.search.add(name, passes, partial(self._results, rung.step, on_model), rung.cost, loss, errors).good

    def _results(self, step: Laddered, on_model: Rung | None) -> list[PassResult]:
        base = self.search.base
        before = base.results(self.family.before)
        on_model = on_model or next(self.ladders[base].rungs([step]))
        chosen = step.result(base.after(self.family.before), on_model, 1)
        return [*before, chosen, SIMPLIFY.run(chosen.forest, base.rows)]

    def _grown(self, branch: Branch, best: float) -> Iterator[tuple[int, Rung, bool]]:
        """Tries settings from small to large forests."""
        base, least, stale = self.search.base, math.inf, 0
        most = min(MARGIN * best, LARGER * self.search.cheapest)
        for number, step in enumerate(branch.steps):
            if branch.costs and branch.costs[number] >= most:
                break
            last: tuple[Rung, Loss] | None = None
            for last in self._raced(step):
                if last[0].cost >= most or self._hopeless(last[1]):
                    break
            if last is None or last[0].cost >= most:
                break
            rung, loss = last
            on_model = rung if base in self.search.fold_runs else None
            confirmed = self._confirmed([step], self.errors, loss)
            yield number, rung, self._add(rung, confirmed, on_model, self.errors)
            stale = 0 if loss.lost < least else stale + 1
            least = min(least, loss.lost)
            if stale == STALE:
                break

    def _hopeless(self, loss: Loss) -> bool:
        """Returns True if a loss on some folds would not get within the tolerance though the other folds, or further
        splits into folds, were better by a standard error."""
        if self.search.repeats > 1:
            return loss.lost - loss.error > self.search.tolerance
        share = loss.rows / len(self.search.scorer.baseline.errors)
        least = loss.lost - math.sqrt(1 - share) * loss.error
        return least + loss.errors * math.sqrt(share) * loss.error > self.search.tolerance

    def _raced(self, step: Pass) -> Iterator[tuple[Rung, Loss]]:
        """Runs one setting fold by fold. Yields its forest on each fold, with the loss over the folds so far."""
        self.errors = errors = list[NDArray[np.float64]]()
        for number, (runs, fold) in enumerate(zip(self.search.fold_runs, self.search.folds, strict=True), 1):
            rung = next(self.ladders[runs].rungs([step]), None)
            # The setting was cut short, so its forest depends on the speed of the machine.
            if rung is None or rung.hurried:
                return
            errors += fold.scorer.errors([rung.forest])
            yield rung, replace(self.search.scorer, folds=self.search.folds[:number]).loss(errors)

    def _confirmed(self, steps: Sequence[Pass], errors: Sequence[NDArray[np.float64]], loss: Loss) -> Loss:
        """Returns a setting's loss. A loss near the tolerance is measured again on further splits into folds."""
        search, folds, all_errors = self.search, list(self.search.folds), list(errors)
        for number in range(1, search.repeats):
            least = loss.lost + loss.errors * loss.error * REPEATED
            if (
                loss.rows < len(search.scorer.baseline.errors)
                or loss.within(search.tolerance)
                or least > search.tolerance
            ):
                break
            try:
                again = search.repeat(number)
            except ForestcError:  # The split has too few rows of a rare class.
                search.repeats = 0
                break
            ladders = in_threads(self._ladder_of(self.step), [runs for _, runs in again])
            forests = in_threads(lambda ladder: [rung.forest for rung in ladder.rungs(steps)][-1:], ladders)
            if not all(forests):
                break
            folds += [fold for fold, _ in again]
            all_errors += [fold.scorer.errors(forest)[0] for (fold, _), forest in zip(again, forests, strict=True)]
            loss = replace(search.scorer, folds=tuple(folds)).loss(all_errors)
        return loss

    def _shrunk(self, branch: Branch) -> Iterator[tuple[int, Rung, bool]]:
        """Tries settings from large to small forests."""
        search = self.search
        steps = branch.steps[sum(cost >= LARGER * search.cheapest for cost in branch.costs) :]
        ladders = {runs: self.ladders[runs].rungs(steps) for runs in dict.fromkeys([search.base, *self.all_runs])}
        rungs: dict[_PassRuns, Rung] = {}
        own, number, skipped = next(ladders[search.base], None), 0, 0

        def advance(runs: _PassRuns) -> Rung | None:
            if runs is search.base:
                return None if rung.last or len(ladders) == 1 else next(ladders[runs], None)
            for _ in range(skipped + 1):  # A sequence of settings (ladder) that ends early keeps its last forest.
                rungs[runs] = next(ladders[runs], rungs.get(runs, rung))
            return None

        while own is not None:
            rung = rungs[search.base] = own
            if rung.cost >= LARGER * search.cheapest and not rung.last:
                own, number, skipped = next(ladders[search.base], None), number + 1, skipped + 1
                continue
            own = in_threads(advance, tuple(ladders))[0]
            skipped = 0
            pairs = zip(search.folds, search.fold_runs, strict=True)
            errors = [fold.scorer.errors([rungs[runs].forest])[0] for fold, runs in pairs]
            loss = self._confirmed(steps[: steps.index(rung.step) + 1], errors, search.scorer.loss(errors))
            yield number, rung, self._add(rung, loss, rung, errors)
            if len(ladders) == 1:
                own = next(ladders[search.base], None)
            number += 1
