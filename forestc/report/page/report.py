"""The page of a folder: of a compiled design, or of a study and of the designs on its front."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forestc.design import MANIFEST, Design, open_design
from forestc.errors import ForestcError, OptionError
from forestc.report.page.assembly import check_writable, html, write
from forestc.report.page.charts import altair, converter
from forestc.report.page.design_page import Given, design_page
from forestc.report.page.measured import measured
from forestc.studies import STUDY


@dataclass(frozen=True)
class Asked:
    """The options of `forestc report`. rows, label: of a design, to measure on. place: draw its placed cells; native:
    with tools on the PATH rather than those of PyPI. peers: a file of other designs' figures, beside a study's."""

    rows: Any = None
    label: Any = None
    peers: Path | None = None
    place: bool = False
    native: bool = False


def report(
    source: Path, out: Path, asked: Asked = Asked(), progress: Callable[[str], None] = lambda _: None  # noqa: B008
) -> dict[str, Any]:
    """Writes the page of a folder and returns the figures of `forestc report --json`. The page is written whole or not
    at all. Raises ForestcError."""
    check_writable(out)
    _ = altair(), converter()  # raises here if they are not installed
    if not source.is_dir():
        raise ForestcError("is not a folder", where=str(source), do="give a folder of forestc compile or explore")
    if (source / STUDY).is_file():
        raise NotImplementedError
    if not (source / MANIFEST).is_file():
        raise ForestcError(
            f"holds neither {MANIFEST} nor {STUDY}",
            where=str(source),
            do="give a folder that forestc compile or forestc explore wrote",
        )
    return _of_design(open_design(source), out, asked, progress)


def _of_design(design: Design, out: Path, asked: Asked, progress: Callable[[str], None]) -> dict[str, Any]:
    if asked.peers is not None:
        raise OptionError("--peers is for studies, and this is a design", do="remove --peers")
    if asked.label is not None and asked.rows is None:
        raise OptionError("--label needs --rows", do="add --rows FILE")
    found = None
    if asked.rows is not None:
        progress("rows")
        found = measured(design, asked.rows, asked.label, Path(asked.rows).name)
    text = html(design_page(design, Given(found, None, out.absolute().parent), progress))
    progress("writing")
    write(out, text)
    return {"out": str(out), "kind": "design", "bytes": len(text.encode()), "pages": []}
