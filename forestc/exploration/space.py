"""What a search may try of a compilation, assembled from the passes' own spaces; and `compile`'s options for it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any, get_args

import numpy as np

from forestc.costs.devices import DEVICES
from forestc.costs.prices import DEFAULT_COST
from forestc.exploration.asked import Asked
from forestc.forest.ir import Forest
from forestc.options.c import Layout
from forestc.options.parameters import Choice, Parameter, Whole, used
from forestc.passes import PASSES
from forestc.passes.base import Pass, parse_passes, print_pass, refusal
from forestc.passes.former import FORMER
from forestc.passes.options import space_of
from forestc.passes.scorer import Scorer
from forestc.rows.batches import Rows
from forestc.search.levels import DEFAULT_LEVEL, SEARCHING

SHRINK = "shrink"  # the parameter that says which passes make the forest smaller
NOTHING = "none"
# The lists of passes that may shrink a forest. prune-splits fits all leaves again, so it comes last.
SHRINKING = ("prune-splits", "prune-trees", "prune-trees+prune-splits", "regrow-trees", "extract-rules", NOTHING)
LEAF_PASS = "leaf-pass"  # the parameter that says which pass makes leaves integers; trainers have one named leaves
# What they make of leaves needs none of the pass before.
REFITTING = ("prune-splits", "regrow-trees")
LEVEL = "level"
PASSES_TAKEN = "passes"  # beside a level: what its search took
LATENCIES = 6  # clock cycles up to which the latency is searched
TIMED = {"fmax_mhz", "latency_cycles", "ff"}  # goals for which the latency is searched
LAYOUTS = ("nodes", *(layout for layout in get_args(Layout) if layout != "nodes"))  # a search begins with the smallest
# Leaves that prune-splits fits again need no more bits than this before.
BITS_BEFORE_FITTING = 6
# Bits of the leaves that prune-trees keeps, in the first designs.
KEPT_LEAF_BITS = 4
# The study itself judges designs: passes with a price of their own accept any loss.
ANY_LOSS = math.inf
RULE_COMPARATORS = 32  # that rules may use, so that trials take seconds


def compile_space(asked: Asked, source: Forest | None, fit: Rows, judged: Rows) -> tuple[Parameter, ...]:
    """The parameters of a compilation of models such as `source` (None: of any sums of trees that decide), each after
    those that it depends on."""
    scorer = None if source is None else Scorer(source, judged)
    shrinking = tuple(
        way for way in SHRINKING if all(_takes(name, source, fit, scorer) for name in way.split("+") if name != NOTHING)
    )
    parameters: list[Parameter] = [Choice(SHRINK, shrinking, approximate=True)]
    kept = tuple(way for way in shrinking if way.split("+")[-1] not in REFITTING)
    if kept and (source is None or source.decides):
        parameters.append(Choice(LEAF_PASS, ("round-leaves", "fit-leaves"), {SHRINK: kept}, approximate=True))
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
                if not kept or (name == "fit-leaves" and not decides):
                    continue
                ways, when = kept, {**when, **({LEAF_PASS: (name,)} if decides else {})}
            if ways:
                parameters.append(replace(option, name=f"{name}.{option.name}", when={**when, SHRINK: ways}))
    wanted = set(asked.figures)
    if {goal.figure for goal in asked.goals} & TIMED:
        parameters.append(Whole("latency", 0, LATENCIES))
    if asked.cpu and len(wanted & {"flash", "ram", "instructions", "mean_instructions"}) > 1:
        parameters.append(Choice("c_layout", LAYOUTS))
        if asked.device is None:
            priced = (*_ways("prune", shrinking), *_ways("regrow", shrinking))
            parameters.append(Choice("cost", ("flash", "instructions"), when={SHRINK: priced}))
    return tuple(parameters)


def _takes(name: str, source: Forest | None, fit: Rows, scorer: Scorer | None) -> bool:
    """Whether a pass takes models such as this one."""
    if name == "extract-rules" and source is not None and len(source.classes) > 2:
        return False  # as at -O3: rules of many classes are far less accurate than trees, and take longest to find
    return source is None or refusal(PASSES[name](), source, fit, scorer) is None


def _ways(name: str, shrinking: Sequence[str]) -> tuple[str, ...]:
    """The values of `shrink` with which a pass runs."""
    if name in ("share-thresholds", "quantize-inputs", "round-leaves", "fit-leaves"):
        return tuple(shrinking)
    return tuple(way for way in shrinking if any(part.startswith(name) for part in way.split("+")))


def passes_of(options: Mapping[str, Any], asked: Asked) -> list[Pass]:
    """The passes of a choice."""
    shrink, options = options[SHRINK], _renamed(options)
    leaves = options.get(LEAF_PASS, "round-leaves")
    shrinking = () if shrink == NOTHING else shrink.split("+")
    names = ["simplify", "share-thresholds", "quantize-inputs", leaves, *shrinking, "simplify"]
    return [_pass(name, options, asked) for name in names]


def _renamed(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """The options of a choice, of which studies of earlier versions call some those of `quantize`."""
    former = {key.partition(".")[2]: value for key, value in options.items() if key.startswith("quantize.")}
    if not former:
        return options
    FORMER["quantize"](former)  # refuses what is no longer an option
    leaves = "fit-leaves" if former.pop("fit", False) else "round-leaves"
    names = {"input_bits": "quantize-inputs.input_bits", "leaf_bits": f"{leaves}.leaf_bits"}
    return {**options, LEAF_PASS: leaves, **{names[name]: value for name, value in former.items() if name in names}}


def _pass(name: str, options: Mapping[str, Any], asked: Asked) -> Pass:
    settings = {key.partition(".")[2]: value for key, value in options.items() if key.startswith(f"{name}.")}
    if name == "share-thresholds" and (settings.get("exceptions") or settings.get("path_change")):
        settings["tolerance"] = ANY_LOSS
    if name in ("quantize-inputs", "fit-leaves"):
        settings["tolerance"] = ANY_LOSS
    if name == "round-leaves":
        settings = {"leaf_bits": BITS_BEFORE_FITTING, **settings, "tolerance": ANY_LOSS}
    if name in ("prune-splits", "prune-trees", "regrow-trees"):
        settings |= {"tolerance": ANY_LOSS, "cost": cost_of(options, asked)}
    if name == "extract-rules":
        settings |= {"tolerance": ANY_LOSS, "comparators": RULE_COMPARATORS, "seconds": 20.0}
    return PASSES[name](**settings)


def cost_of(options: Mapping[str, Any], asked: Asked) -> str:
    """What pruning minimizes: the LUTs of the device's family, or bytes or instructions of the processor."""
    if asked.device:
        return DEVICES[asked.device].family.name
    if not asked.cpu:
        return DEFAULT_COST
    figures = [goal.figure for goal in asked.goals if goal.figure != "accuracy"]
    figure = options.get("cost") or ("instructions" if "instructions" in figures[0] else "flash")
    return f"{figure}-{asked.cpu}"


def spelt(options: Mapping[str, Any], asked: Asked) -> dict[str, Any]:
    """The keywords of `compile` for a choice: its passes or its level, and what is made of the forest."""
    if LEVEL in options and PASSES_TAKEN not in options:
        keywords: dict[str, Any] = {"level": int(options[LEVEL])}
    elif LEVEL in options:
        keywords = {"passes": str(options[PASSES_TAKEN])}
    else:
        text = ",".join(map(print_pass, passes_of(options, asked)))
        parse_passes(text, PASSES)  # what is printed is what runs
        keywords = {"passes": text}
    if "latency" in options:
        keywords["latency"] = int(options["latency"])
    if asked.cpu:
        keywords |= {"c_layout": options.get("c_layout", "auto"), "cpu": asked.cpu}
    return keywords


def starts(space: Sequence[Parameter], training: Sequence[Mapping[str, Any]] = ()) -> list[dict[str, Any]]:
    """The designs that every search begins with, the quickest first: few trees grown anew, what trainers advise, the
    model as it is (-O1), a ladder of prices for each way to shrink, from smallest to most accurate, and the other
    levels, so that the front is no worse than theirs. -O0 is the largest, and last. Ladders take turns: the first price
    of one finds what its others go on from. training: options of the trainers."""
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
    """The passes' own defaults at a price, or the first values where these are not in the space, as with auto; the
    parameters of training are left to the sampler."""
    chosen: dict[str, Any] = {}
    for parameter in space:
        name = parameter.name
        step, _, option = name.partition(".")
        if not (step in PASSES or name in (SHRINK, LEAF_PASS, "c_layout", "cost")) or not used(parameter, chosen):
            continue
        value = way if name == SHRINK else price if option == "price" else getattr(PASSES.get(step), option, None)
        known = value in parameter.values if isinstance(parameter, Choice) else isinstance(value, int | float)
        chosen[name] = value if known else first_value(parameter)
    return chosen


def first_value(parameter: Parameter) -> Any:
    """The first value of a choice, or the lowest number."""
    return parameter.values[0] if isinstance(parameter, Choice) else parameter.low
