"""Makes methods of an estimator from the methods of the fitted ensemble inside it."""

from __future__ import annotations

from typing import Any

_DOC = """{does}

Parameters
----------
X : array-like, sparse matrix or data frame of shape (rows, columns)
    Rows.{more}

Returns
-------
{kind}
    As the estimator's own method.
"""
_LABELS = """
y : array-like of shape (rows,)
    Labels or values.
sample_weight : array-like of shape (rows,), optional
    Weights of the rows."""


def own_method(name: str, does: str, *, scores: bool = False) -> Any:
    """Returns a method that calls the method `name` of `estimator_`. Both exist or neither."""
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.validation import check_is_fitted

    def answer(self: Any, X: Any) -> Any:
        check_is_fitted(self)
        return getattr(self.estimator_, name)(X)

    def score(self: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
        check_is_fitted(self)
        return getattr(self.estimator_, name)(X, y, sample_weight=sample_weight)

    call = score if scores else answer
    call.__name__ = name
    call.__doc__ = _DOC.format(does=does, more=_LABELS if scores else "", kind="float" if scores else "array")
    return available_if(lambda self: hasattr(getattr(self, "estimator_", self.estimator), name))(call)
