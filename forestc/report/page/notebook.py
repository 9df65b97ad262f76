"""Shows designs and studies in a notebook: charts without scripts, above a table."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from io import StringIO
from shutil import get_terminal_size

from markupsafe import Markup
from rich.console import Console

from forestc.costs.devices import FAMILIES
from forestc.costs.shares import shares
from forestc.errors import ForestcError, MissingExtraError
from forestc.exploration.choice import choice, shown
from forestc.exploration.front import summary as front_summary
from forestc.exploration.study import Study
from forestc.exploration.study import open_study as open_study
from forestc.forest.summary import html_figures
from forestc.manifest.design import Design
from forestc.manifest.design import open_design as open_design
from forestc.manifest.notebook import shows
from forestc.report.answer import answer, as_text
from forestc.report.front import front_tables
from forestc.report.page import design_charts, study_charts
from forestc.report.page.blocks import Chart
from forestc.report.page.design_page import summary
from forestc.report.page.front_chart import front_chart
from forestc.report.page.study_text import figure_cell, goal_name, limit_text
from hdl_templates import page_file, render_page

MOST_NODES = 20_000  # nodes of a forest up to which a chart shows its logic


@shows(Design)
def design_html(design: Design) -> str:
    """Returns a design as HTML: charts and figures, or only figures without the extra `report`."""
    known = {what: f"{figure} ({remark})" if remark else figure for what, figure, remark in summary(design).items}
    others = {name: value for name, value in design.figures().items() if value and name != "last_check"}
    figures = html_figures(f"Design {design.manifest['name']}", {**known, **others})
    try:
        return _html(_design_charts(design), figures)
    except MissingExtraError:
        return figures


def _design_charts(design: Design) -> list[Chart]:
    steps = design.manifest.get("made", {}).get("steps")
    charts = [design_charts.passes_chart(steps)] if steps else []
    if design.has_hardware and design.forest.n_nodes <= MOST_NODES:
        try:
            netlist = design.netlist
        except ForestcError:  # A design changed since it was opened must not fail in a notebook.
            return charts
        family = FAMILIES.get(design.lowering.family, FAMILIES["lut6"])
        charts.append(design_charts.shares_chart(shares(netlist, family), family.name))
    return charts


@shows(Study)
def study_html(study: Study) -> str:
    """Returns a study as HTML: charts and figures, or only figures without the extra `report`."""
    goals, chosen = study.goals, choice(study)
    front = {
        f"trial {trial.number}{' (recommended)' * (chosen is not None and trial is chosen.recommended)}": ", ".join(
            f"{goal_name(goal)} {figure_cell(trial.figure(goal.figure), goal.figure, study.measure).text}"
            for goal in goals
        )
        for trial in shown(study)
    }
    advice = answer(study)
    rows = {
        **({} if advice is None else {"which design": " ".join(map(as_text, (*advice.first, *advice.beside)))}),
        "trials": f"{len(study.complete):,} complete of {len(study.trials):,}",
        **({"limits": [limit_text(limit) for limit in study.limits]} if study.limits else {}),
        **front,
    }
    figures = html_figures(f"Study in {study.folder}", rows)
    if not study.complete:
        return figures
    try:
        charts = [front_chart(study, *pair, (), {}) for pair in study_charts.pairs(study)]
        return _html([*charts, study_charts.history_chart(study)], figures)
    except MissingExtraError:
        return figures


@shows(Study, "text")
def study_text(study: Study) -> str:
    """Returns a study as the text that `forestc explore` prints."""
    console = Console(file=StringIO(), width=get_terminal_size().columns)
    for part in front_tables(study, front_summary(study)):
        console.print(part)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue().rstrip()


def _html(charts: Sequence[Chart], figures: str) -> str:
    return render_page("notebook.html.j2", charts=charts, style=_style(), figures=Markup(figures))


@cache
def _style() -> str:
    return Markup(page_file("colors.css").replace(":root", ".forestc-page"))
