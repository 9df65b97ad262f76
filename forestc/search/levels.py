"""Optimization levels, from 0 (exact for every input) to 3 (smallest): the passes that run if the user names none.

Levels 0 and 1 are lists of passes. Levels 2 and 3 search: what passes make at many settings is judged on rows that
chose nothing, and the smallest that keeps the level's promise is taken (`forestc.search.portfolio`). For models that
the searching passes reject there are lists, of which the first that fits is run, and a note says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from forestc.algorithms.deadline import LateError, before
from forestc.costs.prices import DEFAULT_COST, prices
from forestc.errors import ForestcError, OptionError
from forestc.forest.ir import Forest
from forestc.passes import PASSES
from forestc.passes.base import Pass, PassResult, Refusing, parse_passes, print_pass
from forestc.passes.extract_rules.extract_rules import ExtractRules
from forestc.passes.judge import Judge
from forestc.passes.option_rules import DEFAULT_TOLERANCE
from forestc.passes.prune_splits.prune_splits import PruneSplits
from forestc.passes.prune_trees.prune_trees import PruneTrees
from forestc.passes.quantize.quantize import Quantize
from forestc.passes.regrow_trees.regrow_trees import RegrowTrees
from forestc.rows.batches import Rows
from forestc.rows.ranges import have_rows
from forestc.search.cross_validation import Fold
from forestc.search.portfolio import SIMPLIFY, Family, Search, Stop, Trial
from forestc.search.sizes import Size

DEFAULT_EFFORT = 2  # of 1 to 3, see `Stop`
HELD_OUT = 0.2  # share of the rows that level 3 holds out where it does not search and no held-out rows are given


@dataclass(frozen=True)
class Level:
    """keeps: what the level promises. passes: its list, with TOLERANCE for the user's tolerance; of a level that
    searches, its first candidate. otherwise: lists for models that the searching passes reject, and for --scores, which
    they can't keep; the first that fits is run. searches: what is tried, in words."""

    keeps: str
    passes: str
    otherwise: tuple[str, ...] = ()
    searches: str = ""


EXACT = "simplify,quantize{exact=true},simplify"
PATHS = "simplify,share-thresholds,quantize{change=auto},simplify"
WITHIN = "share-thresholds,share-thresholds{tolerance=TOLERANCE},quantize{tolerance=TOLERANCE}"
LEVELS: tuple[Level, ...] = (
    Level("the model's own decision for every input but near ties", EXACT),
    Level("every path of the given rows, and every decision of them but near ties", PATHS),
    Level(
        "every decision of the given rows that -O1 keeps, and accuracy on other rows, within the tolerance",
        PATHS,
        (PATHS,),
        "prune-splits{keep=decisions}",
    ),
    Level(
        "accuracy on other rows, within the tolerance",
        PATHS,
        (f"simplify,{WITHIN},prune-trees{{tolerance=TOLERANCE}},simplify", f"simplify,{WITHIN},simplify"),
        "what -O2 tries, prune-splits, regrow-trees, fitted leaves, prune-trees and extract-rules",
    ),
)
LEVEL_WITHOUT_ROWS, DEFAULT_LEVEL, SEARCHING = 0, 1, (2, 3)
CLIMBED = 0.75  # of the time that is left after -O1, in which settings are tried; the rest is to find their sizes
SMALLER = 0.9  # of the size of what -O2 would take, so that an error of the estimates makes -O3 no larger
KEPT = "decisions kept"  # the family that -O2 tries
STRIDES = {1: 4, 2: 3, 3: 1}  # of prune-splits' prices, by effort
MUCH = 0.5  # of the size with a promise: how small the design without it must be to be mentioned
MANY = 1 << 21  # rows times trees from which -O3 does not try to keep decisions where far less is known to do
LEAST_KEPT = 0.05  # of a forest's cost, below any model that keeps decisions of those on which levels were measured
FEW_ROWS = 5_000  # small ensembles of so few rows are also grown with noise
RULES = ExtractRules(comparators=32, seconds=10.0)  # whose trials take seconds


@dataclass(frozen=True)
class Plan:
    """The passes of a level for one model and its rows, with notes for the user.

    level: None if the user named the passes. trials: what a search tried; chosen: the one that it took, whose `results`
    are what the passes make. how: what the trials were judged on, in words; unit: of their sizes.
    """

    level: int | None
    passes: tuple[Pass, ...]
    notes: tuple[str, ...] = ()
    tolerance: float = DEFAULT_TOLERANCE
    trials: tuple[Trial, ...] = ()
    chosen: Trial | None = None
    how: str = ""
    unit: str = ""

    def as_dict(self) -> dict[str, Any] | None:
        """For the manifest and `--json`; None if the user named the passes."""
        if self.level is None:
            return None
        spelt = ",".join(map(print_pass, self.passes))
        known: dict[str, Any] = {"level": f"O{self.level}", "keeps": LEVELS[self.level].keeps, "passes": spelt}
        if self.chosen is not None:
            known |= {"judged_on": self.how, "tolerance": self.tolerance, "tried": len(self.trials), "unit": self.unit}
            known["table"] = [_row(trial, trial is self.chosen) for trial in _best_of_each(self.trials, self.chosen)]
        return known


def _row(trial: Trial, chosen: bool) -> dict[str, Any]:
    loss = trial.loss
    return {
        "family": trial.family,
        "passes": ",".join(map(print_pass, trial.passes)),
        "size": trial.size,
        "accuracy": loss.accuracy,
        "lost": loss.lost,
        "standard_error": loss.error,
        "rows": loss.rows,
        "measure": loss.measure,
        "good": trial.good,
        "chosen": chosen,
    }


def _best_of_each(trials: Sequence[Trial], chosen: Trial) -> list[Trial]:
    """The chosen trial, and of each other family the smallest that is good, or else the most accurate."""
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
    """For `forestc passes`: each level, what it keeps, its passes, and those for models that one of them rejects."""
    return [
        {"level": f"-O{n}{' (default)' * (n == DEFAULT_LEVEL)}", "keeps": level.keeps}
        | {"passes": f"the smallest of: {PATHS}; {level.searches}" if level.searches else level.passes}
        | {"otherwise": "; ".join(level.otherwise)}
        for n, level in enumerate(LEVELS)
    ]


def level_number(level: int | str | None) -> int | None:
    """The number, 0 to 3, of a level such as 2, "2" or "O2". Raises OptionError."""
    names = {spelling: n for n in range(len(LEVELS)) for spelling in (n, str(n), f"O{n}", f"-O{n}")}
    if level is None or (level in names and not isinstance(level, bool)):
        return None if level is None else names[level]
    raise OptionError(f"unknown level {level}", do=f"use 0 to {len(LEVELS) - 1}")


def check_tolerance(level: int | None, tolerance: float | None, named: object) -> None:
    """Raises OptionError for a tolerance without a level that searches."""
    if tolerance is None:
        return
    if level not in SEARCHING or named is not None:
        raise OptionError("a tolerance needs -O2 or -O3", do="add -O3, or write it as an option of a pass")


def check_effort(level: int | None, effort: int | str | None, named: object) -> Stop | None:
    """How long a level searches: an effort of 1, 2 or 3, or seconds such as "60s". Raises OptionError."""
    if effort is None:
        return None
    if level not in SEARCHING or named is not None:
        raise OptionError("an effort needs -O2 or -O3", do="add -O3, or remove it")
    text = str(effort)
    if text in ("1", "2", "3"):
        return Stop(int(text))
    try:
        seconds = float(text.removesuffix("s")) if text.endswith("s") else -1.0
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < 1e6:
        raise OptionError(f"effort={effort}", do="use 1, 2 or 3, or a number of seconds such as 60s")
    return Stop(3, seconds)


def plan(
    named: Sequence[Pass] | None,
    level: int | None,
    source: Forest,
    rows: Rows | None,
    held_out: Rows | None,
    *,
    tolerance: float | None = None,
    scores: float | None = None,
) -> Plan:
    """The passes of a level that does not search on this model. named: those that the user named, which override any
    level. level: None for the default.

    Without rows only level 0 is possible. Raises OptionError for an invalid tolerance or scores.
    """
    if named is not None:
        return Plan(None, tuple(named))
    wanted = DEFAULT_LEVEL if level is None else level
    notes: list[str] = []
    if not have_rows(rows):
        if level:
            notes.append(f"-O{level} needs rows, and none are given: -O{LEVEL_WITHOUT_ROWS} is used")
        wanted = LEVEL_WITHOUT_ROWS
    judge = None if held_out is None else Judge(source, held_out)
    chosen = LEVELS[wanted]
    why = refused(wanted, source, rows, scores)
    for text in chosen.otherwise if wanted in SEARCHING else (chosen.passes,):
        passes = _parsed(text, tolerance, scores)
        if _refused(passes, source, rows, judge, scores) is None:
            break
    if why is not None and wanted in SEARCHING:
        notes.append(f"-O{wanted} is {','.join(map(print_pass, passes))} here: {why}")
    return Plan(wanted, tuple(passes), tuple(notes), DEFAULT_TOLERANCE if tolerance is None else tolerance)


def judges(step: Pass) -> bool:
    """Whether a pass measures accuracy on held-out rows."""
    return getattr(step, "tolerance", None) is not None or getattr(step, "needs_judge", False)


def refused(level: int | None, source: Forest, rows: Rows | None, scores: float | None) -> str | None:
    """Why a level that searches can't do so on this model and these rows; None if it can, or does not search."""
    if level not in SEARCHING:
        return None
    if not have_rows(rows):
        return "it needs rows"
    if scores is not None:
        return "pruning keeps no scores"
    reasons = [
        _refused([family.step], source, rows, None, None) for family in families(level, source, DEFAULT_TOLERANCE)
    ]
    return None if None in reasons else reasons[0]


def families(
    level: int, source: Forest, tolerance: float, cost: str = DEFAULT_COST, effort: int = DEFAULT_EFFORT, rows: int = 0
) -> list[Family]:
    """What a level tries on a model, the most promising first. rows: how many are given. cost: what is minimized."""
    paths = tuple(parse_passes(PATHS, PASSES))[:-1]
    stride = STRIDES[effort]
    keep = Family(
        KEPT, paths, PruneSplits(keep="decisions", leaf_bits="auto", stride=stride, cost=cost),
        otherwise=PruneSplits(keep="decisions", leaf_bits="auto", stride=stride, cost=cost, mended=0.0),
    )  # fmt: skip
    if level == SEARCHING[0]:
        return [keep]
    if rows * len(source.trees) > MANY:
        keep = replace(keep, least=LEAST_KEPT)
    grown = RegrowTrees(tolerance=tolerance, cost=cost)
    splits = PruneSplits(leaf_bits="auto", tolerance=tolerance, stride=stride, cost=cost)
    tried = [Family("regrow-trees", paths, grown)]
    if rows <= FEW_ROWS:
        tried.append(Family("regrow-trees, noise", paths, replace(grown, noise=0.1, depth=5)))
    tried += [Family("prune-splits", paths, splits), *([keep] if source.decides else [])]
    if effort > 1:
        if source.decides and not source.parts and not prices(cost).firmware:
            tried.append(Family("fitted leaves", paths[:-1], Quantize(fit=True, tolerance=tolerance)))
        tried.append(Family("prune-trees", (*paths, SIMPLIFY), PruneTrees(tolerance=tolerance, cost=cost)))
    if effort > 2:
        if len(source.classes) == 2:
            tried.append(Family("extract-rules", paths, replace(RULES, tolerance=tolerance)))
        tried.append(Family("regrow-trees, half of the columns", paths, replace(grown, columns=0.5)))
    return tried


def searched(
    level: int,
    source: Forest,
    rows: Rows,
    folds: tuple[Fold, ...],
    size: Size,
    *,
    how: str,
    tolerance: float | None = None,
    stop: Stop | None = None,
    first: Sequence[PassResult] = (),
    progress: Callable[[str], None] = lambda _: None,
) -> Plan:
    """The passes that a search of level 2 or 3 takes. folds: what it is judged on, and how in words. size: what
    is minimized. first: what the passes of -O1 make, if that is known. Raises ForestcError, and LateError if the time
    is over before anything was judged."""
    limit, stop = DEFAULT_TOLERANCE if tolerance is None else float(tolerance), stop or Stop(DEFAULT_EFFORT)
    search = Search(source, rows, folds, size, limit, stop, progress)
    paths = parse_passes(PATHS, PASSES)
    if first:
        search.base.know(paths, first)
    plain = before(stop.until, lambda: search.plain("paths kept", paths))
    now = time.monotonic()
    late: list[str] = []
    try:
        before(now + CLIMBED * (stop.until - now), lambda: _climbed(level, search))
    except LateError:
        late = [f"-O{level}: its time ended the search after {len(search.trials)} settings; more may find smaller ones"]
    notes = [f"{name}: {why}" for name, why in list(search.refused.items())]
    try:
        best = before(stop.until, lambda: _best(level, search, plain))
        if level == SEARCHING[0] and stop.effort > 1 and not late:
            notes += before(stop.until, lambda: _without_promise(search, best))
    except LateError:
        best = search.known(plain)
    if best is plain and not plain.good:
        notes.append(
            f"-O{level}: nothing smaller than -O1 keeps the accuracy: on {plain.loss.rows} other rows -O1 itself loses "
            f"{plain.loss.lost:.4f} of the {plain.loss.measure}, with a standard error of {plain.loss.error:.4f}"
        )
    return Plan(level, best.passes, (*notes, *late), limit, tuple(search.trials), best, how, size.unit)


def _climbed(level: int, search: Search) -> None:
    """Tries the families of a level."""
    source, rows, size, limit, effort = search.model, search.rows, search.size, search.tolerance, search.stop.effort

    def climb(family: Family) -> None:
        if _refused([family.step], source, rows, None, None) is None:
            search.climb(family)

    for family in families(level, source, limit, size.cost, effort, search.count):
        climb(family)
    if level == SEARCHING[-1] and effort > 1 and (best := search.smallest()).family == "prune-splits":
        climb(Family("prune-splits, prune-trees", best.passes, PruneTrees(tolerance=limit, cost=size.cost)))


def _best(level: int, search: Search, plain: Trial) -> Trial:
    """The smallest design; at level 3 one that keeps decisions, where no other is much smaller."""
    best = search.smallest()
    kept = search.smallest(lambda trial: trial.family == KEPT, plain)
    return kept if level == SEARCHING[-1] and kept.size * SMALLER <= best.size else best


def _without_promise(search: Search, best: Trial) -> list[str]:
    """A note where keeping the decisions of the given rows makes the design much larger."""
    first = families(SEARCHING[-1], search.model, search.tolerance, search.size.cost, 1, search.count)[0]
    step = replace(first.step, leaf_bits=1, price=1.0) if isinstance(first.step, RegrowTrees) else first.step
    search.climb(replace(first, name=f"{first.name} (-O{SEARCHING[-1]})", step=step, most=MUCH * search.cheapest))
    free = search.smallest()
    if free.size > MUCH * best.size:
        return []
    sizes = f"{free.size:,.0f} instead of {best.size:,.0f} {search.size.unit}"
    return [f"without the promise on given rows {sizes}, as estimated: -O{SEARCHING[-1]}"]


def _parsed(text: str, tolerance: float | None, scores: float | None) -> list[Pass]:
    limit = DEFAULT_TOLERANCE if tolerance is None else float(tolerance)
    passes = parse_passes(text.replace("TOLERANCE", repr(limit)), PASSES)
    return [replace(step, scores=scores) if isinstance(step, Quantize) else step for step in passes]


def _refused(
    passes: Sequence[Pass], source: Forest, rows: Rows | None, judge: Judge | None, scores: float | None
) -> str | None:
    """Why one of the passes rejects the model or the scores; None if none does."""
    for step in passes:
        if step.name in ("prune-splits", "prune-trees") and scores is not None:
            return f"{step.name} keeps no scores"
        if isinstance(step, Refusing):
            try:
                step.refuse(source, rows, judge)
            except ForestcError as error:
                return error.what
    return None
