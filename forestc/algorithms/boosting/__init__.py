"""Gradient boosting in which thresholds, columns, splits and trees have prices."""
