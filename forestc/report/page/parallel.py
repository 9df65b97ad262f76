"""Draws parallel coordinates: each trial is a line over axes of options and goals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from forestc.costs.fitted import is_number
from forestc.exploration.study import Study
from forestc.report.page.blocks import Brush
from forestc.report.page.study_figures import logarithmic, option_names
from forestc.report.page.study_text import goal_name
from forestc.report.page.svg import shortened, svg

MOST_AXES, WIDE = 14, 1100  # axes at most, and pixels across
TOP, FOOT, HEIGHT = 150, 30, 300  # pixels: above the axes for names, below for values, and the axes
_FONT = Markup('font-family="system-ui, sans-serif"')


@dataclass(frozen=True)
class _OptionAxis:
    name: str
    positions: tuple[float | None, ...]  # position of each trial, 0 to 1; None if the trial lacks the option
    low: str  # text at the lower end
    high: str  # text at the upper end


def parallel_chart(study: Study, important: Sequence[str] = ()) -> Brush | None:
    """Draws parallel coordinates; None for fewer than two axes. important: options to show first."""
    names = option_names(study)
    selected = set(sorted(names, key=(*important, *names).index)[: MOST_AXES - len(study.goals)])
    values = [(name, [trial.options.get(name) for trial in study.complete]) for name in names if name in selected]
    values += [(goal_name(goal), [trial.figure(goal.figure) for trial in study.complete]) for goal in study.goals]
    axes = [_axis(name, column) for name, column in values if any(value is not None for value in column)]
    if len(axes) < 2 or not study.complete:
        return None
    step = (WIDE - 120) / (len(axes) - 1)
    across = [round(40 + step * index, 1) for index in range(len(axes))]
    front = {trial.number for trial in study.front}
    order = sorted(range(len(study.complete)), key=lambda row: study.complete[row].number in front)
    lines = [_line(study.complete[row].number, study.complete[row].number in front, row, axes, across) for row in order]
    drawn = svg(WIDE, TOP + HEIGHT + FOOT, [*lines, *map(_drawn, axes, across)])
    words = f"Parallel coordinates: {len(lines)} trials as lines over {len(axes)} axes, "
    words += ", ".join(axis.name for axis in axes) + "."
    foot = "Each line is a trial; red ones are on the front. A line passes by axes of options not in use. "
    foot += "Drag along axes to choose trials: the table of all trials then shows these alone."
    return Brush("Options and goals of each trial", words, drawn, foot)


def _axis(name: str, values: Sequence[Any]) -> _OptionAxis:
    """Returns an axis for values. Texts are in alphabetical order."""
    used = [value for value in values if value is not None]
    if all(is_number(value) for value in used):
        scale = math.log if logarithmic([float(value) for value in used]) else float
        low, high = min(used), max(used)
        start, span = scale(low), (scale(high) - scale(low)) or 1.0
        positions = tuple(None if value is None else (scale(value) - start) / span for value in values)
        return _OptionAxis(name, positions, f"{low:,.4g}", f"{high:,.4g}")
    texts = sorted({str(value) for value in used})
    step = max(1, len(texts) - 1)
    positions = tuple(None if value is None else texts.index(str(value)) / step for value in values)
    return _OptionAxis(name, positions, texts[0], texts[-1])


def _line(number: int, front: bool, row: int, axes: Sequence[_OptionAxis], across: Sequence[float]) -> Markup:
    points = [
        f"{x:g},{TOP + HEIGHT * (1 - position):.1f}"
        for axis, x in zip(axes, across, strict=True)
        if (position := axis.positions[row]) is not None
    ]
    line = Markup('<polyline class="trial{}" data-trial="{}" points="{}"><title>trial {}</title></polyline>')
    return line.format(" best" if front else "", number, " ".join(points), number)


def _drawn(axis: _OptionAxis, x: float) -> Markup:
    text = Markup('<text x="{x:g}" y="{y:g}" font-size="{size}" {font} fill="var(--{color})" {more}>{words}</text>')
    turned = Markup('transform="rotate(-35 {:g} {:g})"').format(x + 4, TOP - 18)
    middle = Markup('text-anchor="middle"')
    parts = [
        Markup('<g class="axis" data-x="{:g}">').format(x),
        Markup('<path d="M{:g} {}v{}" stroke="var(--gray)" stroke-width="1.5"/>').format(x, TOP, HEIGHT),
        text.format(x=x + 4, y=TOP - 18, size=12, font=_FONT, color="ink", more=turned, words=shortened(axis.name, 28)),
        text.format(x=x, y=TOP - 6, size=11, font=_FONT, color="soft", more=middle, words=shortened(axis.high, 14)),
        text.format(
            x=x, y=TOP + HEIGHT + 14, size=11, font=_FONT, color="soft", more=middle, words=shortened(axis.low, 14)
        ),
        Markup('<rect class="range" x="{:g}" y="{}" width="16" height="0"/>').format(x - 8, TOP),
        Markup('<rect class="handle" x="{:g}" y="{}" width="28" height="{}"/></g>').format(x - 14, TOP - 4, HEIGHT + 8),
    ]
    return Markup("").join(parts)
