"""Keeps the former address of `QuantizedModel`, from which old pickles import it."""

from forestc.manifest.fitted_estimator import QuantizedModel as QuantizedModel
