"""report.md: what compile did, for people, beside what it wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from forestc.forest.ir import Forest
from forestc.netlist.ir import Netlist
from forestc.passes.pipeline import Step
from forestc.report.tables import estimate_tables, pass_tables

_PROMISES = {
    "exact": "same scores and decisions for every input",
    "exact-on-data": "no decision of the given rows changes, or what stands in brackets does not",
    "approximate": "a measured change",
}


def compile_report(
    source: Forest,
    forest: Forest,
    netlist: Netlist,
    steps: Sequence[Step],
    figures: Mapping[str, Any],
    files: Mapping[str, str],
) -> str:
    """Markdown tables. Deterministic: no times in it."""
    quality = "accuracy" if forest.decides else "R squared"
    before, after = figures["accuracy"]["model"], figures["accuracy"]["compiled"]
    told = source.provenance
    summary = [
        ("source", f"{told.source} {told.version}".strip()),
        ("rows measured on", f"{figures['rows']}"),
        (f"{quality} of the model", _share(before)),
        (f"{quality} of the compiled forest", _share(after)),
        ("agreement", _share(figures["agreement"])),
        ("trees", f"{len(forest.trees)}"),
        ("nodes, before and after the passes", f"{source.n_nodes}, {forest.n_nodes}"),
        ("conditions of all nodes", f"{figures['conditions']}"),
        ("comparators: distinct conditions", f"{figures['distinct_conditions']}"),
        ("comparator bits", f"{figures['comparator_bits']}"),
        ("latency", f"{netlist.latency} cycles"),
    ]
    promises = [(f"`{step.name}`", step.promise, _PROMISES[step.guarantee], f"{step.inputs_checked}") for step in steps]

    def made(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
        return [title, *_table(head, rows)]

    passes = [
        line
        for title, *lines in [
            *pass_tables(figures["passes"], made),
            *estimate_tables(figures.get("estimate", []), made),
        ]
        for line in (f"## {title}", "", *lines, "")
    ]
    ports = [
        (_cell(feature.name), f"`{feature.number}`", f"{feature.column}", "yes" if feature.missing else "no")
        for feature in forest.features
    ]
    sizes = [(f"`{path}`", f"{len(text.encode())}") for path, text in sorted(files.items())]
    return "\n".join(
        [
            f"# {_cell(forest.name)}",
            "",
            *_table(("what", "figure"), summary),
            "",
            "Everything written equals the quantised forest (`quantised.forest`) on every input word, bit for bit:",
            "`forestc check` shows it. How the quantised forest relates to the model is what the passes promise:",
            "",
            *_table(("pass", "guarantee", "meaning", "inputs checked"), promises),
            "",
            *passes,
            *_table(("feature", "words", "column of the rows", "may be missing"), ports),
            "",
            *_table(("file", "bytes"), sizes),
            "",
        ]
    )


def _share(value: float | None) -> str:
    return "not known: no labels" if value is None else f"{value:.4f}"


def _cell(text: str) -> str:
    safe = "".join(c if c.isprintable() and c not in "|<>&`*_[]\\" else " " for c in text)
    return safe[:80]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]
