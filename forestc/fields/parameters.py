"""Describes the values that a search may try for options of passes, of training and of compilation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Value = str | int | float | bool | None


@dataclass(frozen=True)
class Choice:
    """A parameter with a few values."""

    name: str
    values: tuple[Value, ...]
    when: Mapping[str, tuple[Value, ...]] | None = None  # values that other parameters must have for this one to count
    approximate: bool = False  # True if the values can change the design's answers


@dataclass(frozen=True)
class Whole:
    """A parameter that is a whole number from `low` to `high`, both included."""

    name: str
    low: int
    high: int
    step: int = 1
    log: bool = False  # True for a logarithmic scale
    when: Mapping[str, tuple[Value, ...]] | None = None
    approximate: bool = False


@dataclass(frozen=True)
class Real:
    """A parameter that is a number from `low` to `high`, both included."""

    name: str
    low: float
    high: float
    log: bool = False  # True for a logarithmic scale
    when: Mapping[str, tuple[Value, ...]] | None = None
    approximate: bool = False


Parameter = Choice | Whole | Real


def used(parameter: Parameter, chosen: Mapping[str, Any]) -> bool:
    """Returns True if the values chosen so far meet the parameter's `when`."""
    return all(chosen.get(name) in values for name, values in (parameter.when or {}).items())
