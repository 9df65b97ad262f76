"""Formats counts and other figures for terminals, pages and notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any


def counted(count: int, noun: str) -> str:
    """Returns a count with its noun: 1 cycle, 2,000 cycles."""
    return f"{count:,} {noun}" + ("" if count == 1 else "es" if noun.endswith("s") else "s")


def shown(value: object, most: int = 12) -> str:
    """Returns a figure as text. most: show at most this many entries of a list."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "none"
    if isinstance(value, Mapping):
        return ", ".join(f"{str(key).replace('_', ' ')}: {shown(inner)}" for key, inner in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value[:most])) + (f" and {len(value) - most} more" if len(value) > most else "")
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}" if isinstance(value, float) else str(value)


def described(figures: Mapping[str, Any]) -> dict[str, object]:
    """Returns the figures of a forest (see `Forest.figures`) in words of those who train models."""
    trees = f"{figures['trees']:,} with {counted(figures['nodes'], 'node')}, {figures['depth']:,} deep"
    steps = ", ".join(figures[key] for key in ("aggregate", "link", "decision") if figures[key] not in ("identity", ""))
    answers = f"classes {shown(figures['classes'])}" if figures["classes"] else counted(figures["outputs"], "value")
    taken = [name for name, key in (("missing values", "missing"), ("categories", "categorical")) if figures[key]]
    return {
        "source": figures["source"],
        "trees": trees + (f"; {figures['parts']:,} models, {figures['combine']}" if figures["parts"] else ""),
        "comparators": counted(figures["distinct_conditions"], "distinct condition"),
        "features": f"{figures['features']:,}, {figures['features_used']:,} of them read"
        + "".join(f"; {name} accepted" for name in taken),
        "answers": f"{answers} ({steps})",
        "numbers": "integers" if figures["quantized"] else "floating point",
        **({"notes": figures["notes"]} if figures["notes"] else {}),
    }


def html_table(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns an HTML table. All texts are escaped, as they come from model files."""
    heads = "".join(f'<th scope="col" style="text-align:left">{escape(name)}</th>' for name in head)
    cells = "".join(
        "<tr>" + "".join(f'<td style="text-align:left">{escape(cell)}</td>' for cell in row) + "</tr>" for row in rows
    )
    return f"<table><caption>{escape(title)}</caption><thead><tr>{heads}</tr></thead><tbody>{cells}</tbody></table>"


def html_figures(title: str, figures: Mapping[str, object]) -> str:
    """Returns an HTML table of figures, with the columns "what" and "figure"."""
    return html_table(title, ("what", "figure"), ((key.replace("_", " "), shown(v)) for key, v in figures.items()))
