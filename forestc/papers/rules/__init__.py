"""Learns Boolean decision rules: the conditions of tables and the scikit-learn classifier."""
