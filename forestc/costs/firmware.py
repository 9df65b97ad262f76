"""What parts of a forest take on a microcontroller: costs that benchmarks/firmware_costs.py fitted on real builds.

`firmware.json` holds, by processor and layout, one object for each of FIGURES: its amount per unit of each feature.
`nine_of_ten` has the range of actual to estimated values of nine of ten builds that were not in the fit, and `tool` the
compiler. Features are counted by `forestc.backends.c.demands`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from forestc.costs.fitted import is_number, is_range, json_of, text_of
from forestc.errors import ForestcError

FILE = files("forestc.costs") / "firmware.json"

DEFAULT_CPU = "cortex-m4f"  # where the user names none

# Processors that take those of another: the same Thumb-2 code, as headers compute with integers alone.
LIKE = {"cortex-m4": "cortex-m4f", "cortex-m7": "cortex-m4f"}

# flash, stack: bytes. mean: instructions (cycles on AVR) of an average row. worst: the same, at least that of any row
FIGURES = ("flash", "stack", "mean", "worst")
# Least costs of a code of a set: a load, a comparison and a branch, of numbers of four bytes. No model of the fit has
# long sets.
CODES = {"flash": 6.0, "mean": 4.0, "worst": 10.0}
CODES_OF_BYTES = {"flash": 18.0, "mean": 14.0, "worst": 36.0}  # of processors of 8 bits
# of the three features that are judged by range; a bound has none
RANGED = ("flash", "stack", "mean")


@dataclass(frozen=True)
class FirmwareCosts:
    """tool: the compiler. costs: by layout, figure and feature. nine_of_ten: (least, most) by layout and figure."""

    tool: str
    costs: Mapping[str, Mapping[str, Mapping[str, float]]]
    nine_of_ten: Mapping[str, Mapping[str, tuple[float, float]]]

    def total(self, layout: str, figure: str, features: Mapping[str, float]) -> float:
        """The sum of the features' costs; what the fit did not know costs nothing."""
        costs = self.of(layout, figure)
        return sum(costs.get(name, 0.0) * amount for name, amount in features.items())

    def of(self, layout: str, figure: str) -> Mapping[str, float]:
        """The costs of a figure, by feature."""
        costs, least = self.costs[layout][figure], CODES_OF_BYTES if self.tool.startswith("avr") else CODES
        return {**costs, "codes": max(costs.get("codes", 0.0), least.get(figure, 0.0))}


@cache
def firmware_costs() -> Mapping[str, FirmwareCosts]:
    """By processor, from the installed file, read once. Raises ForestcError if it is damaged."""
    costs = parsed(text_of(FILE, _damaged))
    return {**costs, **{cpu: costs[like] for cpu, like in LIKE.items() if like in costs}}


def parsed(text: str) -> Mapping[str, FirmwareCosts]:
    """The costs in a JSON text. Raises ForestcError that names the first fault."""
    by_cpu = {}
    for cpu, entry in _object("it", json_of(text, _damaged)).items():
        _has(cpu, entry, ("tool", "costs", "nine_of_ten"))
        costs, ranges = _object(f"{cpu}: costs", entry["costs"]), {}
        for layout, figures in costs.items():
            _has(f"{cpu}, {layout}", figures, FIGURES)
            for figure in FIGURES:
                for name, cost in _object(f"{cpu}, {layout}, {figure}", figures[figure]).items():
                    if not is_number(cost) or cost < 0:
                        raise _damaged(f"{cpu}, {layout}, {figure}: {name} costs {cost!r}")
            ranges[layout] = _ranges(f"{cpu}, {layout}", entry["nine_of_ten"], layout)
        by_cpu[cpu] = FirmwareCosts(str(entry["tool"]), costs, ranges)
    return by_cpu


def _ranges(where: str, table: object, layout: str) -> dict[str, tuple[float, float]]:
    ranges: Any = _object(where, table).get(layout)
    _has(f"{where}: nine_of_ten", ranges, RANGED)
    for figure in RANGED:
        pair = ranges[figure]
        if not is_range(pair):
            raise _damaged(f"{where}: the range of {figure} is {pair!r}")
    return {figure: (ranges[figure][0], ranges[figure][1]) for figure in RANGED}


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
