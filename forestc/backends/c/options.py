"""Defines the options of the C header that `compile` writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from forestc.errors import OptionError, opt
from forestc.fields.amounts import amount, forms
from forestc.fields.options import KeyedFlag, option

CInputs = Literal["words", "struct", "float", "raw"]
CQuantizer = Literal["auto", "none", "float", "double"]
CValues = Literal["none", "q15", "q31", "float"]
Layout = Literal["branches", "ranked", "nodes", "masks", "mixed"]
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
    """Options of the C header.

    `forestc.backends.c.check` refuses values and combinations that make no sense.

    Parameters
    ----------
    c_inputs : {"words", "struct", "float", "raw"}, default="words"
        What `predict` takes. "words": the quantized features as integers in one array (the manifest says how to compute
        them). "struct": the same as members of a struct, each of its own type. "float": the model's own columns as
        floats. "raw": the same columns in the types of `c_types`.
    c_quantizer : {"auto", "none", "float", "double"}, default="auto"
        Add a function that turns raw rows of this type into words. "auto": the type in which the model reads its
        columns.
    c_values : {"none", "q15", "q31", "float"}, default="q31"
        Add a function for the probabilities of a classifier or the values of a regression, in fixed point of 15 or 31
        bits or as float. Functions that a program does not call take no space.
    c_layout : str, default="auto"
        How trees are written. "branches": nested ifs, the fastest. "ranked": nested ifs, a function for each tree, on
        ranks of words among their thresholds, so that a split holds a byte. "nodes": tables that one loop reads, the
        smallest. "masks": tables of conditions and of the leaves that remain if one fails, for trees of up to 32
        leaves; each condition is evaluated at most once. "mixed": the smallest trees, with up to half of all splits,
        as branches, the others as nodes. These choose a layout, with `cpu` by measurement, otherwise by the number of
        splits. "smallest": the layout of fewest bytes. "fastest": of fewest instructions. "balanced": the smallest
        with at most twice as many instructions as the fastest. "auto": fastest with a budget of flash but none of
        instructions, smallest the other way round, otherwise balanced.
    c_project : str, default="none"
        Files for build systems beside the header: a list of selftest, cmake, platformio, arduino, zephyr, esp-idf,
        esphome and serial (answers rows over a serial port); or "all". Each comes with a self-test, NAME_selftest.h.
    c_types : str, default=""
        Types of the columns for `c_inputs="raw"`, by name or position, such as "adc=int16,3=uint8,*=float".
    cpu : str, default=""
        The processor, or board, for which layouts are compiled and run to choose one.
    flash : int or str, optional
        The most bytes of flash that a prediction may take, such as 4000 or "4KiB". Budgets are held against what the
        compiler of `measure` makes.
    ram : int or str, optional
        The most bytes of stack and static RAM.
    instructions : int or str, optional
        The most instructions (cycles on AVR) of a prediction, for the inputs that are run: some rows, and inputs of
        long paths. The layout "nodes" is held to its bound for any input, where there is one.
    """

    c_inputs: CInputs = _c(
        "words",
        "--c-inputs",
        "inputs of the C functions: words (an array of integers), struct (integers as members), float or "
        "raw (raw rows)",
    )
    c_quantizer: CQuantizer = _c(
        "auto",
        "--c-quantizer",
        "type of raw rows that the C function NAME_quantize turns into words: auto, none, float or double",
    )
    c_values: CValues = _c(
        "q31", "--c-values", "type of probabilities and values in C: q15, q31 (fixed point), float or none"
    )
    c_layout: CLayout = _c(
        "auto",
        "--c-layout",
        "form of the trees in C. branches: nested ifs, fast; ranked: nested ifs on ranks "
        "of one byte, smaller; nodes, masks: tables, small; mixed: branches and nodes. Or "
        f"smallest, fastest, balanced (the smallest within twice the instructions of the fastest), which {opt.cpu} "
        f"makes measured; auto: within {opt.flash} and {opt.instructions}, otherwise balanced",
    )
    c_project: str = _c(
        "none",
        "--c-project",
        "files for build systems beside the header, with a self-test: none, all, or a list of selftest, "
        "cmake, platformio, arduino, zephyr, esp-idf, esphome, and serial, which answers rows over a serial port",
        takes_rest=True,
    )
    c_types: str = _c(
        "",
        "--c-types",
        f"types of columns for {opt.c_inputs:raw}, by name or position: adc=int16,3=uint8,*=float",
        takes_rest=True,
    )
    cpu: str = _c(
        "", "--cpu", "processor or board for which layouts are compiled and run to choose one; see forestc measure"
    )
    flash: int | str | None = _budget(
        "--flash", "largest number of flash bytes that a prediction in C may take, as in 4000 or 4KiB", "BYTES"
    )
    ram: int | str | None = _budget(
        "--ram", "largest number of bytes of stack and static RAM that a prediction in C may take", "BYTES"
    )
    instructions: int | str | None = _budget(
        "--instructions",
        "largest number of instructions (on AVR cycles) of a prediction in C, for the inputs that are run",
        "N",
    )

    def __post_init__(self) -> None:
        for name, unit in UNITS.items():
            if isinstance(text := getattr(self, name), str):
                value = amount(text, unit)
                if value is None:
                    raise OptionError(
                        f"{text!r} is no number of {unit}", where=getattr(opt, name), do=f"write it as {forms(unit)}"
                    )
                object.__setattr__(self, name, value)

    @property
    def raw(self) -> bool:
        """True if the header takes raw rows."""
        return self.c_inputs in ("float", "raw")

    @property
    def quantizes(self) -> bool:
        """True if the header has a function from raw rows to words."""
        return not self.raw and self.c_quantizer != "none"

    @property
    def limits(self) -> dict[str, int]:
        """The given budgets by name."""
        limits: dict[str, int | None] = {name: getattr(self, name) for name in UNITS}
        return {name: limit for name, limit in limits.items() if limit is not None}

    def c_record(self) -> dict[str, Any]:
        """Returns these options as manifests store them, without `c_`."""
        return {entry.name.removeprefix("c_"): getattr(self, entry.name) for entry in fields(COptions)}


def c_options_of(record: Mapping[str, Any]) -> COptions:
    """Returns the options that `c_record` has written. Raises TypeError for unknown options."""
    budgets = ("cpu", *UNITS)
    return COptions(**{name if name in budgets else f"c_{name}": value for name, value in record.items()})
