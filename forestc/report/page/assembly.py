"""Fills a page's blocks into the HTML template, with scripts, styles and data, and writes the page."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

from markupsafe import Markup

from forestc.errors import ForestcError
from forestc.report.page.blocks import Chart, Form, Page
from forestc.report.page.charts import converter
from forestc.system.version import __version__
from forestc.system.writing import replacing, writing
from hdl_templates import page_file, render_page

_PAGE = re.compile(r"\d{4,9}\.html")  # matches the file names of designs' pages


def html(page: Page) -> str:
    """Returns the page as HTML that loads no other file. Its security policy allows only its own scripts. Raises
    MissingExtraError for charts without vl-convert."""
    sections = [section for section in page.sections if section.blocks]
    charts = [block for section in sections for block in section.blocks if isinstance(block, Chart)]
    scripts = [_runtime(), page_file("page.js")] if charts else [page_file("page.js")]
    scripts += [block.script for section in sections for block in section.blocks if isinstance(block, Form)]
    return render_page(
        "page.html.j2",
        page=page,
        sections=sections,
        style=Markup(page_file("colors.css") + page_file("style.css")),
        scripts=[Markup(script) for script in scripts],
        policy=" ".join(_source(script) for script in scripts),
        specs=_json([chart.spec for chart in charts]),
        version=__version__,
    )


@cache
def _runtime() -> str:
    text: str = converter().javascript_bundle()
    if "</script" in text.lower() or "<!--" in text:
        text = text.replace("</script", "<\\/script").replace("<!--", "<\\!--")
    return text


def _source(script: str) -> str:
    """Returns the hash of a script in the form of a Content Security Policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _json(value: object) -> Markup:
    """Returns JSON that can't end the HTML element around it."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def check_writable(path: Path, beside: Path | None = None) -> None:
    """Raises ForestcError if `write` could not write the page or the folder `beside`."""
    folder = path.absolute().parent
    with writing(path, "choose a file that you may write"):
        if path.is_dir():
            raise ForestcError("is a folder", where=str(path), do="give a file, as in -o report.html")
        if not folder.is_dir():
            raise ForestcError("there is no such folder", where=str(folder), do="make it, or give another file")
        Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=folder)).rmdir()
        taken = beside is not None and (beside.is_symlink() or beside.exists())
        ours = beside is not None and beside.is_dir() and all(_PAGE.fullmatch(file.name) for file in beside.iterdir())
    if taken and not ours:
        what = "is in the way: the pages of designs go there"
        raise ForestcError(what, where=str(beside), do="move it, or give -o another name")


def write(path: Path, text: str, beside: Path | None = None, pages: Mapping[str, str] = MappingProxyType({})) -> None:
    """Writes a page, and further pages into the folder `beside`, in one step. pages: texts by file name. Raises
    ForestcError."""
    with writing(path), replacing(*([] if beside is None else [beside]), path) as (*folder, main):
        for name, more in pages.items():
            folder[0].mkdir(exist_ok=True)
            (folder[0] / name).write_text(more, encoding="utf-8", newline="\n")
        main.write_text(text, encoding="utf-8", newline="\n")
