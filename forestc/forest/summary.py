"""Formats counts and other figures for terminals, pages and notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape


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
    return f"{value:,}" if isinstance(value, int) else str(value)


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
