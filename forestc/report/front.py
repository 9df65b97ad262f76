"""Makes the table of a study's front for the terminal."""

from __future__ import annotations

from typing import Any

from rich.table import Table
from rich.text import Text

from forestc.exploration.study import Study
from forestc.report.answer import answer, as_text
from forestc.report.tables import visible

LONGEST = 200  # characters of the reason for a failed trial


def front_tables(study: Study, figures: dict[str, Any]) -> list[Any]:
    """Returns a list: the front as a table, then lines with advice. figures: from `summary`."""
    shown = list(dict.fromkeys([*(goal.figure for goal in study.goals), "accuracy"]))
    beside = any(row["recommended"] and row["trial"] not in {trial.number for trial in study.front}
                 for row in figures["front"])  # fmt: skip
    table = Table(title=f"front of {figures['out']}{', and the recommended design' * beside}")
    for name in (
        "trial",
        *(_HEADS.get(name, name) if name != "accuracy" else study.measure for name in shown),
        "test",
        "from",
        "remark",
    ):
        table.add_column(name, justify="left" if name in ("remark", "from") else "right")
    for row in figures["front"]:
        cells = [_cell(row, name) for name in shown]
        same = row["equal_to"]
        remarks = (
            ["recommended"] * row["recommended"]
            + [f"equal to {same}"] * (same is not None)
            + ["does not fit"] * (row["fits"] is False)
        )
        remark = ", ".join(remarks)
        table.add_row(str(row["trial"]), *cells, _cell(row, "test_accuracy"), row["rung"] or "", remark)
    counts, advice = figures["trials"], answer(study)
    lines = [] if advice is None else [visible(as_text(words)) for words in (*advice.first, *advice.beside)]
    if any(row["equal_to"] is not None for row in figures["front"]):
        lines += [f"equal to N: its {study.measure} is within a standard error of that of trial N, which is smaller"]
    if any(row["fits"] is False for row in figures["front"]):
        lines += [f"does not fit: {figures['device']} has {study.room:,} LUTs"]
    first = visible(str(figures["first_failure"]))[:LONGEST]
    why = f" (the first: {first})" if counts["failed"] else ""
    lines += [
        f"{counts['complete']} trials, {counts['failed']} failed{why}; {study.measure} by {figures['validation']}"
    ]
    lines += [f"{name}: corrected to {line['factor']:.2f} x estimate^{line['slope']:.2f}, as {line['designs']} showed"
              for name, line in (figures["corrections"] or {}).items()]  # fmt: skip
    lines += [f"note: {note}" for note in figures["notes"] or ()]
    lines += _unfinished(figures)
    designs = any(trial.has_design for trial in study.trials)
    lines += [f"designs: {figures['out']}/trials/NNNN/design"] * designs
    lines += [f"charts: forestc report {figures['out']} -o study.html"]
    return [table, *map(Text, lines)]


def _unfinished(figures: dict[str, Any]) -> list[str]:
    """Returns lines on the unfinished parts of a study, and on how to finish them."""
    lacks = figures["unfinished"]
    if not lacks:
        return []
    parts = {
        "untried": "trials not tried",
        "begun": "trials not ended",
        "designs": "designs of the front not compiled and checked",
    }
    lines = ["ended early; " + ", ".join(f"{what}: {lacks[name]}" for name, what in parts.items() if lacks[name])]
    whole, front = figures["finish"]
    if lacks["untried"]:
        return [*lines, f"to go on with the search: {whole}", f"to finish what was tried: {front}"]
    return [*lines, f"to finish it: {whole}"]


_HEADS = {"latency_cycles": "cycles", "fmax_mhz": "MHz", "flash": "flash bytes", "ram": "RAM bytes", "lut": "LUTs"}


def _cell(row: dict[str, Any], name: str) -> str:
    value = row.get(name)
    if value is None:
        return "-"
    error = row.get(f"{name}_se")
    return f"{value:.4f} ±{error:.4f}" if error is not None else f"{value:,.0f}"
