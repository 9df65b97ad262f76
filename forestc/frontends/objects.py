"""Reads fitted models in memory."""

from __future__ import annotations

from collections.abc import Callable

from forestc.errors import HERE, ModelError
from forestc.forest.ir import Forest
from forestc.frontends import catboost, treelite
from forestc.frontends.lightgbm import reader as lightgbm
from forestc.frontends.onnx import reader as onnx
from forestc.frontends.shared.iterations import Iterations, refuse_cut
from forestc.frontends.sklearn import meta as sklearn_meta
from forestc.frontends.sklearn import reader as sklearn
from forestc.frontends.xgboost import reader as xgboost

# Libraries with readers that take a number of boosting iterations as a second argument.
CUT = ("xgboost", "lightgbm", "catboost")
OBJECTS: dict[str, Callable[..., Forest]] = {
    "xgboost": xgboost.read_live,
    "lightgbm": lightgbm.read_live,
    "catboost": catboost.read_live,
    "sklearn": sklearn.read_live,
    "treelite": treelite.read_live,
    "onnx": onnx.read_live,
}


def load_object(model: object, iterations: Iterations = None) -> Forest:
    """Reads a fitted model into a Forest; for a parameter search, it reads the best estimator. Raises ForestcError."""
    if getattr(model, "__dict__", {}).get("best_estimator_") is not None:
        refuse_cut(iterations)
        return sklearn_meta.read_search(model, type(model).__name__)
    if type(model).__module__.startswith("forestc.papers.") and hasattr(model, "as_forest"):
        refuse_cut(iterations)
        forest: Forest = model.as_forest()
        return forest
    for base in type(model).__mro__:
        package = base.__module__.split(".")[0]
        if package in OBJECTS:
            if base is not type(model):
                raise ModelError(
                    f"{type(model).__name__} is a subclass of {base.__name__}",
                    where=HERE,
                    do=f"pass the {base.__name__} itself: a subclass may predict differently",
                )
            if package in CUT:
                return OBJECTS[package](model, iterations)
            refuse_cut(iterations)
            return OBJECTS[package](model)
    raise ModelError(
        f"objects of type {type(model).__name__} are not read",
        where=HERE,
        do=f"known: models of {', '.join(OBJECTS)}, and paths of model files",
    )
