"""Writes report.md, a readable account of a compilation, for the compiled folder."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from forestc.compilation.record import leaves_note
from forestc.forest.ir import Forest
from forestc.forest.summary import counted
from forestc.manifest.content import content_bytes
from forestc.passes.extract_rules.rules_text import is_rules, rules_text
from forestc.passes.pipeline import Step
from forestc.report.tables import (
    estimate_tables,
    filled,
    firmware_tables,
    level_tables,
    pass_tables,
    quality_rows,
    synth_tables,
    visible,
)
from forestc.rows.accuracy import GENERATED, MEASURED_ON

LONGEST = 80  # characters of a name from a model file; a longer name is cut
# Characters of markup, and of links in plain text: not `_` within a word, nor a colon at its end.
_SPECIAL = re.compile(r"[\\`*\[\]<>&|~$@#]|:(?=\S)|(?<![^\W_])_|_(?![^\W_])")
_WEB = re.compile(r"(www)\.", re.IGNORECASE)


def compile_report(
    source: Forest,
    forest: Forest,
    steps: Sequence[Step],
    figures: Mapping[str, Any],
    made: Mapping[str, Any],
    files: Mapping[str, str | bytes],
) -> str:
    """Returns the text of report.md. It holds no times, so equal compilations give equal texts.
    made: how the folder was made.
    files: contents of the other files by path."""
    sizes = [
        ("trees", f"{len(forest.trees)}"),
        ("nodes, before and after the passes", f"{source.n_nodes}, {forest.n_nodes}"),
        ("conditions of all nodes", f"{figures['conditions']}"),
        ("comparators: distinct conditions", f"{figures['distinct_conditions']}"),
        ("comparator bits", f"{figures['comparator_bits']}"),
    ]
    if figures["latency_cycles"] is not None:
        sizes.append(("latency", ", ".join([counted(figures["latency_cycles"], "cycle"), *figures["clocking"]])))
    promises = [(_code(step.name), step.promise, _meaning(step), f"{step.inputs_checked}") for step in steps]

    def section(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
        cells = [[_escaped(cell) for cell in row] for row in rows]
        return [f"## {_escaped(title)}", "", *_table(head, cells), ""]

    later = [
        *level_tables(figures["level"], section),
        *pass_tables(figures["passes"], section),
        *estimate_tables(figures.get("estimate", []), section),
        *firmware_tables(figures.get("firmware"), section),
        *(synth_tables("synthesis", made["synthesis"], section) if "synthesis" in made else []),
    ]
    ports = [
        (_cell(feature.name), f"`{feature.number}`", f"{feature.column}", "yes" if feature.missing else "no")
        for feature in forest.features
    ]
    bytes_of = [(_code(path), f"{len(content_bytes(content))}") for path, content in sorted(files.items())]
    return "\n".join(
        [
            f"# {_cell(forest.name)}",
            "",
            *_accuracy(made["accuracy"]),
            "",
            *_table(("what", "figure"), sizes),
            "",
            "Everything written equals the quantized forest (`quantized.forest`) on every input word, bit for bit:",
            "`forestc check` shows it. How the quantized forest relates to the model is what the passes promise:",
            "",
            *_table(("pass", "guarantee", "meaning", "inputs checked"), promises),
            "",
            *_rules(forest),
            *(line for lines in later for line in lines),
            *_notes(figures["notes"]),
            "## features",
            "",
            *_table(("feature", "words", "column of the rows", "may be missing"), ports),
            "",
            *_made(made),
            "## files",
            "",
            *_table(("file", "bytes"), bytes_of),
            "",
        ]
    )


def _notes(notes: Sequence[str]) -> list[str]:
    return ["## notes", "", *(line for note in notes for line in (_escaped(note), ""))] if notes else []


def _rules(forest: Forest) -> list[str]:
    """Returns lines with the rules that extract-rules found; an empty list for other forests."""
    text = rules_text(forest) if is_rules(forest) else ""
    return ["## rules", "", *(f"    {visible(line)}" for line in text.splitlines()), ""] if text else []


def _meaning(step: Step) -> str:
    """Returns the meaning of a step's promise, or its bound on scores."""
    if "score_bound" not in step.report:
        return _escaped(step.meaning)
    return _escaped(leaves_note(step)) + (", in the ranges" if "ranges" in step.promise else "")


def _accuracy(figures: Mapping[str, Any]) -> list[str]:
    on_given, held_out = figures["given"], figures["held_out"]
    both = [on_given] if held_out is None else [on_given, held_out]
    rows = [
        ("rows", *(f"{on['rows']}" for on in both)),
        *quality_rows(figures["measure"], both, " of the model", " of the compiled forest"),
    ]
    generated, measured_on = figures["measured_on"] == GENERATED, MEASURED_ON[figures["measured_on"]]
    heads = [f"on the {'generated' if generated else 'given'} rows", *(["on the rows held out"] if held_out else [])]
    note = [
        f"The given rows: measured on {measured_on}. On other rows accuracy and agreement may be lower:",
        "`forestc check` measures them on rows that neither the model nor the passes have seen.",
    ]
    if generated:
        note = [f"Measured on {measured_on}.", "`forestc check` measures accuracy and agreement on rows of yours."]
    return [*_table(("what", *heads), rows), "", *note]


def _made(made: Mapping[str, Any]) -> list[str]:
    command = ["", f"    {visible(made['command'])}", ""] if made["command"] else [""]
    level = made["level"]
    named = [("level", _code(f"{level['level']}: {level['passes']}"))] if level else []
    options = [(_code(key), _option(value)) for key, value in made["options"].items() if value not in (None, False, [])]
    sources = [
        (what, _cell(source.get("file") or source.get("class") or _of_array(source)), source.get("sha256", ""))
        for what, source in (
            ("model", made["model"]),
            ("ranges" if made["rows"].get("ranges") else "rows", made["rows"]),
            ("rows held out", made["held_out"]),
        )
        if source is not None
    ]
    return [
        "## how it was made",
        *command,
        *_table(("option", "value"), [*named, *options]),
        "",
        *_table(("input", "what", "SHA-256"), sources),
        "",
        *_table(("library", "version"), [(_cell(name), _cell(version)) for name, version in made["versions"].items()]),
        "",
    ]


def _of_array(source: Mapping[str, Any]) -> str:
    if "ranges" in source:
        return f"ranges of {len(source['ranges'])} features" if source["ranges"] else "none: the model's own thresholds"
    if "share" in source:
        return f"{source['share']:g} of the given rows, set aside"
    return f"array of shape ({', '.join(map(str, source['shape']))})"


def _option(value: object) -> str:
    return _code(", ".join(map(str, value)) if isinstance(value, list) else "yes" if value is True else str(value))


def _cell(text: str) -> str:
    """Returns a name from a model file, escaped and cut to `LONGEST` characters."""
    return _escaped(text if len(text) <= LONGEST else text[: LONGEST - 1] + "\N{HORIZONTAL ELLIPSIS}")


def _escaped(text: str) -> str:
    """Returns the text on one line, escaped so that Markdown shows it literally."""
    return _WEB.sub(r"\1\\.", _SPECIAL.sub(r"\\\g<0>", visible(text)))


def _code(text: str) -> str:
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    pad = " " if text[:1] in ("`", " ", "") or text[-1:] in ("`", " ") else ""
    return fence + pad + visible(text).replace("|", "\\|") + pad + fence


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    head, rows = filled(head, rows)
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]
