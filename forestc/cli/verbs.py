"""The commands: each calls the function of its name, and prints what that returns.

What a command calls is imported when it runs: `forestc --help` loads the options alone.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any

import typer
from rich.text import Text

from forestc.cli.parameters import Call, command
from forestc.cli.terminal import lines, progress, row_progress
from forestc.errors import CheckError
from forestc.options.commands import (
    ActivityOptions,
    CheckOptions,
    InspectOptions,
    LearnInputsOptions,
    MeasureOptions,
    PassesOptions,
    PrintOptions,
    ReportOptions,
    SimulateOptions,
    SynthOptions,
)
from forestc.options.compile import CompileOptions
from forestc.options.engine import EngineOptions, ImageOptions
from forestc.options.explore import ExploreOptions


def _notes(figures: Any) -> Iterable[Text]:
    return (Text(f"note: {note}") for note in figures["notes"])  # Text, as names are not markup


def _inspect(call: Call) -> None:
    """Shows what a model or a compiled folder contains."""
    from forestc.commands.inspect import inspect
    from forestc.report.drawing import drawn_tree
    from forestc.report.tables import inspect_tables

    source, tree = call.given["source"], call.given.get("tree")
    with progress(call.json) as say:
        say(f"reading {source.name}")
        figures = inspect(**call.given)
    call.show(
        figures,
        lambda: (
            inspect_tables(str(source), figures) if tree is None else [drawn_tree(f"{source}, tree {tree}", figures)]
        ),
    )


def _print(call: Call) -> None:
    """Prints the text form of a model."""
    from forestc.forest.text import print_forest
    from forestc.frontends import load

    text = print_forest(load(call.given.pop("model"), **call.given))
    sys.stdout.write(json.dumps({"text": text}) + "\n" if call.json else text)


def _compile(call: Call) -> None:
    """Compiles a model to equivalent Verilog, VHDL, C, HLS C++ and Amaranth."""
    from forestc.commands.compile import compile
    from forestc.report.tables import compile_tables

    with progress(call.json) as say:
        figures = compile(**call.given, progress=say).figures
    call.show(figures, lambda: compile_tables(figures))


def _engine(call: Call) -> None:
    """Writes an engine: hardware whose trees are loaded at run time."""
    from forestc.commands.engine import make_engine

    figures = make_engine(**call.given)
    call.show(figures, figures.tables)


def _image(call: Call) -> None:
    """Turns a model into the content of an engine."""
    from forestc.commands.image import make_image

    with progress(call.json) as say:
        figures = make_image(**call.given, progress=say)
    call.show(figures, figures.tables)


def _check(call: Call) -> None:
    """Checks that the files in a folder compute what the quantized model computes."""
    from forestc.commands.check import check
    from forestc.manifest.design import open_design
    from forestc.report.tables import check_tables

    design = open_design(call.given.pop("design"))
    with progress(call.json) as say:
        result = check(design, **call.given, progress=say)
    call.show(result.figures, lambda: check_tables(result))
    if (problem := result.problem()) is not None:
        raise problem


def _simulate(call: Call) -> None:
    """Simulates the pipeline clock by clock."""
    from forestc.commands.simulate import simulate

    with row_progress(call.json) as say:
        figures = simulate(**call.given, progress=say)
    call.show(figures, figures.tables)
    if figures["differences"]:
        raise CheckError(f"{figures['differences']} rows differ from the quantized forest", do="report this bug")


def _synth(call: Call) -> None:
    """Synthesizes for a device: LUTs, flip-flops, depth and Fmax."""
    from forestc.commands.synth import synth

    with progress(call.json) as say:
        figures = synth(**call.given, progress=say)
    call.show(figures, figures.tables)


def _measure(call: Call) -> None:
    """Compiles the C for a microcontroller: flash, RAM, stack, and instructions in an emulator."""
    from forestc.commands.measure import measure

    with progress(call.json) as say:
        figures = measure(**call.given, progress=say)
    call.show(figures, figures.tables)
    if figures["differences"]:
        raise CheckError(
            f"{figures['differences']} answers differ from the quantized forest", where=figures["first_difference"],
            do="compile again; if the error stays, report it",
        )  # fmt: skip
    if figures["over_budget"]:
        raise CheckError(
            f"over the budget of the design: {figures['over_budget']}",
            do="compile with a smaller budget, by the share that is missing, or with -O2 or -O3",
        )


def _passes(call: Call) -> None:
    """Lists the passes and the levels, or explains one pass."""
    from forestc.passes import PASSES
    from forestc.passes.guide import pass_guide
    from forestc.report.tables import pass_guide_tables, passes_tables
    from forestc.search.levels import levels_guide

    if call.given:
        figures = pass_guide(PASSES, call.given["name"])
        call.show(figures, lambda: pass_guide_tables(figures))
        return
    brief = [{key: pass_guide(PASSES, step)[key] for key in ("name", "promises", "for")} for step in PASSES]
    levels = levels_guide()
    call.show({"passes": brief, "levels": levels}, lambda: passes_tables(brief, levels))


def _explore(call: Call) -> None:
    """Searches for small designs that are good enough: a front of accuracy against size."""
    from forestc.commands.explore import asked_before, explore, summary
    from forestc.report.front import front_tables

    given = call.given
    if given.get("take") is not None:
        _take(call)
        return
    if given.get("resume"):
        given = {**asked_before(given.get("out", "study")), **given}
    with lines(call.json) as say:
        study = explore(**given, progress=say)
    figures = summary(study)
    call.show(figures, lambda: front_tables(study, figures))
    if study.asked.get("stopped"):
        sys.exit(130)  # as of Ctrl-C elsewhere: a script sees that the study is not whole


def _take(call: Call) -> None:
    """Writes the design of one trial: `forestc explore STUDY --take N -o DIR`."""
    from forestc.commands.take import take
    from forestc.errors import OptionError
    from forestc.report.tables import figures_table

    given = call.given
    unused = sorted(given.keys() - {"model", "take", "out"})
    if unused or not {"model", "out"} <= given.keys():
        raise OptionError("--take needs a study and a folder, and nothing else", do="explore STUDY --take N -o DIR")
    with progress(call.json) as say:
        figures = take(given["model"], given["take"], given["out"], say)
    call.show(figures, lambda: [figures_table(f"trial {given['take']} of {given['model']}", figures)])


def _learn_inputs(call: Call) -> None:
    """Learns a small file of counts and ranges that stands for the rows: --inputs takes it in their place."""
    from forestc.commands.learn_inputs import how_long, model_inputs
    from forestc.report.tables import inputs_tables

    with lines(call.json) as tell:
        tell(how_long(**call.given))
    with progress(call.json) as say:
        _, figures = model_inputs(**call.given, progress=say)
    call.show(figures, lambda: [*inputs_tables(figures), *_notes(figures)])


def _activity(call: Call) -> None:
    """Shows how often comparators are 1 and change, and how likely leaves and labels are."""
    from forestc.commands.activity import activity
    from forestc.commands.source import refuse_both

    refuse_both(call.given.get("rows"), call.given.get("inputs"))
    with progress(call.json) as say:
        figures = activity(**call.given, progress=say)
    call.show(figures, figures.tables)


def _report(call: Call) -> None:
    """Writes a page to look at: one HTML file, of a design or of a study."""
    from forestc.commands.report import report

    with progress(call.json) as say:
        figures = report(**call.given, progress=say)
    call.show(figures, figures.tables)


def add_commands(app: typer.Typer) -> None:
    """Adds every command, in the order in which the help lists them."""
    command(app, InspectOptions)(_inspect)
    command(app, PrintOptions)(_print)
    command(app, CompileOptions)(_compile)
    command(app, EngineOptions)(_engine)
    command(app, ImageOptions)(_image)
    command(app, CheckOptions)(_check)
    command(app, SimulateOptions)(_simulate)
    command(app, SynthOptions)(_synth)
    command(app, MeasureOptions)(_measure)
    command(app, PassesOptions)(_passes)
    command(app, ExploreOptions)(_explore)
    command(app, LearnInputsOptions, "model-inputs")(_learn_inputs)
    command(app, ActivityOptions)(_activity)
    command(app, ReportOptions)(_report)
