"""The options of `compile`, one frozen value for each stage, each option with its name on the command line.

Each option is defined here once: its default, its flag, and how the manifest records it. A stage's options reject
invalid values as far as they can without the model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, Unpack

from forestc.backends.axi_stream import StreamOptions
from forestc.backends.c import COptions
from forestc.backends.project import ProjectOptions
from forestc.backends.table import TARGETS
from forestc.costs.devices import DEFAULT_FAMILY, family_of
from forestc.costs.fitted import fitted
from forestc.errors import OptionError
from forestc.lowering.trees import LoweringOptions
from forestc.passes import passes_from
from forestc.passes.base import Pass, print_pass
from forestc.passes.levels import check_effort, check_tolerance, level_number
from forestc.passes.portfolio import Stop
from forestc.rows.given import share_of
from forestc.rows.labels import label_columns
from forestc.synthesis import known_device, need_tools

DEFAULT_TARGETS = ("verilog", "c")
AN_OBJECT = "given in Python"
BUDGET = ("cpu", "flash", "ram", "instructions")  # of the C header; their names have no c_


class CompileKeywords(TypedDict, total=False):
    """The keywords of `forestc.compile`. The options of the stages, below, explain them."""

    ranges: Any
    inputs: Any
    label: Any
    classes: Sequence[str]
    held_out: Any
    scheduler: str | None
    level: int | str | None
    tolerance: float | None
    effort: int | str | None
    passes: str | Sequence[Pass] | None
    scores: float | None
    targets: str | Sequence[str]
    latency: int
    outputs: str
    c_inputs: str
    c_quantiser: str
    c_values: str
    c_layout: str
    c_project: str
    c_types: str
    cpu: str
    flash: int | None
    ram: int | None
    instructions: int | None
    stream: StreamOptions | None
    device: str | None
    clock_mhz: float | None
    native: bool
    no_synth: bool
    try_anyway: bool
    name: str | None
    trust_pickle: bool


def _flag(flag: str, to_json: Callable[[Any], Any] = lambda value: value, key: str = "") -> dict[str, Any]:
    """Metadata of an option's field: its flag, its value as JSON, and its key in the manifest (default: its name)."""
    return {"flag": flag, "to_json": to_json, "key": key}


def _file(given: Any) -> str | None:
    return None if given is None else Path(given).name if isinstance(given, str | Path) else AN_OBJECT


def _share_or_file(held_out: Any) -> str | float | None:
    """A share, a file's name, or AN_OBJECT."""
    share = share_of(held_out) if isinstance(held_out, str | int | float) else None
    return _file(held_out) if share is None else share


def _label(label: Any, rows: Any) -> str | list[str] | None:
    if label is None:
        return None
    columns = label_columns(label, rows)
    if columns is None:
        return AN_OBJECT
    return columns if isinstance(columns, str) else [str(name) for name in columns]


@dataclass(frozen=True)
class RowOptions:
    """The rows, and what they mean.

    rows: a path, a 2-D array or a data frame, on which input formats and leaf bits are chosen. None: formats come from
    the model's own thresholds. ranges: used instead of rows: a path or {name: (smallest, largest)}. label: the column
    with the labels (a list of columns for several prediction targets), or the labels themselves, (rows,) or (rows,
    targets). inputs: an input model or its path: how many of its rows visit each node stands in for the training rows
    that the source recorded, which C's `branches` goes by; nothing is promised on its rows. classes: names of the
    model's classes, in its order. held_out: rows on which passes are judged: a path, an array, a frame or a pair (rows,
    labels); or the share of the rows to set aside. scheduler: address of a Dask scheduler.
    """

    rows: Any = None
    ranges: Any = field(default=None, metadata=_flag("--ranges", _file))
    inputs: Any = field(default=None, metadata=_flag("--inputs", _file))
    label: Any = None
    classes: tuple[str, ...] = field(default=(), metadata=_flag("--classes", list))
    held_out: Any = field(default=None, metadata=_flag("--held-out", _share_or_file))
    scheduler: str | None = None

    def __post_init__(self) -> None:
        if self.rows is not None and self.ranges is not None:
            raise OptionError("both rows and ranges are given", do="remove one of them")
        for name in ("label", "held_out", "scheduler"):
            if self.rows is None and getattr(self, name) is not None:
                raise OptionError(f"{name} needs rows, and none are given", do="give rows, or remove it")


@dataclass(frozen=True)
class PassOptions:
    """Which passes run.

    level: 0 (exact for every input) to 3 (smallest). tolerance: at levels 2 and 3, the accuracy (R squared) that may be
    lost on rows that the model was not trained on. effort: of their search, 1 to 3, or seconds such as 60s. named: the
    passes that replace those of the level; text: as the user wrote them. scores: the largest error of a
    probability on the rows, or of other values as a share of their range.
    """

    level: int | None = field(default=None, metadata=_flag("-O"))
    tolerance: float | None = field(default=None, metadata=_flag("--tolerance"))
    effort: int | str | None = field(default=None, metadata=_flag("--effort"))
    named: tuple[Pass, ...] | None = None
    text: str | None = field(default=None, metadata=_flag("--passes", key="passes"))
    scores: float | None = field(default=None, metadata=_flag("--scores"))

    @staticmethod
    def of(
        level: int | str | None,
        tolerance: float | None,
        effort: int | str | None,
        passes: str | Sequence[Pass] | None,
        scores: float | None,
    ) -> PassOptions:
        """Raises OptionError for an unknown level or pass, and for a tolerance or effort without a level that
        searches."""
        number = level_number(level)
        check_tolerance(number, tolerance, passes)
        check_effort(number, effort, passes)
        named = None if passes is None else tuple(passes_from(passes, scores))
        text = passes if passes is None or isinstance(passes, str) else ",".join(map(print_pass, passes))
        return PassOptions(number, tolerance, effort, named, text, scores)

    @property
    def stop(self) -> Stop | None:
        """How long a level searches; None for the default."""
        return check_effort(self.level, self.effort, self.named)


@dataclass(frozen=True)
class HardwareOptions:
    """Which files are written, and for which device.

    targets: output languages, of `forestc.backends.table.TARGETS`. latency: clock cycles; 0 for combinational logic.
    outputs: label, scores, both, or auto. stream: options of an AXI4-Stream wrapper of the Verilog core; None for no
    wrapper. device: the design is also synthesised for it. clock_mhz: the wanted clock, for constraints and scripts; on
    devices with an estimate it also chooses the latency. native: prefer tools on the PATH. try_anyway: synthesise even
    if the estimate says that the design does not fit. no_synth: the device's delays place registers, and nothing is
    synthesised.
    """

    targets: tuple[str, ...] = field(default=DEFAULT_TARGETS, metadata=_flag("--target", list))
    latency: int = field(default=0, metadata=_flag("--latency"))
    outputs: str = field(default="auto", metadata=_flag("--outputs"))
    stream: StreamOptions | None = None
    device: str | None = field(default=None, metadata=_flag("--device"))
    clock_mhz: float | None = field(default=None, metadata=_flag("--clock", key="clock"))
    native: bool = field(default=False, metadata=_flag("--native"))
    try_anyway: bool = field(default=False, metadata=_flag("--try"))
    no_synth: bool = field(default=False, metadata=_flag("--no-synth"))

    def __post_init__(self) -> None:
        if not self.targets:
            raise OptionError("no target is given", do=f"known: {', '.join(TARGETS)}")
        for target in self.targets:
            if target not in TARGETS:
                raise OptionError(f"unknown target {target!r}", do=f"known: {', '.join(TARGETS)}")
        if "verilog" in self.targets:
            fitted()  # a damaged table of costs is refused here
        elif self.stream is not None:
            raise OptionError("a stream wrapper needs the Verilog core", do="add the target verilog")
        if self.device is not None:
            known_device(self.device)
            if not self.no_synth:
                need_tools(self.device, self.native)
            if "verilog" not in self.targets:
                raise OptionError("a device needs the Verilog core", do="add the target verilog")
        if self.clock_mhz is not None:
            if self.device is None or (self.latency and self.has_estimate):
                raise OptionError("a clock needs a device, and chooses the latency", do="give a device, and no latency")
            if not 0 < self.clock_mhz < math.inf:
                raise OptionError(f"clock_mhz={self.clock_mhz:g}", do="give a number of megahertz above 0")
        self.lowering  # noqa: B018  rejects an invalid latency or outputs

    @property
    def has_estimate(self) -> bool:
        """Whether forestc can estimate costs on the device: it can't for parts of vendors' tools."""
        return self.device is None or ":" not in self.device

    @property
    def lowering(self) -> LoweringOptions:
        """The options of `lower`, before a wanted clock has chosen the latency."""
        return LoweringOptions(self.latency, self.outputs, family_of(self.device or ""))  # type: ignore[arg-type]

    @property
    def project(self) -> ProjectOptions:
        return ProjectOptions(self.device or "", self.clock_mhz)


@dataclass(frozen=True)
class CompileOptions:
    """All options of `compile`. name: of the module and the header; None: the model's. trust_pickle: allows opening
    pickles, which runs code in them."""

    rows: RowOptions
    passes: PassOptions
    hardware: HardwareOptions
    c: COptions
    name: str | None = None
    trust_pickle: bool = False

    @staticmethod
    def of(rows: Any, **given: Unpack[CompileKeywords]) -> CompileOptions:
        """The options from keywords. Raises OptionError for invalid values and combinations, TypeError for unknown
        keywords."""
        known = CompileKeywords.__annotations__
        if unknown := [key for key in given if key not in known]:
            raise TypeError(f"compile() got an unexpected keyword argument {unknown[0]!r}")
        passes = PassOptions.of(
            given.get("level"), given.get("tolerance"), given.get("effort"), given.get("passes"), given.get("scores")
        )
        targets = given.get("targets", DEFAULT_TARGETS)
        if isinstance(targets, str):
            targets = [name.strip() for name in targets.split(",") if name.strip()]
        values: dict[str, Any] = dict(given)

        def some(*names: str) -> dict[str, Any]:
            return {name: values[name] for name in names if name in values}

        clock = values.get("clock_mhz")
        if "c" not in targets and values.get("cpu"):
            raise OptionError("a processor and budgets are those of C", do="add the target c, or remove --cpu")
        return CompileOptions(
            RowOptions(
                rows,
                classes=tuple(values.get("classes", ())),
                **some("ranges", "inputs", "label", "held_out", "scheduler"),
            ),
            passes,
            HardwareOptions(
                tuple(targets),
                clock_mhz=None if clock is None else float(clock),
                **some("latency", "outputs", "stream", "device", "native", "try_anyway", "no_synth"),
            ),
            COptions(
                **{name[2:]: value for name, value in values.items() if name.startswith("c_")},
                **some(*BUDGET),
            ),
            **some("name", "trust_pickle"),
        )

    def of_folder(self, lowering: LoweringOptions) -> dict[str, Any]:
        """The options on which the files of the folder depend: `options` in the manifest."""
        hardware = self.hardware
        options: dict[str, Any] = {"targets": sorted(set(hardware.targets)), "latency": lowering.latency}
        options["outputs"] = hardware.outputs
        if lowering.family != DEFAULT_FAMILY:
            options["target"] = lowering.family
        options["c"] = vars(self.c)
        if hardware.stream is not None:
            options["stream"] = vars(hardware.stream)
        if hardware.device is not None:
            options["device"] = hardware.device
        if hardware.clock_mhz is not None:
            options["clock_mhz"] = hardware.clock_mhz
        return options

    def as_dict(self) -> dict[str, Any]:
        """As JSON values: files by their names, Python objects as AN_OBJECT."""
        return {each.key: each.value for each in self.flags()}

    def flags(self) -> list[Flag]:
        """Every option that changes the files, in the order of a command line."""
        wrapper, plain = self.hardware.stream or StreamOptions(), StreamOptions()
        return [
            *_flags(self.rows),
            Flag("label", "--label", _label(self.rows.label, self.rows.rows), None),
            *_flags(self.passes),
            *_flags(self.hardware),
            *(
                Flag(name, f"--{name.replace('_', '-')}", getattr(self.c, one.name), one.default)
                for one in fields(self.c)
                for name in (one.name if one.name in BUDGET else f"c_{one.name}",)
            ),
            Flag("stream", "--stream", self.hardware.stream is not None, False),
            Flag("tdata", "--tdata", wrapper.tdata_bits, plain.tdata_bits),
            Flag("tuser", "--tuser", wrapper.user_bits, plain.user_bits),
            Flag("axi_lite", "--axi-lite", wrapper.registers, plain.registers),
            Flag("align", "--align", wrapper.align, plain.align),
            Flag("name", "--name", self.name, None),
            Flag("trust_pickle", "--trust-pickle", self.trust_pickle, False),
        ]


class Flag(NamedTuple):
    """An option: its key in the manifest, its flag on the command line, its value and default as JSON."""

    key: str
    flag: str
    value: Any
    default: Any


def _flags(options: Any) -> list[Flag]:
    found = []
    for one in fields(options):
        if one.metadata:
            to_json, key = one.metadata["to_json"], one.metadata["key"] or one.name
            found.append(Flag(key, one.metadata["flag"], to_json(getattr(options, one.name)), to_json(one.default)))
    return found
