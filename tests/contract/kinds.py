"""All kinds of model that frontends read, by source: name -> a function that trains one."""

from __future__ import annotations

from collections.abc import Callable

from contract import (
    kinds_catboost,
    kinds_lightgbm,
    kinds_meta,
    kinds_onnx,
    kinds_pipeline,
    kinds_sklearn,
    kinds_treelite,
    kinds_xgboost,
)
from contract.kind import Trained

KINDS: dict[str, Callable[[], Trained]] = {}
KINDS |= kinds_sklearn.KINDS
KINDS |= kinds_pipeline.KINDS
KINDS |= kinds_meta.KINDS
KINDS |= kinds_lightgbm.KINDS
KINDS |= kinds_xgboost.KINDS
KINDS |= kinds_onnx.KINDS
KINDS |= kinds_catboost.KINDS
KINDS |= kinds_treelite.KINDS
