"""The command explore."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from forestc.cli_parts import Json, Trust, progress, show

_Model = Annotated[
    Path | None, typer.Argument(metavar="[MODEL]", help="a model file, whose passes' options are searched")
]


def explore(
    context: typer.Context,
    model: _Model = None,
    rows: Annotated[
        Path | None, typer.Option("--rows", metavar="FILE", help="CSV (gzip too), Parquet, Arrow or NumPy")
    ] = None,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="the folder of the study")] = Path("study"),
    label: Annotated[str | None, typer.Option("--label", metavar="COL", help="column of the true labels")] = None,
    classes: Annotated[
        str | None,
        typer.Option("--classes", metavar="NAMES", help="names of MODEL's classes as in the labels, in its order: a,b"),
    ] = None,
    train: Annotated[
        str | None,
        typer.Option("--train", metavar="NAMES", help="instead of MODEL, train: a list of trainers, such as xgboost"),
    ] = None,
    regression: Annotated[
        bool, typer.Option("--regression", help="with --train: the labels are values, not classes")
    ] = False,
    test: Annotated[
        Path | None,
        typer.Option("--test", metavar="FILE", help="rows read once, at the end, for the front alone"),
    ] = None,
    validation: Annotated[
        Path | None,
        typer.Option(
            "--validation", metavar="FILE", help="rows that candidates are judged on; default: a part of --rows"
        ),
    ] = None,
    device: Annotated[
        str | None, typer.Option("--device", help="lut6, xcup, ice40-hx8k, ecp5-25k, ecp5-85k, ...")
    ] = None,
    cpu: Annotated[str | None, typer.Option("--cpu", help="processor of C, such as cortex-m0plus")] = None,
    goal: Annotated[
        str | None,
        typer.Option(
            "--goal",
            metavar="FIGURES",
            help="what is optimised: a list of accuracy, lut, ff, latency, fmax, flash, ram, instructions; "
            "default: size and accuracy",
        ),
    ] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option("--limit", metavar="LIMIT", help="what every design must keep, as in 'fmax>=150'; several times"),
    ] = None,
    trials: Annotated[int, typer.Option("--trials", min=1, metavar="N", help="designs to try")] = 200,
    rungs: Annotated[
        str | None,
        typer.Option(
            "--rungs",
            help="the highest of: estimate, synthesis, placed, measured (firmware); default: the highest there is",
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="seed of all that is drawn")] = 0,
    jobs: Annotated[
        int | None, typer.Option("--jobs", min=1, metavar="N", help="worker processes; default: one for each core")
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option("--scheduler", metavar="ADDRESS", help="address of a Dask cluster that runs the trials"),
    ] = None,
    storage: Annotated[
        str | None,
        typer.Option(
            "--storage", metavar="ADDRESS", help="database of Optuna, as sqlite:///study.db; default: a file in DIR"
        ),
    ] = None,
    trial_seconds: Annotated[
        float, typer.Option("--trial-seconds", metavar="SECONDS", help="time limit of a trial at one rung, for --jobs")
    ] = 600.0,
    trial_mb: Annotated[
        int | None, typer.Option("--trial-mb", min=1, metavar="MB", help="memory limit of a trial, for --jobs")
    ] = None,
    native: Annotated[bool, typer.Option("--native", help="prefer tools on the PATH to those from pip")] = False,
    no_prove: Annotated[bool, typer.Option("--no-prove", help="check the front without proofs")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="go on with the study in DIR, as it was asked for")] = False,
    json_: Json = False,
    trust_pickle: Trust = False,
) -> None:
    """Searches for small designs that are good enough: a front of accuracy against size."""
    from forestc.exploration.front import summary
    from forestc.exploration.run import asked_before
    from forestc.exploration.run import explore as run_explore

    given: dict[str, Any] = {
        "model": model, "rows": rows, "train": train, "regression": regression or None, "label": label,
        "classes": None if classes is None else [name.strip() for name in classes.split(",")], "test": test,
        "validation": validation, "device": device, "cpu": cpu, "goals": goal, "limits": limit,
        "rungs": rungs, "scheduler": scheduler, "storage": storage, "jobs": jobs, "trial_mb": trial_mb,
    }  # fmt: skip
    wanted = {name: value for name, value in given.items() if value is not None}
    wanted |= {"trials": trials, "seed": seed, "trial_seconds": trial_seconds, "native": native, "prove": not no_prove}
    if resume:
        defaults = ("trials", "seed", "trial_seconds", "native", "prove")
        ours = {name: value for name, value in wanted.items() if name not in defaults or _typed(context, name)}
        wanted = {**asked_before(out), **ours}
    with _lines(json_) as say:
        study = run_explore(out=out, resume=resume, trust_pickle=trust_pickle, progress=say, **wanted)
    figures = summary(study)
    show(json_, figures, lambda: [*tables(figures, [goal.figure for goal in study.goals])])
    if study.asked.get("stopped"):
        sys.exit(130)  # as of Ctrl-C elsewhere: a script sees that the study is not whole


def _typed(context: typer.Context, name: str) -> bool:
    """Whether an option is on the command line: what is not comes from the study that is resumed."""
    source = context.get_parameter_source("no_prove" if name == "prove" else name)
    return source is not None and source.name == "COMMANDLINE"


@contextmanager
def _lines(quiet: bool) -> Iterator[Callable[[str], None]]:
    """Progress on standard error: a moving line on a terminal, else a line a stage."""
    if quiet or Console(stderr=True).is_terminal:
        with progress(quiet) as say:
            yield say
        return
    yield lambda line: print(line, file=sys.stderr, flush=True)  # noqa: T201


def tables(figures: dict[str, Any], goals: list[str]) -> list[Any]:
    """The front as a table, from the best of the first goal on."""
    shown = list(dict.fromkeys([*goals, "accuracy"]))
    table = Table(title=f"front of {figures['out']}")
    for name in ("trial", *(_HEADS.get(name, name) for name in shown), "test", "from", "remark"):
        table.add_column(name, justify="left" if name in ("remark", "from") else "right")
    for row in figures["front"]:
        cells = [_cell(row, name) for name in shown]
        same = row["equal_to"]
        remark = f"equal to {same}" if same is not None else ""
        table.add_row(str(row["trial"]), *cells, _cell(row, "test_accuracy"), row["rung"] or "", remark)
    counts = figures["trials"]
    lines = []
    if any(row["equal_to"] is not None for row in figures["front"]):
        lines += ["equal to N: its accuracy is within a standard error of that of trial N, which is smaller"]
    lines += [f"{counts['complete']} trials, {counts['failed']} failed; accuracy by {figures['validation']}"]
    lines += [f"{name}: corrected to {line['factor']:.2f} x estimate^{line['slope']:.2f}, as {line['designs']} showed"
              for name, line in (figures["corrections"] or {}).items()]  # fmt: skip
    lines += [f"note: {note}" for note in figures["notes"] or ()]
    lines += ["stopped before its end; --resume goes on"] if figures["stopped"] else []
    lines += [f"designs: {figures['out']}/trials/NNNN/design", f"charts: forestc report {figures['out']} -o study.html"]
    return [table, *map(Text, lines)]


_HEADS = {"latency_cycles": "cycles", "fmax_mhz": "MHz", "flash": "flash bytes", "ram": "RAM bytes", "lut": "LUTs"}


def _cell(row: dict[str, Any], name: str) -> str:
    value = row.get(name)
    if value is None:
        return "-"
    error = row.get(f"{name}_se")
    return f"{value:.4f} ±{error:.4f}" if error is not None else f"{value:,.0f}"
