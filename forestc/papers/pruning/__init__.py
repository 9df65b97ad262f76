"""Prunes ensembles by an integer program: the method, its baselines and the scikit-learn estimator."""
