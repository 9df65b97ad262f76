"""Factorizes binary matrices into Boolean factors: the method and its scikit-learn transformer."""
