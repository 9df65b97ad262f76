"""Makes the tables that the commands print on the terminal."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from rich.table import Table
from rich.text import Text

from forestc.backends.base import Gives
from forestc.backends.table import gives_only
from forestc.checks.agreement import quality, share
from forestc.forest.summary import counted, shown
from forestc.report.widths import as_text
from forestc.rows.accuracy import GENERATED, MEASURED_ON

if TYPE_CHECKING:  # For type checkers only: commands pass the results in.
    from forestc.checks.result import CheckResult

T = TypeVar("T")
MOST_COMPARATORS = 20  # limits the comparators in the table of `forestc activity`
VERDICTS = {"proved": "proved for every input", "refuted": "refuted", "undecided": "not proved, not refuted"}


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

    def tables(self) -> list[Table | Text]:
        return [*self.make_tables(self), *(Text(f"note: {note}") for note in self.get("notes", ()))]

    def __str__(self) -> str:
        return as_text(self.tables())


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


def figures_table(title: str, figures: Mapping[str, Any]) -> Table:
    rows = [(key.replace("_", " "), shown(value)) for key, value in figures.items()]
    return table(title, ("what", "figure"), [(key, value or "none") for key, value in rows])


def inspect_tables(title: str, figures: Mapping[str, Any]) -> list[Table]:
    separate = ("compiled", "per_feature")
    tables = [figures_table(title, {key: value for key, value in figures.items() if key not in separate})]
    if "compiled" in figures:
        tables.append(figures_table("what was written", figures["compiled"]))

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
        for feature in sorted(figures["per_feature"], key=lambda feature: -feature["uses"])
        if feature["uses"]
    ]
    heads = ("feature", "column", "type", "missing", "words", "nodes", "conditions", "lowest threshold", "highest")
    return [*tables, table("features that are read, the most used first", heads, rows)]


def compile_tables(figures: Mapping[str, Any]) -> list[Table | Text]:
    measured = figures["measured"]
    on_given, held_out, quality = measured["given"], measured["held_out"], measured["measure"]
    both = [on_given] if held_out is None else [on_given, held_out]
    summary = [*quality_rows(quality, both), ("rows measured on", *(f"{on['rows']:,}" for on in both))]
    hardware = not gives_only(figures["targets"], Gives.HEADER)
    rows = [
        ("conditions of all nodes", f"{figures['conditions']:,}"),
        ("comparators: distinct conditions", f"{figures['distinct_conditions']:,}"),
        ("comparator bits", f"{figures['comparator_bits']:,}"),
    ]
    if figures["latency_cycles"] is not None:
        rows.append(("latency", ", ".join([counted(figures["latency_cycles"], "cycle"), *figures["clocking"]])))
    if (evidence := (figures["level"] or {}).get("evidence")) is not None:
        low, high = evidence["interval"]
        _, points, shown = _unit(evidence["measure"])
        lost = f"{shown(evidence['lost'])} (95 %: {shown(low)} to {shown(high)})"
        of = f"{lost} of {evidence['measure']} on {evidence['rows']:,} rows: {evidence['word'] or 'not within'}"
        rows.append((f"{points} lost".strip(), of))
    seconds = [(stage, f"{took:.1f}") for stage, took in figures["seconds"].items()]
    seconds.append(("all", f"{sum(figures['seconds'].values()):.1f}"))
    device = synth_tables(figures["name"], figures["synthesis"], table) if "synthesis" in figures else []
    generated = measured["measured_on"] == GENERATED
    heads = ("what", "generated rows" if generated else "given rows", "held-out rows")[: 1 + len(both)]
    title = f"{'measured on' if generated else 'the given rows are'} {MEASURED_ON[measured['measured_on']]}"
    return [
        table(f"{figures['name']}: {', '.join(figures['targets'])} in {figures['out']}", ("what", "figure"), rows),
        table(title, heads, summary),
        *level_tables(figures["level"], table),
        *pass_tables(figures["passes"], table, hardware=hardware),
        *estimate_tables(figures.get("estimate", []), table),
        *firmware_tables(figures.get("firmware"), table),
        *device,
        table("time of each stage", ("stage", "seconds"), seconds),
        *(Text(f"note: {note}") for note in figures["notes"]),  # Names in a Text are not read as markup.
    ]


def _unit(measure: str) -> tuple[str, str, Callable[..., str]]:
    """Returns the unit of a measure's values, the unit of their differences, and a function that shows one. R squared
    is no share: it has no unit."""
    if measure == "R squared":
        return "", "", lambda value, sign="": f"{value:{sign}.4f}"
    return " %", "points", lambda value, sign="": f"{100 * value:{sign}.2f}"


def level_tables(level: Mapping[str, Any] | None, make_table: Callable[..., T]) -> list[T]:
    if not level or "table" not in level:
        return []
    measure = level["table"][0]["measure"]
    unit, points, shown = _unit(measure)
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
    most = f"{100 * level['tolerance']:g} points" if points else f"{level['tolerance']:g}"
    how = f"scored on {level['judged_on']}; lost and its standard errors must be within {most}"
    title = f"what -{level['level']} tried: {counted(level['tried'], 'setting')}, {how}"
    heads = (f"{measure}, of the model's", f"lost{', in points' if points else ''} ± standard error")
    return [make_table(title, ("way", level["unit"], *heads, "within tolerance"), rows)]


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
            *(f"{figures[key]:,}" for key in ("flash", "ram", "mean", "most")),
            *["-" if figures["bound"] is None else f"{figures['bound']:,}"] * bounded,
        )
        for name, figures in firmware["layouts"].items()
    ]
    title = f"C of {firmware['entry']} alone, measured for {firmware['cpu']} ({firmware['tool']})"
    count = "cycles" if firmware["cpu"] == "avr" else "instructions"
    heads = ("layout", "flash, bytes", "RAM and stack, bytes", f"mean {count}", "most of the inputs run")
    return [make_table(title, (*heads, *["at most, for any input"] * bounded), rows)]


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
    """Returns the text that `forestc check` prints. Its last line is "ok" or the failure."""
    problem = result.problem()
    return as_text([*check_tables(result), Text("ok" if problem is None else f"failed: {problem}")])


def check_tables(result: CheckResult) -> list[Table | Text]:
    counts = ", ".join(f"{count:,} {origin}" for origin, count in result.vectors.items())
    rows = [
        (
            name,
            f"{engine.vectors:,}",
            "not run" if engine.differences is None else f"{engine.differences:,}",
            f"{engine.seconds:.1f}",
            engine.tool or "-",
        )
        for name, engine in result.engines.items()
    ]
    on_rows = []
    if (agreed := result.agreement) is not None:
        summary = [*quality_rows(agreed.measure, [vars(agreed)]), ("rows", f"{agreed.rows:,}")]
        on_rows.append(table("the quantized forest against the model, on the rows", ("what", "figure"), summary))
    proof = []
    if result.proof is not None:
        parts = [
            (part.name, f"{part.proved:,} of {part.asked:,}", f"{part.seconds:.1f}") for part in result.proof.parts
        ]
        names = {name for name, _, _ in parts}
        cores = [f"the {kind} core" for kind in ("Verilog", "VHDL") if kind.lower() in names]
        cores += ["the engine's image, walked by its step,"] if "image" in names else []
        covered = " and ".join(cores) or "the netlist, no written file,"
        title = VERDICTS[result.proof.verdict]
        if result.proof.verdict == "undecided" and any(engine.differences for engine in result.engines.values()):
            title = "not proved, and refuted by a vector of an engine"
        proof.append(table(f"{covered} equal to the quantized forest: {title}", ("part", "proved", "seconds"), parts))
    return [
        table(
            f"against the quantized forest, bit for bit ({counts})",
            ("engine", "vectors", "differences", "seconds", "tool"),
            rows,
        ),
        _coverage_table(result),
        *proof,
        *on_rows,
        *map(Text, (*result.not_run(), *result.notes)),
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
