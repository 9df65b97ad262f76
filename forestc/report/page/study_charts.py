"""Makes the charts of a study's page below its front."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from forestc.exploration.choice import size_goal
from forestc.exploration.study import Goal, Study
from forestc.report.page.blocks import Chart
from forestc.report.page.charts import WIDE, WIDTH, altair, data, finished
from forestc.report.page.study_figures import history
from forestc.report.page.study_text import goal_name
from forestc.report.page.svg import shortened

MOST_OPTIONS = 15  # limits the options in the chart of importance


def pairs(study: Study) -> list[tuple[Goal, Goal]]:
    """Returns pairs of goals (across, up) to chart, the size first. `up` is accuracy if that is a goal, otherwise the
    first goal."""
    up = next((goal for goal in study.goals if goal.figure == "accuracy"), study.goals[0])
    size = size_goal(study.goals)
    return [(goal, up) for goal in sorted(study.goals, key=lambda goal: goal is not size) if goal is not up]


def importance_chart(importances: Sequence[tuple[str, str, float, float]], goals: Sequence[Goal]) -> Chart:
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
    alt = altair()
    volumes = history(study)
    rows = [{"trial": number, "value": round(value, 5)} for number, value in volumes]
    base = alt.Chart(data()).encode(
        x=alt.X("trial:Q", title="trial", axis=alt.Axis(format="d", tickMinStep=1)),
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
        "Hypervolume: the share of the box between the worst and the best values seen of the goals that the trials so "
    )
    foot += "far dominate; a line that stays level says that more trials would find little. "
    return finished(
        "Progress of the search", words, drawn, rows, foot + f"95 % of the end was reached with trial {half}."
    )
