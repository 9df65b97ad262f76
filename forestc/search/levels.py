"""Defines the optimization levels -O0 to -O3: which passes run by default. Levels 2 and 3 search for the smallest
design that keeps the accuracy on held-out rows."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeGuard

from forestc.costs.prices import DEFAULT_COST, prices
from forestc.errors import CheckError, OptionError, opt
from forestc.forest.ir import Forest
from forestc.passes import PASSES, seeded
from forestc.passes.base import Pass, PassResult, most_changed, parse_passes, print_pass, refusal
from forestc.passes.extract_rules.extract_rules import ExtractRules
from forestc.passes.options import DEFAULT_TOLERANCE
from forestc.passes.promises import A_BUG
from forestc.passes.prune_splits.prune_splits import PruneSplits
from forestc.passes.prune_trees.prune_trees import PruneTrees
from forestc.passes.regrow_trees.regrow_trees import RegrowTrees
from forestc.passes.round_leaves.round_leaves import RoundLeaves
from forestc.rows.batches import Rows
from forestc.rows.ranges import have_rows
from forestc.search.choice import Evidence
from forestc.search.cross_validation import Folds
from forestc.search.portfolio import SIMPLIFY, TOO_LARGE, Family, LevelSearch, LevelTrial, Stop
from forestc.search.sizes import Size
from forestc.system.deadline import LateError, before

DEFAULT_EFFORT = 2  # sets the effort from 1 to 3 (see `Stop`) if the user gives none


@dataclass(frozen=True)
class Level:
    """An optimization level."""

    keeps: str  # what the level promises, in words
    passes: str  # list of passes; the first trial's if the level searches
    searches: str = ""  # passes that the search tries, in words


EXACT = "simplify,quantize-inputs{exact=true},round-leaves{exact=true},simplify"
PATHS = "simplify,share-thresholds,quantize-inputs,round-leaves{change=auto},simplify"
WITHIN = "the accuracy on held-out rows, within the tolerance"
QUICK = "fewer leaf bits, prune-splits and regrow-trees at few settings"
LEVELS: tuple[Level, ...] = (
    Level("the model's own decision for every input, except near ties", EXACT),
    Level("the path of every given row, and its decision except in near ties", PATHS),
    Level(WITHIN, PATHS, QUICK),
    Level(WITHIN, PATHS, "what -O2 tries, prune-splits and regrow-trees at more settings, prune-trees, extract-rules"),
)
KEEPS = {  # maps a value of `--keep` to its promise, for a level that searches
    "decisions": "every decision of the given rows that -O1 keeps",
    "paths": "every path of the given rows, and every decision that -O1 keeps",
}
LEVEL_WITHOUT_ROWS, DEFAULT_LEVEL, SEARCHING = 0, 1, (2, 3)
CLIMBED = 0.75  # share of the time for trying settings; the rest finds their sizes
STRIDES = {1: 4, 2: 3, 3: 1}  # gives n by effort: every n-th price of prune-splits is tried
FEW_ROWS = 5_000  # rows up to which small ensembles are grown with noise
FEW_SAMPLES = 200_000  # rows times trees; with more, quick pruning leaves out rewiring and copies
# Growing at -O2 stops after QUICK_WORK + QUICK_SHARE * rows * trees steps of work.
QUICK_WORK, QUICK_SHARE = 1e9, 5e3
RULES = ExtractRules(comparators=32, seconds=10.0)  # limits extract-rules so that a trial takes seconds


@dataclass(frozen=True)
class LevelPlan:
    """The passes of a level for one model and its rows, with notes for the user."""

    level: int | None  # None if the user named the passes
    passes: tuple[Pass, ...]
    notes: tuple[str, ...] = ()
    tolerance: float = DEFAULT_TOLERANCE
    trials: tuple[LevelTrial, ...] = ()  # all trials of the search, if the level searches
    chosen: LevelTrial | None = None  # the trial with these passes
    evidence: Evidence | None = None  # what the chosen trial loses
    finalists: tuple[LevelTrial, ...] = ()  # trials that are as good as the chosen one
    how: str = ""  # describes the rows that scored the trials
    size: Size | None = None  # the size that the search minimized
    curve: tuple[LevelTrial, ...] = ()  # the trials of `LevelSearch.curve`, after -O3 without a time limit
    keeps: str = ""  # what the level promises, in words

    @property
    def unit(self) -> str:
        return "" if self.size is None else self.size.unit

    def as_dict(self) -> dict[str, Any] | None:
        """Returns the plan for the manifest and `--json`; None if the user named the passes."""
        if self.level is None:
            return None
        spelt = ",".join(map(print_pass, self.passes))
        keeps = self.keeps or LEVELS[self.level].keeps
        record: dict[str, Any] = {"level": f"O{self.level}", "keeps": keeps, "passes": spelt}
        if self.chosen is not None:
            record |= {"judged_on": self.how, "tolerance": self.tolerance, "tried": len(self.trials), "unit": self.unit}
            record |= {} if self.evidence is None else {"evidence": self.evidence.as_dict(self.tolerance)}
            record["table"] = [_row(trial, trial is self.chosen) for trial in _best_of_each(self.trials, self.chosen)]
        return record


def _row(trial: LevelTrial, chosen: bool) -> dict[str, Any]:
    loss = trial.loss
    return {
        "family": trial.family,
        "passes": ",".join(map(print_pass, trial.passes)),
        "size": trial.size,
        "accuracy": loss.accuracy,
        "lost": loss.lost,
        "standard_error": loss.error,
        "errors_added": loss.errors,
        "rows": loss.rows,
        "measure": loss.measure,
        "good": trial.good,
        "chosen": chosen,
    }


def _best_of_each(trials: Sequence[LevelTrial], chosen: LevelTrial) -> list[LevelTrial]:
    """Returns the chosen trial and one trial of each other family, sorted by size."""
    best = {chosen.family: chosen}
    for family in dict.fromkeys(trial.family for trial in trials):
        members = [trial for trial in trials if trial.family == family]
        good = [trial for trial in members if trial.good]
        picked = (
            min(good, key=lambda trial: (not trial.measured, trial.cost))
            if good
            else min(members, key=lambda trial: trial.loss.lost)
        )
        best.setdefault(family, picked)
    return sorted(best.values(), key=lambda trial: trial.size)


def levels_guide() -> list[dict[str, str]]:
    """Returns the promise and the passes of each level, for `forestc passes`."""
    return [
        {"level": f"-O{n}{' (default)' * (n == DEFAULT_LEVEL)}", "keeps": level.keeps}
        | {"passes": f"the smallest of: {PATHS}; {level.searches}" if level.searches else level.passes}
        for n, level in enumerate(LEVELS)
    ]


def level_number(level: int | str | None) -> int | None:
    """Returns the number of a level such as 2, "2" or "O2". Raises OptionError for an unknown level."""
    names = {spelling: n for n in range(len(LEVELS)) for spelling in (n, str(n), f"O{n}", f"-O{n}")}
    if level is None or (level in names and not isinstance(level, bool)):
        return None if level is None else names[level]
    raise OptionError(f"unknown level {level}", where="-O", do=f"use 0 to {len(LEVELS) - 1}")


def check_search(level: int | None, named: object, **options: object) -> None:
    """Raises OptionError if an option of a search, such as tolerance, is given without level 2
    or 3 or with passes (`named`)."""
    given = [name for name, value in options.items() if value is not None]
    if given and (level not in SEARCHING or named is not None):
        instead = ", or write it as an option of a pass" if given[0] == "tolerance" else ", or remove it"
        what = f"{'an' if given[0][0] in 'aeiou' else 'a'} {given[0]}" if given[0] != "sure" else f"{opt.sure}"
        raise OptionError(f"{what} needs -O2 or -O3", where="-O", do=f"add -O3{instead}")


def effort_of(effort: int | str | None) -> Stop | None:
    """Returns the limits of a search from an effort of 1, 2 or 3, or from seconds such as "60s". Raises OptionError for
    others."""
    if effort is None:
        return None
    text = str(effort)
    if text in ("1", "2", "3"):
        return Stop(int(text))
    try:
        seconds = float(text.removesuffix("s")) if text.endswith("s") else -1.0
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < 1e6:
        raise OptionError(
            f"{effort!r} is no effort", where=opt.effort, do="use 1, 2 or 3, or a number of seconds such as 60s"
        )
    return Stop(3, seconds)


def plan(
    named: Sequence[Pass] | None, level: int | None, rows: Rows | None, *, scores: float | None = None
) -> LevelPlan:
    """Returns the passes of a level, without a search.
    named: the user's passes, which replace any level.
    scores: the option `scores` of round-leaves."""
    if named is not None:
        return LevelPlan(None, tuple(named))
    number = DEFAULT_LEVEL if level is None else level
    notes: list[str] = []
    if not have_rows(rows):
        if level:
            notes.append(f"-O{level} needs rows, and none are given: -O{LEVEL_WITHOUT_ROWS} is used")
        number = LEVEL_WITHOUT_ROWS
    elif number in SEARCHING:
        notes.append(f"-O{number} is -O{DEFAULT_LEVEL} here: what it tries keeps no scores")
        number = DEFAULT_LEVEL
    passes = parse_passes(LEVELS[number].passes, PASSES)
    passes = [replace(step, scores=scores) if isinstance(step, RoundLeaves) else step for step in passes]
    return LevelPlan(number, tuple(passes), tuple(notes))


def searches(level: int | None, rows: Rows | None, scores: float | None) -> TypeGuard[int]:
    return level in SEARCHING and have_rows(rows) and scores is None


def families(
    level: int,
    source: Forest,
    tolerance: float,
    cost: str = DEFAULT_COST,
    effort: int = DEFAULT_EFFORT,
    rows: int = 0,
    keep: str | None = None,
) -> list[Family]:
    """Returns the families of settings that a level tries beyond the level below, in the order of trying.
    cost: name of a cost.
    keep: a key of KEEPS."""
    paths = tuple(parse_passes(PATHS, PASSES))[:-1]
    quick = level == SEARCHING[0]
    if keep == "paths":  # Nothing beyond -O1 keeps them.
        return []
    if keep == "decisions":
        stride = max(STRIDES[DEFAULT_EFFORT], STRIDES[effort]) if quick else STRIDES[effort]
        keeping = PruneSplits(keep="decisions", leaf_bits="auto", stride=stride, cost=cost)
        name = "decisions kept" if quick else "decisions kept, more prices"
        again = not quick and stride == STRIDES[DEFAULT_EFFORT]
        return [] if again else [Family(name, paths, keeping, otherwise=replace(keeping, mended=0.0))]
    firmware, decides = bool(prices(cost).firmware), source.decides
    bits = 1 if decides else 4
    grown = RegrowTrees(tolerance=tolerance, cost=cost, leaf_bits=bits, price=1.0)
    splits = PruneSplits(leaf_bits="auto", tolerance=tolerance, cost=cost)
    noisy = replace(grown, noise=0.1, depth=5)
    few = rows <= FEW_ROWS
    if quick:
        work = QUICK_WORK + QUICK_SHARE * rows * len(source.trees)
        if rows * len(source.trees) > FEW_SAMPLES:
            splits = replace(splits, copies=2, rewire=False)
        return [
            *([Family("regrow-trees, noise", paths, noisy, work=work)] if few else []),
            Family("regrow-trees", paths, grown if few else replace(grown, copies=0), work=work),
            Family("prune-splits", paths, replace(splits, leaf_bits=3 if firmware and decides else bits, stride=4)),
            Family("fewer leaf bits", paths[:-1], RoundLeaves(tolerance=tolerance)),
        ]
    # With one bit more, noise makes logic smaller, but no C.
    start, noise = (noisy, ", noise") if few and not firmware else (grown, "")
    tried = [
        *([Family("regrow-trees, depth=4, noise", paths, replace(noisy, depth=4))] if few else []),
        Family(f"regrow-trees, leaf_bits={bits + 1}{noise}", paths, replace(start, leaf_bits=bits + 1)),
        Family("regrow-trees, price=0.3", paths, replace(grown, price=0.3)),
        Family("prune-splits, more settings", paths, replace(splits, stride=STRIDES[effort])),
    ]
    if effort > 1:
        tried.append(Family("prune-trees", (*paths, SIMPLIFY), PruneTrees(tolerance=tolerance, cost=cost)))
    if effort > 2:
        if len(source.classes) == 2:
            tried.append(Family("extract-rules", paths, replace(RULES, tolerance=tolerance)))
        tried.append(Family("regrow-trees, all settings", paths, replace(grown, leaf_bits="auto", price="auto")))
    return tried


_DEFAULT_STOP = Stop(DEFAULT_EFFORT)


@dataclass(frozen=True)
class SearchTerms:
    tolerance: float = DEFAULT_TOLERANCE  # accuracy that may be lost
    stop: Stop = _DEFAULT_STOP
    keep: str | None = None  # a key of KEEPS, or None
    sure: bool = False  # True if the whole interval of the loss must be within the tolerance
    seed: int = 0  # seed of the passes tried


def searched(
    level: int,
    source: Forest,
    rows: Rows,
    folds: Folds,
    size: Size,
    terms: SearchTerms,
    first: Sequence[PassResult] = (),
    progress: Callable[[str], None] = lambda _: None,
) -> LevelPlan:
    """Searches at level 2 or 3 and returns the plan. Raises LateError if the time ends before the first trial is
    scored."""
    limit, stop, keep = float(terms.tolerance), terms.stop, terms.keep
    search = LevelSearch(
        source, rows, folds.folds, size, limit, stop, progress, repeated=folds.repeated, lacking=folds.lacking
    )
    paths = parse_passes(PATHS, PASSES)
    if first:
        search.base.add_results(paths, first)
    plain = before(stop.until, lambda: search.plain("paths kept", paths))
    now = time.monotonic()
    notes: list[str] = []
    try:
        for tried in SEARCHING[: SEARCHING.index(level) + 1]:
            before(now + CLIMBED * (stop.until - now), partial(climbed, tried, search, terms))
            before(stop.until, search.smallest)
        taken = before(stop.until, lambda: search.choose(terms.sure))
    except LateError:
        notes = [
            f"-O{level}: its time ended the search after {len(search.trials)} settings; more may find smaller ones"
        ]
        taken = search.choose(terms.sure, measure=False)
    chosen = taken.trial
    curve = search.curve(chosen) if level == SEARCHING[-1] and stop.until == math.inf else ()
    refused = [f"{name}: {why}" for name, why in search.refused.items() if why != TOO_LARGE]
    notes = [*refused, *notes]
    if chosen is plain:
        least = f"{'is shown to lose' if terms.sure else 'loses'} at most {limit:g} of the {plain.loss.measure}"
        notes.append(
            f"-O{level} is -O1 here: nothing smaller {least} once the choice among {len(search.trials)} counts"
        )
    elif all(tree.size == 1 for tree in chosen.forest.trees):
        notes.append(f"-O{level}: the design answers every row alike, which is within the tolerance on the other rows")
    if keep and source.decides and most_changed(chosen.results) == math.inf:
        raise CheckError(f"a pass of {chosen.family} may change any decision", where=opt.keep, do=A_BUG)
    keeps = "; ".join([*([KEEPS[keep]] if keep else []), WITHIN])
    return LevelPlan(
        level, chosen.passes, tuple(notes), limit, tuple(search.trials), chosen, taken.evidence, taken.finalists,
        folds.how, size, curve, keeps,
    )  # fmt: skip


def climbed(level: int, search: LevelSearch, terms: SearchTerms) -> None:
    source, rows, size, limit = search.model, search.rows, search.size, search.tolerance
    effort = search.stop.effort

    def climb(family: Family) -> None:
        if refusal(family.step, source, rows) is None:
            both = (family.step, family.otherwise)
            step, otherwise = (step if step is None else seeded(step, terms.seed) for step in both)
            assert step is not None
            search.climb(replace(family, step=step, otherwise=otherwise))

    tried = families(level, source, limit, size.cost, effort, search.count, terms.keep)
    # On copies of a large model, quick pruning takes longer than all others together, and is rarely smaller.
    long = search.scorer.retrained and search.repeats <= 1
    last = PruneSplits if long and level == SEARCHING[0] and terms.keep is None else ()
    for number, family in enumerate(tried, 1):
        search.heading = f"-O{level}, {number} of {len(tried)}, "
        if not isinstance(family.step, last) or search.cheapest == math.inf:
            climb(family)
    if level == SEARCHING[-1] and effort > 1 and terms.keep is None:
        best = search.smallest()
        if best.family.startswith("prune-splits"):
            climb(Family("prune-splits, prune-trees", best.passes, PruneTrees(tolerance=limit, cost=size.cost)))
