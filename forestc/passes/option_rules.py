"""What values an option of a pass may have: a table of rules for each pass, checked when the pass is made."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from forestc.errors import OptionError
from forestc.options.amounts import MOST_TOLERANCE

DEFAULT_TOLERANCE = 0.01  # accuracy, or R squared, that may be lost on held-out rows


@dataclass(frozen=True)
class Rule:
    """holds: whether a value is allowed. do: which ones are, for the error."""

    holds: Callable[[Any], bool]
    do: str

    def or_(self, *names: str | None, do: str = "") -> Rule:
        """The rule, which also allows some names, or None."""
        return Rule(lambda value: value in names or self.holds(value), do or self.do)


def is_number(value: object) -> bool:
    """Whether it is an int or a float; truth values are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def one_of(*names: str) -> Rule:
    """One of these texts."""
    return Rule(lambda value: value in names, f"use {', '.join(names[:-1])} or {names[-1]}")


def whole(low: int, high: int | None = None, do: str = "") -> Rule:
    """A whole number from low to high, both included."""
    return Rule(
        lambda value: isinstance(value, int) and is_number(value) and low <= value and (high is None or value <= high),
        do or f"use {low} to {high}",
    )


SHARE = Rule(lambda value: is_number(value) and 0 <= value <= 1, "use a share from 0 to 1")
CHANGE = SHARE.or_("auto", do="use auto or a share from 0 to 1")
TOLERANCE = Rule(
    lambda value: is_number(value) and (0 <= value <= MOST_TOLERANCE or value == math.inf),
    f"use a share up to {MOST_TOLERANCE:g}: 0.01 is one point (inf: any loss)",
)
FLAG = Rule(lambda value: isinstance(value, bool), "use true or false")
PRICE = Rule(
    lambda value: value == "auto" or (is_number(value) and 0 < value < 1e6), "use auto or a number above 0, such as 0.1"
)
SEED = whole(0, do="use a whole number from 0 on")


def check_options(step: Any, rules: Mapping[str, Rule]) -> None:
    """Holds the options of a pass, a frozen dataclass, against their rules, in the order of these.

    NumPy's numbers become Python's, so that printed options are plain. Raises OptionError.
    """
    for option in (field.name for field in fields(step)):
        if isinstance(getattr(step, option), np.generic):
            object.__setattr__(step, option, getattr(step, option).item())
    for option, rule in rules.items():
        value = getattr(step, option)
        if not rule.holds(value):
            raise OptionError(f"{step.name}: {option}={value}", do=rule.do)
