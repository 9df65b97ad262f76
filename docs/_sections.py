"""Parses docstrings in numpydoc's sections: a summary, further text, and tables of parameters, results and errors."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

# Sections of entries: a line, and its meaning below. SECTIONS is in numpydoc's order.
ENTRIES = ("Parameters", "Attributes", "Returns", "Raises")
SECTIONS = (*ENTRIES, "Notes", "References", "Examples")
_HEAD = re.compile(rf"^({'|'.join(SECTIONS)})\n-+$", re.MULTILINE)


@dataclass(frozen=True)
class Entry:
    """An entry of a section. names: empty if a result has no name. kind: the type, or the error."""

    names: tuple[str, ...]
    kind: str
    meaning: str


@dataclass(frozen=True)
class Docstring:
    """A docstring in parts.

    summary: the first paragraph. more: the paragraphs up to the first section. entries: by section. texts: the text of
    Notes, References and Examples.
    """

    summary: str
    more: str
    entries: Mapping[str, tuple[Entry, ...]]
    texts: Mapping[str, str]

    def names(self, section: str) -> list[str]:
        """Returns the names in a section, in their order, without the stars of `**options`."""
        return [name.lstrip("*") for entry in self.entries.get(section, ()) for name in entry.names]


def parsed(text: str) -> Docstring:
    """Parses a docstring without indentation, as `inspect.getdoc` returns it."""
    head, *parts = _HEAD.split(text)
    summary, _, more = head.strip().partition("\n\n")
    sections = dict(zip(parts[::2], parts[1::2], strict=True))
    return Docstring(
        " ".join(summary.split()),
        more.strip(),
        {name: tuple(_entries(name, body)) for name, body in sections.items() if name in ENTRIES},
        {name: body.strip() for name, body in sections.items() if name not in ENTRIES},
    )


def _entries(section: str, body: str) -> Iterator[Entry]:
    for match in re.finditer(r"^(\S.*)((?:\n +\S.*)*)", body, re.MULTILINE):
        names, colon, kind = match[1].partition(" : ")
        if not colon:
            named = section in ("Parameters", "Attributes")
            names, kind = (match[1], "") if named else ("", match[1])
        yield Entry(tuple(names.split(", ")) if names else (), kind, " ".join(match[2].split()))


def own_members(thing: type) -> dict[str, Any]:
    """Returns the public methods and properties that forestc itself defines for a class, by name."""
    members: dict[str, Any] = {}
    for kind in thing.__mro__:
        if kind.__module__.startswith("forestc."):
            for name, member in vars(kind).items():
                made_by_sklearn = name.startswith("set_") and name.endswith("_request")
                if not name.startswith("_") and hasattr(member, "__get__") and not made_by_sklearn:
                    members.setdefault(name, member)
    return members
