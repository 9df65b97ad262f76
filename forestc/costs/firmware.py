"""What parts of a forest take on a microcontroller: costs that benchmarks/firmware_costs.py fitted on real builds.

`firmware.json` holds, by processor, `compilers`: for each that `forestc measure` knows its version (`tool`) and, by
layout and figure, a `Fit`. `prices` are what passes pay for parts of a forest. Features are counted by
`forestc.backends.c.demands`.
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

DEFAULT_CPU = "cortex-m4f"  # where the user names none

# Processors that take those of another: the same Thumb-2 code, as headers compute with integers alone.
LIKE = {"cortex-m4": "cortex-m4f", "cortex-m7": "cortex-m4f"}

# flash, stack: bytes. mean: instructions (cycles on AVR) of an average row. worst: the most of any row
FIGURES = ("flash", "stack", "mean", "worst")
EXACT = ("table", "curve_bytes")  # features in bytes that every compiler keeps as they are
PRICES = ("table", "split", "tree")  # bytes of a byte of tables; instructions of a split and of a tree
# Least costs of a code of a set: a load, a comparison and a branch, of numbers of four bytes. No model of the fit has
# long sets.
CODES = {"flash": 6.0, "mean": 4.0, "worst": 10.0}
CODES_OF_BYTES = {"flash": 18.0, "mean": 14.0, "worst": 36.0}  # of processors of 8 bits


@dataclass(frozen=True)
class Fit:
    """costs: by feature that builds of the fit had, none negative. least, middle, most: ratios of a build's figure to
    the sum of its features' costs, both without the features of EXACT. plus: what upper ends have beyond their ratio.
    rare: upper ratios of forests with a feature that few models of the fit had, or whose costs differ most."""

    costs: Mapping[str, float]
    least: float
    middle: float
    most: float
    plus: float
    rare: Mapping[str, float]

    def unknown(self, features: Mapping[str, float]) -> str:
        """A feature that no build of the fit had, so that nothing is known of its cost; "" if there is none."""
        return next((name for name, amount in features.items() if amount and name not in self.costs), "")

    def upper(self, names: frozenset[str], rest: float) -> float:
        """The most that features take whose costs sum up to `rest`. names: all features of the forest."""
        if "flat" in names:
            return rest  # compilers write its answer; costs hold all builds
        return self.plus + max([self.most, *(most for name, most in self.rare.items() if name in names)]) * rest

    def ends(self, features: Mapping[str, float], names: frozenset[str]) -> tuple[float, float, float]:
        """The least, middle and most of a figure. names: all features of the forest."""
        exact = sum(self.costs.get(name, 0.0) * features.get(name, 0.0) for name in EXACT)
        rest = sum(self.costs.get(name, 0.0) * amount for name, amount in features.items() if name not in EXACT)
        return exact + self.least * rest, exact + self.middle * rest, exact + self.upper(names, rest)


@dataclass(frozen=True)
class CompilerCosts:
    """tool: the compiler's version. layouts: a fit by layout and figure."""

    tool: str
    layouts: Mapping[str, Mapping[str, Fit]]


@dataclass(frozen=True)
class FirmwareCosts:
    """Costs on a processor. compilers: by kind, gcc or ziglang. prices: by `PRICES`."""

    compilers: Mapping[str, CompilerCosts]
    prices: Mapping[str, float]

    @property
    def layouts(self) -> frozenset[str]:
        """Those that are fitted for every compiler."""
        return frozenset.intersection(*(frozenset(costs.layouts) for costs in self.compilers.values()))


@cache
def firmware_costs() -> Mapping[str, FirmwareCosts]:
    """By processor, from the installed file, read once. Raises ForestcError if it is damaged."""
    costs = parsed(text_of(FILE, _damaged))
    return {**costs, **{cpu: costs[like] for cpu, like in LIKE.items() if like in costs}}


def parsed(text: str) -> Mapping[str, FirmwareCosts]:
    """The costs in a JSON text. Raises ForestcError that names the first fault."""
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
