"""The costs that benchmarks/estimates.py fitted on real runs, read from `fitted.json` and checked.

The file holds three objects. LUT_COSTS: of each family, the LUTs that each of `LUT_FEATURES` takes. PATH_COSTS_NS: of
each device that was timed, the ns that each of `PATH_FEATURES` takes. NINE_OF_TEN: of each of these names, the ends
between which nine of ten designs lie that were not fitted on, as shares of their estimate. A family without an entry
has no estimates yet.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from forestc.costs.devices import DEVICES, FAMILIES
from forestc.errors import ForestcError

FILE = files("forestc.costs") / "fitted.json"

# logic, fast: LUTs that cover the one-bit functions, by two rules; late: those far behind a register; critical: what
# joined LUTs on the longest paths take; mux, gate: those functions of three and two inputs; pass: results of chains
# that logic does not take; the others: bits and numbers of what goes on carry chains
LUT_FEATURES = (
    "logic",
    "fast",
    "late",
    "critical",
    "mux",
    "gate",
    "pass",
    "add",
    "add_bits",
    "compare",
    "compare_bits",
    "less",
    "less_bits",
)
# of the slowest path: its cells and their bits; levels: of LUTs, each as long as its wires are in a design of that size
PATH_FEATURES = (
    "one",
    "less_bits",
    "mux",
    "logic",
    "add",
    "add_bits",
    "compare",
    "compare_bits",
    "fan_out",
    "size",
    "levels",
)


@dataclass(frozen=True)
class Fitted:
    """luts: by family and feature. paths_ns: by device and feature. nine_of_ten: (least, most) by family and device."""

    luts: Mapping[str, Mapping[str, float]]
    paths_ns: Mapping[str, Mapping[str, float]]
    nine_of_ten: Mapping[str, tuple[float, float]]


@cache
def fitted() -> Fitted:
    """What the installed file holds, read once. Raises ForestcError for a file that is damaged."""
    try:
        text = FILE.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _damaged(f"it can't be read ({error})") from None
    return parsed(text)


def parsed(text: str) -> Fitted:
    """The costs in a text of JSON. Raises ForestcError that names what is wrong."""
    try:
        table = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _damaged(f"it is no JSON ({error})") from None
    wanted = ("LUT_COSTS", "PATH_COSTS_NS", "NINE_OF_TEN")
    _has("it", table, wanted)
    for key in wanted:
        if not isinstance(table[key], dict):
            raise _damaged(f"{key} is no object")
    luts, paths, ends = (table[key] for key in wanted)
    for costs, known, features in ((luts, FAMILIES, LUT_FEATURES), (paths, DEVICES, PATH_FEATURES)):
        for name, own in costs.items():
            if name not in known:
                raise _damaged(f"it has costs of {name!r}, which is not in the table of devices")
            _has(name, own, features)
            for feature in features:
                if not _number(own[feature]) or own[feature] < 0:
                    raise _damaged(f"{name}: {feature} costs {own[feature]!r}")
    _has("NINE_OF_TEN", ends, (*luts, *paths))
    for name, pair in ends.items():
        if not isinstance(pair, list) or len(pair) != 2 or not all(map(_number, pair)) or not 0 < pair[0] < pair[1]:
            raise _damaged(f"NINE_OF_TEN: {name} lies between {pair!r}")
    return Fitted(luts, paths, {name: (low, high) for name, (low, high) in ends.items()})


def _has(what: str, found: Any, names: Sequence[str]) -> None:
    """Refuses what is not an object with just these names."""
    there = set(found) if isinstance(found, dict) else set()
    for name in names:
        if name not in there:
            raise _damaged(f"{what} has no {name!r}")
    if there - set(names):
        raise _damaged(f"{what} has {min(there - set(names))!r}, which is unknown")


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _damaged(why: str) -> ForestcError:
    return ForestcError(
        f"the table of fitted costs is damaged: {why}",
        where=str(FILE),
        do="install forestc again, or write the table by benchmarks/estimates.py --write",
    )
