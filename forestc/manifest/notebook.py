"""Holds the functions that show a value in notebooks and print.

The modules of reports use those of designs and studies, not the reverse; so reports register their functions here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

Form = Literal["html", "text"]
_WRITERS: dict[tuple[type, Form], Callable[[Any], str]] = {}


def shows(kind: type, form: Form = "html") -> Callable[[Callable[[Any], str]], Callable[[Any], str]]:
    """Returns a decorator for functions that write a value of the type `kind` as HTML or as text: it registers them."""

    def register(write: Callable[[Any], str]) -> Callable[[Any], str]:
        _WRITERS[kind, form] = write
        return write

    return register


def shown_as(value: object, form: Form) -> str | None:
    """Returns the value in a form; None, for which notebooks print the repr, if no function is registered."""
    write = _WRITERS.get((type(value), form))
    return None if write is None else write(value)
