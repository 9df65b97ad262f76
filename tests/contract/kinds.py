"""Collects the models of `kinds_NAME.py`, by NAME: each has a function that trains one. FILES of these modules are
small files, as the library writes them. A module that lacks its library has one model, which raises ImportError."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from contract.kind import Trained


def _module(name: str) -> Any:
    try:
        return import_module(f"contract.kinds_{name}")
    except ModuleNotFoundError:
        again = {name: partial(import_module, f"contract.kinds_{name}")}
        return SimpleNamespace(KINDS=again, FILES=again)


MODULES = {name: _module(name) for name in sorted(p.stem[6:] for p in Path(__file__).parent.glob("kinds_*.py"))}
BY_MODULE: dict[str, dict[str, Callable[[], Trained]]] = {name: module.KINDS for name, module in MODULES.items()}
KINDS = {name: train for kinds in BY_MODULE.values() for name, train in kinds.items()}
FILES: dict[str, Callable[[], bytes]] = {
    name: make for module in MODULES.values() for name, make in getattr(module, "FILES", {}).items()
}
