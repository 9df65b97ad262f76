"""Defines the blocks of a page. The template turns each block into HTML and escapes its texts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

from markupsafe import Markup

from forestc.report.tables import filled, visible

_WIDTH = re.compile(r'width="([\d.]+)"')
_BAR = frozenset("\N{FULL BLOCK}\N{LIGHT SHADE}")


@dataclass(frozen=True)
class Cell:
    text: str
    number: float | None = None  # value by which the cell is sorted
    link: str = ""  # relative address
    tone: str = ""  # good, bad or ""
    drawing: Markup = Markup("")  # noqa: RUF009  (Markup is a str)
    code: bool = False  # True for a command with a button that copies it


@dataclass(frozen=True)
class Table:
    kind: ClassVar[str] = "table"
    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    wide: bool = False  # True for a table that readers can filter and sort
    foot: str = ""  # sentence below the table
    folded: bool = False  # True to show the table only on a click
    keys: tuple[str, ...] = ()  # names of the columns in filters such as lut < 500

    @property
    def numeric(self) -> tuple[bool, ...]:
        """For each column, True if one of its cells has a number."""
        columns = list(zip(*self.rows, strict=True)) or [()] * len(self.head)
        return tuple(any(c.number is not None for c in column) for column in columns)


@dataclass(frozen=True)
class Drawing:
    """A drawing, such as a tree."""

    kind: ClassVar[str] = "drawing"
    title: str
    alt: str  # describes the drawing for readers who don't see it
    svg: Markup
    foot: str = ""
    key: tuple[tuple[str, str], ...] = ()  # legend: (class of the color, meaning)

    @property
    def pixels(self) -> int:
        width = _WIDTH.search(self.svg)
        return int(float(width[1])) if width else 0


@dataclass(frozen=True)
class Chart(Drawing):
    """A drawing that is also a chart of Vega-Lite."""

    kind: ClassVar[str] = "chart"
    spec: Mapping[str, Any] = field(default_factory=dict)  # specification for Vega-Embed


@dataclass(frozen=True)
class Brush(Drawing):
    """A drawing of parallel axes. Readers mark ranges on them to select trials of the page's table."""

    kind: ClassVar[str] = "brush"


@dataclass(frozen=True)
class Paragraph:
    kind: ClassVar[str] = "text"
    text: str
    tone: str = ""  # "answer", "beside" (an alternative to it), "note", or ""


@dataclass(frozen=True)
class Code:
    kind: ClassVar[str] = "code"
    text: str
    title: str = ""


@dataclass(frozen=True)
class KeyFigures:
    """The most important figures."""

    kind: ClassVar[str] = "figures"
    items: tuple[tuple[str, str, str], ...]  # (name, figure, remark)


@dataclass(frozen=True)
class Form:
    """A field for a row, with the script that answers it. A page has one at most."""

    kind: ClassVar[str] = "form"
    columns: str  # their names
    script: str


Block: TypeAlias = Table | Drawing | Paragraph | Code | KeyFigures | Form


@dataclass(frozen=True)
class Section:
    name: str  # address within the page
    title: str
    blocks: tuple[Block, ...]  # if empty, the section is left out


@dataclass(frozen=True)
class Page:
    kind: str  # word above the title
    title: str
    lead: str  # paragraph below the title
    sections: tuple[Section, ...] = ()
    back: tuple[str, str] | None = None  # address and title of the page that links to it


def cell(value: object) -> Cell:
    """Returns a cell. Numbers get separators for thousands and are sorted as numbers; None is a dash."""
    if isinstance(value, Cell):
        return value
    if value is None:
        return Cell("-")
    if isinstance(value, bool):
        return Cell("yes" if value else "no")
    if isinstance(value, int | float):
        return Cell(f"{value:,}" if isinstance(value, int) else f"{value:,.6g}", float(value))
    return Cell(visible(str(value)))


def table(
    title: str,
    head: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    wide: bool = False,
    foot: str = "",
    folded: bool = False,
    keys: Sequence[str] = (),
) -> Table:
    """Returns a table of values. Columns with only empty cells and dashes are left out."""
    cells = [[cell(value) for value in row] for row in rows]
    kept, _ = filled([f"{index}" for index in range(len(head))], [[_filled(c) for c in row] for row in cells])
    indices = [int(index) for index in kept]
    chosen = tuple(tuple(row[index] for index in indices) for row in cells)
    names = tuple(keys[index] for index in indices) if keys else ()
    return Table(title, tuple(head[index] for index in indices), chosen, wide, foot, folded, names)


def percent(count: float, whole: float) -> Cell:
    return Cell(f"{100 * count / whole:.1f} %", float(count / whole)) if whole else Cell("-")


def _filled(value: Cell) -> str:
    return value.text or ("drawn" if value.drawing else "")


def number(text: str) -> Cell:
    """Returns a cell with a text, sorted as a number if it begins with one."""
    try:
        return Cell(visible(text), float(text.split(" ")[0].replace(",", "")))
    except (ValueError, IndexError):
        return Cell(visible(text))


def texts(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Returns a table of texts. Rows with a bar of block characters are left out."""
    cells = [[number(text) for text in row] for row in rows if not any(_BAR & set(text) for text in row)]
    return table(title[:1].upper() + title[1:], head, cells)
