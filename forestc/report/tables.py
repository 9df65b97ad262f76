"""Tables for the terminal: what people look at rather than read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from forestc.checks.run import CheckResult
from forestc.forest.ir import Forest
from forestc.forest.numbers import Category


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """A plain table; every column but the first is aligned right. Cell texts are shown as they are."""
    result = Table(title=Text(title), title_justify="left")
    for index, name in enumerate(head):
        result.add_column(name, justify="left" if index == 0 else "right", overflow="fold")
    for row in rows:
        result.add_row(*(Text(_visible(cell)) for cell in row))
    return result


def _visible(text: str) -> str:
    # names come from model files: no escape sequence of theirs reaches the terminal
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def share(value: float | None) -> str:
    """A share in percent, or a dash."""
    return "-" if value is None else f"{100 * value:.2f} %"


def inspect_figures(forest: Forest) -> dict[str, Any]:
    """The keys of `forestc inspect --json`."""
    used = forest.features_used()
    return {
        "name": forest.name,
        "source": f"{forest.provenance.source} {forest.provenance.version}".strip(),
        "trees": len(forest.trees),
        "nodes": forest.n_nodes,
        "leaves": forest.n_leaves,
        "depth": forest.depth,
        "features": forest.columns,
        "features_used": len(used),
        "distinct_conditions": forest.distinct_conditions(),
        "outputs": forest.n_outputs,
        "classes": [list(part.classes) for part in forest.targets] if len(forest.targets) > 1 else list(forest.classes),
        "missing": any(forest.features[i].missing for i in used),
        "categorical": any(isinstance(forest.features[i].number, Category) for i in used),
        "parts": len(forest.parts),
        "combine": forest.combine.kind if forest.parts else "none",
        "aggregate": _kinds(part.aggregate.kind for part in forest.parts or (forest.whole,)),
        "link": _kinds(part.link.kind for part in forest.parts or (forest.whole,)),
        "decision": _kinds(part.decision.kind for part in forest.parts or (forest.whole,)),
        "quantised": forest.quantised,
    }


def _kinds(kinds: Iterable[str]) -> str:
    """Different kinds, in order of appearance."""
    return ", ".join(dict.fromkeys(kinds))


def figures_table(title: str, figures: Mapping[str, Any]) -> Table:
    """Two columns: what, figure."""

    def shown(value: Any) -> str:
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, list):
            return ", ".join(map(str, value[:12])) + (f" and {len(value) - 12} more" if len(value) > 12 else "")
        return f"{value:,}" if isinstance(value, int) else str(value)

    rows = [(key.replace("_", " "), shown(value)) for key, value in figures.items()]
    return table(title, ("what", "figure"), [(key, value or "none") for key, value in rows])


def compile_tables(figures: Mapping[str, Any], regression: bool) -> list[Table]:
    """What `forestc compile` prints."""
    quality = "R squared" if regression else "accuracy"
    rows = [
        (f"{quality}, model", share(figures["accuracy"]["model"])),
        (f"{quality}, compiled", share(figures["accuracy"]["compiled"])),
        ("agreement with the model", share(figures["agreement"])),
        ("rows measured on", f"{figures['rows']:,}"),
        ("conditions of all nodes", f"{figures['conditions']:,}"),
        ("comparators: distinct conditions", f"{figures['distinct_conditions']:,}"),
        ("input bits of all comparators", f"{figures['comparator_bits']:,}"),
        ("latency", f"{figures['latency_cycles']} cycles"),
        ("time", f"{sum(figures['seconds'].values()):.1f} s"),
    ]
    passes = [(step["pass"], step["guarantee"], done(step)) for step in figures["passes"]]
    return [
        table(f"{figures['name']}: {', '.join(figures['targets'])} in {figures['out']}", ("what", "figure"), rows),
        table("passes", ("pass", "guarantee", "what it did"), passes),
    ]


def done(step: Mapping[str, Any]) -> str:
    """What a pass did, in words, from its figures: nothing for those that have none to tell."""
    told = []
    for key, what in (
        ("distinct_conditions", "conditions"),
        ("comparator_bits", "comparator bits"),
        ("input_bits", "input bits"),
    ):
        pair = step.get(key)
        if isinstance(pair, list):
            told.append(f"{pair[0]:,} to {pair[1]:,} {what}")
    if step.get("missed_intervals"):
        told.append(f"{step['missed_intervals']:,} exceptions")
    if step.get("held_out"):
        before, after = (share(value) for value in step["held_out"]["accuracy"])
        told.append(f"accuracy {before} to {after} on {step['held_out']['rows']:,} held-out rows")
    return ", ".join(told)


def check_tables(result: CheckResult, regression: bool) -> list[Table]:
    """What `forestc check` prints."""
    counts = ", ".join(f"{count:,} {origin}" for origin, count in result.vectors.items())
    rows = [
        (
            name,
            f"{engine.vectors:,}",
            "not run" if engine.differences is None else f"{engine.differences:,}",
            f"{engine.seconds:.1f}",
            engine.tool or engine.why,
        )
        for name, engine in result.engines.items()
    ]
    quality = "R squared" if regression else "accuracy"
    agreed = result.agreement
    summary = [
        (f"{quality}, model", share(agreed.model)),
        (f"{quality}, compiled", share(agreed.compiled)),
        ("agreement with the model", share(agreed.agreement)),
        ("rows", f"{agreed.rows:,}"),
    ]
    if agreed.largest_error is not None:
        summary.append(("largest error of a score", f"{agreed.largest_error:.4g}"))
    return [
        table(
            f"against the quantised forest, bit for bit ({counts})",
            ("engine", "vectors", "differences", "seconds", "tool"),
            rows,
        ),
        table("the quantised forest against the model, on the rows", ("what", "figure"), summary),
    ]
