"""What notebooks and print show of a value: reports stand above designs and studies, so they register their functions
here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

Form = Literal["html", "text"]
_WRITERS: dict[tuple[type, Form], Callable[[Any], str]] = {}


def shows(kind: type, form: Form = "html") -> Callable[[Callable[[Any], str]], Callable[[Any], str]]:
    """Registers a function that writes a value of the type as HTML or as text."""

    def register(write: Callable[[Any], str]) -> Callable[[Any], str]:
        _WRITERS[kind, form] = write
        return write

    return register


def shown_as(value: object, form: Form) -> str | None:
    """The value in a form; None, for which notebooks print its repr, where no function is registered."""
    write = _WRITERS.get((type(value), form))
    return None if write is None else write(value)
