"""Fits tables to the width of the terminal without breaking words of up to `LONGEST` characters."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

BORDERS = 3  # characters that a column takes for its border; the table takes one more
_NUMBERS = re.compile(r"[-+\N{PLUS-MINUS SIGN}]?\d")
LONGEST = 30  # characters of a word; longer words, such as paths, may be broken
ALL = 10_000  # characters of a width in which every table has all its columns


def as_text(parts: Iterable[Any], width: int = 80) -> str:
    """Returns tables and lines as plain text of a width in characters."""
    console = Console(file=io.StringIO(), width=width, no_color=True, force_terminal=False)
    for part in parts:
        console.print(fitted(part, width) if isinstance(part, Table) else part)
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return text.rstrip("\n")


def print_parts(parts: Iterable[Any], *, wide: bool) -> None:
    """Prints tables and lines on the terminal. wide: True to print all columns."""
    console = Console(width=ALL if wide else None)
    for part in parts:
        console.print(fitted(part, console.width) if isinstance(part, Table) else part)


def fitted(table: Table, width: int) -> Table:
    """Fits the table to a width in characters. Last columns without room are dropped; a caption names them."""
    cells = [[_plain(cell) for cell in (column.header, *column.cells)] for column in table.columns]
    least = [min(LONGEST, max(map(_longest_word, column))) for column in cells]
    most = [max(map(len, column)) for column in cells]
    count = len(cells)
    while count > 1 and sum(least[:count]) + BORDERS * count + 1 > width:
        count -= 1
    left_out = [column[0] for column in cells[count:]]
    table.columns = table.columns[:count]
    room = width - BORDERS * count - 1
    for column, size in zip(table.columns, _shared(least[:count], most[:count], room), strict=True):
        column.width = size
    if left_out:
        table.caption = Text(f"without {', '.join(left_out)}: --wide shows all", style="dim")
        table.caption_justify = "left"
    return table


def _shared(least: Sequence[int], most: Sequence[int], room: int) -> list[int]:
    """Returns column widths between `least` and `most`. If possible, they add up to `room` characters."""
    widths = list(least)
    for _ in range(max(0, min(room, sum(most)) - sum(least))):
        neediest = max(range(len(widths)), key=lambda index: most[index] / max(1, widths[index]))
        widths[neediest] += 1
    return widths


def _longest_word(text: str) -> int:
    """Returns the longest word's length; a short cell that begins with a number counts as one word."""
    return len(text) if _NUMBERS.match(text) and len(text) <= LONGEST else max(map(len, text.split()), default=1)


def _plain(cell: object) -> str:
    return cell.plain if isinstance(cell, Text) else str(cell)
