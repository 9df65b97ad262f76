"""Purpose, promises and options of each pass, read from its docstring and fields.

The first paragraph of a pass's docstring is its purpose; the second, after `Promises:`, its guarantee. An entry
`option: meaning` for each option follows, on one or more lines.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from forestc.errors import OptionError, known_names
from forestc.passes.base import Pass
from forestc.passes.former import BECAME

_ENTRY = re.compile(r"(\w+(?:, \w+)*): (.*)")  # several options may share a meaning


def pass_guide(table: Mapping[str, type[Pass]], name: str) -> dict[str, Any]:
    """One pass as a dict: name, for, promises, and options, each with name, type, default and meaning. Raises
    OptionError for an unknown pass."""
    if name in BECAME:
        now = BECAME[name]
        raise OptionError(f"{name} became {', '.join(now)}", do=f"see forestc passes {now[0]} and the like")
    if name not in table:
        raise OptionError(f"unknown pass {name!r}", do=known_names(name, table))
    kind = table[name]
    purpose, promises, *rest = (inspect.getdoc(kind) or "").split("\n\n")
    options = {option.name: option for option in fields(kind)}  # type: ignore[arg-type]
    meanings: dict[str, list[str]] = {}
    meaning: list[str] = []
    for line in "\n".join(rest).splitlines():
        entry = _ENTRY.fullmatch(line)
        if entry and set(names := entry[1].split(", ")) <= options.keys():
            meaning = [entry[2]]
            meanings |= dict.fromkeys(names, meaning)
        else:
            meaning.append(line)
    return {
        "name": name,
        "for": " ".join(purpose.split()),
        "promises": " ".join(promises.removeprefix("Promises:").split()),
        "options": [
            {"name": key, "type": str(option.type), "default": option.default, "meaning": " ".join(meanings[key])}
            for key, option in options.items()
        ],
    }
