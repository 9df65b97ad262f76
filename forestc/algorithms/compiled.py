"""Compiled functions, kept on disk where there is a folder for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """A decorator: the function compiled by numba, with its options. It runs beside other threads."""

    def decorate(function: Callable[..., Any]) -> Any:
        try:
            return njit(cache=True, nogil=True, **options)(function)
        except RuntimeError:  # there is no folder where compiled code could be kept
            return njit(nogil=True, **options)(function)

    return decorate
