"""The options of `compile`, one frozen value for each stage, each option with its name on the command line.

An option is written down here once: its default, what the command line calls it, and how the manifest tells it. The
options of a stage refuse what they can refuse without the model.
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
from forestc.costs.devices import DEFAULT_TARGET, target_of
from forestc.costs.fitted import fitted
from forestc.errors import OptionError
from forestc.lowering.trees import LoweringOptions
from forestc.passes import passes_from
from forestc.passes.base import Pass, print_pass
from forestc.passes.levels import HELD_OUT, check_tolerance, level_number, own_held_out
from forestc.rows.given import share_of
from forestc.rows.labels import label_columns
from forestc.synthesis import known_device, need_tools

DEFAULT_TARGETS = ("verilog", "c")
AN_OBJECT = "given in Python"


class CompileKeywords(TypedDict, total=False):
    """The keywords of `forestc.compile`: the fields of the stages' options below say what they mean."""

    ranges: Any
    label: Any
    classes: Sequence[str]
    held_out: Any
    scheduler: str | None
    level: int | str | None
    tolerance: float | None
    passes: str | Sequence[Pass] | None
    scores: float | None
    targets: str | Sequence[str]
    latency: int
    outputs: str
    c_inputs: str
    c_quantiser: str
    c_values: str
    stream: StreamOptions | None
    device: str | None
    clock_mhz: float | None
    native: bool
    try_anyway: bool
    name: str | None
    trust_pickle: bool


def _flag(flag: str, told: Callable[[Any], Any] = lambda value: value, key: str = "") -> dict[str, Any]:
    """Of an option: the flag of the command line, how its value is told as JSON, and by which key (its own name)."""
    return {"flag": flag, "told": told, "key": key}


def _file(given: Any) -> str | None:
    return None if given is None else Path(given).name if isinstance(given, str | Path) else AN_OBJECT


def _share_or_file(held_out: Any) -> str | float | None:
    """A share, a file's name, or what stands for objects."""
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
    """The rows of a model, and what is known of them.

    rows: a path, a 2-D array or a data frame: input formats and leaf bits are chosen on them; None: formats come from
    the model's own thresholds. ranges: in place of rows, a path or {name: (smallest, largest)}. label: the column that
    holds the truth (of several targets a list), or the labels themselves, (rows,) or (rows, targets). classes: names of
    the model's classes, in its order. held_out: the rows that passes are judged on: a path, an array, a frame or a pair
    (rows, labels); or a share of the rows, which is set aside. scheduler: address of a Dask scheduler.
    """

    rows: Any = None
    ranges: Any = field(default=None, metadata=_flag("--ranges", _file))
    label: Any = None
    classes: tuple[str, ...] = field(default=(), metadata=_flag("--classes", list))
    held_out: Any = field(default=None, metadata=_flag("--held-out", _share_or_file))
    scheduler: str | None = None

    def __post_init__(self) -> None:
        if self.rows is not None and self.ranges is not None:
            raise OptionError("both rows and ranges", do="give rows, or in their place ranges")
        for name in ("label", "held_out", "scheduler"):
            if self.rows is None and getattr(self, name) is not None:
                raise OptionError(f"{name} is for rows, and there are none", do="give rows, or remove it")


@dataclass(frozen=True)
class PassOptions:
    """What becomes of the forest before it is written.

    level: 0 to 3, from exact for every input to small; a list of passes. tolerance: at level 3 the accuracy (R squared)
    that may be lost on held-out rows. passes: override the level. scores: the largest error of a probability on the
    rows, or of other values as a share of their range.
    """

    level: int | None = field(default=None, metadata=_flag("-O"))
    tolerance: float | None = field(default=None, metadata=_flag("--tolerance"))
    named: tuple[Pass, ...] | None = None
    text: str | None = field(default=None, metadata=_flag("--passes", key="passes"))
    scores: float | None = field(default=None, metadata=_flag("--scores"))

    @staticmethod
    def of(
        level: int | str | None, tolerance: float | None, passes: str | Sequence[Pass] | None, scores: float | None
    ) -> PassOptions:
        """Raises OptionError for an unknown level or pass, and for a tolerance that nothing takes."""
        number = level_number(level)
        check_tolerance(number, tolerance, passes)
        named = None if passes is None else tuple(passes_from(passes, scores))
        text = passes if passes is None or isinstance(passes, str) else ",".join(map(print_pass, passes))
        return PassOptions(number, tolerance, named, text, scores)


@dataclass(frozen=True)
class HardwareOptions:
    """What is written, and for which device.

    targets: of `forestc.backends.table.TARGETS`. latency: clock cycles, 0 for combinational logic. outputs: label,
    scores, both, or auto. stream: an AXI4-Stream wrapper of the Verilog core as well. device: it is synthesised for it
    too; clock_mhz: the clock wanted there, for constraints and scripts; on devices with an estimate it stands in place
    of a latency. native: tools on the PATH first. try_anyway: even where the estimate says that it does not fit.
    """

    targets: tuple[str, ...] = field(default=DEFAULT_TARGETS, metadata=_flag("--target", list))
    latency: int = field(default=0, metadata=_flag("--latency"))
    outputs: str = field(default="auto", metadata=_flag("--outputs"))
    stream: StreamOptions | None = None
    device: str | None = field(default=None, metadata=_flag("--device"))
    clock_mhz: float | None = field(default=None, metadata=_flag("--clock", key="clock"))
    native: bool = field(default=False, metadata=_flag("--native"))
    try_anyway: bool = field(default=False, metadata=_flag("--try"))

    def __post_init__(self) -> None:
        if not self.targets:
            raise OptionError("no target", do=f"known: {', '.join(TARGETS)}")
        for target in self.targets:
            if target not in TARGETS:
                raise OptionError(f"unknown target {target!r}", do=f"known: {', '.join(TARGETS)}")
        if "verilog" in self.targets:
            fitted()  # a damaged table of costs is refused here
        elif self.stream is not None:
            raise OptionError("a stream wrapper needs the Verilog core", do="add the target verilog")
        if self.device is not None:
            known_device(self.device)
            need_tools(self.device, self.native)
            if "verilog" not in self.targets:
                raise OptionError("a device needs the Verilog core", do="add the target verilog")
        if self.clock_mhz is not None:
            if self.device is None or (self.latency and self.has_estimate):
                raise OptionError(
                    "a clock is wanted of a device, instead of a latency", do="name a device, and no latency"
                )
            if not 0 < self.clock_mhz < math.inf:
                raise OptionError(f"clock_mhz={self.clock_mhz:g}", do="give megahertz above 0")
        self.lowering  # noqa: B018  refuses a latency or outputs that there are not

    @property
    def has_estimate(self) -> bool:
        """Whether forestc knows the device's costs: of a vendor's part it does not."""
        return self.device is None or ":" not in self.device

    @property
    def lowering(self) -> LoweringOptions:
        """Of the logic, before a wanted clock has chosen a latency."""
        return LoweringOptions(self.latency, self.outputs, target_of(self.device or ""))  # type: ignore[arg-type]

    @property
    def project(self) -> ProjectOptions:
        return ProjectOptions(self.device or "", self.clock_mhz)


@dataclass(frozen=True)
class CompileOptions:
    """All options of `compile`. name: of the module and the header; None: the model's. trust_pickle: pickles are
    opened, which runs code."""

    rows: RowOptions
    passes: PassOptions
    hardware: HardwareOptions
    c: COptions
    name: str | None = None
    trust_pickle: bool = False

    @staticmethod
    def of(rows: Any, **given: Unpack[CompileKeywords]) -> CompileOptions:
        """The options of these keywords. Raises OptionError for values and combinations that can't be, TypeError for
        unknown keywords."""
        known = CompileKeywords.__annotations__
        if unknown := [key for key in given if key not in known]:
            raise TypeError(f"compile() got an unexpected keyword argument {unknown[0]!r}")
        passes = PassOptions.of(given.get("level"), given.get("tolerance"), given.get("passes"), given.get("scores"))
        targets = given.get("targets", DEFAULT_TARGETS)
        if isinstance(targets, str):
            targets = [name.strip() for name in targets.split(",") if name.strip()]
        values: dict[str, Any] = dict(given)

        def some(*names: str) -> dict[str, Any]:
            return {name: values[name] for name in names if name in values}

        clock = values.get("clock_mhz")
        return CompileOptions(
            RowOptions(
                rows, classes=tuple(values.get("classes", ())), **some("ranges", "label", "held_out", "scheduler")
            ),
            passes,
            HardwareOptions(
                tuple(targets),
                clock_mhz=None if clock is None else float(clock),
                **some("latency", "outputs", "stream", "device", "native", "try_anyway"),
            ),
            COptions(**{name[2:]: value for name, value in some("c_inputs", "c_quantiser", "c_values").items()}),
            **some("name", "trust_pickle"),
        )

    @property
    def sets_aside(self) -> bool:
        """Whether the level holds rows out by itself, as it was given none to judge on."""
        return own_held_out(self.passes.level, self.passes.named, self.rows.rows, self.rows.held_out)

    @property
    def held_out(self) -> Any:
        """What is held out: as given, or the share that the level sets aside."""
        return HELD_OUT if self.sets_aside else self.rows.held_out

    def of_folder(self, lowering: LoweringOptions) -> dict[str, Any]:
        """What the files of the folder depend on, the model aside: the manifest's `options`."""
        hardware = self.hardware
        told: dict[str, Any] = {"targets": sorted(set(hardware.targets)), "latency": lowering.latency}
        told["outputs"] = hardware.outputs
        if lowering.target != DEFAULT_TARGET:
            told["target"] = lowering.target
        told["c"] = vars(self.c)
        if hardware.stream is not None:
            told["stream"] = vars(hardware.stream)
        if hardware.device is not None:
            told["device"] = hardware.device
        if hardware.clock_mhz is not None:
            told["clock_mhz"] = hardware.clock_mhz
        return told

    def told(self) -> dict[str, Any]:
        """As JSON: files by their names, and `given in Python` for what no command line can say."""
        return {each.key: each.value for each in self.flags()}

    def flags(self) -> list[Flag]:
        """Every option that changes what is written, in the order of a command line."""
        wrapper, plain = self.hardware.stream or StreamOptions(), StreamOptions()
        return [
            *_flags(self.rows),
            Flag("label", "--label", _label(self.rows.label, self.rows.rows), None),
            *_flags(self.passes),
            *_flags(self.hardware),
            *(
                Flag(f"c_{one.name}", f"--c-{one.name}", getattr(self.c, one.name), one.default)
                for one in fields(self.c)
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
    """An option as the manifest (`key`) and the command line (`flag`) call it; value and default as JSON."""

    key: str
    flag: str
    value: Any
    default: Any


def _flags(options: Any) -> list[Flag]:
    found = []
    for one in fields(options):
        if one.metadata:
            told, key = one.metadata["told"], one.metadata["key"] or one.name
            found.append(Flag(key, one.metadata["flag"], told(getattr(options, one.name)), told(one.default)))
    return found
