"""Chooses the C layout of a forest for a processor: builds the possible layouts, runs them, and takes the best one
that keeps the budgets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from forestc.backends.c.choice import chosen_layout, entry_of, possible
from forestc.backends.c.layouts import LAYOUTS
from forestc.backends.c.options import UNITS, CLayout, COptions, Layout
from forestc.backends.vectors import Vectors
from forestc.errors import MissingToolError, OptionError, opt
from forestc.firmware.avr import INSTALL
from forestc.firmware.layouts import LayoutFigures, measured_layouts
from forestc.firmware.workbench import need_libraries
from forestc.forest.ir import Forest
from forestc.toolchain.firmware import CPUS, find_compiler
from forestc.toolchain.run import find

SMALLER = "-O2, -O3, prune-trees"  # names ways to a smaller forest in messages
SLOWDOWN = 2.0  # limits the instructions of `balanced`, in times those of `fastest`


@dataclass(frozen=True)
class MeasuredChoice:
    """The chosen layout, and the measured figures of all."""

    cpu: str
    entry: str  # the C function that was measured
    tool: str  # the compiler
    layout: Layout
    layouts: Mapping[Layout, LayoutFigures]

    def as_dict(self) -> dict[str, Any]:
        return vars(self) | {"layouts": {name: vars(own) for name, own in self.layouts.items()}}


def is_measured(options: COptions) -> bool:
    """Returns True if the layout is chosen, or a budget is kept, by measurement."""
    return bool(options.cpu) and (bool(options.limits) or options.c_layout not in LAYOUTS)


def need_tools(options: COptions) -> None:
    """Raises MissingToolError if a tool that measures layouts for the processor is not installed."""
    cpu = CPUS[options.cpu]
    try:
        find_compiler(cpu)
        need_libraries(cpu)
        if not cpu.machine and find("simavr") is None:
            raise MissingToolError("simavr is not on the PATH", where=opt.cpu, do=INSTALL)
    except MissingToolError as error:
        other = "" if options.limits else f", or name a layout with {opt.c_layout}, which needs no compiler"
        raise MissingToolError(error.parts[1], where=opt.cpu, do=error.parts[2] + other) from None


def measured_choice(
    forest: Forest, options: COptions, given: Sequence[Vectors], smaller: str = SMALLER
) -> MeasuredChoice:
    """Returns the layout that suits the options and keeps their budgets. given: rows and other inputs to run.
    smaller: ways to a smaller forest, for the error message.

    Raises OptionError if no layout keeps the budgets.
    """
    named = options.c_layout in LAYOUTS
    among = (chosen_layout(forest, options),) if named else possible(forest)
    compiler = find_compiler(CPUS[options.cpu])
    layouts = measured_layouts(forest, options, among, CPUS[options.cpu], compiler, given)
    fitting = {
        name: own
        for name, own in layouts.items()
        if all(own.used(limit) <= most for limit, most in options.limits.items())
    }
    if not fitting:
        raise OptionError(
            _refusal(layouts, options, entry_of(forest), compiler.version),
            where=", ".join(getattr(opt, limit) for limit in options.limits),
            do=_ways(options, smaller),
        )
    chosen = _best(fitting, _goal(options))
    return MeasuredChoice(options.cpu, entry_of(forest), compiler.version, chosen, layouts)


def _goal(options: COptions) -> CLayout:
    if options.c_layout != "auto":
        return options.c_layout
    if (options.flash is None) == (options.instructions is None):
        return "balanced"
    return "smallest" if options.flash is None else "fastest"


def _best(layouts: Mapping[Layout, LayoutFigures], goal: CLayout) -> Layout:
    if goal == "fastest":
        return min(layouts, key=lambda name: (layouts[name].most, layouts[name].flash))
    slowest = SLOWDOWN * min(own.most for own in layouts.values())
    among = [name for name, own in layouts.items() if goal != "balanced" or own.most <= slowest]
    return min(among, key=lambda name: (layouts[name].flash, layouts[name].most))


def _refusal(layouts: Mapping[Layout, LayoutFigures], options: COptions, entry: str, tool: str) -> str:
    if len(options.limits) == 1:
        ((name, most),) = options.limits.items()
        best = min(layouts, key=lambda layout: layouts[layout].used(name))
        what = f"no layout of {entry} keeps {most:,} {UNITS[name]} on {options.cpu}"
        return f"{what}: {best} needs the least, {_used(layouts[best], name)}, by {tool}"
    figures = "; ".join(
        f"{layout}: {', '.join(f'{name} {_used(own, name)}' for name in options.limits)}"
        for layout, own in layouts.items()
    )
    limits = ", ".join(f"{name} {most:,}" for name, most in options.limits.items())
    return f"no layout of {entry} keeps all budgets ({limits}) on {options.cpu}: {figures}, by {tool}"


def _used(own: LayoutFigures, name: str) -> str:
    for_any = name == "instructions" and own.bound is not None
    return f"{own.used(name):,}" + " for any input" * for_any


def _ways(options: COptions, smaller: str) -> str:
    raised = "raise the budget to that" if len(options.limits) == 1 else "raise the budgets to those of one layout"
    return f"{raised}, or make the forest smaller: {smaller}"
