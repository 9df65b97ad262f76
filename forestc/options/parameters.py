"""What a search may try: the options of passes, of training and of compilation, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Value = str | int | float | bool | None


@dataclass(frozen=True)
class Choice:
    """One of a few values. when: the parameter is used only while others have one of the named values. approximate:
    whether values of it can change what the design answers."""

    name: str
    values: tuple[Value, ...]
    when: Mapping[str, tuple[Value, ...]] | None = None
    approximate: bool = False


@dataclass(frozen=True)
class Whole:
    """A whole number from low to high, both included, in steps; log: small ones are tried as often as large ones."""

    name: str
    low: int
    high: int
    step: int = 1
    log: bool = False
    when: Mapping[str, tuple[Value, ...]] | None = None
    approximate: bool = False


@dataclass(frozen=True)
class Real:
    """A number from low to high, both included; log: on a logarithmic scale."""

    name: str
    low: float
    high: float
    log: bool = False
    when: Mapping[str, tuple[Value, ...]] | None = None
    approximate: bool = False


Parameter = Choice | Whole | Real


def used(parameter: Parameter, chosen: Mapping[str, Any]) -> bool:
    """Whether the parameter's conditions hold for the values chosen so far; parameters come after those they name."""
    return all(chosen.get(name) in values for name, values in (parameter.when or {}).items())
