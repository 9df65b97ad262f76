"""Reads the costs of generated C on microcontrollers, fitted on builds (`firmware.json`): bytes or instructions per
split, condition and so on.

benchmarks/firmware_costs.py fits the costs. `forestc.backends.c.demands` counts a forest's splits, conditions and so
on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from forestc.costs.fitted import is_number, json_of, text_of
from forestc.errors import ForestcError

FILE = files("forestc.costs") / "firmware.json"

DEFAULT_CPU = "cortex-m4f"  # names the processor if the user names none

# Maps a processor to another with the same costs, as integer C compiles to the same code.
LIKE = {"cortex-m4": "cortex-m4f", "cortex-m7": "cortex-m4f"}

# Lists the figures: bytes of flash and stack, instructions (AVR: cycles) of the mean and the slowest row.
FIGURES = ("flash", "stack", "mean", "worst")
EXACT = ("table", "curve_bytes")  # lists the features in bytes that every compiler leaves unchanged
# Lists the prices: bytes per byte of tables, instructions per split, instructions per tree.
PRICES = ("table", "split", "tree")
# Bounds the cost of each category code in a set from below, as no fitted build had long sets.
CODES = {"flash": 6.0, "mean": 4.0, "worst": 10.0}
CODES_OF_BYTES = {"flash": 18.0, "mean": 14.0, "worst": 36.0}  # bounds the same costs on 8-bit processors


@dataclass(frozen=True)
class Fit:
    """The fitted costs of one figure: flash, stack, mean or worst."""

    costs: Mapping[str, float]  # cost of one unit of each feature
    least: float  # lowest ratio of built to summed costs, without EXACT features
    middle: float
    most: float
    plus: float  # bytes or instructions added to the upper end
    rare: Mapping[str, float]  # larger ratios for the upper end, by feature

    def unknown(self, features: Mapping[str, float]) -> str:
        """Returns the name of the first feature, such as "table", without a fitted cost; "" if there is none."""
        return next((name for name, amount in features.items() if amount and name not in self.costs), "")

    def upper(self, names: frozenset[str], rest: float) -> float:
        """Returns the upper end of an estimate, without the features in EXACT. names: all features of the code. rest:
        summed costs of the others."""
        if "flat" in names:
            return rest  # a forest without splits: its answer is a constant, and the costs hold in all builds
        return self.plus + max([self.most, *(most for name, most in self.rare.items() if name in names)]) * rest

    def ends(self, features: Mapping[str, float], names: frozenset[str]) -> tuple[float, float, float]:
        """Returns (lower end, middle, upper end) of an estimate. features: amounts by name, such as "table". names: all
        features of the code."""
        exact = sum(self.costs.get(name, 0.0) * features.get(name, 0.0) for name in EXACT)
        rest = sum(self.costs.get(name, 0.0) * amount for name, amount in features.items() if name not in EXACT)
        return exact + self.least * rest, exact + self.middle * rest, exact + self.upper(names, rest)


@dataclass(frozen=True)
class CompilerCosts:
    tool: str
    layouts: Mapping[str, Mapping[str, Fit]]


@dataclass(frozen=True)
class FirmwareCosts:
    """The fitted costs and prices of one processor."""

    compilers: Mapping[str, CompilerCosts]  # by kind: gcc or ziglang
    prices: Mapping[str, float]  # by name in PRICES

    @property
    def layouts(self) -> frozenset[str]:
        return frozenset.intersection(*(frozenset(costs.layouts) for costs in self.compilers.values()))


@cache
def firmware_costs() -> Mapping[str, FirmwareCosts]:
    """Returns the installed costs of all processors, by name. Raises ForestcError if `firmware.json` is damaged."""
    costs = parsed(text_of(FILE, _damaged))
    return {**costs, **{cpu: costs[like] for cpu, like in LIKE.items() if like in costs}}


def parsed(text: str) -> Mapping[str, FirmwareCosts]:
    """Parses the costs of all processors from a JSON text. Raises ForestcError if the text is damaged."""
    by_cpu = {}
    for cpu, entry in _object("it", json_of(text, _damaged)).items():
        _has(cpu, entry, ("compilers", "prices"))
        _has(f"{cpu}: prices", entry["prices"], PRICES)
        _check_costs(f"{cpu}: prices", entry["prices"])
        if not (compilers := _object(f"{cpu}: compilers", entry["compilers"])):
            raise _damaged(f"{cpu} has no compiler")
        by_cpu[cpu] = FirmwareCosts(
            {kind: _compiler(f"{cpu}, {kind}", own) for kind, own in compilers.items()}, entry["prices"]
        )
    return by_cpu


def _compiler(where: str, entry: Any) -> CompilerCosts:
    _has(where, entry, ("tool", "layouts"))
    least = CODES_OF_BYTES if str(entry["tool"]).startswith("avr") else CODES
    layouts = {}
    for layout, figures in _object(f"{where}: layouts", entry["layouts"]).items():
        _has(f"{where}, {layout}", figures, FIGURES)
        layouts[layout] = {
            figure: _fit(f"{where}, {layout}, {figure}", figures[figure], least.get(figure, 0.0)) for figure in FIGURES
        }
    return CompilerCosts(str(entry["tool"]), layouts)


def _fit(where: str, entry: Any, codes: float) -> Fit:
    _has(where, entry, ("costs", "ratios", "plus", "rare"))
    costs, ratios, plus = _object(f"{where}: costs", entry["costs"]), entry["ratios"], entry["plus"]
    _check_costs(where, costs)
    well_formed = isinstance(ratios, list) and len(ratios) == 3 and all(map(is_number, ratios))
    if not well_formed or not 0 < ratios[0] <= ratios[1] <= ratios[2]:
        raise _damaged(f"{where}: the ratios are {ratios!r}")
    if not is_number(plus) or plus < 0:
        raise _damaged(f"{where}: plus is {plus!r}")
    _check_costs(f"{where}: rare", rare := _object(f"{where}: rare", entry["rare"]))
    return Fit({**costs, "codes": max(costs.get("codes", 0.0), codes)}, ratios[0], ratios[1], ratios[2], plus, rare)


def _check_costs(where: str, costs: Mapping[str, Any]) -> None:
    for name, cost in costs.items():
        if not is_number(cost) or cost < 0:
            raise _damaged(f"{where}: {name} costs {cost!r}")


def _object(what: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _damaged(f"{what} is not an object")
    return value


def _has(what: str, value: object, names: tuple[str, ...]) -> None:
    for name in names:
        if name not in _object(what, value):
            raise _damaged(f"{what} has no {name!r}")


def _damaged(why: str) -> ForestcError:
    return ForestcError(
        f"the table of firmware costs is damaged: {why}",
        where=str(FILE),
        do="reinstall forestc, or rewrite the table with benchmarks/firmware_costs.py --write",
    )
