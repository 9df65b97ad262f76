"""Keeps the former address of the estimators, from which old pickles import them."""

from forestc.integrations.sklearn_estimators import CompiledClassifier as CompiledClassifier
from forestc.integrations.sklearn_estimators import CompiledRegressor as CompiledRegressor
