"""Defines conifer's JSON: random trees as files have them, and the answers of a plain reading, without number types."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from conifer_models import model
from contract.kind import Rows, Trained

from forestc.forest.numbers import Fixed

TYPES = {role: Fixed(12, 6, True) for role in ("input", "threshold", "score")}


def made(**more: Any) -> dict[str, Any]:
    document = model(np.random.default_rng(0), TYPES, **more)
    del document["config"]
    return document


def leaf_of(tree: dict[str, Any], row: Rows, strict: bool) -> int:
    at = 0
    while tree["feature"][at] != -2:
        value, limit = np.float32(row[tree["feature"][at]]), np.float32(tree["threshold"][at])
        left = value < limit if strict else value <= limit
        at = tree["children_left" if left else "children_right"][at]
    return at


def answers(document: dict[str, Any], rows: Rows) -> Rows:
    """Returns scores (rows, outputs), added in float32 from the initial ones on."""
    strict, width = document.get("splitting_convention", "<=") == "<", len(document["trees"][0])
    scores = np.tile(np.array(document["init_predict"][:width], dtype=np.float32), (len(rows), 1))
    for classes in document["trees"]:
        for output, tree in enumerate(classes):
            at = [leaf_of(tree, row, strict) for row in rows]
            scores[:, output] += np.array(tree["value"], dtype=np.float32)[at]
    return scores


def trained(**more: Any) -> Trained:
    document = made(**more)
    path = Path(tempfile.mkdtemp()) / "model.json"
    path.write_text(json.dumps(document))

    def decision(rows: Rows) -> Rows:
        scores = answers(document, rows)
        return scores.argmax(axis=1) if scores.shape[1] > 1 else scores[:, 0]

    X = np.random.default_rng(1).uniform(-40, 40, (300, document["n_features"])).astype(np.float32)
    return Trained(path, X, decision, scores=partial(answers, document))


KINDS: dict[str, Callable[[], Trained]] = {
    "conifer-binary": trained,
    "conifer-strict": partial(trained, convention="<"),
    "conifer-multi": partial(trained, classes=3),
}
FILES = {"conifer": lambda: json.dumps(made()).encode()}
