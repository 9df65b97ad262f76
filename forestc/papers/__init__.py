"""Offers the methods of five papers as scikit-learn estimators; they need the extra `papers`.

The estimators are imported when they are first used.
"""

import re
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from forestc.papers.binary_matrix_factorization import BinaryMatrixFactorization as BinaryMatrixFactorization
    from forestc.papers.boolean_rule_classifier import BooleanRuleClassifier as BooleanRuleClassifier
    from forestc.papers.bounded_treewidth_network import BoundedTreewidthNetwork as BoundedTreewidthNetwork
    from forestc.papers.pruned_ensemble import PrunedEnsemble as PrunedEnsemble
    from forestc.papers.threshold_sharing import ThresholdSharing as ThresholdSharing

__all__ = [
    "BinaryMatrixFactorization", "BooleanRuleClassifier", "BoundedTreewidthNetwork",
    "PrunedEnsemble", "ThresholdSharing",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in __all__:  # PrunedEnsemble is in pruned_ensemble.py
        import_module("forestc.options.keywords")  # errors name them
        file = re.sub("(?<=.)([A-Z])", r"_\1", name).lower()
        return getattr(import_module(f"forestc.papers.{file}"), name)
    raise AttributeError(f"module 'forestc.papers' has no attribute {name!r}")
