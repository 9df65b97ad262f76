"""Collects all kinds of model that frontends read, by source: each name has a function that trains one."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from contract.kind import Trained

LIBRARIES = ("sklearn", "pipeline", "meta", "lightgbm", "xgboost", "onnx", "catboost", "treelite")
KINDS: dict[str, Callable[[], Trained]] = {
    name: train for library in LIBRARIES for name, train in import_module(f"contract.kinds_{library}").KINDS.items()
}
