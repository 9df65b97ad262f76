"""Shares the branching conditions of ensembles: the scikit-learn estimator."""
