"""Was the home of a fitted estimator's predictor; pickles of earlier versions import it from here."""

from forestc.manifest.fitted_estimator import QuantizedModel as QuantizedModel
