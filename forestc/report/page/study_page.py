"""Makes the page of a study: the recommended design, the front, options, progress, and every trial."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from markupsafe import Markup

from forestc.exploration.choice import choice, unpruned
from forestc.exploration.choice import shown as listed_of
from forestc.exploration.goals import FIGURES
from forestc.exploration.study import Goal, Study, Trial
from forestc.forest.summary import shown
from forestc.report.answer import Words, answer, unpruned_name
from forestc.report.page import study_charts
from forestc.report.page.blocks import Block, Cell, Code, Page, Paragraph, Section, Table, cell, table
from forestc.report.page.front_chart import front_chart
from forestc.report.page.parallel import parallel_chart
from forestc.report.page.peers import Peer
from forestc.report.page.study_figures import equals, importance, option_names
from forestc.report.page.study_text import figure_cell, goal_name, limit_text, score_cell
from forestc.report.page.svg import shortened
from forestc.report.tables import visible

MOST_NUMBERS = 20  # trials that a cell lists
LITTLE = 0.01  # sets the R squared below which an importance says nothing
EXPLAINED = 0.2  # sets the R squared from which on the order of importances says something
RUNGS = "Known by: how far a design was built, its rung (estimate, synthesis, placed, measured firmware)."
SHRINK = (
    "The option shrink says which passes make the forest smaller; NAME.OPTION is an option of the pass NAME, "
    "which forestc passes NAME explains."
)


@dataclass(frozen=True)
class Links:
    """Addresses that a study's page links to, relative to the page, by number of trial."""

    pages: Mapping[int, str] = field(default_factory=dict)  # addresses of designs' pages
    folders: Mapping[int, str] = field(default_factory=dict)  # addresses of compiled folders


def study_page(
    study: Study, peers: Sequence[Peer], links: Links = Links(), progress: Callable[[str], None] = lambda _: None
) -> Page:
    progress("importance of options")
    importances, explained = importance(study)
    progress("charts")
    charts = (
        [front_chart(study, *pair, peers, links.pages) for pair in study_charts.pairs(study)] if study.complete else []
    )
    sections = (
        Section("answer", "Which design", (*_answer(study, links), *charts[:1])),
        Section("front", "The front", (*charts[1:], *_front(study, peers, links))),
        Section("options", "What the options did", tuple(_options(study, importances, explained))),
        Section("history", "Progress", (study_charts.history_chart(study),) if study.complete else ()),
        Section("failures", "What failed", tuple(_failures(study))),
        Section("trials", "All trials", (_trials(study, links),) if study.trials else ()),
        Section("asked", "How it was searched", tuple(_request(study))),
    )
    return Page("Study", _title(study), _lead(study), sections)


def _title(study: Study) -> str:
    source, model = str(study.asked.get("source") or ""), study.asked.get("model")
    name = Path(source).stem if model is not None else source
    return visible(name or study.folder.resolve().name)


def _lead(study: Study) -> str:
    goals = ", ".join(
        f"{'highest' if goal.maximize else 'lowest'} {goal_name(replace(goal, unit=''))}" for goal in study.goals
    )
    limits = f", with {'; '.join(map(limit_text, study.limits))}" if study.limits else ""
    on = " and ".join(visible(str(study.asked[key])) for key in ("device", "cpu") if study.asked.get(key))
    counts = f"{len(study.complete):,} designs" + (f" for {on}" if on else "")
    return f"{counts}, searched for {goals}{limits}. In the folder {visible(study.folder.resolve().name)}."


def _answer(study: Study, links: Links) -> list[Block]:
    advice = answer(study)
    if advice is None:
        why = "no trial keeps all limits" if study.complete else "no trial is complete"
        blocks: list[Block] = [Paragraph(f"The front is empty: {why}.", "answer")] if not study.front else []
    else:
        parts = [(advice.first, "answer"), (advice.beside, "beside")]
        blocks = [Paragraph(_linked(words, links), tone) for words, tone in parts if words]
    notes = study.asked.get("notes")
    blocks += [Paragraph(f"Note: {visible(str(note))}.", "note") for note in (notes if isinstance(notes, list) else ())]
    return blocks + [Paragraph(line, "note") for line in _unfinished(study)]


def _linked(sentences: Sequence[Words], links: Links) -> Markup:
    parts: list[str] = []
    for part in (part for words in sentences for part in (*words, " ")):
        if isinstance(part, str):
            parts.append(Markup("{}").format(part))
            continue
        page = links.pages.get(part.number)
        link = Markup('<a href="{}">trial {}</a>') if page else Markup("{}trial {}")
        parts.append(link.format(page or "", part.number))
    return Markup("").join(parts)


def _unfinished(study: Study) -> list[str]:
    """Returns a list with a sentence on unfinished parts of a study; empty for a finished study."""
    lacks, stopped = study.asked.get("unfinished"), study.asked.get("stopped") is True
    running = sum(trial.state == "running" for trial in study.trials)
    lead = "The search was stopped before its end" if stopped or lacks else "The search has not ended"
    what = {"untried": "trials not tried", "begun": "trials unfinished", "designs": "designs of the front not checked"}
    if isinstance(lacks, Mapping):
        counts = [f"{visible(str(lacks[key]))} {words}" for key, words in what.items() if lacks.get(key)]
    else:
        counts = [f"{running:,} {what['begun']}"] if running else []
    return [f"{lead}: {', '.join(counts) or 'no trial is unfinished'}. --resume goes on."] if counts or stopped else []


def _figures(study: Study) -> list[str]:
    asked = [*(goal.figure for goal in study.goals), *(limit.figure for limit in study.limits)]
    more = [name for name, figure in FIGURES.items() if figure.needs and study.asked.get(figure.needs)]
    return [name for name in dict.fromkeys([*asked, *more]) if name != "accuracy"]


def _head(figure: str) -> str:
    return goal_name(Goal(figure, False, FIGURES[figure].unit if figure in FIGURES else ""))


def _front(study: Study, peers: Sequence[Peer], links: Links) -> list[Block]:
    blocks: list[Block] = []
    if study.front:
        chosen = choice(study)
        if chosen is not None and chosen.taken.command:
            blocks.append(Code(visible(chosen.taken.command), f"The command that compiles trial {chosen.taken.number}"))
        blocks.append(_front_table(study, links))
    if peers:
        figures = list(dict.fromkeys(key for peer in peers for key in peer.figures))
        rows = [(shortened(peer.name, 60), *(figure_cell(peer.figures.get(f), f) for f in figures)) for peer in peers]
        blocks.append(table("Peers, as the file given says", ("name", *(_head(f) for f in figures)), rows))
    return blocks


def _front_table(study: Study, links: Links) -> Table:
    near, first = equals(study), unpruned(study.trials)
    chosen, listed = choice(study), listed_of(study)
    taken = None if chosen is None else chosen.recommended
    beside = [first] if first is not None and first not in listed else []
    figures = _figures(study)
    rows = [
        (
            _number(trial, links),
            *(figure_cell(trial.figure(figure), figure) for figure in figures),
            score_cell(trial.validation),
            score_cell(trial.test),
            ", ".join(
                [trial.rung() or "", *["does not fit"] * (not study.fits(trial)), *["recommended"] * (trial is taken)]
            ),
            unpruned_name(study) if trial is first else ", ".join(map(str, near.get(trial.number, [])[:MOST_NUMBERS])),
            Cell("folder", link=links.folders[trial.number]) if trial.number in links.folders else Cell("-"),
            Cell(visible(trial.command), code=True) if trial.command else Cell("-"),
        )
        for trial in (*listed, *beside)
    ]
    heads = ("trial", *map(_head, figures), f"{study.measure}, validation", f"{study.measure}, test", "known by",
             f"{study.measure} equal to",
             "design", "command")  # fmt: skip
    keys = ("trial", *figures, "accuracy", "test", "", "", "", "")
    foot = f"Scores with their standard error. Equal: two trials differ by less than the larger one. {RUNGS} "
    foot += "A trial's number leads to its design's page. " if links.pages else ""
    foot += "forestc explore STUDY --take N -o DIR writes the design of any trial. "
    return table("The front, and the unpruned model", heads, rows, wide=True, foot=foot, keys=keys)


def _number(trial: Trial, links: Links) -> Cell:
    return Cell(f"{trial.number}", float(trial.number), link=links.pages.get(trial.number, ""))


def _options(
    study: Study, importances: Sequence[tuple[str, str, float, float]], explained: Mapping[str, float]
) -> list[Block]:
    if not study.complete:
        return []
    order = sorted(
        {option for _, option, _, _ in importances}, key=lambda o: -max(v for _, n, v, _ in importances if n == o)
    )
    parallel = parallel_chart(study, order)
    blocks: list[Block] = [Paragraph(SHRINK)] if any("shrink" in trial.options for trial in study.trials) else []
    blocks += [] if parallel is None else [parallel]
    if not importances:
        return [*blocks, Paragraph("There are too few trials that differ to tell which options matter.")]
    goals = [goal for goal in study.goals if goal.figure in explained]
    by = {(goal, option): (value, deviation) for goal, option, value, deviation in importances}
    says = max(explained.values()) >= EXPLAINED
    large = [option for option in order if any(by[goal.figure, option][0] >= LITTLE for goal in goals)] if says else []
    shares = "; ".join(f"{goal_name(goal)}: {100 * max(0.0, explained[goal.figure]):.0f} %" for goal in goals)
    foot = "A forest was learnt on the trials, and loses so much R squared if an option's values are permuted. "
    foot += f"It explains of trials it did not learn from, {shares}; where that is little, the order says little."

    def part(title: str, options: Sequence[str], *, folded: bool) -> list[Block]:
        rows = [(option, *(_importance(*by[goal.figure, option]) for goal in goals)) for option in options]
        heads = ("option", *map(goal_name, goals))
        return [table(title, heads, rows, foot=foot, folded=folded)] if rows else []

    if large:
        blocks += [
            study_charts.importance_chart([line for line in importances if line[1] in large], goals),
            *part("Importance of options", large, folded=False),
        ]
    small = [option for option in order if option not in large]
    why = f"lose less than {LITTLE:g}" if says else "say little: the trials' figures are hardly explained by them"
    return blocks + part(f"{len(small)} options that {why}", small, folded=True)


def _importance(value: float, deviation: float) -> Cell:
    value = max(value, 0.0)
    return Cell(f"{value:.3f} \N{PLUS-MINUS SIGN} {deviation:.3f}", value)


def _failures(study: Study) -> list[Block]:
    reasons: dict[tuple[str, str], list[int]] = {}
    for trial in study.trials:
        if trial.state == "failed" or (trial.state == "complete" and not study.kept(trial)):
            what = "failed" if trial.state == "failed" else "over a limit"
            broken = [limit for limit in study.limits if not limit.holds(trial.figure(limit.figure))]
            words = f"not {', '.join(map(limit_text, broken))}" if trial.state == "complete" else ""
            reasons.setdefault((what, trial.reason or words), []).append(trial.number)
    rows = [
        (Cell(visible(reason) or "no reason was recorded"), what, len(numbers), _few(numbers))
        for (what, reason), numbers in sorted(reasons.items(), key=lambda item: -len(item[1]))
    ]
    heads = ("reason", "what", "trials", "numbers")
    return [table("Trials that failed or broke a limit, by reason", heads, rows)] if rows else []


def _few(numbers: Sequence[int]) -> str:
    more = len(numbers) - MOST_NUMBERS
    return ", ".join(map(str, numbers[:MOST_NUMBERS])) + (f" and {more} more" if more > 0 else "")


def _trials(study: Study, links: Links) -> Table:
    names, figures = option_names(study), _figures(study)
    front = {trial.number for trial in study.front}
    rows = [
        (
            _number(trial, links),
            Cell("front", tone="good")
            if trial.number in front
            else Cell(_state(study, trial), tone="bad" * (trial.state == "failed")),
            *(figure_cell(trial.figure(figure), figure) for figure in figures),
            score_cell(trial.validation),
            trial.rung() or "",
            *(_value(trial.options.get(name)) for name in names),
            shortened(trial.reason, 90),
        )
        for trial in study.trials
    ]
    heads = ("trial", "state", *map(_head, figures), study.measure, "known by", *names, "reason")
    keys = ("trial", "state", *figures, "accuracy", "", *("" for _ in names), "")
    return table("Every trial with its figures and options", heads, rows, wide=True, keys=keys)


def _state(study: Study, trial: Trial) -> str:
    if trial.state == "running":
        return "unfinished"
    return "over a limit" if trial.state == "complete" and not study.kept(trial) else trial.state


def _value(value: object) -> Cell:
    if isinstance(value, bool | int | float):
        return cell(value)
    return Cell("" if value is None else shortened(str(value), 40))


def _request(study: Study) -> list[Block]:
    request = study.asked
    states = {"complete": "complete", "failed": "failed", "running": "unfinished"}
    counts = {name: sum(trial.state == state for trial in study.trials) for state, name in states.items()}
    trials = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count) or "none"
    shown_keys = ("source", "rows", "validation", "test", "device", "cpu", "seed", "versions")
    rows = [("trials", Cell(trials))]
    rows += [
        (key, Cell(visible(shown(request[key])))) for key in shown_keys if request.get(key) not in (None, "", {}, [])
    ]
    blocks: list[Block] = [table("What was asked", ("what", "value"), rows)]
    if request.get("command"):
        blocks += [Code(visible(str(request["command"])), "The command of the study")]
    return blocks
