"""What a page is made of, as values. The template turns each block into HTML and escapes every text in it."""

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
    """A cell of a table. number: what it is sorted by, if not by its text. link: a relative address. tone: good, bad or
    "". drawing: SVG that stands above the text."""

    text: str
    number: float | None = None
    link: str = ""
    tone: str = ""
    drawing: Markup = Markup("")  # noqa: RUF009  (Markup is a str)
    code: bool = False  # a command, which a button copies


@dataclass(frozen=True)
class PageTable:
    """A table. wide: with a field to filter by and heads to sort by. foot: a sentence below it. folded: shown on
    demand. keys: short names of columns, by which rows are filtered too, as in lut < 500."""

    kind: ClassVar[str] = "table"
    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    wide: bool = False
    foot: str = ""
    folded: bool = False
    keys: tuple[str, ...] = ()

    @property
    def numeric(self) -> tuple[bool, ...]:
        """For each column whether it holds numbers, which are set to the right."""
        columns = list(zip(*self.rows, strict=True)) or [()] * len(self.head)
        return tuple(any(c.number is not None for c in column) for column in columns)


@dataclass(frozen=True)
class Drawing:
    """A drawing: a tree, a placed design. alt: what it shows, for those who don't see it."""

    kind: ClassVar[str] = "drawing"
    title: str
    alt: str
    svg: Markup
    foot: str = ""
    key: tuple[tuple[str, str], ...] = ()  # legend: (class of the color, meaning)

    @property
    def pixels(self) -> int:
        """The width that it was drawn for."""
        width = _WIDTH.search(self.svg)
        return int(float(width[1])) if width else 0


@dataclass(frozen=True)
class Chart(Drawing):
    """A chart by Vega-Lite, drawn. spec: for Vega-Embed."""

    kind: ClassVar[str] = "chart"
    spec: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Brush(Drawing):
    """Lines over axes, parts of which readers mark: the table of trials then shows the lines through these alone."""

    kind: ClassVar[str] = "brush"


@dataclass(frozen=True)
class Paragraph:
    """A paragraph. tone: answer, beside (what stands beside an answer), note, or ""."""

    kind: ClassVar[str] = "text"
    text: str
    tone: str = ""


@dataclass(frozen=True)
class Code:
    """A command or another text that is to be copied as it is, which a button does."""

    kind: ClassVar[str] = "code"
    text: str
    title: str = ""


@dataclass(frozen=True)
class KeyFigures:
    """The few figures that matter most. items: (what, figure, remark)."""

    kind: ClassVar[str] = "figures"
    items: tuple[tuple[str, str, str], ...]


Block: TypeAlias = PageTable | Drawing | Paragraph | Code | KeyFigures


@dataclass(frozen=True)
class Section:
    """A part of a page. name: of its address within the page. blocks: none, and the section is left out."""

    name: str
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Page:
    """kind: what the page is about, a word above the title. back: address and title of the page that leads here."""

    kind: str
    title: str
    lead: str
    sections: tuple[Section, ...] = ()
    back: tuple[str, str] | None = None


def cell(value: object, text: str | None = None) -> Cell:
    """A cell of a value: numbers are written with thousands separated and sorted as numbers; None is a dash."""
    if isinstance(value, Cell):
        return value
    if value is None:
        return Cell("-")
    if isinstance(value, bool):
        return Cell("yes" if value else "no")
    if isinstance(value, int | float):
        shown = f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"
        return Cell(shown if text is None else text, float(value))
    return Cell(visible(str(value)) if text is None else text)


def table(
    title: str,
    head: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    wide: bool = False,
    foot: str = "",
    folded: bool = False,
    keys: Sequence[str] = (),
) -> PageTable:
    """A table of values. Columns that are empty or a dash in every row are left out."""
    cells = [[cell(value) for value in row] for row in rows]
    kept, _ = filled([f"{place}" for place in range(len(head))], [[_filled(c) for c in row] for row in cells])
    places = [int(place) for place in kept]
    chosen = tuple(tuple(row[place] for place in places) for row in cells)
    names = tuple(keys[place] for place in places) if keys else ()
    return PageTable(title, tuple(head[place] for place in places), chosen, wide, foot, folded, names)


def percent(count: float, whole: float) -> Cell:
    """A share in percent; a dash of nothing."""
    return Cell(f"{100 * count / whole:.1f} %", float(count / whole)) if whole else Cell("-")


def _filled(value: Cell) -> str:
    return value.text or ("drawn" if value.drawing else "")


def number(text: str) -> Cell:
    """A text of a table for the terminal as a cell: sorted as a number where it begins with one."""
    try:
        return Cell(visible(text), float(text.split(" ")[0].replace(",", "")))
    except (ValueError, IndexError):
        return Cell(visible(text))


def texts(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> PageTable:
    """The maker that `forestc.report.tables` takes: a table from title, heads and rows of text. Bars that were drawn of
    characters are left out."""
    cells = [[number(text) for text in row] for row in rows if not any(_BAR & set(text) for text in row)]
    return table(title[:1].upper() + title[1:], head, cells)
