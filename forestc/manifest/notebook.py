"""What notebooks and print show of a value: reports stand above designs and studies, so they register their functions
here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_SHOWN: dict[type, Callable[[Any], str]] = {}
_PRINTED: dict[type, Callable[[Any], str]] = {}


def shows(kind: type) -> Callable[[Callable[[Any], str]], Callable[[Any], str]]:
    """Registers a function that writes a value of the type as HTML."""

    def register(write: Callable[[Any], str]) -> Callable[[Any], str]:
        _SHOWN[kind] = write
        return write

    return register


def notebook_html(value: object) -> str | None:
    """The value as HTML; None, for which notebooks print its repr, where no function is registered."""
    write = _SHOWN.get(type(value))
    return None if write is None else write(value)


def prints(kind: type) -> Callable[[Callable[[Any], str]], Callable[[Any], str]]:
    """Registers a function that writes a value of the type as text."""

    def register(write: Callable[[Any], str]) -> Callable[[Any], str]:
        _PRINTED[kind] = write
        return write

    return register


def printed(value: object) -> str:
    """The value as text; its repr where no function is registered."""
    write = _PRINTED.get(type(value))
    return repr(value) if write is None else write(value)
