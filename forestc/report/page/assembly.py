"""A page as HTML: its blocks filled into the template, with the programs, styles and data of its charts."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from markupsafe import Markup

from forestc.design import umask
from forestc.errors import ForestcError
from forestc.report.page.blocks import Chart, Page
from forestc.report.page.charts import converter
from forestc.version import __version__
from hdl_templates import page_file, render_page


def html(page: Page) -> str:
    """The page as one file of HTML. It loads nothing, and its policy forbids browsers to load anything or to run any
    script but its own two. Raises MissingExtraError."""
    sections = [section for section in page.sections if section.blocks]
    charts = [block for section in sections for block in section.blocks if isinstance(block, Chart)]
    scripts = [_runtime(), page_file("page.js")] if charts else [page_file("page.js")]
    return render_page(
        "page.html.j2",
        page=page,
        sections=sections,
        style=Markup(page_file("colours.css") + page_file("style.css")),
        scripts=[Markup(script) for script in scripts],
        policy=" ".join(_source(script) for script in scripts),
        specs=_json([chart.spec for chart in charts]),
        version=__version__,
    )


@cache
def _runtime() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script."""
    text: str = converter().javascript_bundle()
    if "</script" in text.lower() or "<!--" in text:
        text = text.replace("</script", "<\\/script").replace("<!--", "<\\!--")
    return text


def _source(script: str) -> str:
    """The script's hash, as a Content Security Policy names it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _json(value: Any) -> Markup:
    """JSON that can't end the element it stands in."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def check_writable(path: Path) -> None:
    """Raises ForestcError for a path that `write` could not write; called before the work starts."""
    if path.is_dir():
        raise ForestcError("is a folder", where=str(path), do="give a file, as in -o report.html")
    folder = path.absolute().parent
    if not folder.is_dir():
        raise ForestcError("there is no such folder", where=str(folder), do="make it, or give another file")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ForestcError("can't be written", where=str(path), do="choose a folder you may write to")


def made_folder(path: Path) -> None:
    """Makes a folder if there is none. Raises ForestcError."""
    try:
        path.mkdir(exist_ok=True)
    except OSError as error:
        raise ForestcError(f"can't be made ({error.strerror})", where=str(path), do="give another file") from None


def write(path: Path, text: str) -> None:
    """Writes the file, whole or not at all. Raises ForestcError."""
    staged = None
    try:
        handle, staged = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.absolute().parent)
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        Path(staged).chmod(0o666 & ~umask())
        Path(staged).replace(path)
        staged = None
    except OSError as error:
        raise ForestcError(f"can't be written ({error.strerror})", where=str(path)) from None
    finally:
        if staged is not None:
            Path(staged).unlink(missing_ok=True)
