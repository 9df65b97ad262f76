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

# The estimators, by the module that holds them.
_HOMES = {
    "BinaryMatrixFactorization": "forestc.papers.binary_matrix_factorization",
    "BooleanRuleClassifier": "forestc.papers.boolean_rule_classifier",
    "BoundedTreewidthNetwork": "forestc.papers.bounded_treewidth_network",
    "PrunedEnsemble": "forestc.papers.pruned_ensemble",
    "ThresholdSharing": "forestc.papers.threshold_sharing",
}
__all__ = sorted(_HOMES)  # noqa: PLE0605  type checkers read the imports above


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        import_module("forestc.options.keywords")  # errors name them
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'forestc.papers' has no attribute {name!r}")
