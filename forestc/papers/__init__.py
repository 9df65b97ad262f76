"""Offers the methods of five papers as scikit-learn estimators; they need the extra `papers`.

The estimators are imported when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from forestc.papers.factorization.estimator import BinaryMatrixFactorization as BinaryMatrixFactorization
    from forestc.papers.networks.estimator import BoundedTreewidthNetwork as BoundedTreewidthNetwork
    from forestc.papers.pruning.estimator import PrunedEnsemble as PrunedEnsemble
    from forestc.papers.rules.estimator import BooleanRuleClassifier as BooleanRuleClassifier
    from forestc.papers.sharing.estimator import ThresholdSharing as ThresholdSharing

_FOLDERS = {
    "BinaryMatrixFactorization": "factorization",
    "BooleanRuleClassifier": "rules",
    "BoundedTreewidthNetwork": "networks",
    "PrunedEnsemble": "pruning",
    "ThresholdSharing": "sharing",
}
__all__ = sorted(_FOLDERS)  # noqa: PLE0605  type checkers read the imports above


def __getattr__(name: str) -> Any:
    if name in _FOLDERS:
        import_module("..options.keywords", __name__)  # errors name them
        return getattr(import_module(f".{_FOLDERS[name]}.estimator", __name__), name)
    raise AttributeError(f"module 'forestc.papers' has no attribute {name!r}")
