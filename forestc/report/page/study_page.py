"""The page of a study: the front beside its peers, what the options did, how the search went, and every trial."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from forestc.exploration.study import Goal, Limit, Score, Study, Trial
from forestc.forest.summary import shown
from forestc.report.page import study_charts
from forestc.report.page.blocks import Block, Cell, Code, Figures, Page, Section, Table, Text, cell, table
from forestc.report.page.peers import Peer
from forestc.report.page.study_charts import goal_name
from forestc.report.page.study_figures import equals, importance, option_names
from forestc.report.page.svg import shortened
from forestc.report.tables import visible

MOST_NUMBERS = 20  # of trials that a cell lists


def study_page(
    study: Study, peers: Sequence[Peer], pages: Mapping[int, str], progress: Callable[[str], None] = lambda _: None
) -> Page:
    """The page of a study. pages: address of each trial's own page, relative to this one. Raises MissingExtraError."""
    progress("importance of options")
    importances, explained = importance(study)
    progress("charts")
    goals = ", ".join(f"{'highest' if goal.maximize else 'lowest'} {goal_name(goal)}" for goal in study.goals)
    lead = f"{len(study.trials):,} trials of {visible(shown(study.asked.get('source', 'a model')))}, for {goals}."
    sections = (
        Section("overview", "Overview", tuple(_overview(study))),
        Section("front", "The front", tuple(_front(study, peers, pages))),
        Section("options", "What the options did", tuple(_options(study, importances, explained))),
        Section("history", "Progress", (study_charts.history_chart(study),) if study.complete else ()),
        Section("failures", "What failed", tuple(_failures(study))),
        Section("trials", "All trials", (_trials(study, pages),) if study.trials else ()),
    )
    return Page("Study", visible(study.folder.resolve().name), lead, sections)


def limit_text(limit: Limit) -> str:
    return f"{goal_name(Goal(limit.figure, False))} {'at least' if limit.at_least else 'at most'} {limit.value:,g}"


def figure_cell(value: float | None, figure: str) -> Cell:
    """A figure: accuracies in percent, counts whole."""
    if value is None:
        return Cell("-")
    if figure == "accuracy":
        return Cell(f"{100 * value:.2f} %", value)
    return Cell(f"{value:,.0f}" if float(value).is_integer() or value >= 1000 else f"{value:,.1f}", float(value))


def _overview(study: Study) -> list[Block]:
    states = {state: sum(trial.state == state for trial in study.trials) for state in ("complete", "failed", "running")}
    front = study.front
    rest = ", ".join(f"{count} {state}" for state, count in states.items() if count and state != "complete")
    items = [
        ("trials complete", f"{states['complete']:,}", rest),
        ("designs on the front", f"{len(front):,}", _limits(study)),
    ]
    for goal in study.goals:
        best = _best(front, goal)
        if best is not None:
            remark = f"{'highest' if goal.maximize else 'lowest'} of the front, trial {best.number}"
            items.append((goal_name(goal), figure_cell(best.figure(goal.figure), goal.figure).text, remark))
    asked = study.asked
    kept = ("source", "rows", "validation", "test", "device", "cpu", "seed", "versions")
    rows = [(key, Cell(visible(shown(asked[key])))) for key in kept if asked.get(key) not in (None, "", {}, [])]
    blocks: list[Block] = [Figures(tuple(items))]
    if asked.get("command"):
        blocks += [Text("The command of the study:"), Code(visible(str(asked["command"])))]
    blocks += [table("What was asked", ("what", "value"), rows)] if rows else []
    notes = asked.get("notes")
    blocks += [Text(f"Note: {visible(str(note))}.") for note in (notes if isinstance(notes, list) else ())]
    return blocks + [Text("The search was stopped before its end.")] * (asked.get("stopped") is True)


def _limits(study: Study) -> str:
    return "; ".join(limit_text(limit) for limit in study.limits)


def _best(front: Sequence[Trial], goal: Goal) -> Trial | None:
    known = [trial for trial in front if trial.figure(goal.figure) is not None]
    return max(known, key=lambda t: (t.figure(goal.figure) or 0.0) * (1 if goal.maximize else -1), default=None)


def _front(study: Study, peers: Sequence[Peer], pages: Mapping[int, str]) -> list[Block]:
    if not study.front:
        why = "no trial keeps all limits" if study.complete else "no trial is complete"
        blocks: list[Block] = [Text(f"The front is empty: {why}. {_limits(study)}".strip())]
    else:
        blocks = []
    charts = [study_charts.front_chart(study, *pair, peers, pages) for pair in study_charts.pairs(study)]
    if study.front:
        blocks += [*charts, _front_table(study, pages)]
    elif study.complete:
        blocks += charts
    if peers:
        figures = list(dict.fromkeys(key for peer in peers for key in peer.figures))
        rows = [(shortened(peer.name, 60), *(figure_cell(peer.figures.get(f), f) for f in figures)) for peer in peers]
        blocks.append(table("Peers, as the file given says", ("name", *(_heads(f) for f in figures)), rows))
    return blocks


def _heads(figure: str) -> str:
    return goal_name(Goal(figure, False))


def _front_table(study: Study, pages: Mapping[int, str]) -> Table:
    near = equals(study)
    others = [goal for goal in study.goals if goal.figure != "accuracy"]
    rows = [
        (
            _number(trial, pages),
            *(figure_cell(trial.figure(goal.figure), goal.figure) for goal in others),
            _score(trial.validation),
            _score(trial.test),
            trial.rung() or "",
            ", ".join(f"{number}" for number in near.get(trial.number, [])[:MOST_NUMBERS]),
            Cell(visible(trial.command)),
        )
        for trial in study.front
    ]
    heads = ("trial", *map(goal_name, others), "accuracy, validation", "accuracy, test", "known by",
             "accuracy equal to", "command")  # fmt: skip
    foot = "Accuracies with their standard error. Equal: two trials differ by less than the larger standard error. "
    foot += "A trial's number leads to its design's page." if pages else ""
    return table("The front", heads, rows, wide=True, foot=foot)


def _number(trial: Trial, pages: Mapping[int, str]) -> Cell:
    return Cell(f"{trial.number}", float(trial.number), link=pages.get(trial.number, ""))


def _score(score: Score | None) -> Cell:
    if score is None:
        return Cell("-")
    return Cell(f"{100 * score.value:.2f} \N{PLUS-MINUS SIGN} {100 * score.standard_error:.2f} %", score.value)


def _options(
    study: Study, importances: Sequence[tuple[str, str, float, float]], explained: Mapping[str, float]
) -> list[Block]:
    if not study.complete:
        return []
    order = sorted(
        {option for _, option, _, _ in importances}, key=lambda o: -max(v for _, n, v, _ in importances if n == o)
    )
    parallel = study_charts.parallel_chart(study, order)
    blocks: list[Block] = [] if parallel is None else [parallel]
    if not importances:
        return [*blocks, Text("There are too few trials that differ to tell which options matter.")]
    goals = [goal for goal in study.goals if goal.figure in explained]
    by = {(goal, option): (value, deviation) for goal, option, value, deviation in importances}
    rows = [
        (
            option,
            *(Cell(f"{value:.3f} \N{PLUS-MINUS SIGN} {deviation:.3f}", value)
              for value, deviation in (by[goal.figure, option] for goal in goals)),
        )
        for option in order
    ]  # fmt: skip
    shares = "; ".join(f"{goal_name(goal)}: {100 * max(0.0, explained[goal.figure]):.0f} %" for goal in goals)
    foot = "A forest was learnt on the trials, and loses so much R squared if an option's values are permuted. "
    foot += f"It explains of trials it did not learn from, {shares}; where that is little, the order says little."
    return [*blocks, study_charts.importance_chart(importances, goals),
            table("Importance of options", ("option", *map(goal_name, goals)), rows, foot=foot)]  # fmt: skip


def _failures(study: Study) -> list[Block]:
    reasons: dict[tuple[str, str], list[int]] = {}
    for trial in study.trials:
        if trial.state == "failed" or (trial.state == "complete" and not study.kept(trial)):
            what = "failed" if trial.state == "failed" else "over a limit"
            broken = _broken(study, trial) if trial.state == "complete" else ""
            reasons.setdefault((what, trial.reason or broken), []).append(trial.number)
    rows = [
        (Cell(visible(reason) or "no reason was recorded"), what, len(numbers), _few(numbers))
        for (what, reason), numbers in sorted(reasons.items(), key=lambda item: -len(item[1]))
    ]
    return (
        [table("Trials that failed or broke a limit, by reason", ("reason", "what", "trials", "numbers"), rows)]
        if rows
        else []
    )


def _broken(study: Study, trial: Trial) -> str:
    return "not " + ", ".join(
        limit_text(limit) for limit in study.limits if not limit.holds(trial.figure(limit.figure))
    )


def _few(numbers: Sequence[int]) -> str:
    more = len(numbers) - MOST_NUMBERS
    return ", ".join(map(str, numbers[:MOST_NUMBERS])) + (f" and {more} more" if more > 0 else "")


def _trials(study: Study, pages: Mapping[int, str]) -> Table:
    names = option_names(study)
    goals = [goal for goal in study.goals if goal.figure != "accuracy"]
    front = {trial.number for trial in study.front}
    rows = [
        (
            _number(trial, pages),
            Cell("front", tone="good")
            if trial.number in front
            else Cell(_state(study, trial), tone="bad" * (trial.state == "failed")),
            *(figure_cell(trial.figure(goal.figure), goal.figure) for goal in goals),
            _score(trial.validation),
            trial.rung() or "",
            *(_value(trial.options.get(name)) for name in names),
            shortened(trial.reason, 90),
        )
        for trial in study.trials
    ]
    heads = ("trial", "state", *map(goal_name, goals), "accuracy", "known by", *names, "reason")
    return table("Every trial with its figures and options", heads, rows, wide=True)


def _state(study: Study, trial: Trial) -> str:
    return "over a limit" if trial.state == "complete" and not study.kept(trial) else trial.state


def _value(value: Any) -> Cell:
    return (
        Cell("")
        if value is None
        else cell(value)
        if isinstance(value, bool | int | float)
        else Cell(shortened(str(value), 40))
    )
