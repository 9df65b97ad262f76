"""Checks the options of C, and chooses the layout of a forest where no compiler runs."""

from __future__ import annotations

from typing import get_args

from forestc.backends.c.layouts import LAYOUTS
from forestc.backends.c.options import UNITS, CInputs, CLayout, COptions, CQuantizer, CValues, Layout
from forestc.backends.c.raw import parsed
from forestc.backends.c.rough import rough_costs
from forestc.backends.names import identifier
from forestc.costs.firmware import CPU_COSTS, DEFAULT_CPU
from forestc.errors import OptionError, known_names, opt
from forestc.forest.ir import Forest

FEW_SPLITS = 100  # splits from which `ranked` is usually smaller than `branches`
MOST_BRANCHES = 20_000  # splits up to which all layouts are tried; beyond, GCC is slow on most
# lists the values of the option `c_project`
KITS = ("selftest", "cmake", "platformio", "arduino", "zephyr", "esp-idf", "esphome", "serial")


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
    cpus = CPU_COSTS
    if options.cpu and options.cpu not in cpus:
        raise OptionError(f"unknown processor {options.cpu!r}", where=opt.cpu, do=known_names(options.cpu, cpus))
    for name, limit in options.limits.items():
        if not options.cpu:
            raise OptionError(
                f"{limit} needs a processor", where=getattr(opt, name), do=f"add {opt.cpu}, of {', '.join(cpus)}"
            )
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            raise OptionError(f"{limit}", where=getattr(opt, name), do=f"give a number of {UNITS[name]}, at least 1")


def possible(forest: Forest) -> tuple[Layout, ...]:
    """Returns the layouts to try: `branches` alone if the forest does not add its trees or has no splits; without those
    that compile slowly if it has more than MOST_BRANCHES splits; otherwise all."""
    splits = sum(len(tree.inner) for tree in forest.trees)
    if not forest.adds or splits == 0:
        return ("branches",)
    return ("nodes", "ranked") if splits > MOST_BRANCHES else tuple(LAYOUTS)


def chosen_layout(forest: Forest, options: COptions) -> Layout:
    """Returns the layout that `options` name, or the one that usually suits. It knows no processor and no budgets.

    Raises OptionError if the layout can't hold the forest.
    """
    layout, among = options.c_layout, possible(forest)
    if layout != "branches" and layout in LAYOUTS and not forest.adds:
        raise OptionError(
            f"{layout} is for trees that are added", where=opt.c_layout, do=f"use {opt.c_layout:branches}"
        )
    for name in LAYOUTS:
        if layout == name or among == (name,):
            return name
    if "branches" not in among:
        return among[0]
    if layout == "smallest":
        costs = rough_costs(forest, DEFAULT_CPU)
        return min(costs, key=lambda name: costs[name].flash)
    few = sum(len(tree.inner) for tree in forest.trees) < FEW_SPLITS
    return "branches" if few or layout == "fastest" else "ranked"


def entry_of(forest: Forest) -> str:
    """Returns the name of the C function to which figures and budgets apply."""
    return "predict" if forest.decides else "scores"


def budget_note(forest: Forest, options: COptions) -> str:
    """Returns a note to the user: budgets do not count other functions of the header."""
    further = f"{identifier(forest.name)}_quantize and other functions" if options.quantizes else "other functions"
    return f"the budgets count {entry_of(forest)} and what it calls; {further} that a program calls come on top"
