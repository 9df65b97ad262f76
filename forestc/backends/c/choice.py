"""Chooses the C layout of a forest from estimates for a processor and the user's budgets. Budgets are compared with
upper estimates."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, get_args

from forestc.backends.c.inputs import Inputs, inputs_of
from forestc.backends.c.layouts import LAYOUTS
from forestc.backends.c.raw import parsed
from forestc.backends.names import identifier
from forestc.costs.firmware import DEFAULT_CPU, FirmwareCosts, firmware_costs
from forestc.errors import OptionError, known_names, opt
from forestc.forest.ir import Forest
from forestc.options.c import UNITS, CInputs, CLayout, COptions, CQuantizer, CValues, Layout

SMALLER = "-O2, -O3, prune-trees"  # names ways to a smaller forest in messages
SLOWDOWN = 2.0  # limits the worst case of `balanced`, in times that of `fastest`
MOST_BRANCHES = 20_000  # limits the splits of layouts other than `nodes`, because gcc is slow
KITS = ("selftest", "cmake", "platformio", "arduino", "zephyr", "serial")  # lists the values of the option `c_project`


def check(options: COptions) -> None:
    """Raises OptionError for an invalid option, or for options that exclude each other."""
    for name, kind in (("inputs", CInputs), ("layout", CLayout), ("quantizer", CQuantizer), ("values", CValues)):
        if (value := getattr(options, f"c_{name}")) not in get_args(kind):
            raise OptionError(
                f"unknown value {value!r}", where=getattr(opt, f"c_{name}"), do=f"use {', '.join(get_args(kind))}"
            )
    if options.c_project not in ("none", "all") and set(options.c_project.split(",")) - set(KITS):
        raise OptionError(
            f"{options.c_project!r} is no list of projects",
            where=opt.c_project,
            do=f"use none, all, or a list of {', '.join(KITS)}",
        )
    _check_budget(options)
    if options.raw and options.c_quantizer in ("float", "double"):
        raise OptionError(
            f"{options.c_inputs} needs no quantizer", where=opt.c_inputs, do=f"use {opt.c_inputs:words} or struct"
        )
    if parsed(options.c_types) and options.c_inputs != "raw":
        raise OptionError(
            f"types are for {opt.c_inputs:raw}",
            where=opt.c_types,
            do=f"use {opt.c_inputs:raw}, or leave {opt.c_types} out",
        )


def _check_budget(options: COptions) -> None:
    if not options.cpu and not options.limits:
        return
    cpus = firmware_costs()
    if options.cpu and options.cpu not in cpus:
        raise OptionError(f"unknown processor {options.cpu!r}", where=opt.cpu, do=known_names(options.cpu, cpus))
    for name, limit in options.limits.items():
        if not options.cpu:
            raise OptionError(
                f"{limit} needs a processor", where=getattr(opt, name), do=f"add {opt.cpu}, of {', '.join(cpus)}"
            )
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            raise OptionError(f"{limit}", where=getattr(opt, name), do=f"give a number of {UNITS[name]}, at least 1")


@dataclass(frozen=True)
class Estimate:
    """Estimated bytes and instructions of a C function in one layout, for all compilers of a processor."""

    layout: Layout
    flash: int  # bytes, average over compilers
    ram: int  # bytes, average over compilers
    mean: int  # instructions of an average row, by the trees' covers
    worst: int  # upper estimate of the instructions of any row
    peak: int  # middle estimate of the instructions of the most expensive row
    ranges: Mapping[str, tuple[int, int]]  # (least, most) of flash, ram and mean
    worst_by: Mapping[str, int]  # `worst` by compiler

    def most(self, limit: str) -> int:
        """Returns the upper estimate of flash, ram or instructions."""
        return self.worst if limit == "instructions" else self.ranges[limit][1]

    def as_dict(self) -> dict[str, Any]:
        ranges = {name: list(ends) for name, ends in self.ranges.items()}
        return {"flash": self.flash, "ram": self.ram, "mean": self.mean, "worst": self.worst, "ranges": ranges}


@lru_cache(maxsize=4)
def estimates(forest: Forest, form: str, types: str, cpu: str, layout: CLayout = "auto") -> Mapping[Layout, Estimate]:
    """Returns estimates by layout, without layouts that can't hold the forest or have no measured costs.
    form, types: as for `inputs_of`.
    layout: a layout to estimate even if `auto` would not try it."""
    costs, inputs = firmware_costs()[cpu], inputs_of(forest, form, types)
    by_layout: dict[Layout, Estimate] = {}
    given = tuple(name for name in LAYOUTS if name == layout)
    for kind in dict.fromkeys((*possible(forest), *given)):
        if kind in costs.layouts:
            try:
                by_layout[kind] = _estimate(inputs, kind, costs)
            except OptionError:  # This layout can't hold the forest, or has no estimates.
                continue
    return by_layout


def _estimate(inputs: Inputs, layout: Layout, costs: FirmwareCosts) -> Estimate:
    """Returns the estimated bytes and instructions in one layout. Raises OptionError if the measured costs do not cover
    this forest."""
    demand = LAYOUTS[layout].demand(inputs)
    fits = {kind: compiler.layouts[layout] for kind, compiler in costs.compilers.items()}
    amounts = {"flash": ("flash", demand.flash), "ram": ("stack", demand.stack)}
    amounts["mean"] = ("mean", demand.mean(inputs.forest))
    for fit in fits.values():
        if unknown := next(filter(None, (fit[figure].unknown(own) for figure, own in amounts.values())), ""):
            raise OptionError(
                f"there are no estimates of {layout} for a forest like this ({unknown})",
                where=opt.c_layout,
                do="use another layout, or leave the budget out and let forestc measure tell the figures",
            )
    middle, ends, names = {}, {}, demand.names
    for name, (figure, features) in amounts.items():
        least, middles, most = zip(*(fit[figure].ends(features, names) for fit in fits.values()), strict=True)
        middle[name] = round(sum(middles) / len(fits))
        ends[name] = (max(1, math.floor(min(least))), max(1, round(max(most))))
    bounds = {kind: demand.worst(fit["worst"].costs) for kind, fit in fits.items()}
    worst = {kind: round(fits[kind]["worst"].upper(names, bound)) for kind, bound in bounds.items()}
    peak = round(sum(fits[kind]["worst"].middle * bound for kind, bound in bounds.items()) / len(fits))
    return Estimate(layout, middle["flash"], middle["ram"], middle["mean"], max(worst.values()), peak, ends, worst)


def possible(forest: Forest) -> tuple[Layout, ...]:
    """Returns the layouts that `auto` chooses from: `branches` alone if the forest does not add its trees or has no
    splits; `nodes` alone if it has more than MOST_BRANCHES splits; otherwise all."""
    if not forest.adds:
        return ("branches",)
    splits = sum(len(tree.inner) for tree in forest.trees)
    if splits == 0:
        return ("branches",)
    return ("nodes",) if splits > MOST_BRANCHES else tuple(LAYOUTS)


def chosen_layout(forest: Forest, options: COptions, smaller: str = SMALLER) -> Layout:
    """Returns the layout that `options` name, or the best one within their budgets.
    smaller: ways to a smaller forest, for the error message.

    Raises OptionError if no layout fits.
    """
    layout, form, types = options.c_layout, options.c_inputs, options.c_types
    if layout in LAYOUTS and layout != "branches" and not forest.adds:
        raise OptionError(
            f"{layout} is for trees that are added", where=opt.c_layout, do=f"use {opt.c_layout:branches}"
        )
    among = possible(forest)
    if layout in LAYOUTS:
        among = tuple(name for name in LAYOUTS if name == layout)
    if len(among) == 1 and not options.limits:
        return among[0]
    cpu = options.cpu or DEFAULT_CPU
    by_layout = estimates(forest, form, types, cpu, layout)
    costs = [by_layout[name] for name in among if name in by_layout]
    if not costs and not options.limits:
        return among[0]
    if not costs:  # This raises the error of the given layout.
        costs = [_estimate(inputs_of(forest, form, types), among[0], firmware_costs()[cpu])]
    fitting = [cost for cost in costs if all(cost.most(name) <= limit for name, limit in options.limits.items())]
    if not fitting:
        raise OptionError(_refusal(costs, options, entry_of(forest)), where=opt.c_layout, do=_ways(options, smaller))
    return _best(fitting, _goal(options) if layout == "auto" else layout).layout


def _goal(options: COptions) -> CLayout:
    if (options.flash is None) == (options.instructions is None):
        return "balanced"
    return "smallest" if options.flash is None else "fastest"


def _best(costs: list[Estimate], goal: CLayout) -> Estimate:
    """Returns the best estimate for a goal. Middle estimates are compared, not upper ones."""
    if goal == "fastest":
        return min(costs, key=lambda cost: (cost.peak, cost.flash))
    if goal == "balanced":
        most = SLOWDOWN * min(cost.peak for cost in costs)
        costs = [cost for cost in costs if cost.peak <= most]
    return min(costs, key=lambda cost: (cost.flash, cost.peak))


def _ways(options: COptions, smaller: str) -> str:
    raised = "raise the budget to that" if len(options.limits) == 1 else "raise the budgets to those of one layout"
    return (
        f"{raised}, or make the forest smaller: {smaller}; without a budget forestc measure tells the figures by "
        "your compiler"
    )


def entry_of(forest: Forest) -> str:
    """Returns the name of the C function to which estimates and budgets apply."""
    return "predict" if forest.decides else "scores"


def budget_note(forest: Forest, options: COptions) -> str:
    """Returns a note to the user: budgets do not count other functions of the header."""
    further = f"{identifier(forest.name)}_quantize and other functions" if options.quantizes else "other functions"
    return f"the budgets count {entry_of(forest)} and what it calls; {further} that a program calls come on top"


def _refusal(costs: list[Estimate], options: COptions, entry: str) -> str:
    if len(options.limits) == 1:
        ((name, limit),) = options.limits.items()
        best = min(costs, key=lambda cost: cost.most(name))
        what = f"{name} budget of {limit:,} {UNITS[name]} for {entry} on {options.cpu}"
        return f"c: the {what} can't be kept for certain: {best.layout} needs the least, {_range(best, name)}"
    figures = "; ".join(
        f"{cost.layout}: {', '.join(f'{name} {_range(cost, name)}' for name in options.limits)}" for cost in costs
    )
    limits = ", ".join(f"{name} {limit:,}" for name, limit in options.limits.items())
    return f"c: no layout keeps all budgets ({limits}) for {entry} on {options.cpu} for certain: {figures}"


def _range(cost: Estimate, name: str) -> str:
    if name == "instructions":
        return f"at most {cost.worst:,}"
    least, most = cost.ranges[name]
    return f"{least:,} to {most:,}"
