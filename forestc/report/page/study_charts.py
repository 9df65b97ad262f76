"""The charts of a study's page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from forestc.exploration.study import Goal, Study, Trial
from forestc.report.page.blocks import Chart
from forestc.report.page.charts import WIDE, WIDTH, altair, data, finished, tooltips
from forestc.report.page.peers import Peer
from forestc.report.page.study_figures import history, is_number, logarithmic, option_names
from forestc.report.page.svg import shortened
from forestc.report.tables import visible

MOST_AXES = 14  # of parallel coordinates
NAMES = {"lut": "LUTs", "ff": "flip-flops", "fmax_mhz": "Fmax", "latency_cycles": "latency", "ram": "RAM"}
MOST_OPTIONS = 15  # in the chart of importance


def goal_name(goal: Goal) -> str:
    """A goal's figure for people, with its unit."""
    name = visible(NAMES.get(goal.figure, goal.figure.replace("_", " ")))
    return f"{name}, {visible(goal.unit)}" if goal.unit and goal.unit.lower() != name.lower() else name


def pairs(study: Study) -> list[tuple[Goal, Goal]]:
    """The goals that are drawn against each other, (across, up): accuracy, or else the first, against each other."""
    up = next((goal for goal in study.goals if goal.figure == "accuracy"), study.goals[0])
    return [(goal, up) for goal in study.goals if goal is not up]


def front_chart(study: Study, across: Goal, up: Goal, peers: Sequence[Peer], pages: Mapping[int, str]) -> Chart:
    """All trials, the front with error bars, limits as lines, and peers. pages: of the front's designs."""
    alt = altair()
    front = {trial.number for trial in study.front}
    rows = [row for trial in study.complete if (row := _point(study, trial, across, up, front, pages)) is not None]
    others = [
        {"name": shortened(peer.name, 32), "x": peer.figures[across.figure], "y": peer.figures[up.figure]}
        for peer in peers
        if {across.figure, up.figure} <= peer.figures.keys()
    ]
    scales, ticks = {}, {}
    for key, goal in (("x", across), ("y", up)):
        values = [float(row[key]) for row in [*rows, *others]]
        if goal.figure == "accuracy":
            scales[key] = alt.Scale(zero=False, nice=True)
        elif logarithmic(values):
            scales[key] = alt.Scale(type="log", nice=True)
        elif logarithmic([value + 1 for value in values]):  # some are 0: a design of wires takes no LUT
            scales[key] = alt.Scale(type="symlog")
            steps = (step * 10**power for power in range(9) for step in (1, 2, 5))
            ticks[key] = [0, *(step for step in steps if step <= max(values))]
        else:
            scales[key] = alt.Scale(zero=False, nice=True)
    form = ".1%" if up.figure == "accuracy" else ","
    marks = {key: {"values": values} for key, values in ticks.items()}
    x = alt.X("x:Q", title=goal_name(across), scale=scales["x"], axis=alt.Axis(**marks.get("x", {})))
    y = alt.Y("y:Q", title=goal_name(up), scale=scales["y"], axis=alt.Axis(format=form, **marks.get("y", {})))
    x_tip = ("x:Q", goal_name(across), ",.5~g")
    y_tip = ("y:Q", goal_name(up), ".2%" if up.figure == "accuracy" else ",.5~g")
    tooltip = tooltips(("trial:N", "trial"), x_tip, y_tip, ("rung:N", "known by"), ("note:N", "note"))
    base = alt.Chart(data()).encode(x=x, y=y)
    rest = base.transform_filter("!datum.front")
    best = base.transform_filter("datum.front")
    layers = [
        rest.mark_point(size=28, strokeWidth=1.2).encode(
            color=alt.condition("datum.kept", alt.value("var(--c1)"), alt.value("var(--gray)")),
            opacity=alt.condition("datum.kept", alt.value(0.75), alt.value(0.45)),
            tooltip=tooltip,
        ),
        best.mark_line(interpolate="step-after", color="var(--accent)", strokeWidth=1.5, strokeOpacity=0.7),
        best.mark_rule(color="var(--accent)", strokeWidth=1.2).encode(y=alt.Y("low:Q", scale=scales["y"]), y2="high:Q"),
        best.mark_point(filled=True, size=80, opacity=1, color="var(--accent)").encode(tooltip=tooltip),
    ]
    lines = [
        {"axis": key, "at": limit.value}
        for limit in study.limits
        for key, goal in (("x", across), ("y", up))
        if limit.figure == goal.figure
    ]
    for line in lines:
        chart = alt.Chart(data("limits")).transform_filter(f"datum.axis === '{line['axis']}'")
        layers.append(chart.mark_rule(strokeDash=[5, 4], color="var(--soft)").encode(**{str(line["axis"]): "at:Q"}))
    if others:
        seen = alt.Chart(data("peers")).encode(x=x, y=y)
        layers += [
            seen.mark_point(shape="diamond", filled=True, size=90, opacity=1, color="var(--c3)").encode(
                tooltip=tooltips(("name:N", "peer"), x_tip, y_tip)
            ),
            seen.mark_text(align="left", dx=9, dy=1).encode(text="name:N"),
        ]
    drawn = alt.layer(*layers).properties(width=WIDE, height=420)
    words = (
        f"Scatter of {len(rows)} trials by {goal_name(across)} and {goal_name(up)}; {len(front)} of them on the front"
    )
    words += f", beside {len(others)} peers." if others else "."
    foot = "Red: the front, with a standard error up and down; a click opens the design's page. Blue: other trials. "
    foot += "Gray: trials that break a limit. " if any(not row["kept"] for row in rows) else ""
    foot += "Dashed: limits. " if lines else ""
    foot += "Diamonds: peers, as the file given says. " if others else ""
    title = f"{goal_name(up)} against {goal_name(across)}"
    return finished(title[:1].upper() + title[1:], words, drawn, rows, foot, limits=lines, peers=others)


def _point(
    study: Study, trial: Trial, across: Goal, up: Goal, front: set[int], pages: Mapping[int, str]
) -> dict[str, Any] | None:
    x, y = trial.figure(across.figure), trial.figure(up.figure)
    if x is None or y is None:
        return None
    error = trial.validation.standard_error if up.figure == "accuracy" and trial.validation is not None else 0.0
    row = {
        "trial": trial.number, "x": x, "y": round(y, 5), "kept": study.kept(trial), "front": trial.number in front,
        "rung": trial.rung() or "", "note": shortened(trial.reason, 60),
    }  # fmt: skip
    if trial.number in front:
        row |= {"low": round(y - error, 5), "high": round(y + error, 5)}
    if trial.number in pages:
        row |= {"page": pages[trial.number], "note": "click: the design's page"}
    return row


def parallel_chart(study: Study, important: Sequence[str] = ()) -> Chart | None:
    """Parallel coordinates: each trial a line over its options and goals. important: the options that go first where
    there are more than fit. None without two axes."""
    alt = altair()
    names = option_names(study)
    kept = set(sorted(names, key=(*important, *names).index)[: MOST_AXES - len(study.goals)])
    axes: list[tuple[str, list[Any]]] = [
        (name, [trial.options.get(name) for trial in study.complete]) for name in names if name in kept
    ]
    axes += [(goal_name(goal), [trial.figure(goal.figure) for trial in study.complete]) for goal in study.goals]
    axes = [(name, values) for name, values in axes if any(value is not None for value in values)]
    if len(axes) < 2 or not study.complete:
        return None
    front = {trial.number for trial in study.front}
    rows: list[dict[str, Any]] = [
        {"trial": trial.number, "front": trial.number in front, "kept": study.kept(trial)} for trial in study.complete
    ]
    heads: list[dict[str, Any]] = []
    for place, (name, values) in enumerate(axes):
        positions, low, high = _placed(values)
        ends = {"foot": 0, "head": 1, "low": shortened(low, 14), "high": shortened(high, 14)}
        heads.append({"key": f"a{place:02d}", "name": shortened(name, 28), **ends})
        for row, position in zip(rows, positions, strict=True):
            row[f"a{place:02d}"] = position
    keys = [head["key"] for head in heads]
    hover = alt.selection_point(name="hover", on="pointerover", clear="pointerout", fields=["trial"], empty=False)
    shown = alt.param(
        name="lines", value="all trials", bind=alt.binding_radio(options=["all trials", "the front"], name="Lines: ")
    )
    pointed = "hover.trial && indexof(hover.trial, datum.trial) >= 0"
    x = alt.X("key:N", axis=None, scale=alt.Scale(domain=keys, padding=0.4))
    y = alt.Y("at:Q", axis=None, scale=alt.Scale(domain=[-0.08, 1.5]))
    folded = alt.Chart(data()).transform_fold(keys, as_=["key", "at"]).transform_filter("isValid(datum.at)")
    lines = (
        folded.transform_filter("lines == 'all trials' || datum.front")
        .mark_line(strokeJoin="round")
        .encode(
            x=x,
            y=y,
            detail="trial:N",
            order=alt.Order("key:O"),
            color=alt.condition("datum.front", alt.value("var(--accent)"), alt.value("var(--c1)")),
            opacity=alt.condition(f"{pointed} || datum.front", alt.value(0.9), alt.value(0.16)),
            strokeWidth=alt.condition(pointed, alt.value(3.5), alt.value(1.3)),
            tooltip=[alt.Tooltip("trial:N", title="trial"), alt.Tooltip("front:N", title="on the front")],
        )
        .add_params(hover, shown)
    )
    top = alt.Chart(data("axes")).encode(x=x)

    def height(key: str) -> Any:
        return alt.Y(key, axis=None, scale=alt.Scale(domain=[-0.08, 1.5]))

    rules = top.mark_rule(color="var(--line)", strokeWidth=1.5).encode(y=height("foot:Q"), y2="head:Q")
    lows = top.mark_text(fontSize=11, dy=12, color="var(--soft)").encode(y=height("foot:Q"), text="low:N")
    highs = top.mark_text(fontSize=11, dy=-7, color="var(--soft)").encode(y=height("head:Q"), text="high:N")
    named = top.mark_text(fontSize=12, angle=325, align="left", dy=-20, dx=6)
    title = named.encode(y=height("head:Q"), text="name:N")
    drawn = alt.layer(rules, lines, lows, highs, title).properties(width=WIDE, height=400)
    axes_told = ", ".join(head["name"] for head in heads)
    words = f"Parallel coordinates: {len(rows)} trials as lines over {len(axes)} axes, {axes_told}."
    foot = "Each line is a trial; red ones are on the front. A line passes by the axis of an option that is not in use."
    return finished("Options and goals of each trial", words, drawn, rows, foot, axes=heads)


def _placed(values: Sequence[Any]) -> tuple[list[float | None], str, str]:
    """Values as places from 0 to 1, and the texts of both ends. Texts are in alphabetical order."""
    known = [value for value in values if value is not None]
    if all(is_number(value) for value in known):
        log = logarithmic([float(value) for value in known])
        scale = math.log if log else float
        low, high = min(known), max(known)
        start, span = scale(low), (scale(high) - scale(low)) or 1.0
        places = [None if value is None else round((scale(value) - start) / span, 4) for value in values]
        return places, f"{low:,.4g}", f"{high:,.4g}"
    texts = sorted({str(value) for value in known})
    step = max(1, len(texts) - 1)
    return [None if v is None else round(texts.index(str(v)) / step, 4) for v in values], texts[0], texts[-1]


def importance_chart(importances: Sequence[tuple[str, str, float, float]], goals: Sequence[Goal]) -> Chart:
    """Importance of options by goal. importances: of `importance`."""
    alt = altair()
    names = {goal.figure: goal_name(goal) for goal in goals}
    most = {option: max(value for _, o, value, _ in importances if o == option) for _, option, _, _ in importances}
    chosen = sorted(most, key=lambda option: -most[option])[:MOST_OPTIONS]
    rows: list[dict[str, Any]] = [
        {
            "option": shortened(option, 40),
            "goal": names[goal],
            "value": round(max(value, 0.0), 4),
            "sd": round(deviation, 4),
        }
        for option in chosen
        for goal, other, value, deviation in importances
        if other == option
    ]
    drawn = (
        alt.Chart(data())
        .mark_bar()
        .encode(
            y=alt.Y("option:N", sort=None, title=None),
            x=alt.X("value:Q", title="R squared lost if the option is permuted"),
            yOffset=alt.YOffset("goal:N"),
            color=alt.Color("goal:N", legend=alt.Legend(title=None, orient="top")),
            tooltip=["option:N", "goal:N", alt.Tooltip("value:Q", format=".3f"), alt.Tooltip("sd:Q", format=".3f")],
        )
        .properties(width=WIDTH - 160, height=max(80, 30 * len(chosen)))
    )
    first = max(rows, key=lambda row: row["value"])
    words = f"Bars: importance of {len(chosen)} options; the largest is {first['option']} for {first['goal']}."
    return finished("Importance of options", words, drawn, rows)


def history_chart(study: Study) -> Chart:
    """The hypervolume by trial."""
    alt = altair()
    volumes = history(study)
    rows = [{"trial": number, "value": round(value, 5)} for number, value in volumes]
    base = alt.Chart(data()).encode(
        x=alt.X("trial:Q", title="trial"),
        y=alt.Y("value:Q", title="hypervolume", scale=alt.Scale(zero=False), axis=alt.Axis(format=".0%")),
    )
    near = alt.selection_point(
        name="near", nearest=True, on="pointerover", clear="pointerout", encodings=["x"], empty=False
    )
    drawn = alt.layer(
        base.mark_area(interpolate="step-after", opacity=0.12, color="var(--c2)"),
        base.mark_line(interpolate="step-after", color="var(--c2)", strokeWidth=2),
        base.mark_point(size=60, filled=True, color="var(--c2)")
        .encode(
            opacity=alt.condition(near, alt.value(1), alt.value(0)),
            tooltip=[alt.Tooltip("trial:Q"), alt.Tooltip("value:Q", title="hypervolume", format=".1%")],
        )
        .add_params(near),
    ).properties(width=WIDE, height=220)
    last = volumes[-1][1] if volumes else 0.0
    half = next((number for number, value in volumes if value >= 0.95 * last), 0)
    words = f"Line: hypervolume by trial, {100 * last:.1f} % at the end; 95 % of that was reached with trial {half}."
    foot = (
        "The share of the box between the worst and the best values seen of the goals that the trials so far dominate. "
    )
    return finished(
        "Progress of the search", words, drawn, rows, foot + f"95 % of the end was reached with trial {half}."
    )
