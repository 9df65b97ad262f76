"""Makes the charts of a design's page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.costs.shares import PARTS, PartName, Share
from forestc.forest.summary import counted
from forestc.lowering.timing import Stage
from forestc.report.page.blocks import Chart
from forestc.report.page.charts import PART_COLORS, WIDTH, altair, data, finished, tooltips
from forestc.report.page.svg import shortened

MOST_CLASSES = 30  # classes up to which a confusion matrix is drawn


def passes_chart(steps: Sequence[Mapping[str, Any]]) -> Chart:
    alt = altair()
    first = [("before", steps[0]["distinct_conditions"][0], "")]
    after = [(step["pass"], step["distinct_conditions"][1], step["guarantee"]) for step in steps]
    rows = [
        {
            "place": number,
            "step": f"{number}. {shortened(name, 44)}" if number else name,
            "count": count,
            "promise": promise,
        }
        for number, (name, count, promise) in enumerate([*first, *after])
    ]
    base = alt.Chart(data()).encode(
        y=alt.Y("step:N", sort=None, title=None),
        x=alt.X("count:Q", title="distinct conditions: comparators"),
        tooltip=tooltips(("step:N", "pass"), ("count:Q", "comparators after it", ","), ("promise:N", "guarantee")),
    )
    marks = base.mark_bar(height=18) + base.mark_text(align="left", dx=5).encode(text=alt.Text("count:Q", format=","))
    words = f"Bars: comparators fall from {rows[0]['count']:,} to {rows[-1]['count']:,} over {len(steps)} passes."
    return finished(
        "Comparators after each pass", words, marks.properties(width=WIDTH - 200, height=alt.Step(26)), rows
    )


def confusion_chart(counted: NDArray[np.int64], classes: Sequence[str]) -> Chart:
    """Charts a confusion matrix. counted: (classes, classes), rows by true class and answer."""
    alt = altair()
    sums = np.maximum(counted.sum(axis=1, keepdims=True), 1)
    names = _distinct(classes)
    rows = [
        {
            "right": t == p,
            "true": names[t],
            "said": names[p],
            "n": int(counted[t, p]),
            "s": round(float(counted[t, p] / sums[t, 0]), 4),
        }
        for t in range(len(names))
        for p in range(len(names))
    ]
    size = max(24, min(56, 480 // len(names)))

    turned = alt.Axis(labelAngle=0 if max(map(len, names)) * 8 < size else -45)
    base = alt.Chart(data()).encode(  # in the order of the rows, not sorted
        x=alt.X("said:N", title="the design's answer", sort=None, axis=turned),
        y=alt.Y("true:N", title="true class", sort=None),
        tooltip=tooltips(
            ("true:N", "true class"), ("said:N", "answer"), ("n:Q", "rows", ","), ("s:Q", "of the class", ".1%")
        ),
    )
    squares = base.mark_rect(stroke="var(--line)", strokeWidth=0.5).encode(
        color=alt.condition("datum.right", alt.value("var(--c1)"), alt.value("var(--accent)")),
        opacity=alt.Opacity("s:Q", scale=alt.Scale(domain=[0, 1], range=[0.04, 0.85]), legend=None),
    )
    counts = base.mark_text(fontSize=12 if size > 26 else 11).encode(
        text=alt.Text("n:Q", format=",") if size > 26 else alt.Text("n:Q"),
        opacity=alt.condition("datum.n > 0", alt.value(1), alt.value(0.25)),
    )
    drawn = (squares + counts).properties(width=alt.Step(size), height=alt.Step(min(size, 36)))
    right = int(np.trace(counted))
    words = f"Confusion matrix of {len(names)} classes: {right:,} of {int(counted.sum()):,} rows on the diagonal."
    return finished(
        "Confusion matrix",
        words,
        drawn,
        rows,
        "Colors show the share of each true class; off the diagonal they are errors.",
    )


def _distinct(names: Sequence[str]) -> list[str]:
    short = [shortened(name, 24) for name in names]
    return [name if short.count(name) == 1 else f"{name} ({number})" for number, name in enumerate(short)]


def shares_chart(shares: Mapping[PartName, Share], family: str) -> Chart:
    alt = altair()
    rows: list[dict[str, Any]] = [
        {"part": part, "kind": kind, "share": round(count / max(1, sum(s.all_luts for s in shares.values())), 4)}
        for part in PARTS
        if part != "inputs"
        for kind, count in (("logic", shares[part].luts), ("carry chain", shares[part].chain_bits))
        if count
    ]
    base = alt.Chart(data()).encode(y=alt.Y("part:N", sort=list(PARTS), title=None))
    bars = base.mark_bar(height=22).encode(
        x=alt.X("sum(share):Q", title=f"share of the LUTs, {family}", axis=alt.Axis(format=".0%")),
        color=alt.Color(
            "part:N", scale=alt.Scale(domain=list(PART_COLORS), range=list(PART_COLORS.values())), legend=None
        ),
        opacity=alt.Opacity("kind:O", scale=alt.Scale(domain=["logic", "carry chain"], range=[1, 0.55]), legend=None),
        order=alt.Order("kind:O", sort="descending"),
        tooltip=[alt.Tooltip("part:N"), alt.Tooltip("kind:N"), alt.Tooltip("share:Q", title="of all", format=".1%")],
    )
    labels = base.mark_text(align="left", dx=5).encode(
        x=alt.X("sum(share):Q"), text=alt.Text("sum(share):Q", format=".0%")
    )
    most = max(PARTS, key=lambda part: shares[part].all_luts)
    part = 100 * shares[most].all_luts / max(1, sum(share.all_luts for share in shares.values()))
    words = f"Bars: share of LUTs by part of the design; most go to {most}, {part:.0f} %."
    return finished(
        "Share of LUTs by part", words, (bars + labels).properties(width=WIDTH - 120, height=alt.Step(32)), rows
    )


def stages_chart(stages: Sequence[Stage], parts: Sequence[PartName], unit: str) -> Chart:
    """Charts the slowest path of each pipeline stage, cell by cell. parts: for each net, its part of the design."""
    alt = altair()
    rows = []
    for stage in stages:
        start = 0.0
        for net, delay in stage.path:
            end = start + delay
            rows.append(
                {
                    "stage": stage.number + 1,
                    "part": parts[net],
                    "from": round(start, 3),
                    "to": round(end, 3),
                    "delay": round(delay, 3),
                }
            )
            start = end
    drawn = (
        alt.Chart(data())
        .mark_bar(height=20, stroke="var(--paper)", strokeWidth=1)
        .encode(
            y=alt.Y("stage:O", title="stage"),
            x=alt.X("from:Q", title=f"slowest path, {unit}"),
            x2="to:Q",
            color=alt.Color(
                "part:N",
                scale=alt.Scale(domain=list(PART_COLORS)[1:], range=list(PART_COLORS.values())[1:]),
                legend=alt.Legend(title=None, orient="top"),
            ),
            tooltip=[alt.Tooltip("stage:O"), alt.Tooltip("part:N"), alt.Tooltip("delay:Q", title=unit)],
        )
        .properties(width=WIDTH - 60, height=alt.Step(28))
    )
    slowest = max(stages, key=lambda stage: stage.delay)
    words = f"Bars: delays of {counted(len(stages), 'stage')}. "
    words += f"The slowest is stage {slowest.number + 1} with {slowest.delay:.1f} {unit}."
    return finished("Delays of the stages", words, drawn, rows, "Each block is a cell on the slowest path.")


def firmware_chart(firmware: Mapping[str, Any]) -> Chart:
    alt = altair()
    rows = [
        {
            "layout": name,
            "flash": layout["flash"],
            "mean": layout["mean"],
            "most": layout["most"],
            "chosen": name == firmware["layout"],
        }
        for name, layout in firmware["layouts"].items()
    ]
    count = "cycles" if firmware["cpu"] == "avr" else "instructions"
    log = alt.Scale(type="log", nice=False, padding=24)
    x = alt.X("flash:Q", title="flash, bytes", scale=log)
    y = alt.Y("mean:Q", title=f"mean {count}", scale=log)
    color = alt.condition("datum.chosen", alt.value("var(--accent)"), alt.value("var(--c1)"))
    base = alt.Chart(data())
    marks = base.mark_point(filled=True, size=90, opacity=1).encode(
        x=x,
        y=y,
        color=color,
        tooltip=[
            "layout:N",
            alt.Tooltip("flash:Q", title="flash, bytes", format=","),
            alt.Tooltip("mean:Q", title=f"mean {count}", format=","),
            alt.Tooltip("most:Q", title=f"most {count} of the inputs run", format=","),
        ],
    ) + base.mark_text(align="left", dx=8, dy=-8).encode(x=x, y=y, text="layout:N")
    words = f"Points: {len(rows)} layouts of C by flash and mean {count}; chosen: {firmware['layout']}."
    return finished(
        f"Layouts of C on {firmware['cpu']}", words, marks.properties(width=WIDTH - 80, height=300), rows,
        f"Measured with {firmware['tool']}. The chosen layout is red.",
    )  # fmt: skip
