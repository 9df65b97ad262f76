"""The command line: thin, no logic of its own.

Exit status: 0 for success; 1 for invalid input; 2 for wrong usage; 3 for a failed check; 4 for a failing outside
tool; 128 plus the signal's number if a signal ends the program, such as 130 for Ctrl-C.
"""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from forestc.cli_explore import explore
from forestc.cli_inputs import Count, InputsFile, Seed, activity, model_inputs, rows_or_inputs
from forestc.cli_parts import Folder, Json, Label, MaybeRows, Model, Trust, progress, show
from forestc.cli_report import report
from forestc.errors import ForestcError
from forestc.failures import Failure, interrupted, one_line
from forestc.interrupts import Interrupted, ctrl_c_ends, interruptible
from forestc.version import __version__

# Typer contains click under varying names; this finds the class that it raises for wrong usage under any of them.
_UsageProblem: type[Exception] = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")


class _Commands(typer.core.TyperGroup):
    """The commands. Where none of them makes use of Ctrl-C it goes on as `Interrupted`, which typer leaves alone."""

    def make_context(self, *given: Any, **named: Any) -> Any:
        with ctrl_c_ends():
            return super().make_context(*given, **named)

    def invoke(self, ctx: Any) -> Any:
        with ctrl_c_ends():
            return super().invoke(ctx)


app = typer.Typer(
    cls=_Commands,
    name="forestc",
    help="Compiles trained tree ensembles into FPGA logic and microcontroller C, exactly.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.command()
def inspect(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL|DIR", help="a model file, or a folder that forestc compile wrote")
    ],
    tree: Annotated[int | None, typer.Option("--tree", min=0, metavar="N", help="draw tree N, counted from 0")] = None,
    depth: Annotated[int, typer.Option("--depth", min=1, help="with --tree: number of levels to draw")] = 6,
    json_: Json = False,
    trust_pickle: Trust = False,
) -> None:
    """Shows what a model or a compiled folder contains."""
    from forestc.inspection import inspect as run_inspection
    from forestc.inspection import tree_figures
    from forestc.report.drawing import drawn_tree
    from forestc.report.tables import inspect_tables

    with progress(json_) as say:
        say(f"reading {model.name}")
        if tree is None:
            figures = run_inspection(model, trust_pickle=trust_pickle)
        else:
            figures = tree_figures(model, tree, depth, trust_pickle=trust_pickle)
    show(
        json_,
        figures,
        lambda: inspect_tables(str(model), figures) if tree is None else [drawn_tree(f"{model}, tree {tree}", figures)],
    )


@app.command("print")
def print_(model: Model, json_: Json = False, trust_pickle: Trust = False) -> None:
    """Prints the text form of a model."""
    from forestc.forest.text import print_forest
    from forestc.frontends import load

    text = print_forest(load(model, trust_pickle=trust_pickle))
    sys.stdout.write(json.dumps({"text": text}) + "\n" if json_ else text)


@app.command("compile")
def compile_(
    model: Model,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="the folder to write")],
    rows: Annotated[
        Path | None,
        typer.Option(
            "--rows",
            metavar="FILE",
            help="CSV (gzip too), Parquet, Arrow or NumPy; without it formats come from the thresholds, exact",
        ),
    ] = None,
    ranges: Annotated[
        Path | None,
        typer.Option(
            "--ranges",
            metavar="FILE",
            help="instead of --rows: CSV (feature,smallest,largest,step,missing) or JSON; exact in these ranges",
        ),
    ] = None,
    inputs: Annotated[
        Path | None,
        typer.Option(
            "--inputs",
            metavar="FILE",
            help="input model of forestc model-inputs: C's branches puts the side first that more of its rows take",
        ),
    ] = None,
    label: Label = None,
    classes: Annotated[
        str | None,
        typer.Option(
            "--classes", metavar="NAMES", help="names of the model's classes as in the labels, in its order: a,b,c"
        ),
    ] = None,
    held_out: Annotated[
        str | None,
        typer.Option(
            "--held-out",
            metavar="FILE",
            help="rows on which passes are judged, or the share of rows to set aside (0.2)",
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            "--scheduler", metavar="ADDRESS", help="address of a Dask cluster, on which passes go through the rows"
        ),
    ] = None,
    target: Annotated[
        str, typer.Option("--target", help="output languages, a list of: verilog, c, hls, amaranth")
    ] = "verilog,c",
    level: Annotated[
        str | None,
        typer.Option(
            "-O", "--level", metavar="LEVEL", help="0 (exact) to 3 (smallest); default: 1; see forestc passes"
        ),
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(
            "--tolerance", metavar="T", help="with -O2 and -O3: accuracy that may be lost on other rows; default: 0.01"
        ),
    ] = None,
    effort: Annotated[
        str | None,
        typer.Option(
            "--effort", metavar="N", help="with -O2 and -O3: how long is searched, 1 to 3 or seconds (60s); default: 2"
        ),
    ] = None,
    passes: Annotated[
        str | None,
        typer.Option(
            "-p",
            "--passes",
            help="passes to run instead of a level's: simplify,quantize{leaf_bits=4}; none: only what is needed",
        ),
    ] = None,
    scores: Annotated[
        float | None,
        typer.Option(
            "--scores",
            metavar="E",
            help="largest error of probabilities on the rows; of other values as a share of their range",
        ),
    ] = None,
    latency: Annotated[int, typer.Option("--latency", help="clock cycles from input to output; 0: combinational")] = 0,
    outputs: Annotated[
        str, typer.Option("--outputs", help="what the hardware returns: auto, label, scores or both")
    ] = "auto",
    c_inputs: Annotated[
        str,
        typer.Option("--c-inputs", help="words: an array of integers; struct: integers as members; float or raw: rows"),
    ] = "words",
    c_types: Annotated[
        str, typer.Option("--c-types", help="types of --c-inputs raw: adc=int16,3=uint8,*=float (name or position)")
    ] = "",
    c_quantiser: Annotated[
        str, typer.Option("--c-quantiser", help="C function from raw rows to words: auto, none, float or double")
    ] = "auto",
    c_values: Annotated[
        str,
        typer.Option("--c-values", help="type of probabilities and values in C: q15, q31 (fixed point), float or none"),
    ] = "q31",
    c_layout: Annotated[
        str,
        typer.Option(
            "--c-layout",
            help="branches: nested ifs, fast; calls: the same, a function for each tree; nodes, masks: tables, small; "
            "mixed: between; or auto",
        ),
    ] = "auto",
    c_project: Annotated[
        str,
        typer.Option(
            "--c-project",
            help="files for build systems beside the header, with a self-test: none, all, or a list of selftest, "
            "cmake, platformio, arduino and zephyr",
        ),
    ] = "none",
    cpu: Annotated[
        str, typer.Option("--cpu", help="processor for which --c-layout auto chooses; see forestc measure")
    ] = "",
    flash: Annotated[int | None, typer.Option("--flash", metavar="BYTES", help="most flash that C may take")] = None,
    ram: Annotated[int | None, typer.Option("--ram", metavar="BYTES", help="most stack that C may take")] = None,
    instructions: Annotated[
        int | None,
        typer.Option("--instructions", metavar="N", help="most instructions of any prediction in C (AVR: cycles)"),
    ] = None,
    stream: Annotated[
        bool, typer.Option("--stream", help="also write an AXI4-Stream wrapper and its cocotb test bench")
    ] = False,
    tdata: Annotated[
        int | None,
        typer.Option("--tdata", metavar="N", help="with --stream: bits of tdata; default: a whole row in one beat"),
    ] = None,
    tuser: Annotated[
        int | None, typer.Option("--tuser", metavar="N", help="with --stream: bits of tuser; default: 1")
    ] = None,
    axi_lite: Annotated[
        bool, typer.Option("--axi-lite", help="with --stream: add a block of AXI4-Lite registers")
    ] = False,
    align: Annotated[
        int | None,
        typer.Option(
            "--align", metavar="N", help="with --stream: place words in lanes of at least 8, 16, 32 or 64 bits"
        ),
    ] = None,
    device: Annotated[
        str | None, typer.Option("--device", help="also synthesise, place and route for this device; see forestc synth")
    ] = None,
    clock: Annotated[
        float | None,
        typer.Option(
            "--clock",
            min=1,
            metavar="MHZ",
            help="with --device: the wanted clock; chooses the latency and sets the constraints",
        ),
    ] = None,
    native: Annotated[bool, typer.Option("--native", help="with --device: prefer tools on the PATH")] = False,
    try_: Annotated[
        bool, typer.Option("--try", help="with --device: even if the estimate says it does not fit")
    ] = False,
    no_synth: Annotated[
        bool, typer.Option("--no-synth", help="with --device: place registers for it, but synthesise nothing")
    ] = False,
    name: Annotated[
        str | None, typer.Option("--name", help="name of the module and the header; default: the model file's")
    ] = None,
    json_: Json = False,
    trust_pickle: Trust = False,
) -> None:
    """Compiles a model to equivalent Verilog, C and HLS C++."""
    from forestc.backends.axi_stream import StreamOptions
    from forestc.compiler import compile as compile_model
    from forestc.errors import OptionError
    from forestc.report.tables import compile_tables

    given = [option for option in (tdata, tuser, align) if option is not None]
    if not stream and (given or axi_lite):
        raise OptionError("--tdata, --tuser, --align and --axi-lite need --stream", do="add --stream")
    wrapper = StreamOptions(tdata or 0, 1 if tuser is None else tuser, axi_lite, align or 0) if stream else None
    with progress(json_) as say:
        done = compile_model(
            model,
            rows,
            out,
            ranges=ranges,
            inputs=inputs,
            label=label,
            classes=[name.strip() for name in classes.split(",")] if classes is not None else (),
            held_out=held_out,
            scheduler=scheduler,
            targets=target,
            level=level,
            tolerance=tolerance,
            effort=effort,
            passes=passes,
            scores=scores,
            latency=latency,
            outputs=outputs,
            c_inputs=c_inputs,
            c_types=c_types,
            c_quantiser=c_quantiser,
            c_values=c_values,
            c_layout=c_layout,
            c_project=c_project,
            cpu=cpu,
            flash=flash,
            ram=ram,
            instructions=instructions,
            stream=wrapper,
            device=device,
            clock_mhz=clock,
            native=native,
            try_anyway=try_,
            no_synth=no_synth,
            trust_pickle=trust_pickle,
            name=name,
            progress=say,
        )
    notes = [Text(f"note: {note}") for note in done.figures["notes"]]  # Text, as names are not markup
    show(json_, done.figures, lambda: [*compile_tables(done.figures), *notes])


@app.command()
def check(
    folder: Folder,
    rows: Annotated[
        Path | None,
        typer.Option(
            "--rows",
            metavar="FILE",
            help="CSV, Parquet, Arrow or NumPy; not needed with --inputs or --prove, or if compiled without rows",
        ),
    ] = None,
    inputs: InputsFile = None,
    count: Count = 10_000,
    label: Label = None,
    engines: Annotated[
        str | None,
        typer.Option(
            "--engines",
            help="a list of: netlist, icarus, verilator, c, words, hls, amaranth; default: one for each file",
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="run all engines on all vectors (slow)")] = False,
    random: Annotated[int, typer.Option("--random", min=0, help="number of random vectors beside the rows")] = 10_000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="seed of the random vectors and of rows drawn")] = 0,
    prove: Annotated[bool, typer.Option("--prove", help="also prove equality for every input")] = False,
    native: Annotated[bool, typer.Option("--native", help="prove with the yosys on the PATH")] = False,
    json_: Json = False,
) -> None:
    """Checks that the files in a folder compute what the quantised model computes."""
    from forestc.checks.run import check as run_check
    from forestc.design import open_design
    from forestc.report.tables import check_tables

    design = open_design(folder)
    with progress(json_) as say:
        result = run_check(
            design,
            rows,
            inputs=inputs,
            count=count,
            label=label,
            engines=[part.strip() for part in engines.split(",")] if engines else None,
            every=every,
            random_rows=random,
            seed=seed,
            prove=prove,
            native=native,
            progress=say,
        )
    notes = [Text(line) for line in (*result.not_run(), *result.notes)]
    show(json_, result.figures, lambda: [*check_tables(result, not design.forest.decides), *notes])
    if (problem := result.problem()) is not None:
        raise problem


@app.command()
def simulate(
    folder: Folder,
    rows: MaybeRows = None,
    inputs: InputsFile = None,
    count: Count = 10_000,
    seed: Seed = 0,
    vcd: Annotated[Path | None, typer.Option("--vcd", metavar="FILE", help="write a waveform, for GTKWave")] = None,
    saif: Annotated[
        Path | None, typer.Option("--saif", metavar="FILE", help="write switching activity, for power tools")
    ] = None,
    label: Label = None,
    json_: Json = False,
) -> None:
    """Simulates the pipeline clock by clock."""
    from forestc.checks.simulation import simulate as run_simulation
    from forestc.design import open_design
    from forestc.errors import CheckError, OptionError
    from forestc.report.tables import figures_table

    design = open_design(folder)
    given = rows_or_inputs(rows, inputs, count, seed, design.model, design.forest)
    if given is None:
        raise OptionError("no rows are given to simulate", do="give --rows FILE or --inputs FILE")
    console = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed} rows"), TimeElapsedColumn(),
        console=console, transient=True, disable=json_ or not console.is_terminal,
    )  # fmt: skip
    with bar:
        task = bar.add_task("simulating", total=None)
        figures = run_simulation(
            design,
            given,
            label=label,
            vcd=vcd,
            saif=saif,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    show(json_, figures, lambda: [figures_table(f"simulation of {folder}", figures)])
    if figures["differences"]:
        raise CheckError(f"{figures['differences']} rows differ from the quantised forest", do="report this bug")


@app.command()
def synth(
    folder: Folder,
    device: Annotated[
        str, typer.Option("--device", help="lut6, xcup, ice40-hx8k, ecp5-25k, ecp5-85k, vivado:PART, ...")
    ],
    native: Annotated[bool, typer.Option("--native", help="prefer tools on the PATH to those from pip")] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="seed of place and route")] = 1,
    try_: Annotated[bool, typer.Option("--try", help="even if the estimate says it does not fit")] = False,
    json_: Json = False,
) -> None:
    """Synthesises for a device: LUTs, flip-flops, depth and Fmax."""
    from forestc.design import open_design
    from forestc.report.tables import synth_tables, table
    from forestc.synthesis import synth as run_synth

    design = open_design(folder)
    with progress(json_) as say:
        figures = run_synth(design, device, native=native, seed=seed, try_anyway=try_, progress=say)
    show(json_, figures, lambda: synth_tables(str(design.manifest["name"]), figures, table))


@app.command()
def measure(
    folder: Folder,
    cpu: Annotated[str, typer.Option("--cpu", help="cortex-m0plus, cortex-m4, cortex-m4f, cortex-m7, rv32imc or avr")],
    rows: Annotated[
        Path | None,
        typer.Option(
            "--rows",
            metavar="FILE",
            help="CSV (gzip too), Parquet, Arrow or NumPy; without it instructions are those of generated inputs",
        ),
    ] = None,
    inputs: InputsFile = None,
    count: Count = 10_000,
    seed: Seed = 0,
    label: Label = None,
    entry: Annotated[
        str | None,
        typer.Option("--entry", help="a list of: predict, scores, values, row (raw floats); default: all but values"),
    ] = None,
    compiler: Annotated[
        str, typer.Option("--compiler", help="gcc (on the PATH), ziglang (from pip) or auto: gcc if there is one")
    ] = "auto",
    optimise: Annotated[str, typer.Option("-O", "--optimize", help="the compiler's level: s, 2 or 3")] = "s",
    most: Annotated[
        int, typer.Option("--most", min=0, metavar="N", help="number of rows to run, spread over all; 0: all")
    ] = 1000,
    json_: Json = False,
) -> None:
    """Compiles the C for a microcontroller: flash, RAM, stack, and instructions in an emulator."""
    from forestc.design import open_design
    from forestc.errors import CheckError
    from forestc.firmware.run import measure as run_measure
    from forestc.report.tables import measure_tables, table

    design = open_design(folder)
    drawn = rows_or_inputs(None, inputs, count, seed, design.model, design.forest)
    with progress(json_) as say:
        figures = run_measure(
            design,
            cpu,
            drawn if rows is None else rows,
            label=label,
            drawn=drawn,
            entries=[part.strip() for part in entry.split(",")] if entry else None,
            compiler=compiler,
            optimise=optimise,
            most=most,
            progress=say,
        )
    notes = [Text(f"note: {note}") for note in figures["notes"]]
    show(json_, figures, lambda: [*measure_tables(str(design.manifest["name"]), figures, table), *notes])
    if figures["differences"]:
        raise CheckError(
            f"{figures['differences']} answers differ from the quantised forest", where=figures["first_difference"],
            do="compile again; if the error stays, report it",
        )  # fmt: skip
    if figures["over_budget"]:
        raise CheckError(
            f"over the budget of the design: {figures['over_budget']}",
            do="compile with a smaller budget, by the share that is missing, or with -O2 or -O3",
        )


@app.command()
def passes(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="show one pass and its options")] = None,
    json_: Json = False,
) -> None:
    """Lists the passes and the levels, or explains one pass."""
    from forestc.passes import PASSES
    from forestc.passes.guide import pass_guide
    from forestc.passes.levels import levels_guide
    from forestc.report.tables import pass_guide_tables, passes_tables

    if name is not None:
        figures = pass_guide(PASSES, name)
        show(json_, figures, lambda: pass_guide_tables(figures))
        return
    brief = [{key: pass_guide(PASSES, step)[key] for key in ("name", "promises", "for")} for step in PASSES]
    levels = levels_guide()
    show(json_, {"passes": brief, "levels": levels}, lambda: passes_tables(brief, levels))


app.command()(explore)
app.command("model-inputs")(model_inputs)
app.command()(activity)
app.command()(report)


def _version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"forestc {__version__}\n")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_version, help="show the version")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="show the traceback of an error")] = False,
) -> None:
    """Compiles trained tree ensembles into FPGA logic and microcontroller C, exactly."""


def _usage(error: Exception) -> Failure:
    """Wrong usage as a Failure, from typer's error."""
    message = one_line(str(error.format_message())).rstrip(".")  # type: ignore[attr-defined]
    context = getattr(error, "ctx", None)
    command = "forestc" if context is None else context.command_path
    return Failure("UsageError", message, do=f"see {command} --help", status=2)


def main(arguments: list[str] | None = None) -> None:
    """Runs the program. An error is one line on standard error (with --json an object), and sets the exit status."""
    arguments = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in arguments
    failure = None
    try:
        with interruptible():
            app([a for a in arguments if a != "--debug"], standalone_mode=False, prog_name="forestc")
    except Interrupted as signalled:
        failure = interrupted(signalled.status)
    except KeyboardInterrupt:
        failure = interrupted(128 + signal.SIGINT)
    except ForestcError as error:
        if debug:
            raise
        failure = Failure.of(error)
    except _UsageProblem as error:
        failure = _usage(error)
        if type(error).__name__ == "NoArgsIsHelpError":
            sys.stderr.write(f"{error.format_message()}\n")  # type: ignore[attr-defined]
            sys.exit(failure.status)
    except BrokenPipeError:
        # the reader of standard output closed it, as `head` does
        sys.stderr.close()
    except (OSError, MemoryError, RecursionError) as error:
        if debug:
            raise
        failure = Failure(type(error).__name__, str(error) or type(error).__name__, do="--debug shows where")
    if failure is not None:
        failure.tell("--json" in arguments)
    sys.exit(0 if failure is None else failure.status)


if __name__ == "__main__":
    main()
