"""Defines the commands. Each imports its function from `forestc.commands` only when it runs, so that `--help`
is quick."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import typer

from forestc.cli.parameters import Call, add_command
from forestc.cli.terminal import lines, progress, row_progress
from forestc.errors import CheckError, opt
from forestc.options.boards import BitstreamOptions, ProgramOptions
from forestc.options.commands import (
    ActivityOptions,
    CheckOptions,
    EvidenceOptions,
    InspectOptions,
    LearnInputsOptions,
    MeasureOptions,
    PassesOptions,
    PrintOptions,
    ReportOptions,
    SampleOptions,
    SimulateOptions,
    SynthOptions,
)
from forestc.options.compile import CompileOptions
from forestc.options.engine import EngineOptions, ImageOptions
from forestc.options.explore import ExploreOptions

if TYPE_CHECKING:
    from forestc.report.tables import Shown

# A function whose argument is True to be quiet; its context gives a function that shows progress.
Watch = Callable[[bool], AbstractContextManager[Callable[..., None]]]


def _shown(call: Call, run: Callable[..., Shown], watch: Watch = progress) -> Shown:
    """Calls a command, prints its figures and returns them. watch: shows progress meanwhile."""
    with watch(call.json) as say:
        figures = run(**call.given, progress=say)
    call.show(figures, lambda: figures.tables(verbose=call.verbose))
    return figures


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
            inspect_tables(str(source), figures, verbose=call.verbose)
            if tree is None
            else [drawn_tree(f"{source}, tree {tree}", figures)]
        ),
    )


def _print(call: Call) -> None:
    """Prints the text form of a model."""
    from forestc.commands.inspect import model_text

    text = model_text(**call.given)
    sys.stdout.write(json.dumps({"text": text}) + "\n" if call.json else text)


def _compile(call: Call) -> None:
    """Compiles a model to equivalent Verilog, VHDL, C, HLS C++ and Amaranth."""
    from forestc.commands.compile import compile
    from forestc.report.compiled import compile_tables

    with progress(call.json) as say:
        figures = compile(**call.given, progress=say).figures
    call.show(figures, lambda: compile_tables(figures, verbose=call.verbose))


def _engine(call: Call) -> None:
    """Writes an engine: hardware whose trees are loaded at run time."""
    from forestc.commands.engine import make_engine

    figures = make_engine(**call.given)
    call.show(figures, figures.tables)


def _image(call: Call) -> None:
    """Turns a model into the content of an engine."""
    from forestc.commands.image import make_image

    _shown(call, make_image)


def _check(call: Call) -> None:
    """Compares the files in a folder with the quantized model."""
    from forestc.commands.check import check
    from forestc.report.tables import check_tables

    with progress(call.json) as say:
        result = check(**call.given, progress=say)
    call.show(result.figures, lambda: check_tables(result, verbose=call.verbose))
    if (problem := result.problem()) is not None:
        raise problem


def _simulate(call: Call) -> None:
    """Simulates the pipeline clock by clock."""
    from forestc.commands.simulate import simulate

    figures = _shown(call, simulate, row_progress)
    if figures["differences"]:
        raise CheckError(
            f"{figures['differences']} rows differ from the quantized forest",
            where="the rows given",
            do="report this bug",
        )


def _synth(call: Call) -> None:
    """Synthesizes for a device: LUTs, flip-flops, depth and Fmax."""
    from forestc.commands.synth import synth

    _shown(call, synth, lines)


def _bitstream(call: Call) -> None:
    """Makes the bitstream of a design for a board, which answers rows over a serial line."""
    from forestc.commands.bitstream import bitstream

    _shown(call, bitstream, lines)


def _program(call: Call) -> None:
    """Loads a bitstream into a board."""
    from forestc.commands.bitstream import program

    _shown(call, program)


def _measure(call: Call) -> None:
    """Compiles the C for a microcontroller: flash, RAM, stack, and instructions in an emulator."""
    from forestc.commands.measure import measure

    figures = _shown(call, measure)
    if figures["differences"]:
        raise CheckError(
            f"{figures['differences']} answers differ from the quantized forest", where=figures["first_difference"],
            do="compile again; if the error stays, report it",
        )  # fmt: skip
    if figures["over_budget"]:
        raise CheckError(
            f"over the budget of the design: {figures['over_budget']}",
            where="forestc measure",
            do="compile with a smaller budget, by the share that is missing, or with -O2 or -O3",
        )


def _passes(call: Call) -> None:
    """Lists the passes and the levels, or explains one pass."""
    from forestc.commands.passes import passes
    from forestc.report.tables import pass_guide_tables, passes_tables

    figures = passes(**call.given)
    call.show(
        figures,
        lambda: pass_guide_tables(figures) if call.given else passes_tables(figures["passes"], figures["levels"]),
    )


def _explore(call: Call) -> None:
    """Searches for small designs that are good enough: a front of accuracy against size."""
    from forestc.commands.explore import explore, stored_arguments, summary
    from forestc.report.front import front_tables

    given = call.given
    if given.get("take") is not None:
        _take(call)
        return
    if given.get("resume"):
        given = {**stored_arguments(given.get("out", "study")), **given}
    with lines(call.json) as say:
        study = explore(**given, progress=say)
    figures = summary(study)
    call.show(figures, lambda: front_tables(study, figures))
    if study.asked.get("stopped"):
        sys.exit(130)  # the status after Ctrl-C: scripts see that the study is not finished


def _take(call: Call) -> None:
    """Writes the design of one trial: `forestc explore STUDY --take N -o DIR`."""
    from forestc.commands.take import take
    from forestc.errors import OptionError
    from forestc.report.tables import figures_table

    given = call.given
    unused = sorted(given.keys() - {"model", "take", "out"})
    if unused or not {"model", "out"} <= given.keys():
        raise OptionError(
            "a study and a folder are needed, and nothing else",
            where=opt.take,
            do="write forestc explore STUDY --take N -o DIR",
        )
    with progress(call.json) as say:
        figures = take(given["model"], given["take"], given["out"], say)
    call.show(figures, lambda: [figures_table(f"trial {given['take']} of {given['model']}", figures)])


def _model_inputs(call: Call) -> None:
    """Learns a small file of counts and ranges, from which forestc sample draws rows."""
    from forestc.commands.learn_inputs import how_long, model_inputs
    from forestc.report.tables import inputs_tables, noted

    with lines(call.json) as tell:
        tell(how_long(**call.given))
    with progress(call.json) as say:
        _, figures = model_inputs(**call.given, progress=say)
    call.show(figures, lambda: [*inputs_tables(figures), *noted(figures["notes"])])


def _sample(call: Call) -> None:
    """Draws rows from the file that model-inputs wrote, such as one for each leaf."""
    from forestc.commands.sample import sample_rows
    from forestc.report.tables import figures_table

    with progress(call.json) as say:
        _, figures = sample_rows(**call.given, progress=say)
    call.show(figures, lambda: [figures_table(f"rows from {call.given['inputs']}", figures)])


def _activity(call: Call) -> None:
    """Shows how often comparators are 1 and change, and how likely leaves and labels are."""
    from forestc.commands.activity import activity

    _shown(call, activity)


def _report(call: Call) -> None:
    """Writes a page to look at: one HTML file, of a design or of a study."""
    from forestc.commands.report import report

    _shown(call, report)


def _evidence(call: Call) -> None:
    """Writes a folder to file with a release: hashes, versions, checks, proofs, coverage; or verifies one."""
    from forestc.commands.evidence import evidence

    figures = _shown(call, evidence)
    if figures.get("changed"):
        raise CheckError(
            "; ".join(figures["changed"]),
            where=figures["evidence"],
            do="restore what changed, or make the evidence again",
        )


def add_commands(app: typer.Typer) -> None:
    """Adds every command, in the order of the help."""
    for kind, run in (
        (InspectOptions, _inspect),
        (PrintOptions, _print),
        (CompileOptions, _compile),
        (EngineOptions, _engine),
        (ImageOptions, _image),
        (CheckOptions, _check),
        (SimulateOptions, _simulate),
        (SynthOptions, _synth),
        (BitstreamOptions, _bitstream),
        (ProgramOptions, _program),
        (MeasureOptions, _measure),
        (PassesOptions, _passes),
        (ExploreOptions, _explore),
        (LearnInputsOptions, _model_inputs),
        (SampleOptions, _sample),
        (ActivityOptions, _activity),
        (ReportOptions, _report),
        (EvidenceOptions, _evidence),
    ):
        add_command(app, kind, run)
