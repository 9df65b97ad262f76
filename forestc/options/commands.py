"""Defines the options of the commands whose options have no module of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal

from forestc.backends.table import RUNNERS
from forestc.errors import opt
from forestc.fields.options import argument, flag, keyword, option
from forestc.options.shared import (
    BAUD,
    FOLDER,
    LABELS,
    MODEL,
    ROWS,
    SOURCE,
    TABLE,
    Progress,
    iterations_option,
    label_option,
    native_option,
    progress_keyword,
    record_keyword,
    rows_option,
    sum_option,
    trust_option,
    types_option,
    unseen_option,
)


@dataclass(frozen=True)
class InspectOptions:
    source: Any = field(metadata=SOURCE)
    _: KW_ONLY
    tree: int | None = option(None, "--tree", "draw tree N, counted from 0", "N", least=0)
    depth: int = option(6, "--depth", f"with {opt.tree}: number of levels to draw", least=1)
    trust_pickle: bool = trust_option()
    iterations: int | str | None = iterations_option()


@dataclass(frozen=True)
class CheckOptions:
    design: Any = field(metadata=FOLDER)
    rows: Any = rows_option(
        f"rows to check on: CSV, Parquet, Arrow or NumPy; not needed with {opt.prove}, or if compiled without rows"
    )
    _: KW_ONLY
    label: Any = label_option(takes=LABELS)
    engines: Sequence[str] | None = option(
        None,
        "--engines",
        f"what to run, a list of: {', '.join(RUNNERS)}; with {opt.port} also board; default: one for each file",
        listed=True,
    )
    unseen: Literal["count", "error"] = unseen_option()
    every: bool = option(False, "--all", "run all engines on all vectors (slow)")
    random_rows: int = option(10_000, "--random", "number of random vectors beside the rows", least=0)
    seed: int = option(0, "--seed", "seed of the random vectors", least=0)
    prove: bool = option(
        False, "--prove", "also prove that the Verilog or VHDL equals the quantized forest for every input"
    )
    native: bool = native_option("prove with the yosys on the PATH")
    port: str | None = option(
        None,
        "--port",
        "also run all vectors on the board behind this serial port, such as /dev/ttyUSB0 or COM3; sim simulates the "
        "board, sim:damaged=0.01,lost=0.001 with a bad line",
        "PORT",
    )
    baud: int = option(BAUD, "--baud", f"with {opt.port}: bits a second", "N", least=1)
    require: bool = keyword(
        False, "Raise an error if an engine's tool is not installed, instead of leaving the engine out"
    )
    record: bool = keyword(True, "Write the results to check.json in the folder, for `Design.last_check`")
    progress: Progress = progress_keyword()


@dataclass(frozen=True)
class SimulateOptions:
    design: Any = field(metadata=FOLDER)
    rows: Any = field(metadata=flag("--rows", ROWS, "FILE", takes=TABLE))
    _: KW_ONLY
    vcd: Any = option(None, "--vcd", "write a waveform, for GTKWave", "FILE")
    saif: Any = option(None, "--saif", "write switching activity, for power tools", "FILE")
    label: Any = label_option()
    gaps: bool = keyword(False, "Insert idle cycles with invalid inputs between some rows")
    progress: Callable[[int, int], None] = keyword(
        lambda done, total: None, "Called with the numbers of simulated rows and of all rows"
    )


@dataclass(frozen=True)
class SynthOptions:
    design: Any = field(metadata=FOLDER)
    device: str = field(
        metadata=flag(
            "--device",
            "device to synthesize for: lut6, xcup, ice40-hx8k, ecp5-25k, gw1nr-9, vivado:PART, ..., a board, such as "
            "icebreaker, or liberty:FILE for the cells and the area of an ASIC",
        )
    )
    _: KW_ONLY
    native: bool = native_option()
    seed: int = option(1, "--seed", "seed of place and route", least=0)
    try_anyway: bool = option(False, "--try", "synthesize even if the estimate says that the design does not fit")
    stream: bool = option(False, "--stream", "synthesize the design with its stream wrapper")
    route: bool = keyword(
        True, "Place and route. Without it `fmax_mhz` is None, except with vendors' tools, which always do"
    )
    record: bool = record_keyword()
    progress: Progress = progress_keyword()


@dataclass(frozen=True)
class MeasureOptions:
    design: Any = field(metadata=FOLDER)
    cpu: str = field(
        metadata=flag(
            "--cpu",
            "processor to run on: cortex-m0plus, cortex-m4, cortex-m4f, cortex-m7, rv32imc, avr, or a board, such as "
            "pico",
        )
    )
    rows: Any = rows_option(
        "rows to run: CSV (gzip too), Parquet, Arrow or NumPy; without it, generated inputs are run"
    )
    _: KW_ONLY
    label: Any = label_option()
    entries: Sequence[str] | None = option(
        None,
        "--entry",
        "functions to measure, a list of: predict, scores, values, row (raw floats); default: all but values",
        listed=True,
    )
    compiler: str = option(
        "auto", "--compiler", "gcc (on the PATH), ziglang (from pip), or auto: gcc if installed, else ziglang"
    )
    optimize: str = option("s", "-O --optimize", "optimization level of the compiler: s, 2 or 3")
    most: int = option(1000, "--most", "number of rows to run, evenly spaced; 0: all", "N", least=0)
    record: bool = record_keyword()
    progress: Progress = progress_keyword()


@dataclass(frozen=True)
class ActivityOptions:
    design: Any = field(metadata=FOLDER)
    rows: Any = field(metadata=flag("--rows", ROWS, "FILE", takes=TABLE))
    _: KW_ONLY
    label: Any = label_option()
    progress: Progress = progress_keyword()


@dataclass(frozen=True)
class LearnInputsOptions:
    source: Any = field(metadata=SOURCE)
    rows: Any = field(metadata=flag("--rows", ROWS, "FILE", takes=TABLE))
    out: Any = option(None, "-o --out", "the file to write", "FILE", needed=True)
    _: KW_ONLY
    label: Any = label_option()
    treewidth: int = option(
        4, "--treewidth", "treewidth of the network, at most; larger ones model more columns together", "N", least=1
    )
    seconds: float = option(20.0, "--time", "time limit of the search for a Bayesian network, in seconds", "SECONDS")
    samples: int | None = option(
        None, "--samples", f"number of search runs, instead of {opt.time}: gives the same file each time", "N", least=1
    )
    least_count: int = option(0, "--least-count", "write counts of rows below N as 0", "N", least=0)
    seed: int = option(0, "--seed", "seed of the search", least=0)
    trust_pickle: bool = trust_option()
    iterations: int | str | None = iterations_option()
    progress: Progress = progress_keyword()


@dataclass(frozen=True)
class SampleOptions:
    inputs: Any = field(
        metadata=argument("INPUTS", "a file that forestc model-inputs wrote", takes="str, path or InputModel")
    )
    rows: int = option(10_000, "--rows", "number of rows to draw", "N", least=1)
    out: Any = option(
        None, "-o --out", "the CSV file to write; its first line marks the rows as invented", "FILE", needed=True
    )
    _: KW_ONLY
    reach: Any = option(
        None,
        "--reach",
        "also draw rows for each leaf of this folder that the others miss and some row can reach",
        "DIR",
        takes="str, path or Design",
    )
    seed: int = option(0, "--seed", "seed of the drawn rows", least=0)
    progress: Progress = progress_keyword()


@dataclass(frozen=True)
class ReportOptions:
    """The options of `report`."""

    source: Any = field(metadata=argument("DIR|STUDY", "a folder that forestc compile or forestc explore wrote"))
    out: Any = field(metadata=flag("-o --out", "the page to write, such as report.html", "FILE"))
    _: KW_ONLY
    rows: Any = rows_option(
        "of a design: rows to measure accuracy on, and to draw histograms of; CSV, Parquet, Arrow or NumPy"
    )
    label: Any = label_option()
    peers: Any = option(None, "--peers", "of a study: others' figures, CSV or JSON: name,lut,accuracy", "FILE")
    place: bool = option(False, "--place", "of a design: place and route it, and draw where its cells lie")
    device: str | None = option(None, "--device", f"with {opt.place}: the device; default: the folder's")
    native: bool = native_option(f"with {opt.place}: prefer tools on the PATH")
    progress: Progress = progress_keyword()


@dataclass(frozen=True)
class EvidenceOptions:
    """The options of `evidence`."""

    source: Any = field(metadata=argument("DIR", "a folder that forestc compile wrote; with --verify, the evidence"))
    _: KW_ONLY
    out: Any = option(None, "-o --out", "the folder to write", "FOLDER", kind=str)
    rows: Any = rows_option("rows to check on: CSV, Parquet, Arrow or NumPy; not needed if compiled without rows")
    label: Any = label_option()
    cpu: str | None = option(
        None, "--cpu", "processor on which C is measured; default: the design's, otherwise cortex-m0plus"
    )
    prove: bool = option(True, "--no-prove", "leave out the proof of the hardware")
    native: bool = native_option()
    verify: bool = option(
        False, "--verify", "compare evidence with its files and with the tools that are installed; needs no rows"
    )
    design: Any = option(
        None, "--design", f"with {opt.verify}: the folder of the design, to compare too", "DIR", kind=str
    )
    progress: Progress = progress_keyword()


@dataclass(frozen=True)
class PrintOptions:
    model: Any = field(metadata=MODEL)
    trust_pickle: bool = trust_option()
    iterations: int | str | None = iterations_option()
    ap_types: Any = types_option()
    sum: Literal["sequential", "tree"] = sum_option()


@dataclass(frozen=True)
class PassesOptions:
    name: str | None = option(None, "", "show one pass and its options", "[NAME]")
