"""Makes the tables that the commands print on the terminal."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar

from rich.table import Table
from rich.text import Text

from forestc.checks.agreement import quality, share
from forestc.checks.result import HEADS, CheckResult
from forestc.forest.summary import counted, described, shown
from forestc.report.widths import as_text

T = TypeVar("T")
MOST_FEATURES = 3  # limits the features named by `forestc inspect`
MOST_COMPARATORS = 20  # limits the comparators in the table of `forestc activity`


def table(
    title: str, head: Sequence[str], rows: Sequence[Sequence[str]], justify: Literal["left", "right"] = "right"
) -> Table:
    """Returns a table of literal texts without empty columns. justify: aligns all columns but the first."""
    head, rows = filled(head, rows)
    result = Table(title=Text(title), title_justify="left")
    for index, name in enumerate(head):
        result.add_column(name, justify="left" if index == 0 else justify, overflow="fold")
    for row in rows:
        result.add_row(*(Text(visible(cell)) for cell in row))
    return result


class Shown(dict[str, Any]):
    """A dictionary with the figures of a command. Its text consists of the tables that `make_tables` makes from the
    figures."""

    def __init__(self, figures: Mapping[str, Any], make_tables: Callable[[Mapping[str, Any]], list[Table]]) -> None:
        super().__init__(figures)
        self.make_tables = make_tables

    def tables(self, *, verbose: bool = False) -> list[Table | Text]:
        """Returns the tables and notes. verbose: True to show the seconds of stages, too."""
        shown = self if verbose else {key: value for key, value in self.items() if key != "seconds"}
        return [*self.make_tables(shown), *noted(self.get("notes", ()))]

    def __str__(self) -> str:
        return as_text(self.tables())


def noted(notes: Iterable[str]) -> list[Text]:
    """Returns notes for the user as lines; in a Text, names are not read as markup."""
    return [Text(f"note: {note}") for note in notes]


def titled(title: str) -> Callable[[Mapping[str, Any]], list[Table]]:
    """Returns a function that makes a table with this title from figures, without the figures `columns` and `notes`."""

    def make(figures: Mapping[str, Any]) -> list[Table]:
        return [figures_table(title, {key: value for key, value in figures.items() if key not in ("columns", "notes")})]

    return make


def filled(head: Sequence[str], rows: Sequence[Sequence[str]]) -> tuple[Sequence[str], list[Sequence[str]]]:
    """Returns the heads and the rows, without columns that hold only empty cells and dashes. The first column always
    stays."""
    retained = [c for c in range(len(head)) if not c or not rows or any(row[c] not in ("", "-") for row in rows)]
    return [head[c] for c in retained], [[row[c] for c in retained] for row in rows]


def visible(text: str) -> str:
    """Returns the text with a replacement for control characters, because these could command the terminal."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def quality_rows(
    measure: str, on: Sequence[Mapping[str, Any]], model: str = ", model", compiled: str = ", compiled"
) -> list[tuple[str, ...]]:
    """Returns table rows that compare a design with its model.
    on: the figures of each column of the table.
    model, compiled: suffixes of the measure's name."""
    columns = [quality(measure, figures, model, compiled) for figures in on]
    return [(name, *(column[name] for column in columns)) for name in columns[0]]


def figures_table(title: str, figures: Mapping[str, Any], justify: Literal["left", "right"] = "right") -> Table:
    rows = [(key.replace("_", " "), shown(value)) for key, value in figures.items()]
    return table(title, ("what", "figure"), [(key, value or "none") for key, value in rows], justify)


def inspect_tables(title: str, figures: Mapping[str, Any], *, verbose: bool = False) -> list[Table | Text]:
    """Returns the most important figures. verbose: True to add tables of a folder's content and of the features."""
    read = sorted((own for own in figures["per_feature"] if own["uses"]), key=lambda feature: -feature["uses"])
    most = ", ".join(own["name"] for own in read[:MOST_FEATURES])
    folder = figures.get("compiled")
    about = described(figures) | {"most used": most} | ({} if folder is None else _folder(folder))
    tables: list[Table | Text] = [figures_table(title, about, "left")]
    if not verbose:
        return [*tables, Text(f"--verbose lists the features{' and files' if folder else ''}")]
    if folder is not None:
        tables.append(figures_table("what was written", folder))

    def number(value: float | None) -> str:
        return "-" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.6g}"

    rows = [
        (
            feature["name"],
            f"{feature['column']}",
            feature["type"],
            "yes" if feature["missing"] else "no",
            "-" if feature["words"] is None else "{:,} to {:,}".format(*feature["words"]),
            f"{feature['uses']:,}",
            f"{feature['conditions']:,}",
            number(feature["lowest"]),
            number(feature["highest"]),
        )
        for feature in read
    ]
    heads = ("feature", "column", "type", "missing", "words", "nodes", "conditions", "lowest threshold", "highest")
    return [*tables, table("features that are read, the most used first", heads, rows)]


def _folder(figures: Mapping[str, Any]) -> dict[str, object]:
    """Returns the most important figures of a compiled folder."""
    last, changed = figures["last_check"], figures["changed_files"]
    checked = "none: run forestc check" if last is None else f"{last['result']}, {last['date'][:10]}"
    if last is not None and not last["of_this_content"]:
        checked += ", of other content"
    return {
        **{key: figures[key] for key in ("targets", "ports", "latency_cycles", "device") if figures[key] is not None},
        "files": f"{len(figures['files'])}" + (f"; changed: {shown(changed, 3)}" if changed else ""),
        "last check": checked,
    }


def units_of(measure: str) -> tuple[str, Callable[..., str]]:
    """Returns ", points" or "", and a function that shows a difference of the measure. R squared is no share: it has no
    unit."""
    if measure == "R squared":
        return "", lambda value, sign="": f"{value:{sign}.4f}"
    return ", points", lambda value, sign="": f"{100 * value:{sign}.2f}"


def level_tables(level: Mapping[str, Any] | None, make_table: Callable[..., T]) -> list[T]:
    if not level or "table" not in level:
        return []
    measure = level["table"][0]["measure"]
    points, shown = units_of(measure)
    unit = " %" if points else ""
    rows = [
        (
            trial["family"] + " (taken)" * trial["chosen"],
            f"{trial['size']:,.0f}",
            f"{shown(trial['accuracy'])} of {shown(trial['accuracy'] + trial['lost'])}{unit}",
            f"{shown(trial['lost'], '+')} ± {shown(trial['standard_error'])}",
            "yes" if trial["good"] else "no",
        )
        for trial in level["table"]
    ]
    share = 100 * level["tolerance"]
    most = f"{share:g} point{'s' * (share != 1)}" if points else f"{level['tolerance']:g}"
    errors = f"{level['table'][0]['errors_added']:g}"
    how = (
        f"scored on {level['judged_on']}; lost and {errors} standard errors must be within {most}, then the choice too"
    )
    title = f"what -{level['level']} tried: {counted(level['tried'], 'setting')}, {how}"
    heads = (f"{measure}, of the model's", f"lost{points} ± standard error")
    return [make_table(title, ("way", f"about, {level['unit']}", *heads, "within tolerance"), rows)]


def estimate_tables(estimates: Sequence[Mapping[str, Any]], make_table: Callable[..., T]) -> list[T]:

    def about(value: float | None, ends: Sequence[float] | None, unit: str = "") -> str:
        return "-" if value is None or ends is None else f"{value:,.0f}{unit} ({ends[0]:,.0f} to {ends[1]:,.0f})"

    rows = [
        (
            figures["device"],
            about(figures["lut"], figures["lut_range"]),
            f"{figures['ff']:,}",
            about(figures["fmax_mhz"], figures["fmax_range"], " MHz"),
        )
        for figures in estimates
    ]
    title = "estimated before synthesis (the range of nine in ten designs)"
    return [make_table(title, ("device", "LUTs", "flip-flops", "Fmax"), rows)] if rows else []


def firmware_tables(firmware: Mapping[str, Any] | None, make_table: Callable[..., T]) -> list[T]:
    """Returns a list with the table of a C header's measured figures by layout; empty without figures."""
    if not firmware:
        return []
    bounded = any(figures["bound"] is not None for figures in firmware["layouts"].values())
    rows = [
        (
            f"{name} (chosen)" if name == firmware["layout"] else name,
            *(f"{figures[key]:,}" for key in ("flash", "ram")),
            *["-" if figures["bound"] is None else f"{figures['bound']:,}"] * bounded,
            *(f"{figures[key]:,}" for key in ("most", "mean")),
        )
        for name, figures in firmware["layouts"].items()
    ]
    title = f"C of {firmware['entry']} alone, measured for {firmware['cpu']} ({firmware['tool']})"
    count = "cycles" if firmware["cpu"] == "avr" else "instructions"
    # A narrow terminal drops the last columns first, so the worst case comes early.
    worst = [f"most {count}, any input"] * bounded
    heads = ("layout", "flash, bytes", "RAM and stack, bytes", *worst, f"most {count}, inputs run", f"mean {count}")
    return [make_table(title, heads, rows)]


def pass_tables(passes: Sequence[Mapping[str, Any]], make_table: Callable[..., T], *, hardware: bool = True) -> list[T]:
    """Returns tables on the effect of each pass. hardware: True to show port bits."""

    def pair(step: Mapping[str, Any], key: str) -> str:
        both = step.get(key)
        if not isinstance(both, list):
            return ""
        return f"{both[0]:,}" if both[0] == both[1] else f"{both[0]:,} to {both[1]:,}"

    effects = [
        (
            step["pass"],
            step["guarantee"],
            pair(step, "distinct_conditions"),
            pair(step, "comparator_bits"),
            pair(step, "input_bits") if hardware else "",
            f"{100 * step['change']:.2f} %",
        )
        for step in passes
    ]
    moved = [
        (step["pass"], f"{step['exceptions']:,} of {step['thresholds']:,}") for step in passes if step.get("exceptions")
    ]
    pruned = [
        (
            step["pass"],
            pair(step, "splits"),
            pair(step, "cost"),
            f"{step['price']:g}" if step["price"] else "nothing fitted: unchanged",
            step["scores"],
        )
        for step in passes
        if "splits" in step
    ]
    chosen = [
        (step["pass"], *(pair(step, key) for key in ("trees", "nodes", "comparators", "luts")), step["chosen_on"])
        for step in passes
        if "chosen_on" in step
    ]
    proofs = [
        (
            step["pass"],
            pair(step, "trees"),
            pair(step, "nodes"),
            step["proof"]["state"],
            *(f"{step['proof'][key]:,}" for key in ("changes", "refuted", "undecided", "not_examined")),
        )
        for step in passes
        if "proof" in step
    ]
    accuracies = [
        (step["pass"], f"{on['rows']:,}", on["measure"], _fixed(on["before"]), _fixed(on["after"]),
         "yes" if step.get("chosen_on_held_out") else "no")
        for step in passes
        if (on := step.get("held_out"))
    ]  # fmt: skip
    counts = ("proved changes", "refuted", "undecided", "not examined")
    effect_heads = ("pass", "guarantee", "comparators", "their bits", "port bits", "changed")
    tree_heads = ("pass", "trees", "conditions in all trees", "comparators", "LUTs (price)", "chosen on")
    more = [
        ("exceptions", ("pass", "thresholds moved past rows"), moved),
        ("splits pruned", ("pass", "splits", "cost", "price", "scores"), pruned),
        ("trees kept", tree_heads, chosen),
        ("exact pruning", ("pass", "trees", "nodes", "proof", *counts), proofs),
        ("on the rows held out", ("pass", "rows", "measure", "before", "after", "chosen on them"), accuracies),
    ]
    return [make_table("passes", effect_heads, effects), *(make_table(*section) for section in more if section[-1])]


def passes_tables(figures: Sequence[Mapping[str, Any]], levels: Sequence[Mapping[str, str]]) -> list[Table]:
    heads = ("level", "keeps", "passes")
    return [
        table("passes", ("pass", "promises", "for"), [(f["name"], f["promises"], f["for"]) for f in figures], "left"),
        table("levels", heads, [tuple(level.values()) for level in levels], "left"),
    ]


def pass_guide_tables(figures: Mapping[str, Any]) -> list[Table]:

    def spelt(value: object) -> str:
        return value if isinstance(value, str) else json.dumps(value)

    about = [("for", figures["for"]), ("promises", figures["promises"])]
    rows = [
        (option["name"], option["type"], spelt(option["default"]), option["meaning"]) for option in figures["options"]
    ]
    heads = ("option", "type", "default", "meaning")
    name = figures["name"]
    options = [table(f"{name}{{option=value,...}}", heads, rows, "left")] if rows else []
    return [table(name, ("what", ""), about, "left"), *options]


def synth_tables(name: str, figures: Mapping[str, Any], make_table: Callable[..., T]) -> list[T]:
    estimate = figures.get("estimate")

    def with_estimate(text: str, key: str) -> str:
        return f"{text} (estimated {estimate[key]:,.0f})" if estimate and estimate.get(key) is not None else text

    if "area" in figures:
        rows = [("cells", f"{figures['cells']:,}"), ("area, in the library's unit", f"{figures['area']:,.1f}")]
        rows.append(("of these cells flip-flops", f"{figures['ff']:,}"))
    else:
        placed = figures.get("placed")
        cells = [("logic cells placed, with registers on ports", _share(placed))] if placed else []
        rows = [
            ("LUTs", with_estimate(f"{figures['lut']:,}", "lut")),
            *cells,
            ("flip-flops", with_estimate(f"{figures['ff']:,}", "ff")),
            ("carry cells", f"{figures['carry']:,}"),
            ("RAM cells", f"{figures['bram']:,}"),
        ]
    rows += [
        ("depth, cells", "-" if figures["depth"] is None else f"{figures['depth']:,}"),
        *([] if "clocks_per_row" in figures else [("latency", counted(figures["latency_cycles"], "cycle"))]),
    ]
    if figures["fmax_mhz"] is not None:
        rows.append(("Fmax, routed, between registers", with_estimate(f"{figures['fmax_mhz']:.1f} MHz", "fmax_mhz")))
    if (rate := figures.get("rows_per_second")) is not None:
        about = with_estimate(f"{rate:,}", "rows_per_second")
        rows.append((f"rows a second, of {counted(figures['clocks_per_row'], 'clock')}", about))
    rows += [(f"time, {stage}", f"{took:.1f} s") for stage, took in figures.get("seconds", {}).items()]
    rows.append(("tools", ", ".join(figures["tools"])))
    name = f"{name}, with its stream," if figures.get("stream") else name
    return [make_table(f"{name} on {figures['device']}", ("what", "figure"), rows)]


def _share(placed: Mapping[str, int]) -> str:
    part = placed["used"] / placed["available"]
    filled = round(20 * part)
    of = f"{placed['used']:,} of {placed['available']:,}"
    return f"{of} {'█' * filled}{'░' * (20 - filled)} {100 * part:.1f} %"


def measure_tables(name: str, figures: Mapping[str, Any], make_table: Callable[..., T]) -> list[T]:
    entries = figures["entries"].values()

    def counted(key: str, which: str) -> list[str]:
        return ["-" if e[key] is None else f"{e[key][which]:,}" for e in entries]

    on = f"{figures['rows']:,} rows" if figures["rows"] else f"{figures['vectors']:,} vectors"
    on += f" of {figures['rows_given']:,}" if figures["rows"] < figures["rows_given"] else ""
    rows = [
        ("flash, bytes", *(f"{e['flash']:,}" for e in entries)),
        ("static RAM, bytes", *(f"{e['ram']:,}" for e in entries)),
        ("deepest stack, bytes", *("-" if e["stack"] is None else f"{e['stack']:,}" for e in entries)),
        ("found by", *(e["stack_by"] for e in entries)),
        ("deepest stack seen, bytes", *("-" if e["stack_seen"] is None else f"{e['stack_seen']:,}" for e in entries)),
        (f"instructions, mean of {on}", *counted("instructions", "mean")),
        (f"instructions, most of {on}", *counted("instructions", "max")),
        ("instructions, most of all that were run", *counted("instructions", "max_of_all")),
        ("instructions, most of any input", *("-" if e["bound"] is None else f"{e['bound']:,}" for e in entries)),
        (f"cycles, mean of {on}", *counted("cycles", "mean")),
        (f"cycles, most of {on}", *counted("cycles", "max")),
        ("cycles, most of all that were run", *counted("cycles", "max_of_all")),
        ("answers that differ", *("-" if e["differences"] is None else f"{e['differences']:,}" for e in entries)),
    ]
    for budget, (used, most) in figures.get("budget", {}).items():
        rows.append((f"budget of {budget}", f"{used:,} of {most:,}", *[""] * (len(figures["entries"]) - 1)))
    title = f"{name} on {figures['cpu']}, -O{figures['optimize']} ({', '.join(figures['tools'])})"
    return [make_table(title, ("what", *figures["entries"]), [row for row in rows if set(row[1:]) != {"-"}])]


def _fixed(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def check_text(result: CheckResult) -> str:
    """Returns the text that `forestc check` prints. Its last line begins with "ok" or "failed"."""
    problem = result.problem()
    return as_text([*check_tables(result), *([] if problem is None else [Text(f"failed: {problem}")])])


def check_tables(result: CheckResult, *, verbose: bool = False) -> list[Table | Text]:
    """Returns the answers, what the user should know, and "ok" if the check found no problem. verbose: True to add what
    vectors reached, the parts of the proof, the engines left out, and seconds."""
    counts = ", ".join(f"{count:,} {origin}" for origin, count in result.vectors.items())
    compared = any(engine.vectors for engine in result.engines.values())
    found = f"difference in {sum(result.vectors.values()):,} vectors ({counts})" if compared else "finding"
    last = [] if result.problem() else [f"ok: no {found}"]
    parts = [] if result.proof is None else result.proof.parts
    took = [(name, own.tool, f"{own.seconds:.1f}") for name, own in result.engines.items()]
    proved = [(part.name, f"{part.proved:,} of {part.asked:,}", f"{part.seconds:.1f}") for part in parts]
    return [
        table("bit for bit against the quantized forest, and beside the model", HEADS, result.answers(), "left"),
        *([_coverage_table(result), table("engines", ("engine", "tool", "seconds"), took)] if verbose else []),
        *([table("proof", ("part", "proved", "seconds"), proved)] if verbose and proved else []),
        *map(Text, (*result.not_run(stand_ins=verbose), *result.notes, *last)),
    ]


def _coverage_table(result: CheckResult) -> Table:
    def cell(counts: Mapping[str, int | None]) -> str:
        out_of_reach = f", {counts['unreachable']:,} unreachable" if counts["unreachable"] else ""
        return f"{counts['reached']:,} of {counts['all']:,}{out_of_reach}"

    rows = [(origin, *map(cell, figures.values())) for origin, figures in result.coverage.items()]
    return table("reached by the vectors", ("vectors", "leaves", "nodes", "sides of comparators"), rows)


def inputs_tables(figures: Mapping[str, Any]) -> list[Table]:
    kept = {key: figures[key] for key in ("rows", "columns", "comparators", "kept", "treewidth")}
    figure_of = {key.replace("_", " "): f"{value:,}" for key, value in kept.items()}
    figure_of["score (BDeu)"] = f"{figures['score']:,.1f}"
    if (held_out := figures["held_out_log_likelihood"]) is not None:
        figure_of["log-likelihood of a held-out row"] = f"{held_out['model']:,.2f}"
        figure_of["the same, comparators independent"] = f"{held_out['independent']:,.2f}"
    figure_of["bytes"] = f"{figures['bytes']:,}"
    return [table(f"{figures['out']}: counts and ranges of the rows", ("what", "figure"), list(figure_of.items()))]


def activity_tables(name: str, figures: Mapping[str, Any]) -> list[Table]:
    comparators, labels, trees = figures["comparators"], figures["labels"], figures["trees"]
    most = [
        (row["comparator"], share(row["probability"]), f"{row['toggle_rate']:.4f}")
        for row in comparators[:MOST_COMPARATORS]
    ]
    label_rows = [(str(row["label"]), share(row["probability"]), share(row["standard_error"])) for row in labels]
    leaves = sum(tree["leaves"] for tree in trees)
    totals = [
        ("rows", f"{figures['rows']:,}"),
        ("comparators", f"{len(comparators):,}"),
        ("comparators that change from row to row", f"{figures['toggles_per_row']:,.2f}"),
        ("trees", f"{len(trees):,}"),
        ("leaves", f"{leaves:,}"),
        ("leaves of probability 0", f"{sum(tree['never'] for tree in trees):,}"),
        ("probability of the rarest other leaf", f"{min(tree['rarest'] for tree in trees):.3g}"),
        ("comparisons of a row, all trees", f"{figures['comparisons_per_row']:,.2f}"),
    ]
    heads = ("comparator", "is 1", "changes a row")
    first = f"{name}: the {len(most):,} of {len(comparators):,} comparators that change most"
    return [
        *([table(first, heads, most)] if most else []),
        *([table("labels", ("label", "probability", "standard error"), label_rows)] if label_rows else []),
        table("totals", ("what", "figure"), totals),
    ]
