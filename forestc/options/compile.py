"""Defines the options of `compile`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from os import PathLike
from typing import Any, Literal

from forestc.backends.table import TARGETS, TargetOptions
from forestc.errors import OptionError, opt
from forestc.fields.options import flag, keyword, option
from forestc.lowering.trees import Outputs
from forestc.options.shared import (
    GROUPS,
    HELD_OUT,
    LABELS,
    MODEL,
    RANGES,
    TABLE,
    Progress,
    iterations_option,
    label_option,
    progress_keyword,
    sampled_option,
    sum_option,
    trust_option,
    types_option,
    unseen_option,
)
from forestc.rows.ranges import OF_ROWS

_SHARE_OR_FILE = {"type": ["string", "number", "null"]}
_LEVEL = {"type": ["integer", "null"], "minimum": 0, "enum": [0, 1, 2, 3, None]}


@dataclass(frozen=True)
class _ModelAndHardware:
    model: Any = field(metadata=MODEL)
    rows: Any = field(
        metadata=flag(
            "--rows",
            "CSV (gzip too), Parquet, Arrow or NumPy; without rows, number formats keep every input's path",
            "FILE",
            needed=False,
            recorded=False,
            takes=f"{TABLE}; or None",
        )
    )
    out: Any = field(metadata=flag("-o --out", "the folder to write", "DIR", recorded=False))
    _: KW_ONLY
    ranges: Any = option(
        None,
        "--ranges",
        f"instead of {opt.rows}: ranges of the features, as CSV (feature,smallest,largest,step,missing) or JSON; rows: "
        "those of the given rows, with step 1 where all values are whole numbers",
        "FILE",
        takes=RANGES,
    )
    classes: Sequence[str] = option(
        (),
        "--classes",
        "names of the classes in the label column, in the model's order: a,b,c",
        "NAMES",
        listed=True,
    )
    missing: Literal["auto", "always"] = option(
        "auto",
        "--missing",
        "features that accept missing values; auto: features with missing values in the rows; always: "
        "wherever the model does",
    )
    unseen: Literal["count", "error"] = unseen_option()
    held_out: Any = option(
        None,
        "--held-out",
        "file of held-out rows, on which passes are scored; or a share of the given rows to set aside: 0.2 "
        "is every fifth row",
        "FILE",
        kind=str,
        schema=_SHARE_OR_FILE,
        takes=HELD_OUT,
    )
    label: Any = label_option(takes=LABELS)
    groups: Any = option(
        None,
        "--groups",
        "column that names the group of each row, such as a patient; rows of a group are held out together, and losses "
        "have the standard errors of groups",
        "COL",
        kind=str,
        schema={"type": ["string", "null"]},
        takes=GROUPS,
    )
    weights: Any = option(
        None,
        "--weights",
        "column of positive weights of the rows, with which accuracy is measured and copies of the model are trained",
        "COL",
        kind=str,
        schema={"type": ["string", "null"]},
        takes=GROUPS,
    )
    rows_are_sampled: bool = sampled_option()
    scheduler: str | None = option(
        None,
        "--scheduler",
        "address of a Dask cluster that reads the rows for share-thresholds",
        "ADDRESS",
        recorded=False,
    )
    level: int | str | None = option(
        None,
        "-O --level",
        "how much of the model may change, 0 (exact but for near ties) to 3 (smallest); default: 1; see forestc passes",
        "LEVEL",
        kind=str,
        schema=_LEVEL,
    )
    tolerance: float | str | None = option(
        None,
        "--tolerance",
        "with -O2 and -O3: accuracy that may be lost on held-out rows, such as 0.01 or 1%; default: 0.01",
        "T",
        kind=str,
        schema={"type": ["number", "null"]},
    )
    effort: int | str | None = option(
        None,
        "--effort",
        "with -O2 and -O3: effort of the search, 1 to 3, or seconds (60s); default: 2",
        "N",
        kind=str,
        schema={"type": ["string", "integer", "null"]},
    )
    sure: bool = option(
        False,
        "--sure",
        "with -O2 and -O3: take only designs whose loss is shown to be within the tolerance; otherwise -O1's",
    )
    keep: Literal["decisions", "paths"] | None = option(
        None,
        "--keep",
        "with -O2 and -O3: also keep all decisions, or all paths, of the given rows",
        schema={"enum": ["decisions", "paths", None]},
    )
    passes: str | Sequence[Any] | None = option(
        None,
        "--passes -p",
        "passes to run instead of a level, as in simplify,round-leaves{leaf_bits=4}; none: only the passes "
        "that files need",
        schema={"type": ["string", "null"]},
    )
    scores: float | None = option(
        None,
        "--scores",
        "largest error of probabilities on the given rows; for other values, as a share of their range",
        "E",
    )
    seed: int = option(
        0,
        "--seed",
        "seed of all passes that use random numbers; pass{seed=N} sets the seed of one pass",
        least=0,
        recorded=False,
    )
    targets: str | Sequence[str] = option(
        ("verilog", "c"),
        "--target",
        f"output languages, a list of: {', '.join(TARGETS)}",
        schema={"type": "array", "items": {"enum": [*TARGETS]}},
    )
    latency: int = option(
        0,
        "--latency",
        "clock cycles from input to output; 0: combinational",
        schema={"type": "integer", "minimum": 0},
    )
    reset: Literal["none", "sync", "async"] = option(
        "none",
        "--reset",
        "reset of all registers by a port rst, high for reset: sync, at the clock's edge, or async; none: registers "
        "only have initial values",
    )
    enable: bool = option(
        False, "--enable", "add a port en, a clock enable: while it is low, registers keep their words"
    )
    outputs: Outputs = option(
        "auto",
        "--outputs",
        "what the design returns. Hardware: label, scores or both; auto: the label, or a regression's scores. All "
        "targets: margins (the scores before the link, of all classes) or leaves (the library's numbers of the "
        "leaves). top2: the two best classes, and the distance of their scores",
    )
    device: str | None = option(
        None,
        "--device",
        "device or board for which the design is also synthesized, placed and routed; see forestc synth",
    )
    clock_mhz: float | None = option(
        None,
        "--clock",
        f"with {opt.device}: clock rate in MHz to reach; chooses the latency and sets the clock constraint",
        "MHZ",
        least=1,
        key="clock",
        schema={"type": ["number", "null"]},
    )
    native: bool = option(False, "--native", f"with {opt.device}: prefer tools on the PATH")
    try_anyway: bool = option(
        False,
        "--try",
        f"with {opt.device}: synthesize even if the estimate says that the design does not fit the device",
    )
    no_synth: bool = option(
        False, "--no-synth", f"with {opt.device}: place registers for the device, but do not run synthesis"
    )


@dataclass(frozen=True)
class CompileOptions(TargetOptions, _ModelAndHardware):
    """The options of `forestc.compile`, which describes them."""

    _: KW_ONLY
    engine: Any = option(
        None,
        "--engine",
        f"with {opt.target:engine}: a folder that forestc engine wrote; default: an engine that fits this model",
        "DIR",
    )
    name: str | None = option(None, "--name", "name of the module and the header; default: the model file's")
    trust_pickle: bool = trust_option()
    iterations: int | str | None = iterations_option()
    ap_types: Any = types_option()
    sum: Literal["sequential", "tree"] = sum_option()
    results: Sequence[Any] | None = keyword(
        None, "Results of the passes, if they ran before on the same model and rows. Their promises are checked again"
    )
    progress: Progress = progress_keyword()

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.out, str | PathLike | None):
            given = type(self.out).__name__
            raise OptionError(
                f"out is a {given}, not a folder",
                where=opt.out,
                do='labels are a keyword: compile(model, X, "out", label=y)',
            )
        of_rows = isinstance(self.ranges, str) and self.ranges == OF_ROWS
        if self.rows is not None and self.ranges is not None and not of_rows:
            raise OptionError(f"{opt.rows} are given, too", where=opt.ranges, do="remove one of them")
        if of_rows and self.rows is None:
            raise OptionError(
                "no rows are given", where=f"{opt.ranges:rows}", do=f"give {opt.rows}, or a file of ranges"
            )
        for name in ("groups", "weights", "held_out", "scheduler"):
            if of_rows and getattr(self, name) is not None:
                do = f"remove it, or {opt.ranges}"
                raise OptionError("ranges stand for the rows", where=getattr(opt, name), do=do)
        if self.weights is not None and self.scheduler is not None:
            raise OptionError("a cluster reads no weights", where=opt.weights, do=f"remove it, or {opt.scheduler}")
        for name in ("label", "groups", "weights", "held_out", "scheduler"):
            if self.rows is None and getattr(self, name) is not None:
                raise OptionError(
                    "this needs rows, and none are given", where=getattr(opt, name), do=f"give {opt.rows}, or remove it"
                )
