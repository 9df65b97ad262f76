"""The estimators, where files that older versions pickled look for them."""

from forestc.integrations.sklearn_estimators import CompiledClassifier as CompiledClassifier
from forestc.integrations.sklearn_estimators import CompiledRegressor as CompiledRegressor
