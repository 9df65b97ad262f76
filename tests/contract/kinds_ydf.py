"""Trains YDF models, in memory and in folders. Random settings are in tests/frontends/test_ydf_properties.py."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contract.kind import Trained
from contract.kinds_sklearn import BINARY, MULTI, REGRESSION, with_missing
from ydf_models import MODELS, archived

ULPS = 16  # units in the last place: YDF multiplies a softmax by 1 / sum, all in float32
ANOMALIES = BINARY[0], None


def of(learner: str, data: Any, task: str, folder: bool = False, **settings: Any) -> Callable[[], Trained]:
    """Returns a function that trains a model with its answers."""

    def train() -> Trained:
        ydf = pytest.importorskip("ydf", reason="ydf has no wheel for this Python")
        ydf.verbose(0)
        X, y = data
        names = [f"x{k:02}" for k in range(X.shape[1])]

        def table(rows: Any) -> dict[str, Any]:
            return dict(zip(names, np.float32(rows).T, strict=True))

        more = {} if y is None else {"label": "label", "task": ydf.Task[task]}
        labels = {} if y is None else {"label": y if task == "CLASSIFICATION" else np.float32(y)}
        model = getattr(ydf, f"{learner}Learner")(**more, **settings).train(table(X) | labels)
        classifies, forest = task == "CLASSIFICATION", learner in ("RandomForest", "Cart")

        def values(rows: Any) -> Any:
            return model.predict(table(rows))

        source: Any = model
        if folder:
            source = Path(tempfile.mkdtemp()) / "model"
            model.save(str(source))
        return Trained(
            source,
            X,
            lambda rows: model.predict_class(table(rows)) if classifies else values(rows),
            leaves=lambda rows: model.predict_leaves(table(rows) | {name: y[:1].repeat(len(rows)) for name in labels}),
            values=None if forest else values,  # shares of votes above 1 are cut by YDF
            value_ulps=0 if forest else ULPS,
        )

    return train


BOOSTED, FOREST = {"num_trees": 12, "max_depth": 4}, {"num_trees": 15, "max_depth": 6}
KINDS: dict[str, Callable[[], Trained]] = {
    "ydf-binary": of("GradientBoostedTrees", with_missing(BINARY), "CLASSIFICATION", **BOOSTED),
    "ydf-multi-folder": of("GradientBoostedTrees", MULTI, "CLASSIFICATION", folder=True, **BOOSTED),
    "ydf-boosted-regression": of("GradientBoostedTrees", with_missing(REGRESSION), "REGRESSION", **BOOSTED),
    "ydf-votes": of("RandomForest", with_missing(MULTI), "CLASSIFICATION", **FOREST),
    "ydf-shares": of("RandomForest", MULTI, "CLASSIFICATION", winner_take_all=False, **FOREST),
    "ydf-forest-regression": of("RandomForest", REGRESSION, "REGRESSION", **FOREST),
    "ydf-cart": of("Cart", BINARY, "CLASSIFICATION"),
    "ydf-isolation-folder": of("IsolationForest", ANOMALIES, "ANOMALY_DETECTION", folder=True, num_trees=20),
}
FILES = {"ydf": lambda: archived(MODELS["boosted"].files())}
