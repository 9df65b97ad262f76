"""Defines the figures that goals and limits of a search may name."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from forestc.backends.c.options import UNITS
from forestc.errors import OptionError, known_names, opt
from forestc.exploration.study import Goal, Limit
from forestc.fields.amounts import amount

Needs = Literal["", "device", "cpu"]


@dataclass(frozen=True)
class Figure:
    maximize: bool  # True if more is better
    unit: str
    needs: Needs  # the option that the figure requires, if any
    means: str  # meaning in words, for users


FIGURES: dict[str, Figure] = {
    "accuracy": Figure(True, "", "", "share of right decisions on validation rows; R squared of a regression"),
    "lut": Figure(False, "LUTs", "device", "lookup tables, the decision included"),
    "ff": Figure(False, "flip-flops", "device", "flip-flops"),
    "latency_cycles": Figure(False, "cycles", "device", "clock cycles from input to output"),
    "fmax_mhz": Figure(True, "MHz", "device", "clock rate, with registers on all ports"),
    "flash": Figure(False, "bytes", "cpu", "code and tables of one prediction"),
    "ram": Figure(False, "bytes", "cpu", "stack and static RAM"),
    "instructions": Figure(False, "instructions", "cpu", "most of the predictions that are run, cycles on AVR"),
    "mean_instructions": Figure(False, "instructions", "cpu", "of an average row, cycles on AVR"),
}
# Maps short names of figures to keys of FIGURES.
ALIASES = {"fmax": "fmax_mhz", "latency": "latency_cycles"}
PLURALS = {"luts": "lut", "ffs": "ff"}  # maps plurals that are accepted but never shown
_LIMIT = re.compile(r"\s*([a-z_]+)\s*(>=|<=)(.+)")


def goals_of(given: str | Sequence[str] | None, device: str | None, cpu: str | None) -> tuple[Goal, ...]:
    """Returns the goals; by default size and accuracy. Raises OptionError for an unknown or repeated figure, a single
    goal, or a figure whose device or processor is not given."""
    if not device and not cpu:
        raise OptionError(
            "nothing says what to build for",
            where=f"{opt.device}, {opt.cpu}",
            do=f"add {opt.device}, such as ecp5-25k, or {opt.cpu}",
        )
    names = [part.strip() for part in given.split(",")] if isinstance(given, str) else list(given or ())
    if not names:
        names = ["lut" if device else "flash", "accuracy"]
    figures = [_figure(name, "goal", device, cpu) for name in names]
    if len(set(figures)) < len(figures):
        raise OptionError(f"goals name one figure twice: {', '.join(names)}", where=opt.goal, do="remove one")
    if len(figures) < 2:
        raise OptionError(
            f"one goal alone, {figures[0]}", where=opt.goal, do="give two or more, such as lut,accuracy, and limits"
        )
    return tuple(Goal(name, FIGURES[name].maximize, FIGURES[name].unit) for name in figures)


def limits_of(given: Sequence[str | Limit], device: str | None, cpu: str | None) -> tuple[Limit, ...]:
    """Returns the limits read from texts such as `fmax>=150`. Raises OptionError for unknown figures or bad numbers."""
    limits = []
    for text in given:
        if isinstance(text, Limit):
            if not math.isfinite(text.value):
                raise OptionError(f"the limit of {text.figure} is no number", where=opt.limit, do="give a finite one")
            limits.append(replace(text, figure=_figure(text.figure, "limit", device, cpu)))
            continue
        parts = _LIMIT.fullmatch(text)
        value = _value(parts[1], parts[3]) if parts else math.nan
        if parts is None or not math.isfinite(value):
            raise OptionError(
                f"can't read the limit {text!r}", where=opt.limit, do="write figure>=number or figure<=number"
            )
        limits.append(Limit(_figure(parts[1], "limit", device, cpu), parts[2] == ">=", value))
    for limit in limits:
        if limit.figure == "accuracy" and limit.value > 1:
            raise OptionError(
                f"accuracy is a share, at most 1: {spelled(limit)}", where=opt.limit, do="write it as in accuracy>=0.95"
            )
    return tuple(limits)


def _value(name: str, text: str) -> float:
    """Returns the number of a limit such as 4KiB; NaN for other texts."""
    try:
        return float(text)
    except ValueError:
        read = amount(text, UNITS[name]) if name in UNITS else None
        return math.nan if read is None else float(read)


def spelled(limit: Limit) -> str:
    return f"{limit.figure}{'>=' if limit.at_least else '<='}{limit.value:g}"


def _figure(name: str, what: str, device: str | None, cpu: str | None) -> str:
    figure = (ALIASES | PLURALS).get(name, name)
    if figure not in FIGURES:
        raise OptionError(
            f"unknown {what} {name!r}",
            where=getattr(opt, what),
            do=known_names(name, sorted({*ALIASES, *FIGURES} - {*ALIASES.values()})),
        )
    needs = FIGURES[figure].needs
    if (needs == "device" and not device) or (needs == "cpu" and not cpu):
        raise OptionError(
            f"{figure} is a figure of a {'processor' if needs == 'cpu' else needs}", where=opt.goal, do=f"add --{needs}"
        )
    return figure
