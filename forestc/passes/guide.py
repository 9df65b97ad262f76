"""Describes each pass for users, from its docstring (purpose, then `Promises:`) and its fields."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from forestc.errors import OptionError, known_names
from forestc.passes.base import Pass
from forestc.passes.options import options_of


def pass_guide(table: Mapping[str, type[Pass]], name: str) -> dict[str, Any]:
    """Returns a pass's description, a dictionary with the keys name, for, promises and options. Raises OptionError for
    an unknown pass."""
    if name not in table:
        raise OptionError(f"unknown pass {name!r}", where="forestc passes", do=known_names(name, table))
    purpose, promises = (inspect.getdoc(table[name]) or "").split("\n\n")[:2]
    return {
        "name": name,
        "for": " ".join(purpose.split()),
        "promises": " ".join(promises.removeprefix("Promises:").split()),
        "options": [
            {"name": option.name, "type": option.type, "default": option.default, "values": option.values}
            | {"meaning": option.meaning}
            for option in options_of(table[name])
        ],
    }
