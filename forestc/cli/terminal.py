"""Shows progress on the terminal, and results as tables or JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

JSON = Annotated[
    bool, typer.Option("--json", help="print one JSON object and nothing else; errors as JSON on standard error")
]
WIDE = Annotated[bool, typer.Option("--wide", help="print tables with all columns, however narrow the terminal")]
VERBOSE = Annotated[bool, typer.Option("--verbose", help="print all tables and notes, and how long each stage took")]


@contextmanager
def progress(quiet: bool) -> Iterator[Callable[[str], None]]:
    """Yields a function that shows progress. It does nothing if quiet, or if standard error is no terminal."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda _: None
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(20), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda stage: bar.update(task, description=stage)


@contextmanager
def lines(quiet: bool) -> Iterator[Callable[[str], None]]:
    """Yields a function that shows progress. Without a terminal, it prints a line for each stage."""
    if quiet or Console(stderr=True).is_terminal:
        with progress(quiet) as say:
            yield say
        return
    yield lambda line: print(line, file=sys.stderr, flush=True)  # noqa: T201


@contextmanager
def row_progress(quiet: bool) -> Iterator[Callable[[int, int], None]]:
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed} rows"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=quiet or not console.is_terminal) as bar:
        task = bar.add_task("simulating", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def show(json_wanted: bool, figures: object, tables: Callable[[], list[Any]], *, wide: bool) -> None:
    if json_wanted:
        sys.stdout.write(json.dumps(figures) + "\n")
        return
    from forestc.report.widths import print_parts

    print_parts(tables(), wide=wide)
