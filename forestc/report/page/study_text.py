"""Formats a study's goals, limits, figures and scores for its page."""

from __future__ import annotations

from forestc.exploration.study import Goal, Limit, Score, score_shown
from forestc.report.answer import number_text
from forestc.report.page.blocks import Cell
from forestc.report.tables import visible

NAMES = {"lut": "LUTs", "ff": "flip-flops", "fmax_mhz": "Fmax", "latency_cycles": "latency", "ram": "RAM"}


def goal_name(goal: Goal) -> str:
    """Returns the name of a goal's figure for users, with its unit."""
    name = visible(NAMES.get(goal.figure, goal.figure.replace("_", " ")))
    return f"{name}, {visible(goal.unit)}" if goal.unit and goal.unit.lower() != name.lower() else name


def limit_text(limit: Limit) -> str:
    return f"{goal_name(Goal(limit.figure, False))} {'at least' if limit.at_least else 'at most'} {limit.value:,g}"


def figure_cell(value: float | None, figure: str, measure: str = "accuracy") -> Cell:
    """Returns a cell of a figure: accuracies as `measure` asks, counts without decimals."""
    if value is None:
        return Cell("-")
    if figure == "accuracy":
        return Cell(score_shown(value, measure, 2), value)
    return Cell(number_text(value, figure), float(value))


def score_text(score: Score | None) -> str:
    if score is None:
        return "-"
    value, error = (score_shown(part, score.measure, 2) for part in (score.value, score.standard_error))
    return f"{value.removesuffix(' %')} \N{PLUS-MINUS SIGN} {error}"


def score_cell(score: Score | None) -> Cell:
    return Cell("-") if score is None else Cell(score_text(score), score.value)
