"""What the commands share: arguments and options by name, progress on the terminal, tables or JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

Model = Annotated[
    Path, typer.Argument(metavar="MODEL", help="a model file: .json, .ubj, .txt, .onnx, .skops, .tl, .forest, ...")
]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="a folder that forestc compile wrote")]
RowsFile = Annotated[Path, typer.Option("--rows", metavar="FILE", help="CSV (gzip too), Parquet, Arrow or NumPy")]
MaybeRows = Annotated[
    Path | None, typer.Option("--rows", metavar="FILE", help="CSV (gzip too), Parquet, Arrow or NumPy")
]
Label = Annotated[
    str | None,
    typer.Option("--label", metavar="COL", help="column of the true labels; several prediction targets: y1,y2"),
]
Json = Annotated[
    bool, typer.Option("--json", help="print one JSON object and nothing else; errors as JSON on standard error")
]
Trust = Annotated[bool, typer.Option("--trust-pickle", help="allow opening pickles, which runs code in them")]


@contextmanager
def progress(quiet: bool) -> Iterator[Callable[[str], None]]:
    """Yields a function that shows progress; it does nothing if quiet or if standard error is no terminal."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda _: None
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(20), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda stage: bar.update(task, description=stage)


def show(json_wanted: bool, figures: Any, tables: Callable[[], list[Any]]) -> None:
    if json_wanted:
        sys.stdout.write(json.dumps(figures) + "\n")
        return
    console = Console()
    for part in tables():
        console.print(part)
