"""Optimisation levels, from 0 (exact for every input) to 3 (smallest): the passes that run if the user names none.

Each level is a list of passes. If one of them rejects the model, the level's next list runs, and a note says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from forestc.errors import ForestcError, OptionError
from forestc.forest.ir import Forest
from forestc.passes import PASSES
from forestc.passes.base import Pass, Refusing, parse_passes, print_pass
from forestc.passes.judge import Judge
from forestc.passes.pipeline import Step
from forestc.passes.quantize.quantize import Quantize
from forestc.rows.batches import Rows
from forestc.rows.ranges import have_rows

DEFAULT_TOLERANCE = 0.01
HELD_OUT = 0.2  # share of the rows that level 3 holds out if none are given


@dataclass(frozen=True)
class Level:
    """keeps: what the level promises. passes: its list, with TOLERANCE for the user's tolerance. otherwise: lists for
    models that one of these passes rejects, and for --scores, which pruning can't keep; the first that fits is run."""

    keeps: str
    passes: str
    otherwise: tuple[str, ...] = ()


EXACT = "simplify,quantize{exact=true},simplify"
PATHS = "simplify,share-thresholds,quantize{change=auto},simplify"
PRUNED = "prune-splits{keep=accuracy-or-decisions,tolerance=TOLERANCE,leaf_bits=auto}"
WITHIN = "share-thresholds,share-thresholds{tolerance=TOLERANCE},quantize{tolerance=TOLERANCE}"
LEVELS: tuple[Level, ...] = (
    Level("the model's own path for every input", EXACT),
    Level("every path of the given rows", PATHS),
    Level(
        "every decision of the given rows",
        "simplify,share-thresholds,quantize{change=auto},prune-splits{keep=decisions,leaf_bits=auto},simplify",
        (PATHS,),
    ),
    Level(
        "accuracy on held-out rows, within the tolerance",
        f"simplify,share-thresholds,quantize,{PRUNED},prune-trees{{tolerance=TOLERANCE}},simplify",
        (
            f"simplify,share-thresholds,quantize,{PRUNED},simplify",
            f"simplify,{WITHIN},prune-trees{{tolerance=TOLERANCE}},simplify",
            f"simplify,{WITHIN},simplify",
        ),
    ),
)
LEVEL_WITHOUT_ROWS, DEFAULT_LEVEL, JUDGED_LEVEL = 0, 1, 3
SET_ASIDE = (
    f"-O{JUDGED_LEVEL} holds out {HELD_OUT:g} of the rows to judge on; rows that the model was not trained on are "
    "better (--held-out FILE)"
)


@dataclass(frozen=True)
class Plan:
    """The passes of a level for one model and its rows, with notes for the user. level: None if the user named the
    passes."""

    level: int | None
    passes: tuple[Pass, ...]
    notes: tuple[str, ...] = ()
    tolerance: float = DEFAULT_TOLERANCE

    def as_dict(self) -> dict[str, Any] | None:
        """For the manifest and `--json`; None if the user named the passes."""
        if self.level is None:
            return None
        spelt = ",".join(map(print_pass, self.passes))
        return {"level": f"O{self.level}", "keeps": LEVELS[self.level].keeps, "passes": spelt}

    def shortfall(self, steps: Sequence[Step]) -> tuple[str, ...]:
        """A note for the user if the result loses more on held-out rows than the tolerance."""
        judged = [step.held_out for step in steps if step.held_out is not None]
        if self.level != JUDGED_LEVEL or not judged:
            return ()
        last = judged[-1]  # whatever follows is exact
        if last["lost_in_all"] + last["standard_error"] <= self.tolerance:
            return ()
        lost = f"{last['lost_in_all']:.4f} of the {last['measure']} is lost on {last['rows']} held-out rows"
        error = f"with a standard error of {last['standard_error']:.4f}; the tolerance is {self.tolerance:g}"
        found = "no forest smaller than the one that keeps the given rows was within it"
        return (f"-O{JUDGED_LEVEL}: {lost}, {error}: {found}",)


def levels_guide() -> list[dict[str, str]]:
    """For `forestc passes`: each level, what it keeps, its passes, and those for models that one of them rejects."""
    return [
        {"level": f"-O{n}{' (default)' * (n == DEFAULT_LEVEL)}", "keeps": level.keeps, "passes": level.passes}
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
    """Raises OptionError for a tolerance outside 0 to 1, or without level 3."""
    if tolerance is None:
        return
    if level != JUDGED_LEVEL or named is not None:
        raise OptionError("a tolerance needs -O3", do="add -O3, or write it as an option of a pass")
    if isinstance(tolerance, bool) or not 0 <= tolerance <= 1:
        raise OptionError(f"tolerance={tolerance}", do="use a share from 0 to 1")


def own_held_out(level: int | None, named: object, rows: object, held_out: object) -> bool:
    """Whether the level holds out a share of the rows, `HELD_OUT`: it needs held-out rows, and none are given."""
    return level == JUDGED_LEVEL and named is None and rows is not None and held_out is None


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
    """The passes to run. named: those that the user named, which override any level. level: None for the default.

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
    why = None
    for text in (chosen.passes, *chosen.otherwise):
        passes = _parsed(text, tolerance, scores)
        refused = _refused(passes, source, rows, judge, scores)
        if refused is None:
            break
        why = why or refused
    if why is not None and chosen.otherwise:
        spelt = ",".join(map(print_pass, passes))
        notes.append(f"-O{wanted} is {spelt} here: {why}")
    return Plan(wanted, tuple(passes), tuple(notes), DEFAULT_TOLERANCE if tolerance is None else tolerance)


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
