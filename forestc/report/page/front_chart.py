"""Charts a study's front: every trial, the front with error bars, the unpruned model, limits and peers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from forestc.exploration.choice import choice, unpruned
from forestc.exploration.study import Goal, Study, Trial
from forestc.report.answer import figure_text, unpruned_name
from forestc.report.page.blocks import Chart
from forestc.report.page.charts import WIDE, Drawn, Encoding, altair, data, finished, tooltips
from forestc.report.page.peers import Peer
from forestc.report.page.study_figures import logarithmic
from forestc.report.page.study_text import goal_name, score_text
from forestc.report.page.svg import shortened

HEIGHT = 360  # pixels
ASIDE = 7  # pixels between a point and its error bar, beside the front's line
LABEL = (7, 17)  # pixels: width of a letter of a label, and height of a label
BELOW = 0.75  # limits how far an axis extends below important trials, as a share


@dataclass(frozen=True)
class _GoalAxis:
    goal: Goal
    scale: str  # linear, log or symlog
    low: float  # the lower end
    high: float  # the upper end

    def position(self, value: float) -> float:
        """Returns the position of a value: 0 at the low end, 1 at the high end."""
        low, high, value = (self._scaled(v) for v in (self.low, self.high, value))
        return (value - low) / ((high - low) or 1.0)

    def _scaled(self, value: float) -> float:
        return math.log(value) if self.scale == "log" else math.log1p(value) if self.scale == "symlog" else value

    def encoded(self, kind: Callable[..., Encoding], field: str) -> Encoding:
        alt = altair()
        ticks: dict[str, Any] = {
            "format": (".3f" if self.goal.unit else ".1%")
            if self.goal.figure == "accuracy"
            else ",.0f"
            if self.high > 20
            else ","
        }
        if self.scale == "symlog":
            steps = (step * 10**power for power in range(9) for step in (1, 2, 5))
            ticks["values"] = [0, *(step for step in steps if step <= self.high)]
        scale = alt.Scale(type=self.scale, domain=[self.low, self.high], nice=False, clamp=True)
        return kind(f"{field}:Q", title=goal_name(self.goal), scale=scale, axis=alt.Axis(**ticks))


def front_chart(study: Study, across: Goal, up: Goal, peers: Sequence[Peer], pages: Mapping[int, str]) -> Chart:
    """Charts the trials by two goals. pages: addresses of designs' pages, by trial."""
    alt = altair()
    if study.measure == "R squared":  # It is no share, so its axis has no percent.
        across, up = (replace(goal, unit=study.measure) if goal.figure == "accuracy" else goal for goal in (across, up))
    front = {trial.number for trial in study.front}
    chosen = choice(study)
    beside = (unpruned(study.trials), None if chosen is None else chosen.taken)
    marked = front | {trial.number for trial in beside if trial is not None}
    complete = [trial for trial in study.complete if None not in (trial.figure(across.figure), trial.figure(up.figure))]
    others = [
        {"name": shortened(peer.name, 32), "x": peer.figures[across.figure], "y": peer.figures[up.figure]}
        for peer in peers
        if {across.figure, up.figure} <= peer.figures.keys()
    ]
    must = [trial for trial in complete if trial.number in marked]
    upper = sorted(study.front, key=lambda trial: -(trial.figure(up.figure) or 0.0))[: (len(front) + 1) // 2]
    in_answer = [t for t in (*_answer_trials(study), *upper) if t in complete] if up.figure == "accuracy" else must
    x_axis = _axis(across, complete, must or complete, others, "x")
    y_axis = _axis(up, complete, in_answer or must or complete, others, "y")
    rows = [_row(study, trial, x_axis, y_axis, front, pages) for trial in complete]
    labels = _labels(study, must, x_axis, y_axis)
    x, y = x_axis.encoded(alt.X, "x"), y_axis.encoded(alt.Y, "y")
    layers = _trial_layers(x, y, y_axis.encoded(alt.Y, "low"), _tooltips(across, up))
    limits = [
        {"axis": key, "at": limit.value}
        for limit in study.limits
        for key, axis in (("x", x_axis), ("y", y_axis))
        if limit.figure == axis.goal.figure and axis.low <= limit.value <= axis.high
    ]
    layers += _limit_lines(x, y, {str(limit["axis"]) for limit in limits})
    layers += _peer_marks(x, y, across, up) if others else []
    aligned = {"align": "left", "dx": 10} if across.maximize else {"align": "right", "dx": -10}
    named = alt.Chart(data("labels")).encode(x=x, y=y, text="text:N")
    for halo in ({"stroke": "var(--paper)", "strokeWidth": 4, "strokeJoin": "round"}, {}):
        layers.append(named.mark_text(dy=-10, fontSize=12, color="var(--ink)", **aligned, **halo))
    drawn = alt.layer(*layers).properties(width=WIDE, height=HEIGHT)
    words = f"Scatter of {len(rows)} trials by {goal_name(across)} and {goal_name(up)}; {len(front)} on the front"
    words += f", beside {len(others)} peers." if others else "."
    title = f"{goal_name(up)} against {goal_name(across)}"
    foot = _foot(study, rows, bool(limits), bool(others))
    datasets = {"limits": limits, "peers": others, "labels": labels}
    return finished(title[:1].upper() + title[1:], words, drawn, rows, foot, **datasets)


def _trial_layers(x: Encoding, y: Encoding, low: Encoding, tooltip: Sequence[Encoding]) -> list[Drawn]:
    alt = altair()
    base = alt.Chart(data()).encode(x=x, y=y)
    rest, best = base.transform_filter("!datum.front"), base.transform_filter("datum.front")
    outside, inside = base.transform_filter("datum.outside"), best.transform_filter("!datum.outside")
    return [
        best.mark_line(interpolate="step-after", color="var(--accent)", strokeWidth=1.5, strokeOpacity=0.55),
        inside.mark_rule(color="var(--soft)", strokeWidth=1.4, xOffset=ASIDE).encode(
            y=low, y2="high:Q"
        ),
        rest.transform_filter("!datum.outside && !datum.unpruned").mark_point(size=28, strokeWidth=1.2).encode(
            color=alt.condition("datum.kept", alt.value("var(--c1)"), alt.value("var(--gray)")),
            opacity=alt.condition("datum.kept", alt.value(0.75), alt.value(0.45)),
            tooltip=tooltip,
        ),
        outside.mark_point(shape="triangle-down", filled=True, size=60, opacity=0.9).encode(
            color=alt.condition("datum.front", alt.value("var(--accent)"), alt.value("var(--gray)")), tooltip=tooltip
        ),
        inside.mark_point(filled=True, size=85, opacity=1, color="var(--accent)").encode(tooltip=tooltip),
        base.transform_filter("datum.unpruned").mark_point(
            shape="square", size=150, strokeWidth=2.2, opacity=1, color="var(--c4)"
        ).encode(tooltip=tooltip),
    ]  # fmt: skip


def _limit_lines(x: Encoding, y: Encoding, axes: set[str]) -> list[Drawn]:
    lines = []
    for key, encoded in (("x", x.copy()), ("y", y.copy())):
        if key in axes:
            encoded.shorthand = "at:Q"
            line = altair().Chart(data("limits")).transform_filter(f"datum.axis === '{key}'")
            lines.append(line.mark_rule(strokeDash=[5, 4], color="var(--soft)").encode(**{key: encoded}))
    return lines


def _peer_marks(x: Encoding, y: Encoding, across: Goal, up: Goal) -> list[Drawn]:
    tips = tooltips(("name:N", "peer"), ("x:Q", goal_name(across), ",.5~g"), ("y:Q", goal_name(up), ",.5~g"))
    seen = altair().Chart(data("peers")).encode(x=x, y=y)
    return [
        seen.mark_point(shape="diamond", filled=True, size=90, opacity=1, color="var(--c3)").encode(tooltip=tips),
        seen.mark_text(align="left", dx=9, dy=1).encode(text="name:N"),
    ]


def _tooltips(across: Goal, up: Goal) -> list[Any]:
    shown = [("trial:N", "trial"), ("across:N", goal_name(across)), ("up:N", goal_name(up)), ("test:N", "test")]
    return tooltips(*shown, ("rung:N", "known by"), ("note:N", "note"))


def _row(
    study: Study, trial: Trial, x_axis: _GoalAxis, y_axis: _GoalAxis, front: set[int], pages: Mapping[int, str]
) -> dict[str, Any]:
    x, y = (float(trial.figure(axis.goal.figure) or 0.0) for axis in (x_axis, y_axis))
    score = trial.validation if y_axis.goal.figure == "accuracy" else None
    low, high = (y - score.standard_error, y + score.standard_error) if score else (y, y)
    first = unpruned(study.trials)
    row: dict[str, Any] = {
        "trial": trial.number,
        "x": x,
        "y": round(min(max(y, y_axis.low), y_axis.high), 6),
        "across": _shown(x_axis.goal, trial),
        "up": _shown(y_axis.goal, trial),
        "test": score_text(trial.test) if trial.test else "-",
        "kept": study.kept(trial),
        "front": trial.number in front,
        "rung": trial.known_by(x_axis.goal.figure) or "",
        "note": shortened(trial.reason, 60) or "-",
    }
    if trial.number in front:
        row |= {"low": round(max(low, y_axis.low), 6), "high": round(min(high, y_axis.high), 6)}
    if y < y_axis.low:
        row["outside"] = True
    if trial is first:
        row |= {"unpruned": True, "note": unpruned_name(study)}
    if trial.number in pages:
        row["page"] = pages[trial.number]
    return row


def _shown(goal: Goal, trial: Trial) -> str:
    if goal.figure == "accuracy":
        return score_text(trial.validation)
    value = trial.figure(goal.figure)
    return "-" if value is None else figure_text(value, goal.figure)


def _axis(
    goal: Goal, complete: Sequence[Trial], must: Sequence[Trial], others: Sequence[Mapping[str, Any]], key: str
) -> _GoalAxis:
    """Returns an axis that spans the trials and the peers, except very inaccurate trials."""
    seen = [float(trial.figure(goal.figure) or 0.0) for trial in must] + [float(other[key]) for other in others]
    every = [float(trial.figure(goal.figure) or 0.0) for trial in complete] + seen
    if goal.figure == "accuracy":
        errors = [trial.validation.standard_error for trial in must if trial.validation is not None]
        error = max(errors, default=0.0)
        low, high = min(seen, default=0.0) - error, max(seen, default=1.0) + error
        span = max(high - low, 0.02)
        low = max(low - BELOW * span, min([*every, low]) - 0.05 * span)
        step = 10.0 ** math.floor(math.log10(span)) / 2
        return _GoalAxis(
            goal, "linear", math.floor(low / step) * step, min(1.0, math.ceil((high + 0.04 * span) / step) * step)
        )
    low, high = min(every, default=0.0), max(every, default=1.0)
    if low > 0 and logarithmic(every):
        return _GoalAxis(goal, "log", low / (high / low) ** 0.12, high * (high / low) ** 0.04)
    if logarithmic([value + 1 for value in every]):  # Some values are 0: a design of wires takes no LUT.
        return _GoalAxis(goal, "symlog", 0.0, high * 1.3)
    pad = (high - low) or max(abs(high), 1.0)
    return _GoalAxis(goal, "linear", max(0.0, low - 0.12 * pad) if low >= 0 else low - 0.12 * pad, high + 0.05 * pad)


def _answer_trials(study: Study) -> list[Trial]:
    chosen = choice(study)
    trials = () if chosen is None else (chosen.taken, chosen.unpruned, chosen.smaller, chosen.better, chosen.best)
    return [trial for trial in trials if trial is not None]


def _labels(study: Study, marked: Sequence[Trial], x_axis: _GoalAxis, y_axis: _GoalAxis) -> list[dict[str, Any]]:
    """Returns labels for marked points, as far as there is room."""
    first = unpruned(study.trials)
    boxes: list[tuple[float, float, float]] = []
    labels = []
    for trial in {trial.number: trial for trial in (*_answer_trials(study), *marked) if trial in marked}.values():
        x, y = (float(trial.figure(axis.goal.figure) or 0.0) for axis in (x_axis, y_axis))
        name = "as it is" if trial is first else f"trial {trial.number}"
        text = f"{name}, {_shown(x_axis.goal, trial)}"
        wide = LABEL[0] * len(text) + 14
        end, line = WIDE * x_axis.position(x), HEIGHT * y_axis.position(y)
        start, end = (end, end + wide) if x_axis.goal.maximize else (end - wide, end)
        apart = all(end < a or b < start or abs(line - other) > LABEL[1] for a, b, other in boxes)
        if apart and start > -30 and end < WIDE + 90:
            boxes.append((start, end, line))
            labels.append({"x": x, "y": round(y, 6), "text": text})
    return labels


def _foot(study: Study, rows: Sequence[Mapping[str, Any]], limits: bool, peers: bool) -> str:
    foot = "Red: the front, the designs that no other equals or beats in all goals; beside each its standard error. "
    foot += "A click opens the design's page. " if any("page" in row for row in rows) else ""
    foot += f"Square: {unpruned_name(study)}. " if any("unpruned" in row for row in rows) else ""
    foot += "Blue: other trials. "
    foot += "Gray: trials that break a limit. " if any(not row["kept"] for row in rows) else ""
    low = sum("outside" in row for row in rows)
    foot += f"Triangles at the lower edge: trials that lie below it, {low}. " if low else ""
    foot += "Dashed: limits. " if limits else ""
    foot += "Diamonds: peers, as the file given says. " if peers else ""
    return foot
