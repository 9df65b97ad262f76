"""Reads facts about a training from XGBoost's files: the objective, and each node's weight, hessian sum and gain."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forestc.frontends.shared.document import Document

# Lists the parameters of objectives that are read.
OBJECTIVE = (
    *("scale_pos_weight", "tweedie_variance_power", "quantile_alpha", "expectile_alpha", "huber_slope"),
    *("max_delta_step", "aft_loss_distribution", "aft_loss_distribution_scale"),
)
_VALUE = re.compile(r"[\w.,+\-\[\] ]{1,2000}")
NODE = ("base_weights", "loss_changes", "split_conditions", "sum_hessian")


@dataclass(frozen=True)
class TreeSums:
    """The parameters of a training and the sums at the nodes of its trees."""

    settings: Mapping[str, Any]  # parameters of `xgboost.train` in the file
    # Holds, for each tree, its arrays in the order of `NODE`, indexed by `Tree.ids`; empty for vector leaves.
    trees: tuple[tuple[NDArray[np.float64], ...], ...]
    feature_types: tuple[str, ...] | None = None  # types of the columns; None if unknown


def read_sums(document: object, where: str) -> TreeSums:
    """Reads the sums of a parsed document. Raises ModelError."""
    learner = Document(document, "", where).get("learner")
    objective, params, booster = (learner.get(key) for key in ("objective", "learner_model_param", "gradient_booster"))
    settings: dict[str, Any] = {"objective": objective.get("name").text()}
    for part in objective.value.values():
        entries = part.items() if isinstance(part, Mapping) else ()
        settings |= {key: text for key, text in entries if key in OBJECTIVE and _VALUE.fullmatch(str(text))}
    if params.get("num_class").integer(0, 1 << 20):
        settings["num_class"] = params.get("num_class").integer(0, 1 << 20)
    if not params.has("boost_from_average") or params.get("boost_from_average").value == "0":
        settings["base_score"] = params.get("base_score").text().strip("[]")
    if booster.has("gbtree"):  # dart is a booster around another one.
        settings["booster"], booster = "dart", booster.get("gbtree")
    model = booster.get("model")
    settings["num_parallel_tree"] = model.get("gbtree_model_param").get("num_parallel_tree").integer(1, 1 << 20)
    trees: list[tuple[NDArray[np.float64], ...]] = []
    for tree in model.get("trees").items():
        if tree.get("tree_param").get("size_leaf_vector").integer(0, 1 << 20) > 1:
            settings["multi_strategy"], trees = "multi_output_tree", []
            break
        arrays = tuple(tree.get(key).array(np.float64) for key in NODE)
        if len({len(array) for array in arrays}) > 1:
            raise tree.fail("has arrays of different lengths", "save the model again")
        trees.append(arrays)
    if settings["num_parallel_tree"] > len(model.get("trees").items()):
        raise model.fail(f"has fewer trees than num_parallel_tree={settings['num_parallel_tree']}", "save it again")
    kinds = learner.get("feature_types", []).items()
    return TreeSums(settings, tuple(trees), tuple(kind.text() for kind in kinds) or None)
