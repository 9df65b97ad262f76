"""The command report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from forestc.cli_parts import Json, Label, progress, show


def report(
    source: Annotated[
        Path, typer.Argument(metavar="DIR|STUDY", help="a folder that forestc compile or forestc explore wrote")
    ],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="the page to write, such as report.html")],
    rows: Annotated[
        Path | None,
        typer.Option(
            "--rows",
            metavar="FILE",
            help="of a design: rows to measure accuracy on, and to draw histograms of; CSV, Parquet, Arrow or NumPy",
        ),
    ] = None,
    label: Label = None,
    peers: Annotated[
        Path | None,
        typer.Option("--peers", metavar="FILE", help="of a study: others' figures, CSV or JSON: name,lut,accuracy"),
    ] = None,
    place: Annotated[
        bool, typer.Option("--place", help="of a design: place and route it, and draw where its cells lie")
    ] = False,
    native: Annotated[bool, typer.Option("--native", help="with --place: prefer tools on the PATH")] = False,
    json_: Json = False,
) -> None:
    """Writes a page to look at: one HTML file, of a design or of a study."""
    from forestc.report.page.report import Asked
    from forestc.report.page.report import report as write_report
    from forestc.report.tables import figures_table

    with progress(json_) as say:
        figures = write_report(source, out, Asked(rows, label, peers, place, native), say)
    show(json_, figures, lambda: [figures_table(f"page of {source}", figures)])
