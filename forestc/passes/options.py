"""Defines the options of passes, as fields of the pass's dataclass:

    leaf_bits: Annotated[int | Literal["auto"], Range(1, 8), tried(1, 2, 3), "bits of the leaves"] = "auto"

`Range` gives the allowed numbers; `tried` gives the values that a search tries.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from forestc.errors import OptionError
from forestc.fields.amounts import MOST_TOLERANCE
from forestc.fields.parameters import Choice, Parameter, Real, Value, Whole
from forestc.passes.base import Pass

DEFAULT_TOLERANCE = 0.01  # share of accuracy that may be lost on held-out rows by default
MOST_LEAF_BITS = 32


@dataclass(frozen=True)
class Range:
    """The allowed numbers of an option, from `low` to `high`."""

    low: float
    high: float = math.inf
    words: str = ""  # describes the range in error messages
    above: bool = False  # True to exclude `low`
    below: bool = False  # True to exclude `high`
    also: float | None = None  # one more allowed number

    def holds(self, value: float) -> bool:
        after = self.low < value if self.above else self.low <= value
        return value == self.also or (after and (value < self.high if self.below else value <= self.high))

    def __str__(self) -> str:
        return self.words or (
            f"a whole number from {self.low} on" if self.high == math.inf else f"{self.low} to {self.high}"
        )


def tried(*values: Value, when: Mapping[str, tuple[Value, ...]] | None = None, approximate: bool = True) -> Choice:
    """Returns the values that a search tries for an option. when, approximate: see `Choice`."""
    return Choice("", values, when, approximate)


def tried_from(low: float, high: float, *, log: bool = False) -> Parameter:
    """Returns the range in which a search varies an option: whole numbers if both ends are ints. log: True for a
    logarithmic scale."""
    if isinstance(low, int) and isinstance(high, int):
        return Whole("", low, high, log=log, approximate=True)
    return Real("", low, high, log=log, approximate=True)


SHARE = Range(0, 1, "a share from 0 to 1")
LOSS = Range(
    0, MOST_TOLERANCE, f"a share up to {MOST_TOLERANCE:g}: 0.01 is one point (inf: any loss)", also=math.inf
)  # fmt: skip
Tolerance = Annotated[
    float, LOSS,
    "accuracy (R squared of a regression) that may be lost against the model on held-out rows, including 1.5 "
        "standard errors.",
]  # fmt: skip
ChangeAllowed = Annotated[
    float | Literal["auto"], SHARE,
    "largest share of the given rows whose decision may change by rounding features and leaves. For a "
        "regression, largest error as a share of the range of scores. Not used with a tolerance. auto: no "
        "decision, or 0.01 of a regression's range.",
]  # fmt: skip
Copies = Annotated[int, Range(0, 100), "number of copies added for each row, with some values taken from other rows."]
Mix = Annotated[float, SHARE, "share of the values of a copied row that come from other rows of the same class."]
Seed = Annotated[int, Range(0), "seed of the pass's random numbers; --seed sets the seed of all passes."]


@dataclass(frozen=True)
class PassOption:
    """An option of a pass, read from its field."""

    name: str
    default: Any
    types: tuple[Any, ...]  # allowed Python types; a Literal stands for its texts
    limits: Range | None  # allowed numbers
    space: Parameter | None  # values that a search tries; None to keep the default
    meaning: str

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for part in self.types if get_origin(part) is Literal for name in get_args(part))

    @property
    def type(self) -> str:
        """The allowed types as Python writes them, such as `int | str`."""
        return " | ".join(dict.fromkeys(map(_type_name, self.types)))

    @property
    def values(self) -> str:
        """The allowed values in words; empty if the type alone says them."""
        allowed = ["true", "false"] if bool in self.types else list(self.names)
        allowed += [] if self.limits is None else [str(self.limits)]
        return " or ".join(part for part in (", ".join(allowed[:-1]), *allowed[-1:]) if part)

    def allows(self, value: object) -> bool:
        if not self.values:
            return True
        if value is None or isinstance(value, bool):
            return type(value) in self.types
        if isinstance(value, str):
            return value in self.names
        numbers = (int, float) if float in self.types else (int,)
        return self.limits is not None and isinstance(value, numbers) and self.limits.holds(value)


def _type_name(part: Any) -> str:
    if get_origin(part) is Literal:
        return "str"
    if part is NoneType:
        return "None"
    return str(part).replace("collections.abc.", "") if get_args(part) else str(part.__name__)


@cache
def options_of(kind: type[Pass]) -> tuple[PassOption, ...]:
    hints, options = get_type_hints(kind, include_extras=True), []
    for entry in fields(kind):  # type: ignore[arg-type]
        hint, *notes = get_args(hints[entry.name])
        types = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        limits = next((note for note in notes if isinstance(note, Range)), None)
        space = next((replace(note, name=entry.name) for note in notes if isinstance(note, Parameter)), None)
        meaning = [note for note in notes if isinstance(note, str)][-1]
        options.append(PassOption(entry.name, entry.default, types, limits, space, meaning))
    return tuple(options)


def space_of(kind: type[Pass]) -> tuple[Parameter, ...]:
    """Returns a tuple of the options of a pass that a search may vary, with their values."""
    return tuple(option.space for option in options_of(kind) if option.space is not None)


def check_options(step: Pass) -> None:
    """Raises OptionError for an option's value that is not allowed. Replaces NumPy numbers, in place, by Python's."""
    for option in options_of(type(step)):
        value = getattr(step, option.name)
        if isinstance(value, np.generic):
            value = value.item()
            object.__setattr__(step, option.name, value)
        if not option.allows(value):
            raise OptionError(f"{option.name}={value}", where=f"pass {step.name}", do=f"use {option.values}")


@dataclass(frozen=True, kw_only=True)
class Seeded:
    """A base class for passes that draw at random, with this seed."""

    seed: Seed = 0
