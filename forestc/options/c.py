"""Defines the options of the C header that `compile` writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from forestc.errors import OptionError
from forestc.options.amounts import amount, forms
from forestc.options.fields import KeyedFlag, option

CInputs = Literal["words", "struct", "float", "raw"]
CQuantizer = Literal["auto", "none", "float", "double"]
CValues = Literal["none", "q15", "q31", "float"]
Layout = Literal["branches", "calls", "ranked", "nodes", "masks", "mixed"]
CLayout = Literal["auto", "smallest", "fastest", "balanced", Layout]

UNITS = {"flash": "bytes", "ram": "bytes", "instructions": "instructions"}  # lists the budgets with their units
C = KeyedFlag("--c", "options of the C header, as in layout=nodes,values=q15 or cpu=cortex-m4,flash=16KiB")


def _c(default: object, flags: str, help: str, metavar: str = "", **more: Any) -> Any:
    return option(default, flags, help, metavar, within=C, **more)


def _budget(flags: str, help: str, metavar: str) -> Any:
    """Returns a field for a budget: a number, or a text such as 4k."""
    recorded = {"type": ["integer", "null"]}
    return _c(None, flags, help, metavar, kind=str, schema=recorded)


@dataclass(frozen=True, kw_only=True)
class COptions:
    """The options of the C header; `forestc.backends.c.check` refuses wrong values and combinations. The help of each
    option describes its values.
    c_inputs: what `predict` takes. `words` and `struct` are the quantized features; `float` and `raw` are the model's
    own columns.
    c_quantizer: type of the raw rows that a further function turns into words. `auto`: the type in which the model
    reads its columns.
    c_values: type of the probabilities or values that a further function returns.
    c_layout: how trees are written, or a goal for which the layout is chosen from estimates. `smallest`: fewest bytes.
    `fastest`: fewest instructions in the worst case. `balanced`: the smallest within twice the instructions of the
    fastest. `auto`: the fastest if only flash is limited, the smallest if only instructions are, otherwise balanced.
    cpu: the processor for which a layout is chosen.
    flash, ram, instructions: most bytes, bytes of stack, and instructions (cycles on AVR) of any prediction, as numbers
    or texts such as 4k or 4KiB. Upper estimates must be within them."""

    c_inputs: CInputs = _c(
        "words",
        "--c-inputs",
        "what predict takes: words (an array of integers), struct (integers as members), float or raw (raw rows)",
    )
    c_quantizer: CQuantizer = _c(
        "auto", "--c-quantizer", "type of the C function from raw rows to words: auto, none, float or double"
    )
    c_values: CValues = _c(
        "q31", "--c-values", "type of probabilities and values in C: q15, q31 (fixed point), float or none"
    )
    c_layout: CLayout = _c(
        "auto",
        "--c-layout",
        "branches: nested ifs, fast; calls: the same, a function for each tree; ranked: calls on ranks of one byte, "
        "smaller; nodes, masks: tables, small; "
        "mixed: between; or chosen from estimates: smallest, fastest (in the worst case), balanced (the smallest "
        "within twice the instructions of the fastest); auto: what --flash and --instructions ask for, else balanced",
    )
    c_project: str = _c(
        "none",
        "--c-project",
        "files for build systems beside the header, with a self-test: none, all, or a list of selftest, "
        "cmake, platformio, arduino and zephyr",
        takes_rest=True,
    )
    c_types: str = _c(
        "",
        "--c-types",
        "types of columns for --c-inputs raw, by name or position: adc=int16,3=uint8,*=float",
        takes_rest=True,
    )
    cpu: str = _c("", "--cpu", "processor, or board, for which --c-layout auto chooses; see forestc measure")
    flash: int | str | None = _budget(
        "--flash", "most flash that a prediction in C may take, as in 4000 or 4KiB", "BYTES"
    )
    ram: int | str | None = _budget("--ram", "most stack that a prediction in C may take", "BYTES")
    instructions: int | str | None = _budget(
        "--instructions", "most instructions of any prediction in C (AVR: cycles)", "N"
    )

    def __post_init__(self) -> None:
        for name, unit in UNITS.items():
            if isinstance(text := getattr(self, name), str):
                value = amount(text, unit)
                if value is None:
                    raise OptionError(f"{name}={text!r} is no number of {unit}", do=f"write it as {forms(unit)}")
                object.__setattr__(self, name, value)

    @property
    def raw(self) -> bool:
        """True if `predict` takes raw rows."""
        return self.c_inputs in ("float", "raw")

    @property
    def quantizes(self) -> bool:
        """True if the header has a function that turns raw rows into words."""
        return not self.raw and self.c_quantizer != "none"

    @property
    def limits(self) -> dict[str, int]:
        limits: dict[str, int | None] = {name: getattr(self, name) for name in UNITS}
        return {name: limit for name, limit in limits.items() if limit is not None}

    def c_record(self) -> dict[str, Any]:
        """Returns these options for the manifest, without the prefix `c_` in their names."""
        return {entry.name.removeprefix("c_"): getattr(self, entry.name) for entry in fields(COptions)}


def c_options_of(record: Mapping[str, Any]) -> COptions:
    """Returns the options that `c_record` has written. Raises TypeError for unknown options."""
    budgets = ("cpu", *UNITS)
    return COptions(**{name if name in budgets else f"c_{name}": value for name, value in record.items()})
