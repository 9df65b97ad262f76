"""The predictor of fitted estimators, where files that older versions pickled look for it."""

from forestc.manifest.fitted_estimator import QuantizedModel as QuantizedModel
