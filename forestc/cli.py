"""The command line: thin, no logic of its own.

Exit status: 0; 1 for the user's input; 2 for usage; 3 for a failed check; 4 for a failing outside tool; 128 and the
signal's number if a signal ends the program: 130 for Ctrl-C.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from forestc.errors import ForestcError

# Typer brings click along under changing names; what it raises for wrong usage is the same class anywhere.
_UsageProblem: type[Exception] = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")

app = typer.Typer(
    name="forestc",
    help="Compiles trained tree ensembles into FPGA logic and microcontroller C, exactly.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Model = Annotated[
    Path, typer.Argument(metavar="MODEL", help="a model file: .json, .ubj, .txt, .onnx, .skops, .tl, .forest, ...")
]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="a folder that forestc compile wrote")]
RowsFile = Annotated[Path, typer.Option("--rows", metavar="FILE", help="CSV (gzip too), Parquet, Arrow or NumPy")]
Label = Annotated[str | None, typer.Option("--label", metavar="COL", help="the column that holds the truth")]
Json = Annotated[bool, typer.Option("--json", help="print one JSON object and nothing else")]
Trust = Annotated[bool, typer.Option("--trust-pickle", help="open pickles: they run code")]


@contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[str], None]]:
    """A function that says what is going on; nothing is shown where nobody looks."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda _: None
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(20), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda text: bar.update(task, description=text)


def _show(json_wanted: bool, figures: Any, tables: Callable[[], list[Any]]) -> None:
    if json_wanted:
        sys.stdout.write(json.dumps(figures) + "\n")
        return
    console = Console()
    for part in tables():
        console.print(part)


@app.command()
def inspect(model: Model, json_: Json = False, trust_pickle: Trust = False) -> None:
    """What is in a model."""
    from forestc.frontends import load
    from forestc.report.tables import figures_table, inspect_figures

    with _progress(json_) as say:
        say(f"reading {model.name}")
        figures = inspect_figures(load(model, trust_pickle=trust_pickle))
    _show(json_, figures, lambda: [figures_table(str(model), figures)])


@app.command("print")
def print_(model: Model, json_: Json = False, trust_pickle: Trust = False) -> None:
    """The text form of a model."""
    from forestc.forest.text import print_forest
    from forestc.frontends import load

    text = print_forest(load(model, trust_pickle=trust_pickle))
    sys.stdout.write(json.dumps({"text": text}) + "\n" if json_ else text)


@app.command("compile")
def compile_(
    model: Model,
    rows: RowsFile,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="the folder to write")],
    label: Label = None,
    held_out: Annotated[
        str | None,
        typer.Option("--held-out", metavar="FILE", help="rows to judge passes on, or a share to set aside (0.2)"),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option("--scheduler", metavar="ADDRESS", help="of a Dask cluster, where passes observe the rows"),
    ] = None,
    target: Annotated[str, typer.Option("--target", help="a list of: verilog, c, hls, amaranth")] = "verilog,c",
    passes: Annotated[
        str | None, typer.Option("-p", "--passes", help="such as simplify,quantize{leaf_bits=4}; none: the least")
    ] = None,
    latency: Annotated[int, typer.Option("--latency", help="clock cycles; 0: combinational")] = 0,
    outputs: Annotated[str, typer.Option("--outputs", help="auto, label, scores or both")] = "auto",
    c_inputs: Annotated[str, typer.Option("--c-inputs", help="words: quantised integers; float: raw rows")] = "words",
    stream: Annotated[
        bool, typer.Option("--stream", help="an AXI4-Stream wrapper and its cocotb test bench as well")
    ] = False,
    tdata: Annotated[
        int | None, typer.Option("--tdata", metavar="N", help="with --stream: bits of a beat; default: a whole row")
    ] = None,
    tuser: Annotated[int | None, typer.Option("--tuser", metavar="N", help="with --stream: bits of tuser (1)")] = None,
    axi_lite: Annotated[bool, typer.Option("--axi-lite", help="with --stream: a block of registers")] = False,
    device: Annotated[
        str | None, typer.Option("--device", help="synthesise for it, place and route as well; see forestc synth")
    ] = None,
    clock: Annotated[
        float | None,
        typer.Option(
            "--clock", min=1, metavar="MHZ", help="with --device: for the constraints, and to find the latency"
        ),
    ] = None,
    native: Annotated[bool, typer.Option("--native", help="with --device: tools on the PATH first")] = False,
    name: Annotated[str | None, typer.Option("--name", help="of the module and header; default: the file's")] = None,
    json_: Json = False,
    trust_pickle: Trust = False,
) -> None:
    """A model to Verilog, C and HLS C++ that say the same."""
    from forestc.backends.axi_stream import StreamOptions
    from forestc.compiler import compile as compile_model
    from forestc.errors import OptionError
    from forestc.report.tables import compile_tables

    if not stream and (tdata is not None or tuser is not None or axi_lite):
        raise OptionError("--tdata, --tuser and --axi-lite are for a stream", do="add --stream")
    wrapper = StreamOptions(0 if tdata is None else tdata, 1 if tuser is None else tuser, axi_lite) if stream else None
    with _progress(json_) as say:
        done = compile_model(
            model,
            rows,
            out,
            label=label,
            held_out=held_out,
            scheduler=scheduler,
            targets=[part.strip() for part in target.split(",") if part.strip()],
            passes=passes,
            latency=latency,
            outputs=outputs,
            c_inputs=c_inputs,
            stream=wrapper,
            device=device,
            clock_mhz=clock,
            native=native,
            trust_pickle=trust_pickle,
            name=name,
            progress=say,
        )
    notes = [Text(f"note: {note}") for note in done.figures["notes"]]  # names are no markup
    _show(json_, done.figures, lambda: [*compile_tables(done.figures, not done.design.forest.decides), *notes])


@app.command()
def check(
    folder: Folder,
    rows: Annotated[
        Path | None,
        typer.Option("--rows", metavar="FILE", help="CSV (gzip too), Parquet, Arrow, NumPy; not needed with --prove"),
    ] = None,
    label: Label = None,
    engines: Annotated[
        str | None,
        typer.Option(
            "--engines", help="a list of: netlist, icarus, verilator, c, hls, amaranth; default: all there are"
        ),
    ] = None,
    random: Annotated[int, typer.Option("--random", min=0, help="random vectors beside the rows")] = 10_000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="of the random vectors")] = 0,
    prove: Annotated[bool, typer.Option("--prove", help="prove it for every input, too")] = False,
    native: Annotated[bool, typer.Option("--native", help="prove with a yosys on the PATH")] = False,
    json_: Json = False,
) -> None:
    """Does what was written still say what the model says?"""
    from forestc.checks.run import check as run_check
    from forestc.design import open_design
    from forestc.report.tables import check_tables

    design = open_design(folder)
    with _progress(json_) as say:
        result = run_check(
            design,
            rows,
            label=label,
            engines=[part.strip() for part in engines.split(",")] if engines else None,
            random_rows=random,
            seed=seed,
            prove=prove,
            native=native,
            progress=say,
        )
    notes = [Text(line) for line in result.not_run()]
    _show(json_, result.figures, lambda: [*check_tables(result, not design.forest.decides), *notes])
    if (problem := result.problem()) is not None:
        raise problem


@app.command()
def simulate(
    folder: Folder,
    rows: RowsFile,
    vcd: Annotated[Path | None, typer.Option("--vcd", metavar="FILE", help="a waveform for GTKWave")] = None,
    label: Label = None,
    json_: Json = False,
) -> None:
    """Clock by clock through the pipeline."""
    from forestc.checks.simulation import simulate_rows
    from forestc.design import open_design
    from forestc.errors import CheckError
    from forestc.report.tables import figures_table

    design = open_design(folder)
    console = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed} rows"), TimeElapsedColumn(),
        console=console, transient=True, disable=json_ or not console.is_terminal,
    )  # fmt: skip
    with bar:
        task = bar.add_task("simulating", total=None)
        figures = simulate_rows(
            design,
            rows,
            label=label,
            vcd=vcd,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    _show(json_, figures, lambda: [figures_table(f"simulation of {folder}", figures)])
    if figures["differences"]:
        raise CheckError(f"{figures['differences']} rows differ from the quantised forest", do="report this bug")


@app.command()
def synth(
    folder: Folder,
    device: Annotated[
        str, typer.Option("--device", help="lut6, xcup, ice40-hx8k, ecp5-25k, ecp5-85k, vivado:PART, ...")
    ],
    native: Annotated[bool, typer.Option("--native", help="tools on the PATH before those from pip")] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="of place and route")] = 1,
    json_: Json = False,
) -> None:
    """LUTs, flip-flops, depth and Fmax on a device."""
    from forestc.design import open_design
    from forestc.report.tables import synth_tables
    from forestc.synthesis import synth as run_synth

    design = open_design(folder)
    with _progress(json_) as say:
        figures = run_synth(design, device, native=native, seed=seed, progress=say)
    _show(json_, figures, lambda: synth_tables(str(design.manifest["name"]), figures))


@app.callback()
def _options(
    debug: Annotated[bool, typer.Option("--debug", help="show the traceback of an error")] = False,
) -> None:
    """Compiles trained tree ensembles into FPGA logic and microcontroller C, exactly."""


class _Interrupted(BaseException):
    """A signal has come. No Exception, so that nothing on its way takes it for an error and goes on."""

    def __init__(self, number: int) -> None:
        self.status = 128 + number


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise _Interrupted(number)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Signals become an exception, so that files are taken back and outside tools ended; ignored ones stay ignored."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    heard = [number for number, handler in before.items() if handler is not signal.SIG_IGN]
    for number in heard:
        signal.signal(number, _interrupt)
    try:
        yield
    finally:
        for number in heard:
            signal.signal(number, before[number])


def main(arguments: list[str] | None = None) -> None:
    """The program. Errors are one line on standard error; the exit status says whose they are."""
    arguments = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in arguments
    status = 0
    try:
        with _interruptible():
            app([a for a in arguments if a != "--debug"], standalone_mode=False, prog_name="forestc")
    except _Interrupted as interrupted:
        sys.stderr.write("forestc: interrupted\n")
        status = interrupted.status
    except ForestcError as error:
        if debug:
            raise
        sys.stderr.write(f"forestc: {_one_line(str(error))}\n")
        status = error.exit_status
    except _UsageProblem as error:
        said = str(error.format_message())  # type: ignore[attr-defined]
        wants_help = type(error).__name__ == "NoArgsIsHelpError"
        sys.stderr.write(f"{said}\n" if wants_help else f"forestc: {_one_line(said).rstrip('.')}; see forestc --help\n")
        status = 2
    except BrokenPipeError:
        # the reader of our output went away, as `head` does
        sys.stderr.close()
        status = 0
    except (OSError, MemoryError, RecursionError) as error:
        if debug:
            raise
        sys.stderr.write(f"forestc: {_one_line(str(error)) or type(error).__name__}; --debug shows where\n")
        status = 1
    sys.exit(status)


def _one_line(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in " ".join(text.split()))


if __name__ == "__main__":
    main()
