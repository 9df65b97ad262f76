"""Was the home of the estimators; pickles of earlier versions import them from here."""

from forestc.integrations.sklearn_estimators import CompiledClassifier as CompiledClassifier
from forestc.integrations.sklearn_estimators import CompiledRegressor as CompiledRegressor
