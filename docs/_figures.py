"""Fills measured figures into pages: each figure, in tables and in sentences, is named by a result in docs/benchmarks.

    <!-- table: NAME.PART[KEY]: a | b -->    a table up to <!-- end of table -->; without KEY of all rows, without a | b
                                             of all columns
    <!-- picture: NAME -->    a picture up to <!-- end of picture -->, drawn by docs/_pictures.py
    <!-- figure: NAME.PART[KEY].COLUMN -->13<!-- end -->    one figure; :.1f or another format may follow the column

A key is the value of a row's first column, or of its first columns with `; ` between. Any other number with one of
UNITS needs a mark of its kind: `2 s<!-- limit -->`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from _pictures import linked

DOCS = Path(__file__).parent
KINDS = {
    "limit": "a bound, or the value of an option",
    "clock": "a clock that is wanted",
    "example": "printed by an example, or made up to explain",
    "published": "of another's paper or page",
}
UNITS = r"LUTs?|flip-flops|k?B/s|s|ms|min|minutes?|seconds?|hours?|[kMG]B|bytes?|instructions?|MHz|points?|times|%"

_TABLE = re.compile(
    r"(<!-- table: ([\w.]+)(?:\[([^\]]*)\])?(?:: ([^>]*))? -->\n)(.*?)(<!-- end of table -->)", re.DOTALL
)
_PICTURE = re.compile(r"(<!-- picture: (\w+) -->\n)(.*?)(<!-- end of picture -->)", re.DOTALL)
_FIGURE = re.compile(r"(<!-- figure: ([^>]*?) -->)(.*?)(<!-- end -->)", re.DOTALL)
_STEP = re.compile(r"\.([^.\[\]]+)|\[([^\]]*)\]")
_FORMAT = re.compile(r":([.,]?\d*[efg])$")

_NUMBER = re.compile(rf"(?<![\w.,/-])\d[\d,.]*(?:[ -](?:{UNITS})(?![\w/])| ?%)")
_MARK = re.compile(r"(\s?[\w%-]+)?<!-- (\w+) -->")
_CODE = re.compile(r"^(```|~~~).*?^\1|^(?: {4}|\t).*?$|(`+).+?\2", re.DOTALL | re.MULTILINE)
_HEAD = re.compile(r"^\|(.*)\|\n\|[ :|-]+\|\n((?:\|.*\|\n?)*)", re.MULTILINE)
_MADE = "<!-- Made by "


def results(folder: Path = DOCS / "benchmarks") -> dict[str, Mapping[str, Any]]:
    """Reads the results of a folder, by name."""
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))}


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Makes a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(_cell(text) for text in line)} |" for line in lines) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def plain(text: str) -> str:
    """Escapes characters of Markdown in a text, such as <, { and *, except within backticks."""
    parts = text.split("`")
    return "`".join(part if at % 2 else re.sub(r"([<{*_\[\]])", r"\\\1", part) for at, part in enumerate(parts))


def filled(page: str, by_name: Mapping[str, Mapping[str, Any]], folder: str = "") -> str:
    """Returns a page with its tables, pictures and figures filled in from the results. Raises KeyError if no result has
    one of them, ValueError for a table or picture without its end. folder: leads from the page to docs/benchmarks,
    where the pictures are."""
    for kind in ("table", "picture"):
        if page.count(f"<!-- {kind}: ") != page.count(f"<!-- end of {kind} -->"):
            raise ValueError(f"a {kind} lacks <!-- end of {kind} -->")

    def rows(marker: re.Match[str]) -> str:
        name, _, part = marker[2].partition(".")
        columns = [column.strip() for column in (marker[4] or "").split("|") if column.strip()]
        if not part:
            text = _whole(by_name[name])
        else:
            chosen = by_name[name][part]
            text = _rows_table(_of_key(chosen, marker[3]) if marker[3] else chosen, columns)
        return f"{marker[1]}\n{text}\n{marker[6]}"

    page = _TABLE.sub(rows, page)
    page = _PICTURE.sub(lambda marker: f"{marker[1]}\n{linked(marker[2], by_name, folder)}\n\n{marker[4]}", page)
    return _FIGURE.sub(lambda marker: f"{marker[1]}{figure(marker[2], by_name)}{marker[4]}", page)


def figure(path: str, by_name: Mapping[str, Mapping[str, Any]]) -> str:
    """Returns the text of one figure. path: NAME.PART[KEY].COLUMN, maybe with a format."""
    form = _FORMAT.search(path)
    name, steps = re.match(r"\w+", path), path[: form.start()] if form else path
    if name is None:
        raise KeyError(f"{path}: NAME.PART[KEY].COLUMN is wanted")
    value: Any = by_name[name[0]]
    for step in _STEP.finditer(steps, name.end()):
        if step[2] is not None:
            rows = _of_key(value, step[2])
            if len(rows) != 1:
                raise KeyError(f"{path}: {len(rows)} rows have the key {step[2]}")
            value = rows[0]
        else:
            names = {key.replace("_", " "): key for key in value}
            value = value[names[step[1].replace("_", " ")]]
    return format(value, form[1]) if form else shown(value)


def _of_key(rows: Sequence[Mapping[str, Any]], key: str) -> list[Mapping[str, Any]]:
    parts = key.split("; ")
    found = [row for row in rows if [str(value) for value in list(row.values())[: len(parts)]] == parts]
    if not found:
        raise KeyError(f"no row has the key {key}")
    return found


def _whole(result: Mapping[str, Any]) -> str:
    origin = f"Measured {span(result['rows'])} with `{result['command']}`."
    parts = (f"**{plain(result['title'])}**", _rows_table(result["rows"]), origin)
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def span(rows: Iterable[Mapping[str, Any]]) -> str:
    """Returns the dates on which rows were measured, and the commits."""
    origins = [row["origin"] for row in rows if "commit" in row["origin"]]
    origins = sorted({(origin["date"], origin["commit"][:8]) for origin in origins})
    dates, commits = (list(dict.fromkeys(names)) for names in zip(*origins, strict=True))
    return f"{'from ' * (len(dates) > 1)}{' to '.join(dict.fromkeys((dates[0], dates[-1])))} at {', '.join(commits)}"


def _rows_table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> str:
    """Makes a table with the given columns, or else with one for each key of the rows."""
    keys = list(dict.fromkeys(key for row in rows for key in row if key != "origin"))
    by_name = {key.replace("_", " "): key for key in keys}
    names = list(columns or by_name)
    return table(names, [[shown(row.get(by_name[name])) for name in names] for row in rows])


def shown(value: Any) -> str:
    """Formats a value of a result as tables show it."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: ""}[value]
    if isinstance(value, float):
        return f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def unsourced(page: str) -> Iterator[str]:
    """Yields the numbers with a unit, outside of code, that have neither a result nor a mark, also in hand-written
    tables."""
    if _MADE in page:  # The page is made from the code.
        return
    text = _CODE.sub(lambda code: "`" if code[2] else "", _PICTURE.sub("", _TABLE.sub("", page)))
    text = _FIGURE.sub("<figure>", text)
    marked = {kind: re.compile(rf"\s*<!-- {kind} -->") for kind in KINDS}
    for number in _NUMBER.finditer(text):
        if not any(mark.match(text, number.end()) for mark in marked.values()):
            yield number[0]
    for columns in _HEAD.finditer(text):
        heads = [head.strip() for head in columns[1].split("|")]
        for line in columns[2].splitlines():
            for head, cell in zip(heads, line.strip("|").split("|"), strict=False):
                if re.search(rf"(?<!\w)(?:{UNITS})(?!\w)", head) and re.fullmatch(r"\s*\d[\d,.]*\s*", cell):
                    yield f"{cell.strip()} {head}"
