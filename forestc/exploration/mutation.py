"""A choice near one on the front: the sampler models where good choices lie, this looks beside the best ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from forestc.parameters import Choice, Parameter, Real, used

CHANGED = 1.5  # parameters that are changed on average
STEP = 0.12  # standard deviation of a changed number's step, as a share of its range


def mutated(space: Sequence[Parameter], options: Mapping[str, Any], random: np.random.Generator) -> dict[str, Any]:
    """The options with one or a few parameters drawn anew: numbers near where they were, choices evenly. Those that
    come into use are drawn evenly, too; options that the space does not name, such as a level, are left out."""
    held = [one.name for one in space if one.name in options]
    changed = {name for name in held if random.random() < CHANGED / len(held)} if held else set()
    if held and not changed:
        changed = {held[int(random.integers(len(held)))]}
    found: dict[str, Any] = {}
    for one in space:
        if not used(one, found):
            continue
        if one.name not in options:
            found[one.name] = _drawn(one, None, random)
        else:
            before = options[one.name]
            found[one.name] = _drawn(one, before, random) if one.name in changed else before
    return found


def _drawn(one: Parameter, before: Any, random: np.random.Generator) -> Any:
    """A value; beside the one before it if that is a number."""
    if isinstance(one, Choice):
        others = [value for value in one.values if value != before or type(value) is not type(before)]
        return others[int(random.integers(len(others)))] if others else before
    low, high = (math.log(end) if one.log else float(end) for end in (one.low, one.high))
    if before is None:
        place = float(random.uniform(low, high))
    else:
        place = (math.log(before) if one.log else before) + float(random.normal(0.0, STEP * (high - low)))
    value = min(max(place, low), high)
    value = math.exp(value) if one.log else value
    if isinstance(one, Real):
        return min(max(value, one.low), one.high)
    return min(one.low + one.step * round((value - one.low) / one.step), one.high - (one.high - one.low) % one.step)
