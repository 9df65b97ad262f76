"""Reads what a model tells about its training: the estimator itself, its parameters or, in XGBoost's files, the sums at
the nodes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from forestc.frontends.catboost import exported
from forestc.frontends.kinds import PICKLE, SKOPS
from forestc.frontends.shared.content import Content
from forestc.frontends.shared.document import Document
from forestc.frontends.shared.ubjson import parse_ubjson
from forestc.frontends.sklearn.reader import open_pickle, open_skops
from forestc.frontends.xgboost.sums import TreeSums, read_sums

# Lists the parameters in LightGBM's text models that change the trees.
LIGHTGBM = (
    *("boosting", "objective", "data_sample_strategy", "learning_rate", "num_leaves", "seed", "max_depth"),
    *("min_data_in_leaf", "min_sum_hessian_in_leaf", "bagging_fraction", "pos_bagging_fraction", "bagging_freq"),
    *("neg_bagging_fraction", "bagging_seed", "feature_fraction", "feature_fraction_bynode", "feature_fraction_seed"),
    *("extra_trees", "extra_seed", "max_delta_step", "lambda_l1", "lambda_l2", "min_gain_to_split", "drop_rate"),
    *("max_drop", "skip_drop", "xgboost_dart_mode", "uniform_drop", "drop_seed", "top_rate", "other_rate"),
    *("min_data_per_group", "max_cat_threshold", "cat_l2", "cat_smooth", "max_cat_to_onehot", "path_smooth"),
    *("monotone_constraints", "monotone_constraints_method", "monotone_penalty", "feature_contri", "cegb_tradeoff"),
    *("cegb_penalty_split", "cegb_penalty_feature_lazy", "cegb_penalty_feature_coupled", "interaction_constraints"),
    *("use_quantized_grad", "num_grad_quant_bins", "quant_train_renew_leaf", "stochastic_rounding", "max_bin"),
    *("max_bin_by_feature", "min_data_in_bin", "bin_construct_sample_cnt", "data_random_seed", "enable_bundle"),
    *("use_missing", "zero_as_missing", "feature_pre_filter", "objective_seed", "num_class", "is_unbalance"),
    *("scale_pos_weight", "sigmoid", "boost_from_average", "reg_sqrt", "alpha", "fair_c", "poisson_max_delta_step"),
    *("tweedie_variance_power",),
)
# Lists the parameters in CatBoost's exports that change the trees.
CATBOOST = (
    *("loss_function", "objective", "learning_rate", "eta", "depth", "max_depth", "l2_leaf_reg", "reg_lambda"),
    *("random_strength", "bagging_temperature", "border_count", "max_bin", "feature_border_type", "random_seed"),
    *("random_state", "rsm", "colsample_bylevel", "subsample", "bootstrap_type", "mvs_reg", "sampling_frequency"),
    *("grow_policy", "min_data_in_leaf", "min_child_samples", "max_leaves", "num_leaves", "leaf_estimation_method"),
    *("leaf_estimation_iterations", "leaf_estimation_backtracking", "score_function", "boosting_type"),
    *("boost_from_average", "auto_class_weights", "class_weights", "scale_pos_weight", "nan_mode", "one_hot_max_size"),
    *("model_shrink_rate", "model_shrink_mode", "langevin", "diffusion_temperature", "monotone_constraints"),
    *("ignored_features", "fold_len_multiplier", "approx_on_full_history", "posterior_sampling", "target_border"),
    *("penalties_coefficient", "feature_weights", "first_feature_use_penalties", "random_score_type"),
)
# Lists LightGBM's parameters that are written as 0 or 1 and given as booleans.
_SWITCHES = (
    *("extra_trees", "xgboost_dart_mode", "uniform_drop", "use_quantized_grad", "quant_train_renew_leaf"),
    *("stochastic_rounding", "enable_bundle", "use_missing", "zero_as_missing", "feature_pre_filter", "is_unbalance"),
    *("boost_from_average", "reg_sqrt"),
)
# Values with blanks do not match: LightGBM would read them as further parameters.
_LINE = re.compile(r"\[(\w{1,60}): ([\w.,:+\-\[\]]{1,20000})\]")


@dataclass(frozen=True)
class KnownTraining:
    """The facts that a model tells about its training."""

    estimator: Any = None  # trained object, or None
    library: str = ""  # library of the settings; "" without settings
    settings: Mapping[str, Any] = field(default_factory=dict)  # parameters by their names in the library
    sums: TreeSums | None = None  # sums of an XGBoost model, or None


def training_of(model: object, data: bytes = b"", *, trust_pickle: bool = False) -> KnownTraining:
    """Returns what a model tells about its training. model: a fitted model, or a file's path. data: the file's bytes.
    Raises ForestcError for a damaged file."""
    if isinstance(model, str | Path):
        content = Content(data, str(model))
        if SKOPS.matches(content):
            return training_of(open_skops(content.data, content.where))
        if PICKLE.matches(content):
            return training_of(open_pickle(content.data, content.where)) if trust_pickle else KnownTraining()
        if content.data.startswith(b"tree"):
            return KnownTraining(library="lightgbm", settings=_of_lightgbm(content.data.decode("utf-8", "replace")))
        if content.has("features_info"):
            return KnownTraining(
                library="catboost", settings=_of_catboost(Document(content.document, "", content.where))
            )
        if content.has("learner.gradient_booster"):
            sums = read_sums(content.document, content.where)
            return KnownTraining(library="xgboost", settings=sums.settings, sums=sums)
        return KnownTraining()
    model = getattr(model, "best_estimator_", model)
    estimator = model if hasattr(model, "get_params") and hasattr(model, "fit") else None
    booster = model.get_booster() if hasattr(model, "get_booster") else getattr(model, "booster_", model)
    if hasattr(booster, "save_raw"):
        where = f"XGBoost {type(model).__name__}"
        sums = read_sums(parse_ubjson(bytes(booster.save_raw("ubj")), where), where)
        return KnownTraining(estimator if estimator is not None else booster, "xgboost", sums.settings, sums)
    if type(model).__module__.startswith("catboost"):  # CatBoost's estimators can't be cloned with weights of classes.
        return KnownTraining(
            library="catboost", settings=_of_catboost(exported(model, f"CatBoost {type(model).__name__}"))
        )
    if hasattr(booster, "model_to_string"):
        return KnownTraining(estimator, "lightgbm", _of_lightgbm(booster.model_to_string()))
    return KnownTraining(estimator)


def _of_lightgbm(text: str) -> dict[str, Any]:
    lines = text[max(text.rfind("\nparameters:"), 0) :].splitlines() if "\nparameters:" in text else []
    settings = [match.groups() for line in lines if (match := _LINE.fullmatch(line))]
    return {key: str(value == "1").lower() if key in _SWITCHES else value for key, value in settings if key in LIGHTGBM}


def _of_catboost(root: Document) -> dict[str, Any]:
    """Returns the user's parameters that `CATBOOST` lists; if there are any, also the learning rate and class weights
    that CatBoost chose."""
    params = root.get("model_info", {}).get("params", {})
    given = params.get("flat_params", {}).value
    settings = {key: value for key, value in given.items() if key in CATBOOST} if isinstance(given, Mapping) else {}
    rate = params.get("boosting_options", {}).get("learning_rate", 0).value
    if settings and "eta" not in settings and rate:
        settings["learning_rate"] = rate
    weights = params.get("data_processing_options", {}).get("class_weights", []).value
    if settings and "auto_class_weights" not in settings and weights:
        settings["class_weights"] = weights
    return settings
