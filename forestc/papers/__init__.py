"""Offers the methods of five papers as scikit-learn estimators; they need the extra `papers`.

The estimators are imported when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from forestc.papers.binary_matrix_factorization import BinaryMatrixFactorization as BinaryMatrixFactorization
    from forestc.papers.boolean_rule_classifier import BooleanRuleClassifier as BooleanRuleClassifier
    from forestc.papers.bounded_treewidth_network import BoundedTreewidthNetwork as BoundedTreewidthNetwork
    from forestc.papers.pruned_ensemble import PrunedEnsemble as PrunedEnsemble
    from forestc.papers.threshold_sharing import ThresholdSharing as ThresholdSharing

_MODULES = {
    "BinaryMatrixFactorization": "binary_matrix_factorization",
    "BooleanRuleClassifier": "boolean_rule_classifier",
    "BoundedTreewidthNetwork": "bounded_treewidth_network",
    "PrunedEnsemble": "pruned_ensemble",
    "ThresholdSharing": "threshold_sharing",
}
__all__ = sorted(_MODULES)  # noqa: PLE0605  type checkers read the imports above


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        import_module("..options.keywords", __name__)  # errors name them
        return getattr(import_module(f".{_MODULES[name]}", __name__), name)
    raise AttributeError(f"module 'forestc.papers' has no attribute {name!r}")
