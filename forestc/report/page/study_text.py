"""Formats a study's goals, limits, figures and scores for its page."""

from __future__ import annotations

from forestc.exploration.study import Goal, Limit, Score
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


def figure_cell(value: float | None, figure: str) -> Cell:
    """Returns a cell of a figure: accuracies in percent, counts without decimals."""
    if value is None:
        return Cell("-")
    if figure == "accuracy":
        return Cell(f"{100 * value:.2f} %", value)
    return Cell(number_text(value, figure), float(value))


def score_text(score: Score | None) -> str:
    if score is None:
        return "-"
    return f"{100 * score.value:.2f} \N{PLUS-MINUS SIGN} {100 * score.standard_error:.2f} %"


def score_cell(score: Score | None) -> Cell:
    return Cell("-") if score is None else Cell(score_text(score), score.value)
