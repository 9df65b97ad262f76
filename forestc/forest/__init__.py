"""The Forest: forestc's form of a trained tree ensemble, and its meaning."""
