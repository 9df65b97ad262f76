"""Defines the parameters of a compilation that a search sets, and turns their values into passes and options."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any, get_args

import numpy as np

from forestc.backends.c.options import Layout
from forestc.costs.devices import DEVICES
from forestc.costs.prices import DEFAULT_COST
from forestc.exploration.request import ExploreRequest
from forestc.fields.parameters import Choice, Parameter, Whole, used
from forestc.forest.ir import Forest
from forestc.passes import PASSES
from forestc.passes.base import Pass, parse_passes, print_pass, refusal
from forestc.passes.options import space_of
from forestc.passes.scorer import Scorer
from forestc.rows.batches import Rows
from forestc.search.levels import DEFAULT_LEVEL, SEARCHING

SHRINK = "shrink"  # names the parameter that chooses the passes that make the forest smaller
NOTHING = "none"
# Passes that may shrink a forest; prune-splits runs last because it fits all leaves again.
SHRINKING = ("prune-splits", "prune-trees", "prune-trees+prune-splits", "regrow-trees", "extract-rules", NOTHING)
# Names the parameter that chooses the pass for integer leaves. Trainers already use the name `leaves`.
LEAF_PASS = "leaf-pass"
# Passes that replace all leaves, so an earlier pass for leaves needs no parameters.
REFITTING = ("prune-splits", "regrow-trees")
LEVEL = "level"
PASSES_TAKEN = "passes"  # names the option that records what the search of a level chose
LATENCIES = 6  # cycles of latency that the search tries at most
TIMED = {"fmax_mhz", "latency_cycles", "ff"}  # lists goals that make the latency a parameter of the search
# C layouts that a search tries, the usually smallest first.
LAYOUTS = ("nodes", *(layout for layout in get_args(Layout) if layout != "nodes"))
# Bits to which round-leaves rounds leaves if a later pass fits them again.
BITS_BEFORE_FITTING = 6
# Bits of leaves for prune-trees in the first designs of a search.
KEPT_LEAF_BITS = 4
# Tolerance of passes here: any loss, because the study itself scores each design.
ANY_LOSS = math.inf
RULE_COMPARATORS = 32  # comparators that rules may use; with more, a trial takes longer than seconds


def compile_space(request: ExploreRequest, source: Forest | None, fit: Rows, validation: Rows) -> tuple[Parameter, ...]:
    """Returns the parameters of a compilation; each depends only on earlier ones.
    source: a model like the compiled ones, if known.
    fit, validation: rows for passes and for scores."""
    scorer = None if source is None else Scorer(source, validation)
    shrinking = tuple(
        way for way in SHRINKING if all(_takes(name, source, fit, scorer) for name in way.split("+") if name != NOTHING)
    )
    parameters: list[Parameter] = [Choice(SHRINK, shrinking, approximate=True)]
    rounded = tuple(way for way in shrinking if way.split("+")[-1] not in REFITTING)
    if rounded and (source is None or source.decides):
        parameters.append(Choice(LEAF_PASS, ("round-leaves", "fit-leaves"), {SHRINK: rounded}, approximate=True))
    for name in (
        "share-thresholds",
        "quantize-inputs",
        "round-leaves",
        "fit-leaves",
        "prune-trees",
        "prune-splits",
        "regrow-trees",
        "extract-rules",
    ):
        ways = _ways(name, shrinking)
        for option in space_of(PASSES[name]):
            when = {f"{name}.{other}": values for other, values in (option.when or {}).items()}
            if name in ("round-leaves", "fit-leaves"):
                decides = any(parameter.name == LEAF_PASS for parameter in parameters)
                if not rounded or (name == "fit-leaves" and not decides):
                    continue
                ways, when = rounded, {**when, **({LEAF_PASS: (name,)} if decides else {})}
            if ways:
                parameters.append(replace(option, name=f"{name}.{option.name}", when={**when, SHRINK: ways}))
    figures = set(request.figures)
    if {goal.figure for goal in request.goals} & TIMED:
        parameters.append(Whole("latency", 0, LATENCIES))
    if request.cpu and len(figures & {"flash", "ram", "instructions", "mean_instructions"}) > 1:
        parameters.append(Choice("c_layout", LAYOUTS))
        if request.device is None:
            priced = (*_ways("prune", shrinking), *_ways("regrow", shrinking))
            parameters.append(Choice("cost", ("flash", "instructions"), when={SHRINK: priced}))
    return tuple(parameters)


def _takes(name: str, source: Forest | None, fit: Rows, scorer: Scorer | None) -> bool:
    """Returns True if a search tries the pass on models like `source`."""
    if name == "extract-rules" and source is not None and len(source.classes) > 2:
        return False  # Rules for many classes are inaccurate, and take longest to find.
    return source is None or refusal(PASSES[name](), source, fit, scorer) is None


def _ways(name: str, shrinking: Sequence[str]) -> tuple[str, ...]:
    if name in ("share-thresholds", "quantize-inputs", "round-leaves", "fit-leaves"):
        return tuple(shrinking)
    return tuple(way for way in shrinking if any(part.startswith(name) for part in way.split("+")))


def passes_of(options: Mapping[str, Any], request: ExploreRequest) -> list[Pass]:
    shrink = options[SHRINK]
    leaves = options.get(LEAF_PASS, "round-leaves")
    shrinking = () if shrink == NOTHING else shrink.split("+")
    names = ["simplify", "share-thresholds", "quantize-inputs", leaves, *shrinking, "simplify"]
    return [_pass(name, options, request) for name in names]


def _pass(name: str, options: Mapping[str, Any], request: ExploreRequest) -> Pass:
    settings = {key.partition(".")[2]: value for key, value in options.items() if key.startswith(f"{name}.")}
    if name == "share-thresholds" and (settings.get("exceptions") or settings.get("path_change")):
        settings["tolerance"] = ANY_LOSS
    if name in ("quantize-inputs", "fit-leaves"):
        settings["tolerance"] = ANY_LOSS
    if name == "round-leaves":
        settings = {"leaf_bits": BITS_BEFORE_FITTING, **settings, "tolerance": ANY_LOSS}
    if name in ("prune-splits", "prune-trees", "regrow-trees"):
        settings |= {"tolerance": ANY_LOSS, "cost": cost_of(options, request)}
    if name == "extract-rules":
        settings |= {"tolerance": ANY_LOSS, "comparators": RULE_COMPARATORS, "seconds": 20.0}
    return PASSES[name](**settings)


def cost_of(options: Mapping[str, Any], request: ExploreRequest) -> str:
    """Returns the name of the cost that pruning minimizes, such as "flash-cortex-m4"."""
    if request.device:
        return DEVICES[request.device].family.name
    if not request.cpu:
        return DEFAULT_COST
    figures = [goal.figure for goal in request.goals if goal.figure != "accuracy"]
    figure = options.get("cost") or ("instructions" if "instructions" in figures[0] else "flash")
    return f"{figure}-{request.cpu}"


def spelt(options: Mapping[str, Any], request: ExploreRequest) -> dict[str, Any]:
    """Returns the options of a trial as keywords of `compile`."""
    if LEVEL in options and PASSES_TAKEN not in options:
        keywords: dict[str, Any] = {"level": int(options[LEVEL])}
    elif LEVEL in options:
        keywords = {"passes": str(options[PASSES_TAKEN])}
    else:
        text = ",".join(map(print_pass, passes_of(options, request)))
        parse_passes(text, PASSES)  # checks that the printed passes can be read
        keywords = {"passes": text}
    if "latency" in options:
        keywords["latency"] = int(options["latency"])
    if request.cpu:
        keywords |= {"c_layout": options.get("c_layout", "auto"), "cpu": request.cpu}
    return keywords


def starts(space: Sequence[Parameter], training: Sequence[Mapping[str, Any]] = ()) -> list[dict[str, Any]]:
    """Returns the options of the first trials of every search: small forests, recommended options of the trainers, each
    pruning pass, and all levels."""
    shrink = next(parameter for parameter in space if parameter.name == SHRINK)
    assert isinstance(shrink, Choice)
    few = [_start(space, "regrow-trees", 1.0) | {"regrow-trees.trees": trees} for trees in (3, 6, 12, 25)]
    ladders: list[list[dict[str, Any]]] = []
    for way, count in (("prune-splits", 8), ("prune-trees+prune-splits", 4), ("prune-trees", 4)):
        bits = {"round-leaves.leaf_bits": KEPT_LEAF_BITS} if way == "prune-trees" else {}
        if way in shrink.values:
            ladders.append([_start(space, way, float(price)) | bits for price in np.geomspace(8.0, 0.05, count)])
    if not ladders:
        ladders = [[_start(space, NOTHING, 0.0) | {"round-leaves.leaf_bits": bits} for bits in (2, 4, 6, 8)]]
    first, *others = (design for turn in zip_longest(*ladders) for design in turn if design is not None)
    few = few if "regrow-trees" in shrink.values else []
    advised = [{**options, **_start(space, NOTHING, 0.0)} for options in training]
    levels = [{LEVEL: level} for level in (DEFAULT_LEVEL, *SEARCHING, 0)]
    return [*few[:1], first, *few[1:], *advised, levels[0], *others, *levels[1:]]


def _start(space: Sequence[Parameter], way: str, price: float) -> dict[str, Any]:
    """Returns the default options for pruning by the pass `way`, with `price` as the price."""
    chosen: dict[str, Any] = {}
    for parameter in space:
        name = parameter.name
        step, _, option = name.partition(".")
        if not (step in PASSES or name in (SHRINK, LEAF_PASS, "c_layout", "cost")) or not used(parameter, chosen):
            continue
        value = way if name == SHRINK else price if option == "price" else getattr(PASSES.get(step), option, None)
        in_space = value in parameter.values if isinstance(parameter, Choice) else isinstance(value, int | float)
        chosen[name] = value if in_space else first_value(parameter)
    return chosen


def first_value(parameter: Parameter) -> Any:
    return parameter.values[0] if isinstance(parameter, Choice) else parameter.low
