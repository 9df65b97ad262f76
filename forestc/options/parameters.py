"""Describes the values that a search may try for options of passes, of training and of compilation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Value = str | int | float | bool | None


@dataclass(frozen=True)
class Choice:
    """A parameter with a few values. when: the parameter is used only while others have one of these values.
    approximate: True if its values can change the answers of the design."""

    name: str
    values: tuple[Value, ...]
    when: Mapping[str, tuple[Value, ...]] | None = None
    approximate: bool = False


@dataclass(frozen=True)
class Whole:
    """A parameter that is a whole number from low to high, both included, in steps. log: True to try small numbers as
    often as large ones."""

    name: str
    low: int
    high: int
    step: int = 1
    log: bool = False
    when: Mapping[str, tuple[Value, ...]] | None = None
    approximate: bool = False


@dataclass(frozen=True)
class Real:
    """A parameter that is a number from low to high, both included. log: True for a logarithmic scale."""

    name: str
    low: float
    high: float
    log: bool = False
    when: Mapping[str, tuple[Value, ...]] | None = None
    approximate: bool = False


Parameter = Choice | Whole | Real


def used(parameter: Parameter, chosen: Mapping[str, Any]) -> bool:
    """Returns True if the parameter is used with the values chosen so far. Its `when` may only name parameters before
    it."""
    return all(chosen.get(name) in values for name, values in (parameter.when or {}).items())
