"""Writes the designs that -O3 has tried as a study: their sizes, and what they lose on the rows that chose one."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from typing import Any, cast

from forestc.compilation.level_search import PlannedRun
from forestc.compilation.record import command_line
from forestc.compilation.request import Request
from forestc.exploration.goals import FIGURES
from forestc.exploration.study import STUDY, Goal, Score, Trial, json_text, request_record, trial_path
from forestc.passes.base import Pass, print_pass
from forestc.passes.ladder import Laddered
from forestc.search.levels import DEFAULT_LEVEL, SEARCHING
from forestc.search.portfolio import LevelTrial

MOST_SHARE = 0.499  # passes take shares of up to a half as their tolerances, and infinity
CURVE = "curve"  # the study's folder in that of the design


def curve_files(planned: PlannedRun, request: Request) -> dict[str, str]:
    """Returns the texts of the study's files by path in the design's folder; empty if the level searched for none."""
    plan, options = planned.plan, request.options
    if plan.size is None or not plan.curve:
        return {}
    size = plan.size
    goals = (Goal(size.figure, False, FIGURES[size.figure].unit), Goal("accuracy", True))

    def trial_of(number: int, trial: LevelTrial) -> Trial:
        loss = trial.loss
        passes = ",".join(print_pass(_allowing(step, loss.counted, plan.tolerance)) for step in trial.passes)
        level = SEARCHING[-1] if trial is plan.chosen else DEFAULT_LEVEL if number == 0 else None
        named = replace(options, level=None, passes=passes, tolerance=None, effort=None, keep=None, sure=False)
        command = None if planned.copy else command_line(replace(request, options=named))
        error = float(loss.wide or loss.error)
        score = Score(loss.accuracy, error, loss.rows, loss.lost, error, loss.measure)
        given = {"family": trial.family, "passes": passes} | ({} if level is None else {"level": level})
        figures = {"estimate": {size.figure: float(trial.size)}}
        return Trial(number, "complete", given, figures, validation=score, command=command or "")

    trials = [trial_of(number, trial) for number, trial in enumerate(plan.curve)]
    notes = []
    if plan.chosen is not None and plan.evidence is not None:
        notes = [f"-O3 took trial {plan.curve.index(plan.chosen)}, {plan.evidence.said(plan.tolerance)}"]
    asked = {
        "command": command_line(request), "source": planned.plan.curve[0].forest.name, "model": None,
        "validation": plan.how, "tolerance": plan.tolerance, "device" if size.figure == "lut" else "cpu": size.on,
        "notes": notes,
    }  # fmt: skip
    files = {STUDY: json_text(request_record(goals, (), asked))}
    files |= {trial_path(trial.number): json_text(asdict(trial)) for trial in trials}
    return {f"{CURVE}/{path}": text for path, text in files.items()}


def _allowing(step: Pass, loss: float, tolerance: float) -> Pass:
    """Returns a pass, its tolerance, if it has one, raised to what its trial lost."""
    if loss <= tolerance or not isinstance(step, Laddered) or step.tolerance is None:
        return step
    eased: Pass = replace(cast(Any, step), tolerance=math.ceil(1000 * loss) / 1000 if loss < MOST_SHARE else math.inf)
    return eased
