"""Changes a few options of a trial on the front at random, so that the search tries neighbours of good designs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from forestc.fields.parameters import Choice, Parameter, Real, used

CHANGED = 1.5  # changes about this many parameters
STEP = 0.12  # sets the standard deviation of a number's change, as share of its range


def mutated(space: Sequence[Parameter], options: Mapping[str, Any], random: np.random.Generator) -> dict[str, Any]:
    """Returns the options with some parameters drawn again. Numbers are drawn near the old value; choices get another
    value. Options that are not in `space` are left out."""
    present = [parameter.name for parameter in space if parameter.name in options]
    changed = {name for name in present if random.random() < CHANGED / len(present)} if present else set()
    if present and not changed:
        changed = {present[int(random.integers(len(present)))]}
    drawn: dict[str, Any] = {}
    for parameter in space:
        if not used(parameter, drawn):
            continue
        if parameter.name not in options:
            drawn[parameter.name] = _drawn(parameter, None, random)
        else:
            before = options[parameter.name]
            drawn[parameter.name] = _drawn(parameter, before, random) if parameter.name in changed else before
    return drawn


def _drawn(parameter: Parameter, before: Any, random: np.random.Generator) -> Any:
    """Returns a random value of a parameter, close to `before` if given."""
    if isinstance(parameter, Choice):
        others = [value for value in parameter.values if value != before or type(value) is not type(before)]
        return others[int(random.integers(len(others)))] if others else before
    low, high = (math.log(end) if parameter.log else float(end) for end in (parameter.low, parameter.high))
    if before is None:
        position = float(random.uniform(low, high))
    else:
        position = (math.log(before) if parameter.log else before) + float(random.normal(0.0, STEP * (high - low)))
    value = min(max(position, low), high)
    value = math.exp(value) if parameter.log else value
    if isinstance(parameter, Real):
        return min(max(value, parameter.low), parameter.high)
    return min(
        parameter.low + parameter.step * round((value - parameter.low) / parameter.step),
        parameter.high - (parameter.high - parameter.low) % parameter.step,
    )
