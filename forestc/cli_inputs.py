"""The commands model-inputs and activity, and the options of commands that take an input model in place of rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from forestc.cli_parts import Folder, Json, Label, RowsFile, Trust, progress, show
from forestc.errors import OptionError
from forestc.forest.ir import Forest

InputsFile = Annotated[
    Path | None,
    typer.Option("--inputs", metavar="FILE", help="draw rows from an input model; see forestc model-inputs"),
]
Count = Annotated[int, typer.Option("--count", min=1, metavar="N", help="with --inputs: number of rows to draw")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="with --inputs: seed of the rows drawn")]


def model_inputs(
    source: Annotated[
        Path, typer.Argument(metavar="MODEL|DIR", help="a model file, or a folder that forestc compile wrote")
    ],
    rows: RowsFile,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="the file to write")],
    label: Label = None,
    treewidth: Annotated[
        int, typer.Option("--treewidth", min=1, metavar="N", help="how many columns depend on each other at most")
    ] = 4,
    time: Annotated[float, typer.Option("--time", metavar="SECONDS", help="seconds to search for a network")] = 20.0,
    samples: Annotated[
        int | None,
        typer.Option("--samples", min=1, metavar="N", help="search runs instead of seconds: the same file each time"),
    ] = None,
    least_count: Annotated[
        int, typer.Option("--least-count", min=0, metavar="N", help="write smaller counts of rows as 0")
    ] = 0,
    seed: Annotated[int, typer.Option("--seed", min=0, help="seed of the search")] = 0,
    json_: Json = False,
    trust_pickle: Trust = False,
) -> None:
    """Learns a small file of counts and ranges that stands for the rows: --inputs takes it in their place."""
    from forestc.input_models import model_inputs as run_learning
    from forestc.input_models import write_inputs
    from forestc.report.tables import inputs_tables

    with progress(json_) as say:
        model, figures = run_learning(
            source,
            rows,
            label=label,
            treewidth=treewidth,
            seconds=time,
            samples=samples,
            least_count=least_count,
            seed=seed,
            trust_pickle=trust_pickle,
            progress=say,
        )
        write_inputs(model, out)
    figures = {"out": str(out), **figures}
    notes = [Text(f"note: {note}") for note in figures["notes"]]
    show(json_, figures, lambda: [*inputs_tables(figures), *notes])


def activity(
    folder: Folder,
    inputs: Annotated[
        Path | None,
        typer.Option("--inputs", metavar="FILE", help="input model of forestc model-inputs: exact where it can be"),
    ] = None,
    rows: Annotated[
        Path | None,
        typer.Option("--rows", metavar="FILE", help="instead: rows to count on, CSV, Parquet, Arrow or NumPy"),
    ] = None,
    label: Label = None,
    count: Count = 10_000,
    seed: Seed = 0,
    json_: Json = False,
) -> None:
    """Shows how often comparators are 1 and change, and how likely leaves and labels are."""
    from forestc.design import open_design
    from forestc.report.tables import activity_tables
    from forestc.switching import activity as run_activity

    _refuse_both(rows, inputs)
    design = open_design(folder)
    with progress(json_) as say:
        say("asking the input model" if rows is None else "counting on the rows")
        figures = run_activity(design, inputs=inputs, rows=rows, label=label, count=count, seed=seed)
    notes = [Text(f"note: {note}") for note in figures["notes"]]
    show(json_, figures, lambda: [*activity_tables(str(design.manifest["name"]), figures), *notes])


def rows_or_inputs(rows: Path | None, inputs: Path | None, count: int, seed: int, model: Forest, forest: Forest) -> Any:
    """The rows of a command: the file, or rows drawn from the input model for a model and its quantised forest. Raises
    OptionError where both are given."""
    if inputs is None:
        return rows
    _refuse_both(rows, inputs)
    from forestc.inputs.text import read_inputs

    return read_inputs(inputs).drawn_for(model, count, seed, (forest,))


def _refuse_both(rows: Path | None, inputs: Path | None) -> None:
    if rows is not None and inputs is not None:
        raise OptionError(
            "--rows and --inputs are both given",
            do="remove --inputs to take the rows of the file, or --rows to take those of the input model",
        )
