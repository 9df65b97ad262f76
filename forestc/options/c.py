"""The options of the C header, which `compile` has too."""

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

UNITS = {"flash": "bytes", "ram": "bytes", "instructions": "instructions"}  # of the budgets
C = KeyedFlag("--c", "options of the C header, as in layout=nodes,values=q15 or cpu=cortex-m4,flash=16KiB")


def _c(default: object, flags: str, help: str, metavar: str = "", **more: Any) -> Any:
    """A field of an option of C, which is a key of `--c`."""
    return option(default, flags, help, metavar, within=C, **more)


def _budget(flags: str, help: str, metavar: str) -> Any:
    """A field of an amount: a text is read once, when the options are made."""
    recorded = {"type": ["integer", "null"]}
    return _c(None, flags, help, metavar, kind=str, schema=recorded)


@dataclass(frozen=True, kw_only=True)
class COptions:
    """The options of the C header; `forestc.backends.c.check` refuses values and combinations that make no sense.

    c_inputs: `words` takes the quantized features as integers in one array (the manifest says how they are made);
    `struct` the same as members of a struct, each of its own type; `float` takes the model's own columns as floats.
    c_quantizer: adds a function that turns raw rows of `float` or `double` into words; `auto` chooses the type in which
    the model reads its columns; `none` adds none. c_values: adds a function for the probabilities of a classifier or
    the values of a regression, in fixed point of 15 or 31 bits or as `float`; `none` adds none. Both are inline:
    programs that do not call them do not contain them. c_layout: `branches` writes trees as nested ifs, the fastest;
    `calls` the same, each tree a function that stays one; `ranked` as `calls`, on words that were ranked among their
    thresholds, so that a split holds a byte; `nodes` as tables that one loop reads, the smallest; `masks` as tables of
    conditions, each evaluated at most once, and of the leaves that are left where one does not hold, for trees of up to
    32 leaves; `mixed` the smallest trees, with half of the splits, as branches, the others as nodes; `smallest` takes
    the one of the fewest bytes that keeps the budgets, `fastest` that of the fewest instructions in the worst case,
    `balanced` the smallest within twice those, `auto` the fastest within a budget of bytes alone, the smallest within
    one of instructions alone, else as `balanced`. c_project: files beside the header for build systems, a list of
    selftest, cmake, platformio, arduino and zephyr, or `all`; each comes with a self-test, NAME_selftest.h. cpu: the
    processor for which `auto` chooses. flash, ram, instructions: the most bytes, bytes of stack, and instructions of
    any prediction (cycles on AVR) that `predict` (of regressions `scores`) may take there by any compiler that
    `measure` knows, by the upper ends of estimates; a number, or a text such as 4k, 4kB or 4KiB.
    """

    c_inputs: CInputs = _c(
        "words", "--c-inputs", "words: an array of integers; struct: integers as members; float or raw: rows"
    )
    c_quantizer: CQuantizer = _c(
        "auto", "--c-quantizer", "C function from raw rows to words: auto, none, float or double"
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
        "", "--c-types", "types of --c-inputs raw: adc=int16,3=uint8,*=float (name or position)", takes_rest=True
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
        """Whether the header takes raw rows."""
        return self.c_inputs in ("float", "raw")

    @property
    def quantizes(self) -> bool:
        """Whether the header turns raw rows into words."""
        return not self.raw and self.c_quantizer != "none"

    @property
    def limits(self) -> dict[str, int]:
        """The budgets that are set, by name."""
        limits: dict[str, int | None] = {name: getattr(self, name) for name in UNITS}
        return {name: limit for name, limit in limits.items() if limit is not None}

    def c_record(self) -> dict[str, Any]:
        """These options as manifests keep them, without `c_`."""
        return {entry.name.removeprefix("c_"): getattr(self, entry.name) for entry in fields(COptions)}


def c_options_of(record: Mapping[str, Any]) -> COptions:
    """The options that a manifest keeps. Raises TypeError for unknown ones."""
    budgets = ("cpu", *UNITS)
    return COptions(**{name if name in budgets else f"c_{name}": value for name, value in record.items()})
