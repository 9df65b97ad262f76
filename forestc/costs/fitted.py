"""Reads the costs in `fitted.json`. benchmarks/estimates.py fitted them on runs of synthesis and of place and route. A
device family without an entry has no estimates."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from forestc.costs.devices import DEVICES, FAMILIES
from forestc.errors import ForestcError
from forestc.system.records import LARGEST

FILE = files("forestc.costs") / "fitted.json"

# Lists what costs area: LUTs, nodes with three (mux) or two inputs (gate), and carry chains.
LUT_FEATURES = (
    "lut",
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
# Lists what delays the slowest path. `size` is log2(1 + the design's LUTs), `levels` the path's LUTs times `size`.
PATH_FEATURES = (
    "one",
    "lut",
    "inputs",
    "add",
    "add_bits",
    "compare",
    "compare_bits",
    "less",
    "less_bits",
    "fan_out",
    "size",
    "levels",
)
# Adds LUTs to an estimate before a range's ratios apply, as small designs vary more.
SPARE = 2


@dataclass(frozen=True)
class Fitted:
    """The fitted costs of LUTs and paths, and the ranges of estimates."""

    luts: Mapping[str, Mapping[str, float]]  # LUTs per unit, by family and feature
    paths_ns: Mapping[str, Mapping[str, float]]  # nanoseconds per unit, by device and feature
    nine_of_ten: Mapping[str, tuple[float, float]]  # ratios of built to estimated values in nine of ten designs


@cache
def fitted() -> Fitted:
    """Returns the installed costs. Raises ForestcError if `fitted.json` is damaged."""
    try:
        text = FILE.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _damaged(f"it can't be read ({error})") from None
    return parsed(text)


def parsed(text: str) -> Fitted:
    """Parses fitted costs from a JSON text. Raises ForestcError if the text is damaged."""
    try:
        table = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _damaged(f"it is not JSON ({error})") from None
    keys = ("LUT_COSTS", "PATH_COSTS_NS", "NINE_OF_TEN")
    _check_keys("it", table, keys)
    for key in keys:
        if not isinstance(table[key], dict):
            raise _damaged(f"{key} is not an object")
    luts, paths, ends = (table[key] for key in keys)
    for costs, names, features in ((luts, FAMILIES, LUT_FEATURES), (paths, DEVICES, PATH_FEATURES)):
        for name, values in costs.items():
            if name not in names:
                raise _damaged(f"it has costs for {name!r}, which is not in the table of devices")
            _check_keys(name, values, features)
            for feature in features:
                if not is_number(values[feature]) or values[feature] < 0:
                    raise _damaged(f"{name}: {feature} costs {values[feature]!r}")
    _check_keys("NINE_OF_TEN", ends, (*luts, *paths))
    for name, pair in ends.items():
        numbers = isinstance(pair, list) and len(pair) == 2 and all(map(is_number, pair))
        if not numbers or not 0 < pair[0] < pair[1]:
            raise _damaged(f"NINE_OF_TEN: the range of {name} is {pair!r}")
    return Fitted(luts, paths, {name: (low, high) for name, (low, high) in ends.items()})


def _check_keys(what: str, value: object, names: Sequence[str]) -> None:
    keys = set(value) if isinstance(value, dict) else set()
    for name in names:
        if name not in keys:
            raise _damaged(f"{what} has no {name!r}")
    if keys - set(names):
        raise _damaged(f"{what} has the unknown key {min(keys - set(names))!r}")


def is_number(value: object) -> bool:
    """Returns True for an integer or float between -LARGEST and LARGEST."""
    return isinstance(value, int | float) and not isinstance(value, bool) and -LARGEST <= value <= LARGEST


def _damaged(why: str) -> ForestcError:
    return ForestcError(
        f"the table of fitted costs is damaged: {why}",
        where=str(FILE),
        do="reinstall forestc, or rewrite the table with benchmarks/estimates.py --write",
    )
