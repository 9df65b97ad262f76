"""Registers functions that write values as HTML for notebooks, or as text. Reports register their functions here, so
that designs need not import reports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

Form = Literal["html", "text"]
_WRITERS: dict[tuple[type, Form], Callable[[Any], str]] = {}


def shows(kind: type, form: Form = "html") -> Callable[[Callable[[Any], str]], Callable[[Any], str]]:
    """Returns a decorator that registers a function to write values of type `kind` as HTML or as text."""

    def register(write: Callable[[Any], str]) -> Callable[[Any], str]:
        _WRITERS[kind, form] = write
        return write

    return register


def shown_as(value: object, form: Form) -> str | None:
    """Returns the value as HTML or text; None if no function is registered for its type."""
    write = _WRITERS.get((type(value), form))
    return None if write is None else write(value)
