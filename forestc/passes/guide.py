"""What passes promise, what they are for, and their options, read from the passes' own docstrings and fields.

A pass's docstring says in its first paragraph what it is for, in the second, after `Promises:`, its guarantee. Then
comes an entry `option: meaning` for each option, which may go on over lines.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from forestc.errors import OptionError
from forestc.passes.base import Pass

_ENTRY = re.compile(r"(\w+): (.*)")


def pass_guide(table: Mapping[str, type[Pass]], name: str) -> dict[str, Any]:
    """One pass: name, for, promises, and options, each with name, type, default and meaning. Raises OptionError for a
    pass that is not in the table."""
    if name not in table:
        raise OptionError(f"unknown pass {name!r}", do=f"known: {', '.join(table)}")
    kind = table[name]
    purpose, promises, *rest = (inspect.getdoc(kind) or "").split("\n\n")
    options = {option.name: option for option in fields(kind)}  # type: ignore[arg-type]
    meanings: dict[str, list[str]] = {}
    said: list[str] = []
    for line in "\n".join(rest).splitlines():
        entry = _ENTRY.fullmatch(line)
        if entry and entry[1] in options:
            meanings[entry[1]] = said = [entry[2]]
        else:
            said.append(line)
    return {
        "name": name,
        "for": " ".join(purpose.split()),
        "promises": " ".join(promises.removeprefix("Promises:").split()),
        "options": [
            {"name": key, "type": str(option.type), "default": option.default, "meaning": " ".join(meanings[key])}
            for key, option in options.items()
        ],
    }
